"""A network given back with the arrays of the file that it came from: the same names, shapes and float types.

A parameter is an array of the file as it is, or what a folded batch norm made of it: r(Kx + b) + t, with a factor r for
every neuron, has the weights diag(r)K and the bias rb + t. So the new K is K and the change of the weights over r, the
new b is b and the change of the bias over r. A layer without a bias of its own leaves the change to that of the norm.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from brittle.common.errors import require, suffix_of
from brittle.common.torch_files import Named, write_pt, write_safetensors
from brittle.networks.adapter import Adapter
from brittle.networks.base import Network
from brittle.networks.deep import as_layered
from brittle.networks.folded import Folded
from brittle.networks.store import foreign_state

STATES = (".pt", ".safetensors")
WEIGHTS, BIAS = "weights of layer {}", "bias of layer {}"
FOLDED = 1e-5  # relative: what was folded from float32 numbers, and recognised by its numbers


@dataclass(frozen=True, eq=False)
class ParameterPlace:
    """Where a parameter stands in a file: the array of this key, or something that is affine in it.

    Each row of the parameter moves by `factor` times what the row of the array does; None where they are equal.
    """

    key: str
    before: Tensor
    factor: Tensor | None = None

    def written(self, array: Tensor, value: Tensor) -> Tensor:
        """The array, for the parameter to have this value."""
        if self.factor is not None:
            change = (value.detach() - self.before).double()
            value = array.double().reshape(change.shape) + change / _down(self.factor, change)
        return value.detach().reshape(array.shape).to(array.dtype)


@dataclass(frozen=True, eq=False)
class StateDictForm:
    """The `tensors` of a file, and by the names of a network's parameters the place of each one among them."""

    path: Path
    tensors: Named
    places: dict[str, ParameterPlace]

    @classmethod
    def of(cls, path: str | Path, network: Network) -> "StateDictForm | None":
        """The form of the network that was read from this file; None for whole programs and files of brittle's own.

        Raises where some parameter cannot be found in the file, and so could not be written there.
        """
        tensors = foreign_state(path)
        if tensors is None:
            return None
        places: dict[str, ParameterPlace] = {}
        for name, value in parameters(network).items():
            place = _place(name, value, tensors, places)
            absent = place is None and (_fixed(network) or not bool(value.any()))  # a layer that has no bias
            require(
                place is not None or absent,
                f"{path}: the {name} of the network is no array of the file as it is, because something was folded "
                "into it; it cannot come back under the file's own names: choose --out FILE.onnx",
            )
            if place is not None:
                places[name] = place
        return cls(Path(path), tensors, places)

    def filled(self, network: Network) -> Named:
        """The arrays of the file with the numbers of another network of the same kind."""
        filled = dict(self.tensors)
        for name, value in parameters(network).items():
            place = self.places.get(name)
            if place is None:
                kept = _fixed(network) or not bool(value.any())
                require(kept, f"{self.path}: has no array for the {name}, which is not zero any more")
                continue
            key, old = place.key, filled[place.key]
            same = value.numel() == old.numel()
            require(same, f"{self.path}: array '{key}' has the shape {tuple(old.shape)}, and the new network another")
            filled[key] = place.written(old, value)
        return filled

    def write(self, network: Network, out: str | Path) -> None:
        """In a file that the module's `load_state_dict` takes as it took the old one."""
        write = write_pt if suffix_of(out) == ".pt" else write_safetensors
        write(out, self.filled(network), {})


def parameters(network: Network) -> Named:
    """By name: of a module those of its state, of a folded network those of its graph, else those of its layers."""
    if isinstance(network, Adapter):
        return {name: value for name, value in network.inner.state_dict().items() if value.is_floating_point()}
    if isinstance(network, Folded):
        return {name: value for name, value in network.graph.constants.items() if value.is_floating_point()}
    parts = enumerate(as_layered(network, "a network's own form").layers, start=1)
    named = [(place, layer.parameters) for place, layer in parts]
    weights = {WEIGHTS.format(place): weight for place, (weight, _) in named}
    return weights | {BIAS.format(place): bias for place, (_, bias) in named}


def _fixed(network: Network) -> bool:
    """Whether parameters that the file does not hold are constants, which no training moves."""
    return isinstance(network, Adapter | Folded)


def _place(name: str, value: Tensor, tensors: Named, taken: dict[str, ParameterPlace]) -> ParameterPlace | None:
    """Where the parameter stands among the arrays; a bias follows the weights of its layer."""
    beside = taken.get(name.replace("bias", "weights"))
    if beside is not None and beside.factor is not None:
        return _shifted(value, beside.key, beside.factor, tensors, taken)
    return _equal_one(name, value, tensors, taken) or (_scaled(value, tensors, taken) if value.ndim > 1 else None)


def _equal_one(name: str, value: Tensor, tensors: Named, taken: dict[str, ParameterPlace]) -> ParameterPlace | None:
    """The array that is equal to the parameter; that of its own name or layer where several are."""
    free = [key for key in _free(tensors, taken) if _equal(tensors[key], value)]
    beside = taken.get(name.replace("bias", "weights"))
    names = (name, _sibling("" if beside is None else beside.key))
    key = next(iter(sorted(free, key=lambda key: key not in names)), None)
    return None if key is None else ParameterPlace(key, value)


def _scaled(value: Tensor, tensors: Named, taken: dict[str, ParameterPlace]) -> ParameterPlace | None:
    """The weights of which a batch norm made these."""
    factors = ((key, _factor(tensors[key], value)) for key in _free(tensors, taken))
    return next((ParameterPlace(key, value, factor) for key, factor in factors if factor is not None), None)


def _shifted(
    value: Tensor, weights: str, factor: Tensor, tensors: Named, taken: dict[str, ParameterPlace]
) -> ParameterPlace | None:
    """The bias beside those weights, or that of the norm."""
    free, own = set(_free(tensors, taken)), _sibling(weights)
    if own in free and tensors[own].shape == value.shape:
        return ParameterPlace(own, value, factor)
    norms = (key for key in _norms(value, factor, tensors) if key in free)
    return next((ParameterPlace(key, value, torch.ones_like(factor)) for key in norms), None)


def _factor(array: Tensor, value: Tensor) -> Tensor | None:
    """By which every row of the array is multiplied, where that makes the value; it can be undone where none is 0."""
    if not array.is_floating_point() or array.shape != value.shape:
        return None
    old, new = array.double().flatten(1), value.detach().double().flatten(1)
    factor = (old * new).sum(1) / old.square().sum(1)
    off = (new - factor[:, None] * old).norm(dim=1)
    return factor if bool(((factor != 0) & (off <= FOLDED * new.norm(dim=1))).all()) else None


def _norms(value: Tensor, factor: Tensor, tensors: Named) -> Iterator[str]:
    """Biases β of batch norms with the mean μ for which β - factor·μ is the value."""
    for key in tensors:
        mean, bias = tensors[key], tensors.get(key.removesuffix("running_mean") + "bias")
        if key.endswith("running_mean") and bias is not None and mean.shape == bias.shape == value.shape:
            off = (bias.double() - factor * mean.double() - value.detach()).abs()
            if bool((off <= FOLDED * (bias.abs() + (factor * mean).abs())).all()):
                yield key.removesuffix("running_mean") + "bias"


def _free(tensors: Named, taken: dict[str, ParameterPlace]) -> list[str]:
    used = {place.key for place in taken.values()}
    return [key for key in tensors if key not in used]


def _sibling(weights: str) -> str:
    """The key of the bias beside these weights."""
    return weights.removesuffix("weight") + "bias"


def _down(factor: Tensor, like: Tensor) -> Tensor:
    """As a column of that many axes."""
    return factor.reshape(-1, *[1] * (like.ndim - 1))


def _equal(array: Tensor, value: Tensor) -> bool:
    if not array.is_floating_point() or array.numel() != value.numel():
        return False
    return bool((array.double().reshape(-1) == value.detach().double().reshape(-1)).all())


def require_form(path: str | Path, network: Network, out: str | Path) -> StateDictForm | None:
    """How the network comes back in `out`: in the form of its file, or None in brittle's own."""
    return StateDictForm.of(path, network) if suffix_of(out) in STATES else None
