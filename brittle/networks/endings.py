"""Networks that end in probabilities: what decides are the logits before them, and attacks need those.

Where a probability is rounded to 1 its gradient is 0, and an attack that follows it stands still; and the probability
of one class is positive whatever the example is.
"""

from dataclasses import replace
from pathlib import Path

from brittle.common.errors import require
from brittle.common.notes import note
from brittle.networks.base import Network
from brittle.networks.graph import Graph, Step, Value
from brittle.networks.operations import VIEWS
from brittle.networks.rebuild import rebuilt

# Of several logits the largest stays the largest; of one, above 1/2 was above 0.
PROBABILITIES = {
    "softmax": "Softmax", "softmax_rows": "Softmax", "log_softmax": "LogSoftmax", "log_softmax_rows": "LogSoftmax",
    "sigmoid": "Sigmoid",
}  # fmt: skip


def network_of(path: str | Path, graph: Graph, shape: tuple[int, ...] = ()) -> Network:
    """The network that the graph describes, up to the logits; `shape` of one example goes before the file's own."""
    last, behind = _ending(graph)
    whole = rebuilt(path, graph, shape)  # with its ending, of which something may be wrong
    if last is None:
        return whole
    name = PROBABILITIES[last.operation]
    network = rebuilt(path, _without(graph, last, behind), shape)
    one = network.classes == 1 and name != "Sigmoid"
    require(not one, f"{path}: ends in a {name} of one output, which is the same for every example")
    note(f"{path}: ends in a {name}, which is left out: the logits before it decide, and attacks need them")
    return network


def _ending(graph: Graph) -> tuple[Step | None, list[Step]]:
    """The step that makes probabilities of the logits, where there is one, and the views of them that follow."""
    steps = {step.output: step for step in graph.steps}
    behind: list[Step] = []
    last = steps.get(graph.output)
    while last is not None and last.operation in VIEWS:
        behind.insert(0, last)
        last = steps.get(next(last.inputs(), ""))
    if last is None or last.operation not in PROBABILITIES or graph.steps[-1 - len(behind) :] != [last, *behind]:
        return None, []
    along_an_axis = last.operation in ("softmax", "log_softmax")  # which has to be that of the outputs
    same = all(step.operation in ("identity", "dropout", "contiguous") for step in behind)
    return (None, []) if along_an_axis and not same else (last, behind)


def _without(graph: Graph, last: Step, behind: list[Step]) -> Graph:
    (logits,) = last.inputs()
    kept = graph.steps[: -1 - len(behind)]
    if not behind:
        return replace(graph, steps=kept, output=logits)
    first, *others = behind
    values = {name: Value(logits) if each == Value(last.output) else each for name, each in first.arguments.items()}
    return replace(graph, steps=[*kept, replace(first, arguments=values), *others])
