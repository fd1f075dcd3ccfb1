"""A network given back with the arrays of the file that it came from: the same names, shapes and float types."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from brittle.common.errors import require
from brittle.common.tensors import Named, write_pt, write_safetensors
from brittle.networks.adapter import Adapter
from brittle.networks.base import Network
from brittle.networks.deep import as_layered
from brittle.networks.folded import Folded
from brittle.networks.store import foreign_state

STATES = (".pt", ".safetensors")


@dataclass(frozen=True, eq=False)
class Form:
    """The `tensors` of a file, and by the names of a network's parameters which of them each one is."""

    path: Path
    tensors: Named
    keys: dict[str, str]

    @classmethod
    def of(cls, path: str | Path, network: Network) -> "Form | None":
        """The form of the network that was read from this file; None for whole programs and files of brittle's own.

        Raises where some parameter is no array of the file as it is, and so could not be written there.
        """
        tensors = foreign_state(path)
        if tensors is None:
            return None
        keys: dict[str, str] = {}
        for name, value in parameters(network).items():
            key = _found(name, value, tensors, keys)
            absent = key is None and (_fixed(network) or not bool(value.any()))  # a layer that has no bias
            require(
                key is not None or absent,
                f"{path}: the {name} of the network is no array of the file as it is, because something was folded "
                "into it; it cannot come back under the file's own names: choose --out FILE.onnx",
            )
            if key is not None:
                keys[name] = key
        return cls(Path(path), tensors, keys)

    def filled(self, network: Network) -> Named:
        """The arrays of the file with the numbers of another network of the same kind."""
        filled = dict(self.tensors)
        for name, value in parameters(network).items():
            key = self.keys.get(name)
            if key is None:
                kept = _fixed(network) or not bool(value.any())
                require(kept, f"{self.path}: has no array for the {name}, which is not zero any more")
                continue
            old = filled[key]
            same = value.numel() == old.numel()
            require(same, f"{self.path}: array '{key}' has the shape {tuple(old.shape)}, and the new network another")
            filled[key] = value.detach().reshape(old.shape).to(old.dtype)
        return filled

    def write(self, network: Network, out: str | Path) -> None:
        """In a file that the module's `load_state_dict` takes as it took the old one."""
        write = write_pt if Path(out).suffix.lower() == ".pt" else write_safetensors
        write(out, self.filled(network), {})


def parameters(network: Network) -> Named:
    """By name: of a module those of its state, of a folded network those of its graph, else those of its layers."""
    if isinstance(network, Adapter):
        return {name: value for name, value in network.inner.state_dict().items() if value.is_floating_point()}
    if isinstance(network, Folded):
        return {name: value for name, value in network.graph.constants.items() if value.is_floating_point()}
    parts = enumerate(as_layered(network, "a network's own form").layers, start=1)
    named = [(place, layer.parameters) for place, layer in parts]
    weights = {f"weights of layer {place}": weight for place, (weight, _) in named}
    return weights | {f"bias of layer {place}": bias for place, (_, bias) in named}


def _fixed(network: Network) -> bool:
    """Whether parameters that the file does not hold are constants, which no training moves."""
    return isinstance(network, Adapter | Folded)


def _found(name: str, value: Tensor, tensors: Named, taken: dict[str, str]) -> str | None:
    """The array that is equal to the parameter; that of its own name or layer where several are."""
    free = [key for key in tensors if key not in taken.values() and _equal(tensors[key], value)]
    sibling = taken.get(name.replace("bias", "weights"), "").removesuffix("weight") + "bias"
    return next(iter(sorted(free, key=lambda key: key not in (name, sibling))), None)


def _equal(array: Tensor, value: Tensor) -> bool:
    if not array.is_floating_point() or array.numel() != value.numel():
        return False
    return bool((array.double().reshape(-1) == value.detach().double().reshape(-1)).all())


def require_form(path: str | Path, network: Network, out: str | Path) -> Form | None:
    """How the network comes back in `out`: in the form of its file, or None in brittle's own."""
    return Form.of(path, network) if Path(out).suffix.lower() in STATES else None
