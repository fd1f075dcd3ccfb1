"""The state of a foreign module in a file: its tensors, its class name to tell a person, and its input shape."""

import copy
from pathlib import Path

from torch import Tensor, nn

from brittle.common.errors import InputError, require
from brittle.common.tensors import Named, Notes
from brittle.networks.adapter import Adapter
from brittle.networks.base import Network
from brittle.networks.outputs import Choice, unwrapped
from brittle.networks.recognise import Recognition, recognise
from brittle.networks.state import FLOATS, WAY_OUT

KIND = "brittle_network"


def module_state(path: str | Path, network: Adapter) -> tuple[Named, Notes]:
    _check_finite(path, network.inner.state_dict())
    lengths = ",".join(str(length) for length in network.shape)
    notes = {KIND: "module", "brittle_class": type(unwrapped(network.inner)).__name__, "brittle_shape": lengths}
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
