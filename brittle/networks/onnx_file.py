"""Networks from ONNX files: every node is read as an operation of the one vocabulary, and nothing is run."""

from pathlib import Path
from typing import Any

import torch

from brittle.common.errors import InputError, one_line, require
from brittle.common.limits import LARGEST_GRAPH, LARGEST_ROW, read_whole
from brittle.common.paths import existing
from brittle.networks.graph import Builder, Graph
from brittle.networks.onnx_nodes import FLOAT_TYPES, NODES, Node
from brittle.networks.onnx_shapes import FOLDS, ROWS, Shapes, folded
from brittle.networks.onnx_tensors import onnx_tensor
from brittle.networks.onnx_wire import check_wire

OLDEST = 7  # before, sums and products named the axis along which they broadcast
LABELS = ("ArgMax", "ZipMap", "TopK", "Hardmax")


def read_onnx(path: str | Path) -> Graph:
    """The operations of a graph with one input and one output."""
    graph, opset = _graph(existing(path))
    constants = {each.name: onnx_tensor(path, each) for each in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            constants |= _constant(path, node)
    inputs = [each for each in graph.input if each.name not in constants]
    outputs = _decisive(graph)
    single = len(inputs) == len(outputs) == 1
    names = ", ".join(each.name[:60] for each in list(graph.output)[:5])
    found = f"{len(inputs)} inputs and {len(graph.output)} outputs ({names})"
    require(single, f"{path}: the graph has {found}; one each is needed, and as output the logits")
    lengths = [each.dim_value for each in inputs[0].type.tensor_type.shape.dim]
    known = len(lengths) > 1 and all(0 < length <= LARGEST_ROW for length in lengths[1:])
    require(known, f"{path}: the input '{inputs[0].name}' has no fixed shape after the batch")
    builder = Builder(path, inputs[0].name, constants, rows=lengths[0] or ROWS)
    shapes = Shapes(builder, tuple(lengths[1:]))
    for node in _needed(graph.node, outputs[0]):
        if node.op_type != "Constant":
            _add(builder, shapes, node, opset)
    return builder.finished(outputs[0], tuple(lengths[1:]))


def _decisive(graph: Any) -> list[str]:
    """The outputs that may be logits. Classifiers give their labels beside them, or wrap them by name in a ZipMap."""
    wrapped = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "ZipMap" and node.input}
    if len(graph.output) == 1:
        return [each.name for each in graph.output]
    floats = [each.name for each in graph.output if each.type.tensor_type.elem_type in FLOAT_TYPES]
    return floats + [wrapped[each.name] for each in graph.output if each.name in wrapped]


def _needed(nodes: Any, output: str) -> list[Any]:
    """Those that the output depends on, in their order."""
    wanted, kept = {output}, []
    for node in reversed(nodes):
        if wanted & set(node.output):
            wanted.update(node.input)
            kept.append(node)
    return kept[::-1]


def _graph(path: Path) -> tuple[Any, int]:
    """The graph, and the version of the operations in it."""
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise InputError(f"{path}: reading ONNX needs the extra 'onnx': pip install 'brittle[onnx]'") from None
    content = read_whole(path)
    check_wire(path, content)
    try:
        model = onnx.load_model_from_string(content)
    except (DecodeError, ValueError) as error:
        raise InputError(f"{path}: is not an ONNX file ({str(error)[:120]})") from None
    count = len(model.graph.node)
    require(count > 0, f"{path}: is not an ONNX file, or its graph is empty")
    require(count <= LARGEST_GRAPH, f"{path}: has {count} operations; {LARGEST_GRAPH} is the most that is read")
    versions = [each.version for each in model.opset_import if each.domain in ("", "ai.onnx")]
    version = max(versions, default=1)
    new = version >= OLDEST
    require(new, f"{path}: is of version {version}, where nodes mean something else; export version {OLDEST} or newer")
    return model.graph, version


def _constant(path: str | Path, node: Any) -> dict[str, Any]:
    """An array, or since version 12 single numbers."""
    require(len(node.attribute) == len(node.output) == 1, f"{path}: a Constant holds no array")
    (held,) = node.attribute
    if held.name == "value" and held.HasField("t"):
        return {node.output[0]: onnx_tensor(path, held.t)}
    single = {"value_float": ("f", torch.float32), "value_floats": ("floats", torch.float32)}
    single |= {"value_int": ("i", torch.int64), "value_ints": ("ints", torch.int64)}
    require(held.name in single, f"{path}: a Constant holds no array")
    field, dtype = single[held.name]
    value = getattr(held, field)
    numbers = torch.tensor(list(value) if field.endswith("s") else value, dtype=dtype)
    require(bool(numbers.isfinite().all()), f"{path}: a Constant holds NaN or infinity")
    return {node.output[0]: numbers}


def _add(builder: Builder, shapes: Shapes, node: Any, opset: int) -> None:
    name = f"{builder.path}: node '{(node.name or node.op_type)[:100]}'"
    standard = node.domain in ("", "ai.onnx")
    label = node.op_type in LABELS
    require(not label, f"{name} is a {node.op_type}, which gives labels and no logits; export up to '{_taken(node)}'")
    known = standard and node.op_type in (*NODES, *FOLDS, "Shape")
    kind = node.op_type if standard else f"{node.domain[:40]}.{node.op_type}"
    require(known, f"{name} is a {kind[:100]}, which is not read; pass the model itself in Python instead")
    require(len(node.input) > 0 and len(node.output) > 0, f"{name} takes or gives nothing")
    try:
        if folded(builder, shapes, node):
            return
        require(node.op_type in NODES, "does not give a shape here, which is all that it is read for")
        NODES[node.op_type](Node(builder, node, opset, shapes))
    except InputError as error:
        text = str(error)
        inside = text.startswith(one_line(str(builder.path)))
        raise error if inside else InputError(f"{name} ({node.op_type}) {text}") from None


def _taken(node: Any) -> str:
    return node.input[0][:100] if node.input else "its input"
