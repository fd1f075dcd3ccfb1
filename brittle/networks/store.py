"""Networks in files. `.npz` holds a TwoLayer as plain arrays, `.pt` and `.safetensors` hold any network of layers.

The names of the arrays are the same in all three. TwoLayer: W, b, v, optional c, and where it started W0, b0, v0,
optional c0. Deep: weight.0, bias.0, weight.1, ... and start.weight.0, ..., with kernel.0 and window.0 in the place of
weight.0 for a convolution, or values.0, columns.0, starts.0 and features.0. Folded: constant.0, constant.1, ... and a
note with the operations on them. A file that brittle did not write may hold the state of a module whose linear layers
follow each other (0.weight, 0.bias, 2.weight, ...): the caller says that ReLUs lie between them. The state of any other
module is read into a module that the caller builds. TorchScript (`.pt`), exported programs (`.pt2`, `.pt`) and `.onnx`
hold the module itself; `.pt2` and `.onnx` are written too.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from brittle.common.errors import NETWORKS, InputError, about, existing, require, suffix_of
from brittle.common.files import read_npz, write_npz
from brittle.common.kinds import check_kinds
from brittle.common.limits import open_archive
from brittle.common.torch_files import Named, Notes, read_pt, read_safetensors, write_pt, write_safetensors
from brittle.networks.adapter import Adapter
from brittle.networks.array_files import graph_arrays, graph_of, is_whole, map_arrays, maps_of
from brittle.networks.base import Network
from brittle.networks.deep import Deep, as_layered
from brittle.networks.exported import export_network, read_exported, write_exported
from brittle.networks.folded import Folded
from brittle.networks.graph import Graph
from brittle.networks.onnx_file import read_onnx
from brittle.networks.onnx_write import require_onnx, write_onnx
from brittle.networks.outputs import Choice
from brittle.networks.rebuild import rebuilt
from brittle.networks.recognise import Recognition
from brittle.networks.script import read_script
from brittle.networks.state import KIND, WAY_OUT, check_chain, into_module, module_state, numbers, of_state
from brittle.networks.two_layer import TwoLayer


def archive_kind(path: str | Path) -> str:
    """`script`, `export_network` or `tensors`, by what the zip archive holds; damaged files are `tensors`."""
    existing(path)
    try:
        with open_archive(path, "an archive") as archive:
            if "constants.pkl" in archive:
                return "script"
            return "exported" if "archive_format" in archive else "tensors"
    except InputError:
        return "tensors"


TWO_LAYER_NAMES = ("W", "b", "v", "c", "W0", "b0", "v0", "c0")


def require_format(network: Network, path: str | Path) -> None:
    """Raise what `save_network` would raise for the suffix, before the work."""
    suffix = suffix_of(path)
    if suffix == ".onnx":
        as_layered(network, f"{path}: ONNX")
        require_onnx(path)
        return
    if suffix == ".pt2":
        export_network(network, path)
        return
    fits = _suffix(path) != ".npz" or isinstance(network, TwoLayer)
    require(fits, f"{path}: .npz holds two-layer networks only; choose .pt or .safetensors")


@check_kinds
def save_network(network: Network, path: str | Path) -> None:
    """Write a network whole or not at all; the suffix chooses the format.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> network = bt.networks.TorchLinearInit().draw(3, width=5, rng=torch.Generator().manual_seed(0))
        >>> for name in ("net.npz", "net.safetensors"):
        ...     bt.networks.save_network(network, name)
    """
    if suffix_of(path) == ".pt2":
        write_exported(network, path)
        return
    require_format(network, path)
    if suffix_of(path) == ".onnx":
        write_onnx(as_layered(network, f"{path}: ONNX"), path)
        return
    suffix = _suffix(path)
    if isinstance(network, Adapter):
        tensors, notes = module_state(path, network)
    elif isinstance(network, Folded):
        tensors, notes = _folded_arrays(path, network)
    else:
        kind, tensors = _packed(path, network)
        tensors, notes = _floats(path, tensors), {KIND: kind}
    if suffix == ".npz":
        write_npz(path, {name: value.detach().cpu().numpy() for name, value in tensors.items()})
    elif suffix == ".pt":
        write_pt(path, tensors, notes)
    else:
        write_safetensors(path, tensors, notes)


@check_kinds
def load_network(
    path: str | Path,
    module: nn.Module | None = None,
    shape: tuple[int, ...] = (),
    activation: str | None = None,
    output: Choice | None = None,
) -> Network:
    """Read a network with pickling off; whatever is wrong with the file is said in one line.

    A file holds no code: where it holds the state of a foreign module, pass such a module, and the shape of one input
    unless it is flat. A state of linear layers alone can be read without a module where `activation="relu"` says what
    lies between them. `output` is the place or the name of the logits, where a module or a program returns several
    things.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> network = bt.networks.TorchLinearInit().draw(3, width=5, rng=torch.Generator().manual_seed(0))
        >>> bt.networks.save_network(network, "net.npz")
        >>> bt.networks.load_network("net.npz").width
        5
    """
    return read_network(path, module, shape, activation=activation, output=output)[0]


@check_kinds
def read_network(
    path: str | Path,
    module: nn.Module | None = None,
    shape: tuple[int, ...] = (),
    examples: Tensor | None = None,
    activation: str | None = None,
    output: Choice | None = None,
) -> tuple[Network, Recognition | None]:
    """`load_network`, and what a foreign network was recognised as; `examples` are inputs to compare it on.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> module = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
        >>> torch.save(module.state_dict(), "net.pt")
        >>> network, seen = bt.networks.read_network("net.pt", activation="relu")
        >>> type(network).__name__
        'TwoLayer'
    """
    known = activation is None or activation == "relu"
    require(known, f"activation is {activation!r}; 'relu' is read without a module, for any other {WAY_OUT}")
    graph = _program(path, output)
    if graph is not None:
        return rebuilt(path, graph, shape, examples)
    tensors, notes = _read(path)
    kind = notes.get(KIND) or ("two_layer" if _suffix(path) == ".npz" or {"W", "b", "v"} <= tensors.keys() else "state")
    unpack: Callable[[str | Path, Named], Network] | None = {"two_layer": _two_layer, "deep": _deep}.get(kind)
    unpack = partial(of_state, activation=activation) if kind == "state" else unpack
    known = unpack is not None or kind in ("module", "folded")
    require(known, f"{path}: holds a network of the kind '{kind}', which this version does not know")
    try:
        if kind == "folded":
            return _folded(path, tensors, notes, examples)
        if module is not None or unpack is None:
            return into_module(path, tensors, notes, module, shape, examples, output)
        require(output is None, f"{path}: output is {output!r}, and a network of layers has one output only")
        return unpack(path, tensors), None
    except InputError as error:
        raise about(path, error) from None


def foreign_state(path: str | Path) -> Named | None:
    """The arrays of a file that another program wrote; None for whole programs and for brittle's own files."""
    if suffix_of(path) not in (".pt", ".safetensors") or _program(path) is not None:
        return None
    tensors, notes = _read(path)
    own = KIND in notes or {"W", "b", "v"} <= tensors.keys()
    return None if own else tensors


def _program(path: str | Path, output: Choice | None = None) -> Graph | None:
    """The operations of a file that holds a whole program; None for one that holds arrays."""
    suffix = suffix_of(path)
    if suffix == ".onnx":
        return read_onnx(path, output)
    if suffix not in (".pt", ".pt2"):
        return None
    kind = archive_kind(path)
    require(kind != "tensors" or suffix == ".pt", f"{path}: is not an exported program")
    read = {"script": read_script, "exported": read_exported}.get(kind)
    return None if read is None else read(path, output)


def _suffix(path: str | Path) -> str:
    suffix = suffix_of(path)
    require(
        suffix in NETWORKS,
        f"{path}: the suffix is '{suffix}'; networks live in {', '.join(NETWORKS)} files",
    )
    return suffix


def _read(path: str | Path) -> tuple[Named, Notes]:
    suffix = _suffix(path)
    if suffix == ".npz":
        return {name: torch.from_numpy(array) for name, array in read_npz(path, TWO_LAYER_NAMES).items()}, {}
    return read_pt(path) if suffix == ".pt" else read_safetensors(path)


def _packed(path: str | Path, network: Network) -> tuple[str, Named]:
    if isinstance(network, TwoLayer):
        start = {} if network.start is None else _two_layer_arrays(network.start, "0")
        return "two_layer", {**_two_layer_arrays(network, ""), **start}
    if isinstance(network, Deep):
        start = {} if network.start is None else _deep_arrays(network.start, "start.")
        return "deep", {**_deep_arrays(network, ""), **start}
    raise InputError(f"{path}: a {type(network).__name__} has no file format; networks of linear layers and ReLUs have")


def _folded_arrays(path: str | Path, network: Folded) -> tuple[Named, Notes]:
    arrays, notes = graph_arrays(network)
    finite = all(bool(value.isfinite().all()) for value in arrays.values())
    require(finite, f"{path}: the network holds NaN or infinity")
    start = {} if network.start is None else _deep_arrays(network.start, "start.")
    return {**arrays, **start}, {KIND: "folded", **notes}


def _folded(
    path: str | Path, arrays: Named, notes: Notes, examples: Tensor | None
) -> tuple[Network, Recognition | None]:
    network, recognition = rebuilt(path, graph_of(path, arrays, notes), (), examples)
    begun = _floats(path, {name: value for name, value in arrays.items() if name.startswith("start.")})
    if not begun or not isinstance(network, Folded):
        return network, recognition
    start = _one_deep(path, begun, "start.")
    same = start.shape == network.shape
    require(same, f"{path}: the start has layers of {start.shape} and the network of {network.shape}")
    return replace(network, start=start.to(network.dtype)), recognition


def _two_layer_arrays(network: TwoLayer, mark: str) -> Named:
    arrays = {"W": network.W, "b": network.b, "v": network.v} | ({} if network.homogeneous else {"c": network.c})
    return {name + mark: value for name, value in arrays.items()}


def _deep_arrays(network: Deep, mark: str) -> Named:
    arrays: Named = {}
    for place, layer in enumerate(network.layers):
        arrays |= map_arrays(layer, mark, place)
    return arrays


def _floats(path: str | Path, arrays: Named) -> Named:
    """One float type for all but the arrays of whole numbers."""
    whole = {name: value for name, value in arrays.items() if is_whole(name)}
    return numbers(path, {name: value for name, value in arrays.items() if name not in whole}) | whole


def _two_layer(path: str | Path, arrays: Named) -> TwoLayer:
    arrays = numbers(path, arrays)
    start = None
    if arrays.keys() & {"W0", "b0", "v0", "c0"}:
        start = _one_two_layer(path, arrays, "0")
    network = _one_two_layer(path, arrays, "")
    return TwoLayer(network.W, network.b, network.v, network.c, start)


def _one_two_layer(path: str | Path, arrays: Named, mark: str) -> TwoLayer:
    for name in ("W", "b", "v"):
        require(name + mark in arrays, f"{path}: array '{name + mark}' is missing")
    W, b, v = (arrays[name + mark] for name in ("W", "b", "v"))
    c = arrays.get("c" + mark, torch.zeros((), dtype=W.dtype))
    shape = tuple(W.shape)
    require(W.ndim == 2 and W.numel() > 0, f"{path}: array 'W{mark}' has shape {shape}; (width, dim) is needed")
    for name, value, needed in (("b", b, shape[:1]), ("v", v, shape[:1]), ("c", c, ())):
        fits = tuple(value.shape) == needed
        found = tuple(value.shape)
        require(fits, f"{path}: array '{name + mark}' has shape {found}; {needed} is needed for W{mark} of {shape}")
    return TwoLayer(W, b, v, c)


def _deep(path: str | Path, arrays: Named) -> Deep:
    arrays = _floats(path, arrays)
    started = any(name.startswith("start.") for name in arrays)
    network = _one_deep(path, arrays, "")
    return Deep(network.maps, _one_deep(path, arrays, "start.") if started else None)


def _one_deep(path: str | Path, arrays: Named, mark: str) -> Deep:
    layers = sum(name.startswith((f"{mark}weight.", f"{mark}kernel.", f"{mark}values.")) for name in arrays)
    if layers > sum(name.startswith(f"{mark}weight.") for name in arrays):
        return Deep(maps_of(path, arrays, mark, layers))
    for name in (f"{mark}{part}.{layer}" for layer in range(layers) for part in ("weight", "bias")):
        require(name in arrays, f"{path}: array '{name}' is missing")
    weights, biases = ([arrays[f"{mark}{part}.{layer}"] for layer in range(layers)] for part in ("weight", "bias"))
    check_chain(path, [f"{mark}weight.{layer}" for layer in range(layers)], weights, biases)
    return Deep.dense(weights, biases)
