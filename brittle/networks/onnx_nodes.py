"""What each kind of ONNX node means in the one vocabulary."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from brittle.common.errors import note, require, require_value
from brittle.networks.graph import Builder, GraphValue
from brittle.networks.onnx_attributes import Attributes
from brittle.networks.onnx_shapes import Shapes

EXACT_TYPES = (1, 11)  # TensorProto.FLOAT and DOUBLE: between them a change of type rounds as all arithmetic does
WHOLE = (torch.int64, torch.int32)


class OnnxNode(Attributes):
    """One node of a file, and where its steps go.

    The inputs that its reader asks for are noted as the attributes are; `finished` refuses any other.
    """

    def __init__(self, builder: Builder, stored: Any, opset: int, shapes: Shapes) -> None:
        super().__init__(stored, opset)
        self.builder, self.output, self.shapes = builder, stored.output[0], shapes
        self.inputs = [GraphValue(name) if name else None for name in stored.input]
        self._asked: set[int] = set()

    def finished(self) -> None:
        super().finished()
        for place, each in enumerate(self.inputs):
            require(each is None or place in self._asked, f"has an input {place}, which is not read")

    def add(self, operation: str, *arguments: Any, **options: Any) -> None:
        """The last step, which gives the node's output."""
        self.builder.add(operation, *arguments, output=self.output, **options)

    def has(self, place: int) -> bool:
        self._asked.add(place)
        return len(self.inputs) > place and self.inputs[place] is not None

    def value(self, place: int, whole: bool = False) -> GraphValue:
        """An input to compute with: real numbers, or constants that are `whole`."""
        value = self._input(place)
        constant = self.builder.constants.get(value.name)
        if constant is not None:
            self.shapes.check_fixed(value.name)
            fits = constant.is_floating_point() or (whole and constant.dtype in WHOLE)
            require(fits, f"computes with '{value.name[:100]}' of the type {constant.dtype}; real numbers are needed")
        return value

    def constant(self, place: int, sized: bool = False) -> Tensor:
        """A constant input; one that holds the number of examples only where the reader knows that it is `sized`."""
        name = self._input(place).name
        require(name in self.builder.constants, f"takes '{name[:100]}', which is no constant")
        if not sized:
            self.shapes.check_fixed(name)
        return self.builder.constants[name]

    def integers(self, place: int, sized: bool = False) -> list[int]:
        """A constant list of whole numbers, such as a shape."""
        value = self.constant(place, sized)
        whole = value.dtype in WHOLE and value.ndim <= 1 and value.numel() <= 64
        require(whole, "needs a short list of whole numbers")
        return value.reshape(-1).tolist()

    def starts_with_rows(self, place: int) -> bool:
        """Whether a shape begins with the number of examples, which must stand nowhere else in it."""
        batch = self.shapes.batch.get(self._input(place).name)
        if batch is None:
            return False
        require(not batch.reshape(-1)[1:].any(), "holds the number of examples behind the first axis")
        return bool(batch.reshape(-1)[0])

    def per_axis(self, name: str, axes: int) -> list[int]:
        """One number for each axis, by default 1."""
        numbers = self.list(name, [1] * axes)
        require(len(numbers) == axes, f"has the {name} {numbers[:8]} for {axes} axes")
        return numbers

    def keep(self, value: Tensor) -> GraphValue:
        """A constant that is made of the file's, under a name that the file has not."""
        name = f"{self.output}:{len(self.builder.constants)}"
        while name in self.builder.constants:
            name += "'"
        self.shapes.keep(name, value)
        return GraphValue(name)

    def weight(self, place: int, turned: bool, factor: float = 1.0) -> GraphValue:
        """A matrix (outputs, inputs), which is the file's own or made of it once; `turned` where it stands so there."""
        W, key = self.constant(place), (self.value(place).name, turned, factor)
        require(W.ndim == 2 and W.is_floating_point(), f"has weights of the shape {tuple(W.shape)} and type {W.dtype}")
        if turned and factor == 1:
            return self.value(place)
        if key not in self.shapes.weights:
            self.shapes.weights[key] = self.keep(((W if turned else W.T) * factor).contiguous())
        return self.shapes.weights[key]

    def _input(self, place: int) -> GraphValue:
        return require_value(self.inputs[place] if self.has(place) else None, f"has no input {place}")


def _gemm(node: OnnxNode) -> None:
    require(not node.flag("transA"), "must take the rows as they are")
    W = node.weight(1, node.flag("transB"), node.number("alpha", 1.0))
    if not node.has(2):
        return node.add("linear", node.value(0), W)
    outputs = len(node.builder.constants[W.name])
    b = node.constant(2) * node.number("beta", 1.0)
    fits = tuple(b.shape) in ((), (1,), (outputs,), (1, 1), (1, outputs))
    require(fits, f"has biases of the shape {tuple(b.shape)} for {outputs} outputs")
    bias = b.reshape(-1).expand(outputs).contiguous()
    return node.add("linear", node.value(0), W, node.keep(bias))


def _matmul(node: OnnxNode) -> None:
    known = node.builder.constants
    W = known.get(node.value(1).name)
    if W is not None and W.ndim == 2 and node.value(0).name not in known:
        return node.add("linear", node.value(0), node.weight(1, False))
    return node.add("matmul", node.value(0), node.value(1))


def _conv(node: OnnxNode) -> None:
    W = node.constant(1)
    axes = W.ndim - 2
    same = node.list("kernel_shape", list(W.shape[2:])) == list(W.shape[2:])
    require(axes in (1, 2) and same, f"has a kernel of the shape {tuple(W.shape)}")
    rows, padding = _padded(node, list(W.shape[2:]))
    strides, dilations = node.per_axis("strides", axes), node.per_axis("dilations", axes)
    bias = node.value(2) if node.has(2) else None
    groups = node.integer("group", 1)
    node.add(f"conv{axes}d", rows, node.value(1), bias, strides, padding, dilations, groups)


def _padded(node: OnnxNode, kernel: list[int]) -> tuple[GraphValue, list[int]]:
    """The input and its symmetric padding; other padding becomes a step of its own."""
    axes = len(kernel)
    pads = _pads(node, kernel)
    require(len(pads) == 2 * axes and min(pads) >= 0, "has a padding that is not given in numbers")
    before, after = pads[:axes], pads[axes:]
    if before == after:
        return node.value(0), before
    order = [each for pair in zip(reversed(before), reversed(after), strict=True) for each in pair]
    return node.builder.add("constant_pad_nd", node.value(0), order), [0] * axes


def _pads(node: OnnxNode, kernel: list[int]) -> list[int]:
    """At the beginnings of the axes and then at their ends; 'same' is as much as gives every stride an output."""
    way, axes = node.text("auto_pad", "NOTSET"), len(kernel)
    given = node.list("pads", [0] * (2 * axes))
    if way == "NOTSET":
        return given
    require(not any(given), f"has the padding {way[:20]} and another one in numbers")
    if way == "VALID":
        return given
    require(way in ("SAME_UPPER", "SAME_LOWER"), f"has the padding {way[:20]}; export it with pads in numbers")
    strides, dilations = node.per_axis("strides", axes), node.per_axis("dilations", axes)
    lengths = node.shapes.of(node.value(0).name)[-axes:]
    require(min(strides) > 0, f"has the strides {strides}; they must be positive")
    whole = []
    for length, size, stride, dilation in zip(lengths, kernel, strides, dilations, strict=True):
        outputs = -(-length // stride)
        whole.append(max(0, (outputs - 1) * stride + (size - 1) * dilation + 1 - length))
    less, more = [each // 2 for each in whole], [each - each // 2 for each in whole]
    return [*less, *more] if way == "SAME_UPPER" else [*more, *less]


def _window(node: OnnxNode) -> tuple[int, list[int], list[int], list[int]]:
    """Of a pooling: the number of axes, kernel, strides and padding."""
    kernel = node.list("kernel_shape", [])
    axes = len(kernel)
    require(axes in (1, 2), f"has a kernel of the shape {kernel[:8]}; one or two axes are read")
    pads = _pads(node, kernel)
    require(len(pads) == 2 * axes and pads[:axes] == pads[axes:], "has a padding that is not symmetric")
    return axes, kernel, node.per_axis("strides", axes), pads[:axes]


def _max_pool(node: OnnxNode) -> None:
    axes, kernel, strides, pads = _window(node)
    dilations, ceil = node.per_axis("dilations", axes), node.flag("ceil_mode")
    node.add(f"max_pool{axes}d", node.value(0), kernel, strides, pads, dilations, ceil)


def _average_pool(node: OnnxNode) -> None:
    axes, kernel, strides, pads = _window(node)
    require(set(node.per_axis("dilations", axes)) == {1}, "has dilations")
    ceil, whole = node.flag("ceil_mode"), node.flag("count_include_pad")
    node.add(f"avg_pool{axes}d", node.value(0), kernel, strides, pads, ceil, whole)


def _pad(node: OnnxNode) -> None:
    """The numbers are inputs since version 11 and were attributes before; ATen begins at the last axis."""
    mode = node.text("mode", "constant")
    require(mode == "constant", f"has the padding '{mode[:20]}'; a constant one is read")
    pads = node.integers(1) if node.has(1) else node.list("pads", [])
    before, after = pads[: len(pads) // 2], pads[len(pads) // 2 :]
    axes = node.integers(3) if node.has(3) else list(range(-len(before), 0))
    whole = 0 < len(before) == len(after) == len(axes) and all(axis < 0 for axis in axes)
    require(whole, "has a padding that is not given for every axis")
    sides = {axis: pair for axis, *pair in zip(axes, before, after, strict=True)}
    order = [side for axis in range(-1, min(axes) - 1, -1) for side in sides.get(axis, (0, 0))]
    value = node.constant(2) if node.has(2) else torch.tensor(node.number("value", 0.0))
    require(value.numel() == 1 and bool(value.isfinite()), "pads with something else than one number")
    node.add("constant_pad_nd", node.value(0), order, float(value))


def _slice(node: OnnxNode) -> None:
    """The numbers are inputs since version 10 and were attributes before; one step for each axis."""
    places = [node.list(name, []) for name in ("starts", "ends", "axes")]
    if node.has(1):
        places = [node.integers(place) if node.has(place) else [] for place in (1, 2, 3)]
    starts, ends, axes = places
    steps = node.integers(4) if node.has(4) else [1] * len(starts)
    axes = axes or list(range(len(starts)))
    whole = 0 < len(starts) == len(ends) == len(axes) == len(steps)
    require(whole and len(set(axes)) == len(axes), "does not say once where it starts and ends on every axis")
    *others, last = zip(axes, starts, ends, steps, strict=True)
    value = node.value(0)
    for each in others:
        value = node.builder.add("slice", value, *each)
    node.add("slice", value, *last)


def _batch_norm(node: OnnxNode) -> None:
    require(not node.flag("training_mode"), "normalises by the batch; export in evaluation mode")
    node.ignore("momentum")  # of training
    scale, shift, mean, variance = (node.value(place) for place in (1, 2, 3, 4))
    node.add("batch_norm", node.value(0), scale, shift, mean, variance, False, 0.0, node.number("epsilon", 1e-5))


def _reshape(node: OnnxNode) -> None:
    lengths = node.integers(1, sized=True)
    first, *rest = lengths or [0]
    kept = node.starts_with_rows(1) or first in (-1, 1, node.builder.rows)
    kept = kept or (first == 0 and not node.flag("allowzero"))
    require(kept and len(rest) > 0, f"reshapes to {lengths}, which mixes the examples")
    node.ignore("allowzero")  # behind the first place there is no 0
    known = all(length > 0 or length == -1 for length in rest) and lengths.count(-1) <= 1
    require(known, f"reshapes to {lengths}, which is not read")
    node.add("reshape_rows", node.value(0), rest)


def _flatten(node: OnnxNode) -> None:
    require(node.integer("axis", 1) == 1, "flattens more than each example")
    node.add("reshape_rows", node.value(0), [-1])


def _clip(node: OnnxNode) -> None:
    """The limits are inputs since version 11 and were attributes before."""
    limits = []
    for place, name in ((1, "min"), (2, "max")):
        value = node.constant(place) if node.has(place) else None
        require(value is None or value.numel() == 1, "clips to an array")
        limits.append(node.number(name, torch.nan) if value is None else float(value))
    low, high = (None if limit != limit else limit for limit in limits)
    if low is None and high is None:
        return node.add("identity", node.value(0))
    return node.add("clamp", node.value(0), low, high)


def _axes(node: OnnxNode) -> list[int]:
    return node.integers(1) if node.has(1) else node.list("axes", [])


def _cast(node: OnnxNode) -> None:
    to = node.integer("to", 0)
    require(to in EXACT_TYPES, f"casts to something else than floats of 32 or 64 bits (type {to}), which rounds")
    node.add("identity", node.value(0))


def _unsqueeze(node: OnnxNode) -> None:
    axes = _axes(node)
    require(len(axes) == 1, f"adds the axes {axes}; one is read")
    node.add("unsqueeze", node.value(0), axes[0])


def _squeeze(node: OnnxNode) -> None:
    axes = _axes(node)
    lengths = node.shapes.of(node.value(0).name) if axes else []
    fits = all(-len(lengths) <= axis < len(lengths) and lengths[axis] == 1 for axis in axes)
    require(fits, f"drops the axes {axes} of {lengths}, which are longer than 1")
    node.add("squeeze", node.value(0), axes or None)


def _simple(operation: str, *inputs: int) -> Callable[[OnnxNode], None]:
    return lambda node: node.add(operation, *(node.value(place) for place in inputs))


def _several(operation: str) -> Callable[[OnnxNode], None]:
    """Of one input or more, two at a time."""

    def read(node: OnnxNode) -> None:
        first, *others = (node.value(place) for place in range(len(node.inputs)))
        if not others:
            return node.add("identity", first)
        for each in others[:-1]:
            first = node.builder.add(operation, first, each)
        return node.add(operation, first, others[-1])

    return read


def _over_axes(operation: str) -> Callable[[OnnxNode], None]:
    def read(node: OnnxNode) -> None:
        axes = _axes(node)
        require(len(axes) > 0, "must name its axes")
        node.ignore("noop_with_empty_axes")
        node.add(operation, node.value(0), axes, node.flag("keepdims", True))

    return read


def _hard_sigmoid(node: OnnxNode) -> None:
    slope = node.builder.add("mul", node.value(0), node.number("alpha", 0.2))
    node.add("clamp", node.builder.add("add", slope, node.number("beta", 0.5)), 0.0, 1.0)


def _layer_norm(node: OnnxNode) -> None:
    axis = node.integer("axis", -1)
    shape = node.shapes.of(node.value(0).name)
    require(axis % len(shape) > 0, "normalises more than each example")
    scale, shift = node.value(1), node.value(2) if node.has(2) else None
    node.add("layer_norm", node.value(0), shape[axis % len(shape) :], scale, shift, node.number("epsilon", 1e-5))


def _gather(node: OnnxNode) -> None:
    """One place of an axis; several are not read."""
    place = node.constant(1)
    single = place.ndim == 0 and place.dtype in WHOLE
    require(single, f"gathers at places of the shape {tuple(place.shape)}; one place is read")
    node.add("select", node.value(0), node.integer("axis", 0), int(place))


def _concat(node: OnnxNode) -> None:
    node.add("cat", [node.value(place) for place in range(len(node.inputs))], node.integer("axis", 1))


def _softmax(node: OnnxNode) -> None:
    """Along one axis since version 13; before, over all axes from one on, as if they were laid flat."""
    old, name = node.opset < 13, "log_softmax" if node.kind == "LogSoftmax" else "softmax"
    axis = node.integer("axis", 1 if old else -1)
    if old and axis == 1:
        return node.add(f"{name}_rows", node.value(0))
    require(not old or axis == -1, f"is along the axis {axis} in version {node.opset}; export with version 13 or newer")
    return node.add(name, node.value(0), axis)


def _dropout(node: OnnxNode) -> None:
    """As in evaluation: whoever exports a network in training mode means the network."""
    node.ignore("ratio", "seed")
    node.has(1)  # the ratio
    if node.has(2) and bool(node.constant(2).any()):
        note(f"{node.builder.path}: a Dropout is in training mode; it is read as in evaluation, where it does nothing")
    node.add("identity", node.value(0))


NODES: dict[str, Callable[[OnnxNode], None]] = {
    "Gemm": _gemm, "MatMul": _matmul, "Conv": _conv, "Reshape": _reshape, "Flatten": _flatten, "Clip": _clip,
    "MaxPool": _max_pool, "AveragePool": _average_pool, "GlobalAveragePool": _simple("mean_places", 0),
    "Pad": _pad, "Slice": _slice, "Cast": _cast,
    "BatchNormalization": _batch_norm, "Concat": _concat, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze,
    "ReduceMean": _over_axes("mean"), "ReduceSum": _over_axes("sum"), "ReduceMax": _over_axes("amax"),
    "LayerNormalization": _layer_norm, "HardSigmoid": _hard_sigmoid, "Gather": _gather,
    "Identity": _simple("identity", 0), "Dropout": _dropout,
    "Relu": _simple("relu", 0), "Sigmoid": _simple("sigmoid", 0), "Tanh": _simple("tanh", 0),
    "Erf": _simple("erf", 0), "Exp": _simple("exp", 0), "Sqrt": _simple("sqrt", 0), "Abs": _simple("abs", 0),
    "Neg": _simple("neg", 0), "Add": _simple("add", 0, 1), "Sub": _simple("sub", 0, 1), "Mul": _simple("mul", 0, 1),
    "Div": _simple("div", 0, 1), "Max": _several("maximum"), "Min": _several("minimum"), "Sum": _several("add"),
    "PRelu": _simple("prelu_spread", 0, 1), "HardSwish": _simple("hardswish", 0), "Softplus": _simple("softplus", 0),
    "Pow": lambda node: node.add("pow", node.value(0), node.value(1, whole=True)),
    "Softmax": _softmax, "LogSoftmax": _softmax,
    "LeakyRelu": lambda node: node.add("leaky_relu", node.value(0), node.number("alpha", 0.01)),
    "Gelu": lambda node: node.add("gelu", node.value(0), node.text("approximate", "none")),
    "Elu": lambda node: node.add("elu", node.value(0), node.number("alpha", 1.0)),
    "Transpose": lambda node: node.add("permute", node.value(0), node.list("perm", [])),
}  # fmt: skip
