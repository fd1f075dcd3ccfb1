"""Networks from ONNX files: every node is read as an operation of the one vocabulary, and nothing is run."""

from pathlib import Path
from typing import Any

from brittle.common.errors import InputError, one_line, require
from brittle.common.limits import LARGEST_GRAPH, read_whole
from brittle.common.paths import existing
from brittle.networks.graph import Builder, Graph
from brittle.networks.onnx_nodes import NODES, Node
from brittle.networks.onnx_tensors import onnx_tensor
from brittle.networks.onnx_wire import check_wire

LABELS = ("ArgMax", "ZipMap", "TopK", "Hardmax")


def read_onnx(path: str | Path) -> Graph:
    """The operations of a graph with one input and one output."""
    graph, opset = _graph(existing(path))
    constants = {each.name: onnx_tensor(path, each) for each in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            constants |= _constant(path, node)
    inputs = [each for each in graph.input if each.name not in constants]
    single = len(inputs) == len(graph.output) == 1
    names = ", ".join(each.name[:60] for each in list(graph.output)[:5])
    found = f"{len(inputs)} inputs and {len(graph.output)} outputs ({names})"
    require(single, f"{path}: the graph has {found}; one each is needed, and as output the logits")
    lengths = [each.dim_value for each in inputs[0].type.tensor_type.shape.dim]
    builder = Builder(path, inputs[0].name, constants, rows=lengths[0] if lengths else None)
    for node in graph.node:
        if node.op_type != "Constant":
            _add(builder, node, opset)
    known = len(lengths) > 1 and all(length > 0 for length in lengths[1:])
    require(known, f"{path}: the input '{inputs[0].name}' has no fixed shape after the batch")
    return builder.finished(graph.output[0].name, tuple(lengths[1:]))


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
    return model.graph, max(versions, default=1)


def _constant(path: str | Path, node: Any) -> dict[str, Any]:
    values = [each.t for each in node.attribute if each.name == "value" and each.HasField("t")]
    whole = len(values) == len(node.output) == 1
    require(whole, f"{path}: a Constant holds no array")
    return {node.output[0]: onnx_tensor(path, values[0])}


def _add(builder: Builder, node: Any, opset: int) -> None:
    name = f"{builder.path}: node '{(node.name or node.op_type)[:100]}'"
    standard = node.domain in ("", "ai.onnx")
    label = node.op_type in LABELS
    require(not label, f"{name} is a {node.op_type}, which gives labels and no logits; export up to '{_taken(node)}'")
    known = ", ".join(sorted(NODES))
    require(standard and node.op_type in NODES, f"{name} is a {node.op_type[:100]}; only {known} can be read")
    require(len(node.input) > 0 and len(node.output) > 0, f"{name} takes or gives nothing")
    try:
        NODES[node.op_type](Node(builder, node, opset))
    except InputError as error:
        text = str(error)
        inside = text.startswith(one_line(str(builder.path)))
        raise error if inside else InputError(f"{name} ({node.op_type}) {text}") from None


def _taken(node: Any) -> str:
    return node.input[0][:100] if node.input else "its input"
