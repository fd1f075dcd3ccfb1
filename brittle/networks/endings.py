"""Networks that end in probabilities: what decides are the logits before them, and attacks need those.

Where a probability is rounded to 1 its gradient is 0, and an attack that follows it stands still; and the probability
of one class is positive whatever the example is.
"""

from dataclasses import replace

from brittle.networks.graph import Graph, Step, Value
from brittle.networks.operations import VIEWS

# Of several logits the largest stays the largest; of one, above 1/2 was above 0.
PROBABILITIES = {
    "softmax": "Softmax", "softmax_rows": "Softmax", "log_softmax": "LogSoftmax", "log_softmax_rows": "LogSoftmax",
    "sigmoid": "Sigmoid", "tanh": "Tanh",
}  # fmt: skip


def without_ending(graph: Graph) -> tuple[Graph, str]:
    """The graph up to the logits, and what was cut off: nothing, or the name of what makes probabilities of them."""
    last, behind = _ending(graph)
    return (graph, "") if last is None else (_without(graph, last, behind), PROBABILITIES[last.operation])


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
