"""The state of a foreign module, where its arrays can only be linear layers in a row."""

import copy
import re
from collections.abc import Mapping
from itertools import pairwise, permutations
from pathlib import Path

import torch
from torch import Tensor, nn

from brittle.common.errors import InputError, require, suffix_of
from brittle.common.torch_files import Named, Notes
from brittle.networks.adapter import Adapter
from brittle.networks.base import Network
from brittle.networks.deep import Deep, of_layers
from brittle.networks.outputs import Choice, unwrap_output
from brittle.networks.recognise import Recognition, recognise
from brittle.networks.two_layer import TwoLayer

LARGEST_PUZZLE = 7
WAY_OUT = "name the module that it belongs to: --architecture MODULE:CLASS, or module= in Python"
ACTIVATION = "say it with activation='relu' (--activation relu)"
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def of_state(path: str | Path, tensors: Named, activation: str | None = None) -> TwoLayer | Deep:
    """The network whose layers a file holds as NAME.weight and NAME.bias, with this `activation` between them."""
    layers = [name.removesuffix(".weight") for name in tensors if name.endswith(".weight")]
    known = {f"{layer}.{part}" for layer in layers for part in ("weight", "bias")}
    foreign = [name for name in tensors if name not in known]
    require(not foreign, f"{path}: array '{(foreign or [''])[0]}' belongs to no linear layer; {WAY_OUT}")
    require(bool(layers), f"{path}: holds no array named W or *.weight")
    arrays = numbers(path, tensors)
    layers = _in_order(path, layers, arrays)
    weights = [arrays[f"{layer}.weight"] for layer in layers]
    biases = [arrays.get(f"{layer}.bias", W.new_zeros(W.shape[:1])) for layer, W in zip(layers, weights, strict=True)]
    check_chain(path, [f"{layer}.weight" for layer in layers], weights, biases)
    for before, after in pairwise(layers):
        require(not _adjacent(before, after), f"{path}: no ReLU fits between '{before}' and '{after}'; {WAY_OUT}")
    words = f"{path}: holds {len(layers)} linear layers and does not say what lies between them"
    require(len(layers) == 1 or activation is not None, f"{words}; {ACTIVATION}, or {WAY_OUT}")
    return of_layers(weights, biases)


def numbers(path: str | Path, tensors: Mapping[str, Tensor]) -> Named:
    """Finite floats of one type: float64 where any array is, otherwise float32 (which holds every half exactly)."""
    for name, value in tensors.items():
        kind = str(value.dtype).removeprefix("torch.")
        require(value.dtype in FLOATS, f"{path}: array '{name}' has type {kind}; floats are needed (16, 32 or 64 bits)")
        require(bool(value.isfinite().all()), f"{path}: array '{name}' holds NaN or infinity")
    double = any(value.dtype == torch.float64 for value in tensors.values())
    return {name: value.to(torch.float64 if double else torch.float32) for name, value in tensors.items()}


def _in_order(path: str | Path, layers: list[str], arrays: Named) -> list[str]:
    """By number where the names differ in their numbers only; otherwise the shapes decide, and the file where they tie.

    The entries of a .pt file stand in the order of the module's layers; those of a .safetensors file are sorted.
    """
    if len({re.sub(r"[0-9]+", "#", layer) for layer in layers}) == 1:
        return sorted(layers, key=_places)
    if suffix_of(path) == ".pt" or len(layers) > LARGEST_PUZZLE:
        return layers
    fitting = [order for order in permutations(layers) if _chains([arrays[f"{layer}.weight"] for layer in order])]
    clear = len(fitting) <= 1
    require(clear, f"{path}: the shapes leave the order of the layers {layers} open; number their names")
    return list(fitting[0]) if fitting else layers


def _places(layer: str) -> list[tuple[int, str]]:
    """The numbers in a name, in the order of numbers: however long they are, nothing is computed."""
    numbers = (number.lstrip("0") for number in re.findall(r"[0-9]+", layer))
    return [(len(number), number) for number in numbers]


def _adjacent(before: str, after: str) -> bool:
    """Places 0 and 1 of one nn.Sequential: an activation would take a place of its own."""
    stem, _, place = before.rpartition(".")
    other, _, next_place = after.rpartition(".")
    numbers = all(each.isascii() and each.isdecimal() and len(each) < 10 for each in (place, next_place))
    return stem == other and numbers and int(next_place) == int(place) + 1


def _chains(weights: list[Tensor]) -> bool:
    matrices = all(W.ndim == 2 for W in weights)
    return matrices and all(after.shape[1] == before.shape[0] for before, after in pairwise(weights))


def check_chain(path: str | Path, names: list[str], weights: list[Tensor], biases: list[Tensor]) -> None:
    for name, W, b in zip(names, weights, biases, strict=True):
        shape = tuple(W.shape)
        matrix = W.ndim == 2 and W.numel() > 0
        require(matrix, f"{path}: array '{name}' has shape {shape}; (outputs, inputs) is needed, or {WAY_OUT}")
        fits = tuple(b.shape) == shape[:1]
        bias = name.replace("weight", "bias")
        require(fits, f"{path}: array '{bias}' has shape {tuple(b.shape)}; {shape[:1]} is needed for {name} of {shape}")
    for (before, W), (after, V) in pairwise(zip(names, weights, strict=True)):
        joined = V.shape[1] == W.shape[0]
        require(joined, f"{path}: array '{after}' takes {V.shape[1]} inputs and '{before}' gives {W.shape[0]}")


# The state of a foreign module in a file: its tensors, its class name to tell a person, and its input shape.


KIND = "brittle_network"


def module_state(path: str | Path, network: Adapter) -> tuple[Named, Notes]:
    _check_finite(path, network.inner.state_dict())
    lengths = ",".join(str(length) for length in network.shape)
    notes = {KIND: "module", "brittle_class": type(unwrap_output(network.inner)).__name__, "brittle_shape": lengths}
    return dict(network.inner.state_dict()), notes


def into_module(
    path: str | Path,
    tensors: Named,
    notes: Notes,
    module: nn.Module | None,
    shape: tuple[int, ...],
    examples: Tensor | None,
    output: Choice | None = None,
) -> tuple[Network, Recognition | None]:
    """The network that a module like this one is with the state that the file holds."""
    name = notes.get("brittle_class", "module")
    if module is None:
        raise InputError(f"{path}: holds the state of a {name}; {WAY_OUT}")
    _check_finite(path, tensors)
    filled = copy.deepcopy(module)
    try:
        filled.load_state_dict(_under_its_names(tensors, set(filled.state_dict())))
    except RuntimeError as error:
        reason = " ".join(str(error).split()[:40])
        raise InputError(f"{path}: does not fit the module: {reason}") from None
    return recognise(filled, shape or _shape(path, notes), examples, output)


def _under_its_names(tensors: Named, names: set[str]) -> Named:
    """Without what a wrapper put before every name: `module.`, `_orig_mod.`, `model.` or whatever else it is."""
    first = next(iter(tensors), "")
    starts = (first[: -len(name)] for name in names if first.endswith(f".{name}"))
    for start in starts:
        inside = {key.removeprefix(start): value for key, value in tensors.items() if key.startswith(start)}
        if len(inside) == len(tensors) and inside.keys() == names:
            return inside
    return tensors


def _check_finite(path: str | Path, tensors: Named) -> None:
    for name, value in tensors.items():
        kind = str(value.dtype).removeprefix("torch.")
        known = value.dtype in FLOATS or not value.is_floating_point()
        require(known, f"{path}: array '{name}' has type {kind}; floats of 16, 32 or 64 bits are needed")
        finite = not value.is_floating_point() or bool(value.isfinite().all())
        require(finite, f"{path}: array '{name}' holds NaN or infinity")


def _shape(path: str | Path, notes: Notes) -> tuple[int, ...]:
    lengths = [length for length in notes.get("brittle_shape", "").split(",") if length]
    whole = all(length.isdecimal() and len(length) < 10 for length in lengths)
    require(whole, f"{path}: the note 'brittle_shape' holds no whole numbers")
    return tuple(int(length) for length in lengths)
