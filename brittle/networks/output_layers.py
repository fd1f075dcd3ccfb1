"""A module that takes pictures as one of flat rows, and one that gives probabilities as one that gives logits."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from brittle.networks.graph import Graph, GraphStep, GraphValue, fill_arguments
from brittle.networks.operations import OPERATIONS, VIEWS


class Rows(nn.Module):
    """From flat rows (n, dim) to logits (n,) or (n, C); `inner` takes (n, *shape), and may give `probabilities`."""

    def __init__(self, inner: nn.Module, shape: tuple[int, ...], classes: int, probabilities: bool = False) -> None:
        super().__init__()
        self.inner, self.shape, self.classes, self.probabilities = inner, shape, classes, probabilities

    def forward(self, X: Tensor) -> Tensor:
        rows = X.shape[0]  # `len` would fix their number in an exported program
        values: Tensor = self.inner(X.reshape(rows, *self.shape))
        values = logits_of(values) if self.probabilities else values
        return values.reshape(rows) if self.classes == 1 else values


def logits_of(probabilities: Tensor) -> Tensor:
    """Logits that decide as the probabilities do: of one the label changes at 1/2, of several the largest stays it.

    A probability that is rounded to 1 has no slope; in logits there is one up to where the float type ends.
    """
    least = torch.finfo(probabilities.dtype).tiny
    logarithms = torch.log(probabilities.clamp(min=least))
    if probabilities.ndim == 2 and probabilities.shape[1] > 1:
        return logarithms
    return logarithms - torch.log((1 - probabilities).clamp(min=least))


def are_probabilities(values: Tensor) -> bool:
    """Outputs (n,), (n, 1) or (n, C) that lie between 0 and 1 and, if there are several, add up to 1."""
    between = bool(((values >= 0) & (values <= 1)).all())
    several = values.ndim == 2 and values.shape[1] > 1
    return between and (not several or bool(((values.sum(1) - 1).abs() < 1e-2).all()))


# Networks that end in probabilities: what decides are the logits before them, and attacks need those.
#
# Where a probability is rounded to 1 its gradient is 0, and an attack that follows it stands still; and the
# probability of one class is positive whatever the example is. A probability that is made of ReLUs keeps them, and
# 1/2 is taken from it, so that its sign is the decision.


# Of several logits the largest stays the largest; of one, above 1/2 was above 0.
PROBABILITIES = {
    "softmax": "Softmax", "softmax_rows": "Softmax", "log_softmax": "LogSoftmax", "log_softmax_rows": "LogSoftmax",
    "sigmoid": "Sigmoid", "tanh": "Tanh",
}  # fmt: skip

HARD = (
    "relu", "relu6", "hardtanh", "hardsigmoid", "clamp", "clamp_min", "clamp_max", "maximum", "minimum", "abs", "neg",
    "add", "sub", "rsub", "mul", "div",
)  # fmt: skip
BETWEEN = (  # what they give lies between the numbers that they take, or 0
    *VIEWS, "mean", "mean_places", "amax", "max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d",
    "adaptive_avg_pool1d", "adaptive_avg_pool2d",
)  # fmt: skip
SLACK = 1e-6  # of limits that were written in float32
SAME = ("identity", "dropout", "contiguous")  # the axis of a softmax has to be that of the outputs
WHOLE = (*SAME, "flatten", "reshape", "view", "reshape_rows", "squeeze", "unsqueeze")  # of all numbers none is left out


def without_ending(graph: Graph) -> tuple[Graph, str]:
    """The graph up to the logits, and what was cut off: nothing, or the name of what makes probabilities of them."""
    last, behind = _ending(graph)
    return (graph, "") if last is None else (_without(graph, last, behind), PROBABILITIES[last.operation])


def _ending(graph: Graph) -> tuple[GraphStep | None, list[GraphStep]]:
    """The step that makes probabilities of the logits, where there is one, and the views of them that follow."""
    steps = {step.output: step for step in graph.steps}
    behind: list[GraphStep] = []
    last = steps.get(graph.output)
    while last is not None and last.operation in VIEWS:
        behind.insert(0, last)
        last = steps.get(next(last.inputs(), ""))
    if last is None or last.operation not in PROBABILITIES or graph.steps[-1 - len(behind) :] != [last, *behind]:
        return None, []
    kept = {"softmax": SAME, "log_softmax": SAME, "softmax_rows": WHOLE, "log_softmax_rows": WHOLE}.get(last.operation)
    whole = kept is None or all(step.operation in kept for step in behind)
    return (last, behind) if whole else (None, [])


def _without(graph: Graph, last: GraphStep, behind: list[GraphStep]) -> Graph:
    (logits,) = last.inputs()
    kept = graph.steps[: -1 - len(behind)]
    if not behind:
        return replace(graph, steps=kept, output=logits)
    first, *others = behind
    values = {
        name: GraphValue(logits) if each == GraphValue(last.output) else each for name, each in first.arguments.items()
    }
    return replace(graph, steps=[*kept, replace(first, arguments=values), *others])


def center_probability(graph: Graph) -> Graph | None:
    """The outputs less 1/2, where the last operations alone make numbers from 0 to 1 of any input; None elsewhere."""
    values = _last_values(graph)
    low, high = float(values.min()), float(values.max())
    if not (low >= -SLACK and high <= 1 + SLACK and low < 0.5 < high):
        return None
    less = GraphStep(
        "sub", {"self": GraphValue(graph.output), "other": 0.5}, f"{len(graph.steps)}: {graph.output} - 1/2"
    )
    return replace(graph, steps=[*graph.steps, less], output=less.output)


def _last_values(graph: Graph) -> Tensor:
    """What the operations at the end that treat each number alone make of numbers of all sizes."""
    steps, name, tail = {step.output: step for step in graph.steps}, graph.output, list[tuple[GraphStep, str]]()
    while name in steps and steps[name].operation in (*HARD, *BETWEEN):
        inner = set(steps[name].inputs()) - graph.constants.keys()
        single = all(graph.constants[each].numel() == 1 for each in steps[name].inputs() if each not in inner)
        if len(inner) != 1 or not single:
            break
        tail.append((steps[name], min(inner)))
        name = tail[-1][1]
    sizes = torch.logspace(-6, 9, 301, dtype=torch.float64)
    values = torch.cat([-sizes, torch.zeros(1, dtype=torch.float64), sizes, torch.linspace(-20, 20, 4001).double()])
    for step, inside in reversed(tail):
        if step.operation in HARD:
            arguments = fill_arguments(step.arguments, {inside: values}, lambda each: graph.constants[each].reshape(()))
            values = OPERATIONS[step.operation](**arguments)
    return values
