"""Random ONNX graphs of opsets 7 to 22 in files; the reference is onnxruntime with graph optimisation disabled.

A node is kept if onnxruntime runs the graph up to it, which also tells the shape of its output.
"""

import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor

from benchmarks.differential.outcomes import outcome
from benchmarks.differential.tally import ReadingTally, shortened, skipped
from brittle.networks import read_network

OLDEST, NEWEST = 7, 22
LARGEST = 150  # numbers of one example
FLOATS = (np.float32, np.float64)
Array = NDArray[Any]
PLAIN: dict[str, float] = {}


@dataclass
class Drawn:
    """The nodes and constants of a graph, its values' shapes with the batch, and the name of its output."""

    rng: np.random.Generator
    opset: int
    dtype: Any
    shape: tuple[int, ...]
    rows: int | str  # of the input, as the file says it
    style: str
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    values: dict[str, tuple[int, ...]] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)
    current: str = "x"
    imports: tuple[int, ...] = ()
    probabilities: bool = False  # whether the last node makes them of the logits
    _new: list[Any] = field(default_factory=list)
    _count: int = 0

    def __post_init__(self) -> None:
        self.values["x"] = (self.batch, *self.shape)

    @property
    def batch(self) -> int:
        """The rows of the batch on which a node is tried."""
        return self.rows if isinstance(self.rows, int) else 2

    @property
    def now(self) -> tuple[int, ...]:
        """The shape of one example of the current value."""
        return self.values[self.current][1:]

    def whole(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def flag(self, chance: float = 0.5) -> bool:
        return bool(self.rng.random() < chance)

    def one(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def number(self, low: float = -2, high: float = 2) -> float:
        return float(np.round(self.rng.uniform(low, high), 2)) or 0.5

    def const(self, values: Any) -> str:
        """An initializer, or a Constant node."""
        array = np.asarray(values)
        self._count += 1
        name = f"c{self._count}"
        if self.flag(0.1) and self.opset >= 9:
            self._new.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        else:
            self.constants[name] = array
        return name

    def floats(self, *shape: int, low: float | None = None) -> str:
        drawn = self.rng.normal(size=shape)
        if self.style == "whole numbers":
            drawn = self.rng.integers(-2, 3, size=shape).astype(np.float64)
        if low is not None:
            drawn = np.abs(drawn) + low
        return self.const(np.asarray(drawn).astype(self.dtype))

    def single(self, value: float) -> str:
        return self.const(np.array(value, dtype=self.dtype))

    def ints(self, *values: int) -> str:
        return self.const(np.array(values, dtype=np.int64))

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        self._count += 1
        names = [f"v{self._count}"] + [f"v{self._count}_{place}" for place in range(1, outputs)]
        given = {key: value for key, value in attributes.items() if value is not None}
        self._new.append(helper.make_node(kind, list(inputs), names, **given))
        return names[0]

    def alike(self) -> str:
        same = [name for name, shape in self.values.items() if shape == self.values[self.current]]
        return str(self.one(*same))

    def step(self, kind: str, template: "Template") -> bool:
        """Try a template's nodes, and keep them if onnxruntime runs them and the result still has a batch."""
        self._new, constants = [], dict(self.constants)
        try:
            name = template(self, self.current)
            model = self.model(name, [*self.nodes, *self._new])
            value = _session(model).run(None, {"x": np.zeros((self.batch, *self.shape), self.dtype)})[0]
            fits = value.dtype == self.dtype and value.shape[:1] == (self.batch,) and 0 < value[0].size <= LARGEST
        except Exception:  # of the attributes that were drawn, not all go together
            fits = False
        if not fits:
            self.constants = constants
            return False
        self.nodes += self._new
        self.values[name] = value.shape
        self.current = name
        self.kinds.append(kind)
        return True

    def model(
        self, output: str, nodes: list[Any], replaced: Collection[str] = (), factors: Collection[str] = ()
    ) -> Any:
        """The file's content; constants that are `replaced` and `factors` are inputs too."""
        kind = TensorProto.FLOAT if self.dtype == np.float32 else TensorProto.DOUBLE
        value = helper.make_tensor_value_info
        inputs = [value("x", kind, [self.rows, *self.shape])]
        inputs += [value(name, kind, list(self.constants[name].shape)) for name in replaced]
        inputs += [value(name, kind, None) for name in factors]
        held = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph(nodes, "graph", inputs, [value(output, kind, None)], held)
        versions = [helper.make_opsetid("", each) for each in (*self.imports, self.opset)]
        return helper.make_model(graph, opset_imports=versions, ir_version=8)


Template = Callable[[Drawn, str], str]


def _session(model: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class Runtime:
    """onnxruntime as a reference; rounding errors are factors behind every node and on every constant."""

    def __init__(self, drawn: Drawn, output: str, nodes: list[Any]) -> None:
        self.drawn = drawn
        self._plain = _session(drawn.model(output, nodes))
        self._noisy: tuple[Any, dict[str, Array]] | None = None
        self._output, self._nodes = output, nodes

    @property
    def eps(self) -> float:
        return float(np.finfo(self.drawn.dtype).eps)

    def outputs(self, X: Tensor) -> Tensor:
        return self._run(self._plain, X, {})

    def disturbed(self, X: Tensor, rng: np.random.Generator) -> Tensor:
        if self._noisy is None:
            self._noisy = self._made_noisy()
        session, numbers = self._noisy

        def err(values: Array) -> Array:
            signs = rng.integers(0, 2, size=values.shape) * 2 - 1
            return np.asarray(values * (1 + 2 * self.eps * signs)).astype(values.dtype)

        rows = torch.from_numpy(err(X.numpy().astype(self.drawn.dtype)))
        try:
            return self._run(session, rows, {name: err(values) for name, values in numbers.items()})
        except Exception:  # a shape that depends on the number of examples
            return self._run(self._plain, rows, {})

    def hidden(self, X: Tensor) -> Tensor:
        return X[:, :0]

    def _run(self, session: Any, X: Tensor, more: dict[str, Array]) -> Tensor:
        rows = X.numpy().astype(self.drawn.dtype).reshape(len(X), *self.drawn.shape)
        value = session.run(None, {"x": rows, **more})[0]
        if value.ndim > 2 or len(value) != len(X):
            raise ValueError(f"outputs of the shape {value.shape} for {len(X)} rows")
        return torch.from_numpy(np.asarray(value, dtype=np.float64)).reshape(len(X), -1)

    def _made_noisy(self) -> tuple[Any, dict[str, Array]]:
        """Every value of known shape is multiplied by an input that is 1 unless it is given."""
        drawn = self.drawn
        given = {name: array for name, array in drawn.constants.items() if array.dtype == drawn.dtype and array.size}
        factors, nodes = {}, []
        for node in self._nodes:
            copied = onnx.NodeProto()
            copied.CopyFrom(node)
            nodes.append(copied)
            name = node.output[0]
            if name in drawn.values:
                factors[f"{name}_factor"] = np.ones(drawn.values[name][1:] or (1,), drawn.dtype)
                copied.output[0] = f"{name}_before"
                nodes.append(helper.make_node("Mul", [f"{name}_before", f"{name}_factor"], [name]))
        return _session(drawn.model(self._output, nodes, given, factors)), given | factors


def _axis(w: Drawn) -> int:
    axis = w.whole(1, len(w.now))
    return axis if w.flag() else axis - len(w.now) - 1


def _gemm(w: Drawn, h: str) -> str:
    inputs, outputs, across = w.now[-1], w.whole(1, 6), w.whole(0, 1)
    attributes = {
        "transB": w.one(across, across or None),
        "alpha": w.one(None, w.number()),
        "beta": w.one(None, w.number()),
    }
    W = w.floats(*((outputs, inputs) if attributes["transB"] else (inputs, outputs)))
    bias = w.one(*[(outputs,), (1, outputs), (1,), (), None] * 3, (w.batch, outputs), (w.batch, 1))
    return w.node("Gemm", h, W, *([] if bias is None else [w.floats(*bias)]), **attributes, transA=w.one(None, None, 0))


def _matmul(w: Drawn, h: str) -> str:
    if len(w.now) > 1 and w.flag(0.3):
        return w.node("MatMul", w.floats(w.whole(1, 3), w.now[-2]), h)
    return w.node("MatMul", h, w.floats(w.now[-1], w.whole(1, 6)))


def _padding(w: Drawn, axes: int) -> dict[str, Any]:
    way = w.one(None, None, None, "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    if way not in (None, "NOTSET"):
        return {"auto_pad": way}
    sides = [w.whole(0, 2) for _ in range(axes)]
    return {"auto_pad": way, "pads": w.one(None, sides * 2, sides * 2, [w.whole(0, 2) for _ in range(2 * axes)])}


def _conv(w: Drawn, h: str) -> str:
    channels, axes = w.now[0], len(w.now) - 1
    groups = w.one(1, 1, 1, channels, 2 if channels % 2 == 0 else 1)
    outputs, kernel = groups * w.whole(1, 3), [w.whole(1, 3) for _ in range(axes)]
    weights = [w.floats(outputs, channels // groups, *kernel)] + ([w.floats(outputs)] if w.flag() else [])
    return w.node(
        w.one(*["Conv"] * 30, "ConvTranspose"), h, *weights, group=groups if groups > 1 else None,
        kernel_shape=w.one(None, kernel), strides=w.one(None, [w.whole(1, 2) for _ in range(axes)]),
        dilations=w.one(None, [w.whole(1, 2) for _ in range(axes)]), **_padding(w, axes),
    )  # fmt: skip


def _pool(w: Drawn, h: str) -> str:
    axes, largest = len(w.now) - 1, w.flag()
    padding = _padding(w, axes)
    same = str(padding["auto_pad"]).startswith("SAME")
    options: dict[str, Any] = {"strides": w.one(None, [w.whole(1, 3) for _ in range(axes)])}
    if w.opset >= 10:
        options["ceil_mode"] = w.one(None, 0, 1)
    if largest:
        # onnxruntime pads for SAME as if there were no dilations
        options["dilations"] = w.one(None, [w.whole(1, 2) for _ in range(axes)]) if w.opset >= 10 and not same else None
        options["storage_order"] = w.one(*[None] * 9, 0, 1) if w.opset >= 8 else None
    else:
        options["count_include_pad"] = w.one(None, 0, 1)
        options["dilations"] = w.one(None, None, None, [w.whole(1, 2) for _ in range(axes)]) if w.opset >= 19 else None
    kind = "MaxPool" if largest else "AveragePool"
    return w.node(kind, h, kernel_shape=[w.whole(1, 3) for _ in range(axes)], **padding, **options)


def _batch_norm(w: Drawn, h: str) -> str:
    size = w.now[0]
    scale, shift, mean = (w.floats(size) for _ in range(3))
    options: dict[str, Any] = {"epsilon": w.one(None, 1e-3, 0.1), "momentum": w.one(None, 0.5)}
    if w.opset >= 14 and w.flag(0.1):
        return w.node(
            "BatchNormalization", h, scale, shift, mean, w.floats(size, low=0.5), outputs=3, training_mode=1, **options
        )
    return w.node("BatchNormalization", h, scale, shift, mean, w.floats(size, low=0.5), **options)


def _reshape(w: Drawn, h: str) -> str:
    count = int(np.prod(w.now))
    first = w.one(*(each for each in range(1, count + 1) if count % each == 0))
    rows = w.one(0, 0, -1, -1, w.batch)
    shape = w.one((first, count // first), (count,), (first, -1), (-1,), (0, -1), (1, count), (-1, first))
    shape = tuple(count // first if each == -1 and rows == -1 else each for each in shape)
    return w.node(
        "Reshape", h, w.ints(rows, *shape), allowzero=w.one(None, None, None, 0, 1) if w.opset >= 14 else None
    )


def _computed_shape(w: Drawn, h: str) -> str:
    """A shape that is computed on the way, as exporters write it, or one that depends on the number of examples."""
    shape = (
        w.node("Shape", h) if w.opset < 15 or w.flag() else w.node("Shape", h, start=0, end=w.one(None, len(w.now) + 1))
    )
    way = w.whole(0, 5)
    if way == 0:
        first = w.node("Gather", shape, w.const(np.array([0])), axis=0)
        return w.node("Reshape", h, w.node("Concat", first, w.ints(-1), axis=0))
    if way == 1:
        place = w.node("Gather", shape, w.const(np.array(w.one(0, w.whole(0, len(w.now))))), axis=0)
        ends = _unsqueezed(w, place)
        return _slice_at(w, h, w.ints(0), ends, w.whole(1, len(w.now)))
    if way == 2:
        size = w.node(w.one("Mul", "Add", "Sub", "Div"), shape, w.ints(w.whole(1, 3)))
        rest = _slice_of(w, size, 1, 2)
        return _slice_at(w, h, w.ints(0), rest, 1)
    if way == 3:
        return w.node("Reshape", h, w.node("Cast", w.node("Cast", shape, to=TensorProto.INT32), to=TensorProto.INT64))
    if way == 4:
        lengths = _slice_of(w, shape, 1, len(w.now) + 1)
        return w.node("Reshape", h, w.node("Concat", w.ints(w.one(-1, 0)), lengths, axis=0))
    return w.node(
        "Reshape", h, w.node("Concat", _slice_of(w, shape, 0, 1), w.ints(int(np.prod(w.now)), w.one(1, -1)), axis=0)
    )


def _unsqueezed(w: Drawn, h: str) -> str:
    return w.node("Unsqueeze", h, w.ints(0)) if w.opset >= 13 else w.node("Unsqueeze", h, axes=[0])


def _slice_of(w: Drawn, h: str, start: int, end: int) -> str:
    return (
        w.node("Slice", h, w.ints(start), w.ints(end))
        if w.opset >= 10
        else w.node("Slice", h, starts=[start], ends=[end])
    )


def _slice_at(w: Drawn, h: str, start: str, end: str, axis: int) -> str:
    return w.node("Slice", h, start, end, w.ints(axis))


def _whole_arithmetic(w: Drawn, h: str) -> str:
    """The end or the start of a slice from arithmetic of whole numbers of several types."""
    kind = w.one(np.int64, np.int64, np.int32, np.uint8, np.int8)
    a, b = w.const(np.array([w.whole(-5, 5)]).astype(kind)), w.const(np.array([w.one(-3, -2, 2, 3, 4)]).astype(kind))
    value = w.node(w.one("Div", "Div", "Add", "Sub", "Mul", "Div"), a, b)
    value = w.node("Cast", value, to=TensorProto.INT64)
    axis = w.whole(1, len(w.now))
    start, end = w.one((value, w.ints(2**40)), (w.ints(0), value))
    return _slice_at(w, h, start, end, axis)


def _slice(w: Drawn, h: str) -> str:
    axes = sorted({w.whole(1, len(w.now)) for _ in range(2)})
    starts = [w.whole(-3, 3) for _ in axes]
    ends = [w.one(w.whole(-3, 6), 2**31 - 1, 2**63 - 1) for _ in axes]
    axes = [axis - len(w.now) - 1 if w.flag(0.3) else axis for axis in axes]
    if w.opset < 10:
        return w.node("Slice", h, starts=starts, ends=ends, axes=axes)
    steps = [w.ints(*(w.one(1, 1, 2, -1) for _ in axes))] if w.flag() else []
    return w.node("Slice", h, w.ints(*starts), w.ints(*ends), w.ints(*axes), *steps)


def _pad(w: Drawn, h: str) -> str:
    axes = len(w.now) + 1
    before, after = ([0, *(w.one(-1, 0, 0, 1, 2) for _ in w.now)] for _ in range(2))
    mode, value = w.one(*["constant"] * 8, None, None, "reflect", "edge"), w.number()
    if w.opset < 11:
        return w.node("Pad", h, mode=mode, pads=[*before, *after], value=w.one(None, value))
    more = w.one([], [w.single(value)], [w.const(np.array([value], w.dtype))])
    if w.opset >= 18 and w.flag(0.3):
        axis = w.one(_axis(w), axes - 1)
        return w.node("Pad", h, w.ints(before[1], after[1]), more[0] if more else "", w.ints(axis), mode=mode)
    return w.node("Pad", h, w.ints(*before, *after), *more, mode=mode)


def _clip(w: Drawn, h: str) -> str:
    low = w.number()
    high = low + abs(w.number())
    if w.opset < 11:
        return w.node("Clip", h, min=w.one(None, low), max=w.one(None, high))
    low, high = w.one((low, high), (low, high), (high, low))
    return w.node("Clip", h, *w.one((w.single(low), w.single(high)), (w.single(low),), ("", w.single(high)), ()))


def _bend(w: Drawn, h: str) -> str:
    kind = w.one(
        "Relu", "Relu", "Relu", "LeakyRelu", "PRelu", "Clip", "Clip", "HardSigmoid", "Abs", "Neg", "ThresholdedRelu"
    )
    if kind == "Clip":
        return _clip(w, h)
    if kind == "PRelu":
        return w.node("PRelu", h, w.floats(*w.one((1,), (w.now[0], *[1] * (len(w.now) - 1)), w.now, w.now[-1:])))
    if kind == "LeakyRelu":
        return w.node(kind, h, alpha=w.one(None, 0.3, -0.5, 2.0))
    if kind == "HardSigmoid":
        return w.node(kind, h, alpha=w.one(None, 0.5, -0.3), beta=w.one(None, 0.0, 0.25))
    return w.node("Relu" if kind == "ThresholdedRelu" and w.flag(0.8) else kind, h)


def _smooth(w: Drawn, h: str) -> str:
    kind = w.one(
        "Sigmoid", "Tanh", "Erf", "Exp", "Sqrt", "Softplus", "HardSwish", "Elu", "Gelu", "Pow", "Softmax",
        "LogSoftmax", "LayerNormalization", "Floor", "Round", "Sign", "Ceil", "Selu", "Reciprocal", "Celu", "Mish",
        "Softsign", "Log",
    )  # fmt: skip
    if kind in ("Softmax", "LogSoftmax"):
        return w.node(kind, h, axis=w.one(None, _axis(w), 1, -1))
    if kind == "Gelu":
        return w.node(kind, h, approximate=w.one(None, "none", "tanh"))
    if kind == "Pow":
        return w.node(kind, h, w.single(w.one(2.0, 3.0, 1.0, 0.5)))
    if kind in ("Sqrt", "Log"):
        return w.node(kind, w.node("Abs", h))
    if kind == "LayerNormalization":
        axis = _axis(w)
        return w.node(
            kind, h, w.floats(*w.values[h][axis:]), w.floats(*w.values[h][axis:]), axis=axis, epsilon=w.one(None, 0.1)
        )
    return w.node(kind, h)


def _with_constant(w: Drawn, h: str) -> str:
    shape = w.one((), (1,), w.now[-1:], w.now, (1, *w.now), (w.now[0], *[1] * (len(w.now) - 1)), (*w.now[:-1], 1))
    kind, c = (
        w.one("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Add", "Mul"),
        w.floats(*shape, low=0.5 if w.flag() else None),
    )
    return (
        w.node(kind, *w.one((h, c), (h, c), (c, h)))
        if kind != "Div" or w.flag(0.1)
        else w.node(kind, h, w.floats(*shape, low=0.5))
    )


def _with_other(w: Drawn, h: str) -> str:
    kind, others = w.one("Add", "Sub", "Max", "Min", "Sum", "Mean", "Max", "Add"), [w.alike()]
    if kind in ("Max", "Min", "Sum", "Mean") and w.flag(0.3):
        others.append(w.alike())
    return w.node(w.one(*[kind] * 12, "Mul", "Div"), h, *others[: None if kind in ("Max", "Min", "Sum", "Mean") else 1])


def _concat(w: Drawn, h: str) -> str:
    return w.node("Concat", h, *w.one((w.alike(),), (w.alike(), h), ()), axis=_axis(w))


def _reduce(w: Drawn, h: str) -> str:
    kind, axes, keep = (
        w.one("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1"),
        [_axis(w)],
        w.one(None, 0, 1),
    )
    if w.flag(0.2):
        axes = list(range(1, len(w.now) + 1))
    if w.opset >= (13 if kind == "ReduceSum" else 18):
        return w.node(kind, h, w.ints(*axes), keepdims=keep, noop_with_empty_axes=w.one(None, None, 1))
    return w.node(kind, h, axes=axes, keepdims=keep)


def _shaped(w: Drawn, h: str) -> str:
    way, axis = w.whole(0, 9), _axis(w)
    if way in (0, 1):
        kind = w.one("Squeeze", "Unsqueeze")
        return w.node(kind, h, w.ints(axis)) if w.opset >= 13 else w.node(kind, h, axes=[abs(axis)])
    if way in (2, 3):
        return w.node("Transpose", h, perm=[0, *(1 + w.rng.permutation(len(w.now))).tolist()])
    if way == 4:
        return w.node("Flatten", h, axis=w.one(None, 1, 1, 1, 0, 2, -1))
    if way == 5:
        return w.node("Gather", h, w.const(w.one(np.array(0), np.array(-1), np.array([0, -1]))), axis=axis)
    if way == 6:
        return w.node(w.one("Identity", "Identity", "GlobalAveragePool", "GlobalAveragePool", "GlobalMaxPool"), h)
    if way == 7:
        ratio = [] if w.opset < 12 else w.one([], [w.single(0.5)], [w.single(0.0), w.const(np.array(True))])
        return w.node("Dropout", h, *ratio)
    if way == 8:
        return w.node("Split", h, outputs=2, axis=axis, num_outputs=2 if w.opset >= 18 else None)
    return w.node(w.one("Tile", "Expand"), h, w.ints(*[1] * (len(w.now) + 1)))


def _cast(w: Drawn, h: str) -> str:
    kind = TensorProto.FLOAT if w.dtype == np.float32 else TensorProto.DOUBLE
    to = w.one("FLOAT16", "DOUBLE", "DOUBLE", "BFLOAT16", "INT64", "INT32", "BOOL", "UINT8")
    if w.dtype == np.float32:
        to = w.one(to, to, "FLOAT")  # a double as a float is rounded, which brittle takes for rounding
    return w.node("Cast", w.node("Cast", h, to=getattr(TensorProto, to)), to=kind)


def _mixing(w: Drawn, h: str) -> str:
    way = w.whole(0, 7)
    if way == 0:
        mean = w.node("ReduceMean", h, w.ints(0)) if w.opset >= 18 else w.node("ReduceMean", h, axes=[0])
        return w.node("Sub", h, mean)
    if way == 1:
        return w.node("Softmax", h, axis=0)
    if way == 2:
        return w.node("Add", h, _slice_at(w, h, w.ints(0), w.ints(1), 0))
    if way == 3:
        return w.node(
            "Mul",
            h,
            w.node(
                "Cast",
                w.node("Gather", w.node("Shape", h), w.const(np.array(0))),
                to=1 if w.dtype == np.float32 else 11,
            ),
        )
    if way == 4:
        return w.node("Slice", h, w.ints(-1), w.ints(-(2**40)), w.ints(0), w.ints(-1))
    if way == 5:
        return w.node("Reshape", w.node("Transpose", h, perm=[*range(1, len(w.now) + 1), 0]), w.ints(w.batch, *w.now))
    if way == 6:
        return w.node("Add", h, w.floats(w.batch, *w.now))
    return w.node("Sub", h, w.node("ReduceMax", h))


TEMPLATES: dict[str, tuple[Template, float]] = {  # and how often they are tried
    "Gemm": (_gemm, 2), "MatMul": (_matmul, 1), "activation": (_bend, 5), "smooth": (_smooth, 0.3),
    "Reshape": (_reshape, 0.8), "computed shape": (_computed_shape, 0.6), "whole numbers": (_whole_arithmetic, 0.3),
    "Slice": (_slice, 0.8), "Pad": (_pad, 0.8), "constant": (_with_constant, 1.5), "other value": (_with_other, 1.5),
    "Concat": (_concat, 0.6), "reduce": (_reduce, 0.6), "shape": (_shaped, 1.2), "Cast": (_cast, 0.2),
    "mixing": (_mixing, 0.2), "BatchNormalization": (_batch_norm, 1),
}  # fmt: skip
ALONG_AXES: dict[str, tuple[Template, float]] = {"Conv": (_conv, 4), "pooling": (_pool, 4)}


def drawn(case: int, more: Mapping[str, float] = PLAIN) -> Drawn:
    """The graph of a case; its generator goes on to draw inputs. `more` changes how often kinds of nodes are tried."""
    rng = np.random.default_rng([3, case])
    axes = int(rng.choice([0, 1, 2], p=[0.4, 0.15, 0.45]))
    shape = (
        (int(rng.integers(1, 6)),) if axes == 0 else (int(rng.integers(1, 4)), *rng.integers(2, 7, size=axes).tolist())
    )
    opset = int(rng.integers(OLDEST, NEWEST + 1))
    dtype = np.float64 if rng.random() < 0.2 else np.float32
    rows: int | str = "N" if rng.random() < 0.75 else int(rng.choice([1, 2, 5]))
    w = Drawn(rng, opset, dtype, shape, rows, str(rng.choice(["normal", "normal", "whole numbers"])))
    if w.flag(0.01):
        w.imports = (w.whole(OLDEST, NEWEST),)
    wanted = int(rng.integers(2, 9))
    for _ in range(3 * wanted):
        if len(w.kinds) < wanted:
            _one_more(w, more)
    if not w.now:
        w.current = "x"
    if len(w.now) != 1:
        w.step("Flatten", lambda w, h: w.node("Flatten", h))
    if w.flag(0.9 * more.get("last Gemm", 1.0)) or "smooth" in w.kinds:
        w.step("last Gemm", lambda w, h: w.node("Gemm", h, w.floats(w.now[-1], k := w.one(1, 1, 2, 3)), w.floats(k)))
    if w.flag(0.06) and w.nodes:
        kind = w.one("Softmax", "Softmax", "LogSoftmax", "Sigmoid", "Tanh")
        axis = {"axis": w.one(1, -1)} if kind.endswith("max") else {}
        w.probabilities = w.step("probabilities", lambda w, h: w.node(kind, h, **axis))
    return w


def _one_more(w: Drawn, more: Mapping[str, float]) -> None:
    table = TEMPLATES | (ALONG_AXES if len(w.now) in (2, 3) else {})
    weights = np.array([weight * more.get(kind, 1.0) for kind, (_, weight) in table.items()])
    kind = list(table)[int(w.rng.choice(len(table), p=weights / weights.sum()))]
    w.step(kind, table[kind][0])


def examine(case: int, more: Mapping[str, float] = PLAIN) -> ReadingTally:
    """One graph."""
    w = drawn(case, more)
    if not w.nodes:
        return skipped("no node")
    last = w.nodes[-1].input[0] if w.probabilities else w.current
    try:
        reference = Runtime(w, last, w.nodes[:-1] if w.probabilities else w.nodes)
    except Exception as error:
        return skipped(shortened(str(error)))
    kinds = [node.op_type for node in w.nodes] + [f"opset {w.opset}"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        path.write_bytes(w.model(w.current, w.nodes).SerializeToString())
        return outcome(f"onnx {case}", lambda: read_network(path), reference, kinds, w.rng, path=str(path))


def described(case: int) -> str:
    """The nodes of a case."""
    w = drawn(case)
    return str(onnx.printer.to_text(w.model(w.current, w.nodes)))
