"""A network from a file, with what the file cannot say: the class of a foreign module and the shape of its input."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from torch import nn

from brittle.cli.options import file_to_write
from brittle.common.errors import InputError, require
from brittle.networks import Network, TwoLayer, load_network
from brittle.networks.store import SUFFIXES

Architecture = Annotated[
    str | None,
    typer.Option("--architecture", metavar="MODULE:CLASS", help="What a state dict belongs to; imported, so trust it."),
]
NetworkOut = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", callback=file_to_write(*SUFFIXES), help="Where to write the network."),
]
Shape = Annotated[str | None, typer.Option("--shape", metavar="C,H,W", help="Shape of one input, unless it is flat.")]


def model_from(path: Path, architecture: str | None, shape: str | None) -> Network:
    """The network in the file; a named architecture is built without arguments and filled with the file's state."""
    module = None if architecture is None else _built(architecture)
    return load_network(path, module=module, shape=_lengths(shape))


def require_format(network: Network, out: Path | None) -> None:
    """What `save_network` would say after the work."""
    fits = out is None or out.suffix.lower() != ".npz" or isinstance(network, TwoLayer)
    require(fits, f"{out}: .npz holds two-layer networks only; choose .pt or .safetensors")


def _lengths(shape: str | None) -> tuple[int, ...]:
    if shape is None:
        return ()
    parts = shape.split(",")
    require(
        all(part.strip().isdecimal() for part in parts), f"--shape is {shape!r}; whole numbers like 1,28,28 are needed"
    )
    return tuple(int(part) for part in parts)


def _built(architecture: str) -> nn.Module:
    place, _, name = architecture.partition(":")
    require(bool(place and name), f"--architecture is {architecture!r}; MODULE:CLASS is needed")
    sys.path.insert(0, str(Path.cwd()))
    try:
        kind: Any = getattr(import_module(place), name)
        built = kind()
    except (ImportError, AttributeError, TypeError) as error:
        raise InputError(f"--architecture {architecture} cannot be built: {error}") from None
    finally:
        sys.path.pop(0)
    if not isinstance(built, nn.Module):
        raise InputError(f"--architecture {architecture} is no torch.nn.Module")
    return built
