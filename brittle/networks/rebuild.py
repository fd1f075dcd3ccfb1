"""From a file's graph to a network: measured without memory, then affine maps and ReLUs or else an Adapter."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from brittle.common.errors import InputError, about, note, require
from brittle.common.limits import ALWAYS_TRIED, LARGEST_ROW, LARGEST_VALUE, LARGEST_WORK, TRIED_RATIO
from brittle.networks.adapter import PROBES, SCALES, Adapter
from brittle.networks.base import Network
from brittle.networks.graph import (
    ROWS,
    Graph,
    GraphStep,
    GraphValue,
    Interpreter,
    compute_step,
    fill_arguments,
    keeps_rows,
    last_uses,
    of_one_type,
    shadow,
)
from brittle.networks.operations import VIEWS
from brittle.networks.output_layers import without_ending
from brittle.networks.recognise import Recognition, black_box, of_graph
from brittle.networks.terms import OpaqueError

CONVOLUTIONS = ("conv1d", "conv2d", "convolution")
COPY_WORK = 16  # what copying a number takes, in multiplications
INPUT_WORK = 256  # what drawing one takes
FEWEST = 4  # trials of every size: as many as are run together to see whether the examples depend on each other
RUNS = 6 * len(SCALES)  # of one trial of every size: as layers, as the graph, their terms, and thrice as a black box
PRODUCTS = {"linear": "input", "addmm": "mat1", "matmul": "self", "mm": "self"}  # and the argument that holds the rows


def rebuilt(
    path: str | Path, graph: Graph, shape: tuple[int, ...] = (), examples: Tensor | None = None
) -> tuple[Network, Recognition]:
    """The network that computes what the graph describes; `shape` of one example goes before the file's own."""
    for name, value in graph.constants.items():
        finite = not value.is_floating_point() or bool(value.isfinite().all())
        require(finite, f"{path}: array '{name[:100]}' holds NaN or infinity")
    graph = of_one_type(graph)
    shape = shape or graph.shape or _features(graph)
    require(shape != (), f"{path}: does not say the shape of its input; pass shape=(features,) or (channels, h, w)")
    size = measure_graph(path, graph, shape)
    trials = size.trials(path, graph, math.prod(shape))
    core, cut = without_ending(graph)
    try:
        network, recognition = _recognised(core, shape, size, trials, examples)
    except InputError as error:
        raise about(path, error) from None
    if cut:
        one = network.classes == 1 and cut in ("Softmax", "LogSoftmax")
        require(not one, f"{path}: ends in a {cut} of one output, which is the same for every example")
        note(f"{path}: ends in a {cut}, which is left out: the logits before it decide, and attacks need them")
    return network, recognition


def _recognised(
    graph: Graph, shape: tuple[int, ...], size: "Measured", trials: int, examples: Tensor | None
) -> tuple[Network, Recognition]:
    row_bytes = 8 * size.held
    try:
        if size.largest > LARGEST_VALUE:
            raise OpaqueError(f"it computes {size.largest} numbers at once, and {LARGEST_VALUE} are the most")
        return of_graph(graph, shape, examples=examples, trials=trials, row_bytes=row_bytes)
    except OpaqueError as reason:
        return black_box(Adapter(Interpreter(graph, row_bytes, trials), shape), str(reason))


@dataclass(frozen=True)
class Measured:
    """What one example takes: the most numbers `held` at once, the `largest` value among them, and the `work`."""

    held: int
    largest: int
    work: int

    def trials(self, path: str | Path, graph: Graph, features: int) -> int:
        """On how many random inputs of every size the network can be tried within the work that opening it may take."""
        stored = sum(each.numel() * each.element_size() for each in graph.constants.values())
        limit, one = max(ALWAYS_TRIED, TRIED_RATIO * stored), self.work + INPUT_WORK * features
        fits = [count for count in range(PROBES, 0, -FEWEST) if (RUNS * count + 3) * one <= limit]
        least = (RUNS * FEWEST + 3) * one
        words = f"{path}: opening it would take {least} multiplications, trial runs included"
        require(len(fits) > 0, f"{words}; {limit} are the most for arrays of {stored} bytes")
        return fits[0]


def measure_graph(path: str | Path, graph: Graph, shape: tuple[int, ...]) -> Measured:
    """What one example takes, found on shapes alone, or the reason for a refusal."""
    whole = all(isinstance(length, int) and 0 < length <= LARGEST_ROW for length in shape)
    large = f"{path}: an input of the shape {shape} is too large; {LARGEST_ROW} numbers are the most"
    require(whole and math.prod(shape) <= LARGEST_ROW, large)
    values: dict[str, Any] = {graph.input: torch.empty(ROWS, *shape, device="meta", dtype=torch.float32)}
    held, most, work, ends = math.prod(shape), 0, 0, last_uses(graph)
    largest = held
    from_input, counts = {graph.input}, set[str]()
    for place, step in enumerate(graph.steps):
        one_each = counts.isdisjoint(_plain_inputs(step))
        require(one_each, f"{path}: the operation '{step.operation}' depends on the number of examples")
        arguments = fill_arguments(step.arguments, values, lambda name: shadow(graph.constants[name]))
        value = values[step.output] = compute_step(path, step, arguments)
        if from_input & set(step.inputs()):
            from_input.add(step.output)
            words = f"{path}: the operation '{step.operation}' does not keep the examples of a batch apart"
            require(keeps_rows(step, arguments, value), words)
            empty = isinstance(value, Tensor) and value.numel() == 0
            require(not empty, f"{path}: the operation '{step.operation}' leaves nothing of an example")
            if step.operation == "size" and arguments["dim"] % arguments["self"].ndim == 0:
                counts.add(step.output)
        held += _numbers(value)
        scratch = _scratch(step, arguments, value)
        work += _work(step, arguments, value) + COPY_WORK * scratch
        most, largest = max(most, held + scratch), max(largest, _numbers(value))
        words = f"{path}: the operation '{step.operation}' makes the network too large"
        require(most <= LARGEST_ROW, f"{words} ({most} numbers at once; {LARGEST_ROW} are the most)")
        require(work <= LARGEST_WORK, f"{words} ({work} multiplications for one example; {LARGEST_WORK} are the most)")
        held -= sum(_numbers(values.pop(name, None)) for name in ends.get(place, ()))
    return Measured(most, largest, work)


def _plain_inputs(step: GraphStep) -> list[str]:
    """All inputs of a step, but the first length of a shape, which may be the number of examples."""
    lengths = step.arguments.get("shape", step.arguments.get("size"))
    if step.operation not in ("reshape", "view") or not isinstance(lengths, list | tuple):
        return list(step.inputs())
    return [each.name for each in (step.arguments["self"], *lengths[1:]) if isinstance(each, GraphValue)]


def _numbers(value: Any) -> int:
    """Of one example; of all where they do not depend on it."""
    if not isinstance(value, Tensor):
        return 0
    each = value.shape[1:] if value.shape[:1] == (ROWS,) else value.shape
    return math.prod(each)


def _work(step: GraphStep, arguments: dict[str, Any], value: Any) -> int:
    """Multiplications, roughly: what an unfriendly file would make endless."""
    count = _numbers(value)
    if step.operation in CONVOLUTIONS:
        W: Tensor = arguments["weight"]
        return count * math.prod(W.shape[1:])
    if step.operation in PRODUCTS:
        return count * (arguments[PRODUCTS[step.operation]].shape or (1,))[-1]
    if step.operation in ("max_pool1d", "avg_pool1d", "max_pool2d", "avg_pool2d"):
        kernel = arguments["kernel_size"]
        return 8 * count * (kernel**2 if isinstance(kernel, int) else math.prod(kernel) ** (2 // len(kernel)))
    return 16 * (count + _numbers(arguments.get("self")))


def _scratch(step: GraphStep, arguments: dict[str, Any], value: Any) -> int:
    """A convolution may copy every patch that its kernel sees."""
    if step.operation not in CONVOLUTIONS:
        return 0
    W: Tensor = arguments["weight"]
    groups: int = arguments.get("groups", 1)
    patches = _numbers(value) // max(1, W.shape[0])
    return patches * math.prod(W.shape[1:]) * groups


def _features(graph: Graph) -> tuple[int, ...]:
    """(features,) where the first thing that happens to the input is a linear layer."""
    for step in graph.steps:
        W = step.arguments.get("weight")
        if step.operation == "linear" and isinstance(W, GraphValue) and W.name in graph.constants:
            return tuple(graph.constants[W.name].shape[1:])
        if step.operation not in (*VIEWS, "size") or step.operation in ("select", "slice"):
            return ()
    return ()
