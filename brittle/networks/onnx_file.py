"""Networks from ONNX files: every node is read as an operation of the one vocabulary, and nothing is run."""

from collections import Counter
from pathlib import Path
from typing import Any

import torch

from brittle.common.errors import InputError, existing, one_line, require
from brittle.common.limits import LARGEST_GRAPH, LARGEST_MODEL, LARGEST_ROW, read_whole
from brittle.networks.graph import Builder, Graph
from brittle.networks.onnx_nodes import EXACT_TYPES, NODES, OnnxNode
from brittle.networks.onnx_shapes import FOLDS, TORCH_TYPES, ExternalData, Shapes, fold_node, onnx_tensor
from brittle.networks.outputs import HOW, Choice, of_program

Schema = dict[int, Any]  # from a field that holds messages to their schema, by the numbers of onnx.proto
TENSOR: Schema = {2: {}, 13: {}}
VALUE: Schema = {2: {1: {2: {1: {}}}}, 4: {}}
ATTRIBUTE: Schema = {5: TENSOR, 10: TENSOR}
NODE: Schema = {5: ATTRIBUTE}
SPARSE: Schema = {1: TENSOR, 2: TENSOR}
GRAPH: Schema = {1: NODE, 5: TENSOR, 11: VALUE, 12: VALUE, 13: VALUE, 14: {}, 15: SPARSE, 16: {}}
ATTRIBUTE |= {6: GRAPH, 11: GRAPH, 22: SPARSE, 23: SPARSE}
MODEL: Schema = {7: GRAPH, 8: {}, 14: {}, 20: {}, 25: {7: NODE, 9: {}}}


def check_wire(path: Path, content: bytes) -> None:
    """Refuse a file with more fields than a network has; each is visited once."""
    waiting: list[tuple[int, int, Schema]] = [(0, len(content), MODEL)]
    fields = 0
    try:
        while waiting:
            place, end, schema = waiting.pop()
            while place < end:
                fields += 1
                if fields > LARGEST_MODEL:
                    raise InputError(f"{path}: has more than {LARGEST_MODEL} fields, the most that is read")
                tag, place = _varint(content, place)
                start, place = _skipped(content, place, tag & 7)
                if tag & 7 == 2 and tag >> 3 in schema:
                    waiting.append((start, min(place, end), schema[tag >> 3]))
    except (IndexError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: is not an ONNX file") from None


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = content[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise ValueError("a number of more than ten bytes")


def _skipped(content: bytes, place: int, kind: int) -> tuple[int, int]:
    """Where a field's content starts and ends."""
    if kind == 0:
        return place, _varint(content, place)[1]
    if kind == 2:
        length, start = _varint(content, place)
        return start, start + length
    if kind in (1, 5):
        return place, place + (8 if kind == 1 else 4)
    raise ValueError("a group")


OLDEST = 7  # before, sums and products named the axis along which they broadcast
STANDARD = ("", "ai.onnx")
LABELS = ("ArgMax", "ZipMap", "TopK", "Hardmax")
KINDS = {"value_float": 1, "value_int": 2, "value_floats": 6, "value_ints": 7}  # by AttributeProto.AttributeType
HALF = (torch.float16, torch.bfloat16)
FLOATS = [kind for kind, dtype in TORCH_TYPES.items() if dtype.is_floating_point]
MOVES = ("Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Slice", "Gather", "Concat")


def read_onnx(path: str | Path, output: Choice | None = None) -> Graph:
    """The operations of a graph with one input, up to one output."""
    graph, opset = _graph(existing(path))
    external = ExternalData(existing(path).parent)
    constants = {each.name: onnx_tensor(path, each, external) for each in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            constants |= _constant(path, node, external)
    inputs = [each for each in graph.input if each.name not in constants]
    places: dict[Choice, str] = {place: each.name for place, each in enumerate(graph.output)}
    named: dict[Choice, str] = {each.name: each.name for each in graph.output}
    outputs = _decisive(graph) if output is None else [of_program(path, {**places, **named}, output)]
    single = len(inputs) == len(outputs) == 1
    names = ", ".join(each.name[:60] for each in list(graph.output)[:5])
    found = f"{len(inputs)} inputs and {len(graph.output)} outputs ({names})"
    require(single, f"{path}: the graph has {found}; one each is needed, and as output the logits; {HOW}")
    lengths = [each.dim_value for each in inputs[0].type.tensor_type.shape.dim]
    known = len(lengths) > 1 and all(0 < length <= LARGEST_ROW for length in lengths[1:])
    require(known, f"{path}: the input '{inputs[0].name}' has no fixed shape after the batch")
    kind = inputs[0].type.tensor_type.elem_type
    exact = f"{path}: the input '{inputs[0].name[:100]}' is of the type {kind}, not of floats of 32 or 64 bits"
    require(kind in EXACT_TYPES, f"{exact}: what is computed in other types is rounded; export it in float32")
    _check_names(path, graph, inputs[0].name)
    builder = Builder(path, inputs[0].name, constants, rows=lengths[0] or None)
    shapes = Shapes(builder, tuple(lengths[1:]))
    for node in _needed(graph.node, outputs[0]):
        if node.op_type != "Constant":
            _add(builder, shapes, node, opset)
    return builder.finished(outputs[0], tuple(lengths[1:]))


def _check_names(path: str | Path, graph: Any, name: str) -> None:
    """Every value has one source."""
    sources = [name, *(each.name for each in graph.initializer), *(each for node in graph.node for each in node.output)]
    twice = next((each for each, count in Counter(sources).items() if each and count > 1), None)
    require(twice is None, f"{path}: the value '{str(twice)[:100]}' is computed twice")


def _decisive(graph: Any) -> list[str]:
    """The outputs that may be logits. Classifiers give their labels beside them, or wrap them by name in a ZipMap."""
    wrapped = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "ZipMap" and node.input}
    if len(graph.output) == 1:
        return [each.name for each in graph.output]
    floats = [each.name for each in graph.output if each.type.tensor_type.elem_type in FLOATS]
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
    versions = [each.version for each in model.opset_import if each.domain in STANDARD]
    require(len(versions) == 1, f"{path}: names {len(versions)} versions of the standard operators; one is needed")
    (version,) = versions
    new = version >= OLDEST
    require(new, f"{path}: is of version {version}, where nodes mean something else; export version {OLDEST} or newer")
    newest = onnx.defs.onnx_opset_version()
    require(version <= newest, f"{path}: is of version {version}; the installed onnx knows versions up to {newest}")
    own = [each.name for each in model.functions if each.domain in STANDARD]
    require(not own, f"{path}: defines the standard operator '{', '.join(own)[:100]}' anew, which is not read")
    return model.graph, version


def _constant(path: str | Path, node: Any, external: ExternalData) -> dict[str, Any]:
    """An array, or since version 12 single numbers."""
    require(len(node.attribute) == len(node.output) == 1, f"{path}: a Constant holds no array")
    (held,) = node.attribute
    if held.name == "value" and held.HasField("t"):
        return {node.output[0]: onnx_tensor(path, held.t, external)}
    single = {"value_float": ("f", torch.float32), "value_floats": ("floats", torch.float32)}
    single |= {"value_int": ("i", torch.int64), "value_ints": ("ints", torch.int64)}
    require(held.name in single and held.type == KINDS[held.name], f"{path}: a Constant holds no array")
    field, dtype = single[held.name]
    value = getattr(held, field)
    numbers = torch.tensor(list(value) if field.endswith("s") else value, dtype=dtype)
    require(bool(numbers.isfinite().all()), f"{path}: a Constant holds NaN or infinity")
    return {node.output[0]: numbers}


def _add(builder: Builder, shapes: Shapes, node: Any, opset: int) -> None:
    name = f"{builder.path}: node '{(node.name or node.op_type)[:100]}'"
    standard = node.domain in STANDARD
    label = node.op_type in LABELS
    require(not label, f"{name} is a {node.op_type}, which gives labels and no logits; export up to '{_taken(node)}'")
    known = standard and node.op_type in (*NODES, *FOLDS, "Shape")
    kind = node.op_type if standard else f"{node.domain[:40]}.{node.op_type}"
    require(known, f"{name} is a {kind[:100]}, which is not read; pass the model itself in Python instead")
    require(len(node.input) > 0 and len(node.output) > 0, f"{name} takes or gives nothing")
    try:
        if fold_node(builder, shapes, node, opset):
            return
        require(node.op_type in NODES, "does not give a shape here, which is all that it is read for")
        _check_types(builder, node)
        reader = OnnxNode(builder, node, opset, shapes)
        NODES[node.op_type](reader)
        reader.finished()
        if reader.output in builder.constants:  # a view of constants is one
            shapes.keep(reader.output, builder.constants[reader.output])
    except InputError as error:
        text = str(error)
        inside = text.startswith(one_line(str(builder.path)))
        raise error if inside else InputError(f"{name} ({node.op_type}) {text}") from None


def _check_types(builder: Builder, node: Any) -> None:
    """What is made of constants is computed in float32 or float64, without the rounding of shorter types."""
    given = [builder.constants.get(name) for name in node.input if name]
    alone = all(each is not None for each in given) and node.op_type not in MOVES
    half = next((each.dtype for each in given if each is not None and each.dtype in HALF), None)
    require(not alone or half is None, f"computes with constants in {half}, whose rounding is not followed")


def _taken(node: Any) -> str:
    return node.input[0][:100] if node.input else "its input"
