"""Programs of torch.export: the graph is JSON and the weights are plain bytes, so nothing has to be loaded by torch."""

import io
import json
import logging
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from brittle.common.errors import InputError, require
from brittle.common.files import replacing
from brittle.common.limits import DAMAGE, LARGEST_TEXT, Archive, inner_entry, open_archive
from brittle.common.torch_files import read_pickle
from brittle.networks.affine import Convolution, Dense
from brittle.networks.base import Network
from brittle.networks.folded import Folded
from brittle.networks.graph import Builder, Graph, GraphValue
from brittle.networks.layered import Layered, LayeredModule
from brittle.networks.operations import BENEATH
from brittle.networks.outputs import Choice, of_program

TYPES = {  # the numbers of torch._export.serde.schema.ScalarType
    1: torch.uint8, 2: torch.int8, 3: torch.int16, 4: torch.int32, 5: torch.int64, 6: torch.float16, 7: torch.float32,
    8: torch.float64, 12: torch.bool, 13: torch.bfloat16,
}  # fmt: skip
STATE = ("parameter", "buffer", "tensor_constant")
IGNORED = ("_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range_for_size")
SHAPE_ERRORS = (KeyError, TypeError, IndexError, AttributeError, ValueError, RecursionError)


def read_exported(path: str | Path, output: Choice | None = None) -> Graph:
    """The operations of an exported program."""
    with open_archive(path, "a complete exported program") as archive:
        try:
            graph_module = _json(archive, "models/model.json")["graph_module"]
            constants = _constants(archive, graph_module["signature"]["input_specs"])
            return _graph(Path(path), graph_module, constants, output)
        except InputError:
            raise
        except SHAPE_ERRORS as error:
            reason = f"{type(error).__name__}: {str(error)[:100]}"
            raise InputError(f"{path}: is not an exported program that can be read ({reason})") from None


def _json(archive: Archive, name: str) -> Any:
    return json.loads(archive.read(name, LARGEST_TEXT))


def _constants(archive: Archive, specs: list[Any]) -> dict[str, Tensor]:
    """The parameters and buffers under the names that the graph gives them."""
    stored: dict[str, tuple[str, Any]] = {}
    for name in archive:
        if name.endswith("_config.json"):
            stored |= {key: (name, entry) for key, entry in _json(archive, name).get("config", {}).items()}
    pickled = [key for key, (_, entry) in stored.items() if entry.get("use_pickle") or not entry.get("tensor_meta")]
    require(not pickled, f"{archive.path}: holds pickled objects ({', '.join(pickled[:3])}), not plain tensors")
    _refuse_samples(archive)
    constants = {}
    for kind, spec in (item for each in specs for item in each.items()):
        if kind in STATE:
            key = spec[f"{kind}_name"]
            require(key in stored, f"{archive.path}: array '{key}' is missing")
            constants[spec["arg"]["name"]] = _tensor(archive, key, *stored[key])
    return constants


def _refuse_samples(archive: Archive) -> None:
    """Example inputs are pickles that nobody needs; whoever hides an object there is told so."""
    for name in archive:
        if name.startswith("data/sample_inputs/"):
            try:
                content = inner_entry(archive.read(name), "/data.pkl", LARGEST_TEXT)
                read_pickle(content, lambda each: each.startswith("torch."), "{}")
            except (InputError, *DAMAGE):
                raise InputError(f"{archive.path}: holds pickled objects ({name}), not plain tensors") from None


def _tensor(archive: Archive, name: str, config: str, entry: dict[str, Any]) -> Tensor:
    meta = entry["tensor_meta"]
    dtype = TYPES.get(meta["dtype"])
    if dtype is None:
        raise InputError(f"{archive.path}: array '{name}' is of an unusual type; plain numbers are needed")
    size, stride = ([each["as_int"] for each in meta[key]] for key in ("sizes", "strides"))
    content = archive.read(f"{config.rpartition('/')[0]}/{entry['path_name']}")
    held = torch.frombuffer(bytearray(content) or bytearray(8), dtype=torch.uint8)
    count = len(content) // dtype.itemsize
    last = meta["storage_offset"]["as_int"] + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    whole = all(type(each) is int and each >= 0 for each in (*size, *stride, meta["storage_offset"]["as_int"]))
    archive.budget.take(8 * math.prod(size) if whole else 0, f"array '{name}'")
    fits = whole and last < count and math.prod(size) > 0
    require(fits, f"{archive.path}: array '{name}' declares the shape {size} and holds {count} numbers")
    numbers = held[: count * dtype.itemsize].view(dtype)
    return numbers.as_strided(size, stride, meta["storage_offset"]["as_int"]).clone()


def _graph(path: Path, graph_module: dict[str, Any], constants: dict[str, Tensor], output: Choice | None) -> Graph:
    graph, signature = graph_module["graph"], graph_module["signature"]
    inputs = [spec["user_input"] for spec in signature["input_specs"] if "user_input" in spec]
    outputs = [spec["user_output"] for spec in signature["output_specs"] if "user_output" in spec]
    single = len(inputs) == 1 and 0 < len(outputs) == len(signature["output_specs"])
    require(
        single, f"{path}: has {len(inputs)} inputs and {len(outputs)} outputs, or changes its state; one each is read"
    )
    returned = of_program(path, dict(enumerate(outputs)), output)
    start, end = (each["arg"]["as_tensor"]["name"] for each in (inputs[0], returned))
    lengths = [each.get("as_int") for each in graph["tensor_values"][start]["sizes"]]
    builder = Builder(path, start, constants, rows=lengths[0] if lengths else None, beneath=True)
    for node in graph["nodes"]:
        _add(builder, node)
    fixed = tuple(lengths[1:]) if all(type(each) is int for each in lengths[1:]) else ()
    return builder.finished(end, fixed)


def _add(builder: Builder, node: dict[str, Any]) -> None:
    """One node: `torch.ops.aten.linear.default` with its arguments."""
    target = node["target"].removeprefix("torch.ops.")
    space, _, name = target.partition(".")
    name = name.partition(".")[0] if space == "aten" else target
    if name in IGNORED:
        return
    given = [(each["name"], _argument(builder.path, each["arg"]), each.get("kind", 1)) for each in node["inputs"]]
    arguments = [value for _, value, kind in given if kind == 1]
    options = {key: value for key, value, kind in given if kind != 1}
    single = len(node["outputs"]) == 1 or name in BENEATH
    require(single, f"{builder.path}: the operation '{name[:100]}' has several outputs, which is not read")
    builder.add(name, *arguments, output=_output(node["outputs"][0]), **options)


def _output(described: dict[str, Any]) -> str:
    name: str = described["as_tensor"]["name"] if "as_tensor" in described else described["as_sym_int"]["as_name"]
    return name


def _argument(path: str | Path, described: dict[str, Any]) -> Any:
    ((kind, content),) = described.items()
    if kind in ("as_tensor", "as_sym_int", "as_name"):
        return _named(content)
    if kind in ("as_tensors", "as_sym_ints"):
        return [_named(each) for each in content]
    if kind in ("as_int", "as_float", "as_bool", "as_string", "as_ints", "as_floats", "as_bools"):
        return content
    if kind == "as_none":
        return None
    if kind == "as_scalar_type":
        return TYPES.get(content, f"type {content}")
    if kind in ("as_memory_format", "as_layout", "as_device"):
        return None
    raise InputError(f"{path}: an argument of the kind '{kind[:60]}' is not read")


def _named(content: dict[str, Any]) -> Any:
    """A tensor or a symbolic number by name, or a plain number."""
    if "as_int" in content:
        return content["as_int"]
    return GraphValue(content["as_name"] if "as_name" in content else content["name"])


# Networks as programs of torch.export, in their own float type and for any number of rows.


ROWS = 3  # of the example; neither 0 nor 1, which torch.export takes for fixed numbers


def write_exported(network: Network, path: str | Path) -> None:
    """The program takes flat rows (n, dim) and gives logits (n,) or (n, C)."""
    program, content = export_network(network, path), io.BytesIO()
    with _quietly():
        torch.export.save(program, content)
    with replacing(path) as stream:
        stream.write(content.getvalue())


def export_network(network: Network, path: str | Path) -> Any:
    """The program, or the reason why there is none in one line."""
    rows = torch.zeros(ROWS, network.dim, dtype=network.dtype)
    try:
        with _quietly():
            module, any_number = _module(network).eval(), ({0: torch.export.Dim("n")},)
            return torch.export.export(module, (rows,), dynamic_shapes=any_number, strict=False)
    except Exception as error:  # whatever a stranger's module does there
        reason = (str(error).strip() or type(error).__name__).partition("\n")[0][:200]
        raise InputError(f"{path}: the network cannot be exported ({reason}); choose another suffix") from None


def _module(network: Network) -> nn.Module:
    """Its own module, or layers of which any map but a plain convolution is a matrix."""
    if isinstance(network, Folded) or not isinstance(network, Layered):
        return network.module()
    plain = [isinstance(layer, Convolution) and not layer.structured for layer in network.layers]
    pairs = zip(network.layers, plain, strict=True)
    return LayeredModule([layer if kept else Dense(layer.matrix, layer.offset) for layer, kept in pairs])


@contextmanager
def _quietly() -> Iterator[None]:
    """PyTorch logs and warns of what it tries."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
