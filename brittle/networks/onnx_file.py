"""Feed-forward ReLU networks from ONNX files: every node is read as a layer, and nothing in the file is run."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from brittle.common.errors import InputError, require
from brittle.common.files import existing
from brittle.networks.adapter import as_network
from brittle.networks.base import Network

Constants = dict[str, Tensor]
IGNORED = ("Identity", "Dropout", "Cast")


def load_onnx(path: str | Path) -> Network:
    """A chain of Gemm, MatMul, Add, Sub, Mul, Div, Relu, Flatten, Reshape and Conv nodes."""
    graph = _graph(existing(path))
    constants = {each.name: _tensor(path, each) for each in graph.initializer}
    constants |= {
        node.output[0]: _tensor(path, _attribute(node, "value")) for node in graph.node if node.op_type == "Constant"
    }
    inputs = [each for each in graph.input if each.name not in constants]
    require(len(inputs) == 1, f"{path}: the graph has {len(inputs)} inputs; one is needed")
    shape = _shape(path, inputs[0])
    layers = _layers(path, graph, constants, inputs[0].name)
    return as_network(nn.Sequential(*layers).to(_dtype(constants)), shape if len(shape) > 1 else ())


def _graph(path: Path) -> Any:
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise InputError(f"{path}: reading ONNX needs the extra 'onnx': pip install 'brittle[onnx]'") from None
    try:
        model = onnx.load_model_from_string(path.read_bytes())
    except (DecodeError, ValueError, OSError) as error:
        raise InputError(f"{path}: is not an ONNX file ({str(error).splitlines()[0][:120]})") from None
    require(len(model.graph.node) > 0, f"{path}: is not an ONNX file, or its graph is empty")
    return model.graph


def _tensor(path: str | Path, stored: Any) -> Tensor:
    """An array, after its declared shape has been held against what is there."""
    from onnx import TensorProto, numpy_helper

    require(stored.data_location != TensorProto.EXTERNAL, f"{path}: array '{stored.name}' lies in another file")
    count = math.prod(stored.dims)
    held = len(stored.raw_data) or 8 * sum(
        len(getattr(stored, f"{kind}_data")) for kind in ("float", "double", "int64")
    )
    shape = tuple(stored.dims)
    require(
        0 <= count <= max(held, 1), f"{path}: array '{stored.name}' declares the shape {shape} and holds {held} bytes"
    )
    try:
        values = torch.from_numpy(numpy_helper.to_array(stored).copy())
    except (ValueError, TypeError) as error:
        raise InputError(f"{path}: array '{stored.name}' cannot be read ({error})") from None
    finite = not values.is_floating_point() or bool(values.isfinite().all())
    require(finite, f"{path}: array '{stored.name}' holds NaN or infinity")
    return values


def _dtype(constants: Constants) -> torch.dtype:
    types = {each.dtype for each in constants.values() if each.is_floating_point()}
    return torch.float64 if torch.float64 in types else torch.float32


def _shape(path: str | Path, described: Any) -> tuple[int, ...]:
    """The shape of one input, without the batch."""
    lengths = [each.dim_value for each in described.type.tensor_type.shape.dim][1:]
    known = bool(lengths) and all(length > 0 for length in lengths)
    require(known, f"{path}: the input '{described.name}' has no fixed shape after the batch")
    return tuple(lengths)


def _layers(path: str | Path, graph: Any, constants: Constants, current: str) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for node in graph.node:
        if node.op_type == "Constant":
            continue
        require(
            current in node.input, f"{path}: node '{node.name or node.op_type}' leaves the chain; branches are not read"
        )
        if node.op_type not in IGNORED:
            _append(path, layers, node, constants, current)
        current = node.output[0]
    require(current == graph.output[0].name, f"{path}: the chain does not end in the output '{graph.output[0].name}'")
    return layers


def _append(path: str | Path, layers: list[nn.Module], node: Any, constants: Constants, current: str) -> None:
    name = node.name or node.op_type
    for each in node.input:
        require(
            each in ("", current) or each in constants, f"{path}: node '{name}' takes '{each}', which is no constant"
        )
    if node.op_type == "Add" and layers and isinstance(layers[-1], nn.Linear) and layers[-1].bias is None:
        layers[-1] = _linear(layers[-1].weight.detach(), _other(node, constants).reshape(-1))
        return
    build = BUILDERS.get(node.op_type)
    known = ", ".join(sorted(BUILDERS))
    if build is None:
        raise InputError(f"{path}: node '{name}' is a {node.op_type}; only {known} can be read")
    try:
        layers.append(build(node, constants, current))
    except (ValueError, RuntimeError, IndexError, KeyError) as error:
        raise InputError(
            f"{path}: node '{name}' ({node.op_type}) cannot be read ({str(error).splitlines()[0]})"
        ) from None


def _attribute(node: Any, name: str, default: Any = None) -> Any:
    from onnx import helper

    for each in node.attribute:
        if each.name == name:
            return helper.get_attribute_value(each)
    return default


def _other(node: Any, constants: Constants) -> Tensor:
    """The one constant that a node with two inputs takes."""
    (value,) = (constants[each] for each in node.input if each in constants)
    return value


def _linear(W: Tensor, b: Tensor | None) -> nn.Linear:
    layer = nn.utils.skip_init(nn.Linear, W.shape[1], W.shape[0], bias=b is not None, dtype=W.dtype)
    layer.weight = nn.Parameter(W.contiguous())
    if b is not None:
        layer.bias = nn.Parameter(b.expand(len(W)).contiguous())
    return layer


def _gemm(node: Any, constants: Constants, current: str) -> nn.Module:
    require(node.input[0] == current and not _attribute(node, "transA", 0), "a Gemm must take the rows as they are")
    W = constants[node.input[1]] * _attribute(node, "alpha", 1.0)
    W = W if _attribute(node, "transB", 0) else W.T
    b = constants[node.input[2]] * _attribute(node, "beta", 1.0) if len(node.input) > 2 else None
    return _linear(W, None if b is None else b.reshape(-1))


def _matmul(node: Any, constants: Constants, current: str) -> nn.Module:
    if node.input[0] != current:
        raise ValueError("the constant must stand on the right")
    return _linear(constants[node.input[1]].T, None)


def _conv(node: Any, constants: Constants, current: str) -> nn.Module:
    W, groups = constants[node.input[1]], _attribute(node, "group", 1)
    pads = _attribute(node, "pads", [0, 0, 0, 0])
    if W.ndim != 4 or pads[:2] != pads[2:] or _attribute(node, "auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        raise ValueError("only 2-D convolutions with symmetric explicit padding are read")
    options = {"stride": _attribute(node, "strides", [1, 1]), "dilation": _attribute(node, "dilations", [1, 1])}
    biased = len(node.input) > 2
    size = (W.shape[2], W.shape[3])
    layer = nn.Conv2d(
        W.shape[1] * groups,
        W.shape[0],
        size,
        padding=tuple(pads[:2]),
        groups=groups,
        bias=biased,
        dtype=W.dtype,
        **options,
    )
    layer.weight = nn.Parameter(W)
    if biased:
        layer.bias = nn.Parameter(constants[node.input[2]])
    return layer


def _reshape(node: Any, constants: Constants, current: str) -> nn.Module:
    lengths = constants[node.input[1]].tolist()
    if len(lengths) < 2 or lengths[0] not in (-1, 0, 1):
        raise ValueError(f"a reshape to {lengths} mixes the rows")
    return nn.Flatten() if len(lengths) == 2 else nn.Sequential(nn.Flatten(), nn.Unflatten(1, lengths[1:]))


class Elementwise(nn.Module):
    """x + c, x - c, c - x, x c or x / c, with a constant that broadcasts over the rows."""

    scale: Tensor
    shift: Tensor

    def __init__(self, scale: Tensor, shift: Tensor) -> None:
        super().__init__()
        self.register_buffer("scale", scale)
        self.register_buffer("shift", shift)

    def forward(self, X: Tensor) -> Tensor:
        return X * self.scale + self.shift


def _elementwise(node: Any, constants: Constants, current: str) -> nn.Module:
    c = _other(node, constants)
    one, zero, first = torch.ones((), dtype=c.dtype), torch.zeros((), dtype=c.dtype), node.input[0] == current
    if node.op_type == "Div" and not first:
        raise ValueError("division by the input is not piecewise linear")
    scale, shift = {
        "Add": (one, c),
        "Sub": (one, -c) if first else (-one, c),
        "Mul": (c, zero),
        "Div": (1 / c, zero),
    }[node.op_type]
    return Elementwise(scale, shift)


BUILDERS: dict[str, Callable[[Any, Constants, str], nn.Module]] = {
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Conv": _conv,
    "Reshape": _reshape,
    "Relu": lambda node, constants, current: nn.ReLU(),
    "Flatten": lambda node, constants, current: nn.Flatten(_attribute(node, "axis", 1)),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), _elementwise),
}
