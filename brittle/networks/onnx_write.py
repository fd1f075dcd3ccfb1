"""Layers of affine maps and ReLUs as an ONNX file: Gemm and Conv nodes with Relu between them, in float32."""

from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from brittle.common.errors import InputError
from brittle.common.files import replacing
from brittle.networks.affine import Affine, Convolution
from brittle.networks.layered import Layered

OPSET, VERSION = 18, 8


def require_onnx(path: str | Path) -> None:
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise InputError(f"{path}: writing ONNX needs the package onnx: pip install 'brittle[onnx]'") from None


def write_onnx(network: Layered, path: str | Path, shape: tuple[int, ...] = ()) -> None:
    """The input is called x and has this shape for one example, flat by default; the output is called logits."""
    require_onnx(path)
    from onnx import TensorProto, helper, numpy_helper

    nodes, arrays, value = [helper.make_node("Flatten", ["x"], ["flat"])], dict[str, Any](), "flat"
    for place, layer in enumerate(network.layers):
        last = place == network.depth - 1
        named = _nodes(layer, place, value, "logits" if last else f"z{place}", arrays)
        nodes += [helper.make_node(name, inputs, outputs, **options) for name, inputs, outputs, options in named]
        value = f"h{place}"
        if not last:
            nodes.append(helper.make_node("Relu", [f"z{place}"], [value]))
    rows = tuple(shape) or (network.dim,)
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *rows])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", network.classes])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=VERSION)
    with replacing(path) as stream:
        stream.write(model.SerializeToString())


def _nodes(layer: Affine, place: int, inner: str, outer: str, arrays: dict[str, Any]) -> list[Any]:
    """What computes the layer, its numbers added to the arrays; any map but a plain convolution is a matrix."""
    W, b = f"W{place}", f"b{place}"
    if isinstance(layer, Convolution) and not layer.structured:
        arrays |= {W: _float(layer.kernel), b: _float(layer.bias), f"image{place}": np.array([-1, *layer.image])}
        options = {
            "strides": list(layer.stride),
            "pads": [*layer.padding, *layer.padding],
            "dilations": list(layer.dilation),
            "group": layer.groups,
        }
        picture, seen = f"picture{place}", f"seen{place}"
        return [
            ("Reshape", [inner, f"image{place}"], [picture], {}),
            ("Conv", [picture, W, b], [seen], options),
            ("Flatten", [seen], [outer], {}),
        ]
    arrays |= {W: _float(layer.matrix), b: _float(layer.offset)}
    return [("Gemm", [inner, W, b], [outer], {"transB": 1})]


def _float(values: Tensor) -> Any:
    return values.detach().float().numpy()
