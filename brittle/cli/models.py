"""A network from a file, with what the file cannot say: the class of a foreign module and the shape of its input."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from torch import Tensor, nn

from brittle.cli.console import say
from brittle.cli.imported import imported
from brittle.cli.options import file_to_write
from brittle.cli.signatures import Command, Values, offering, own_parameters, parameter
from brittle.common.errors import InputError, require
from brittle.networks import Network, TwoLayer, read_network
from brittle.networks.store import SUFFIXES

NetworkOut = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", callback=file_to_write(*SUFFIXES), help="Where to write the network."),
]
SHARED = {
    "architecture": Annotated[
        str | None,
        typer.Option(
            "--architecture", metavar="MODULE:CLASS", help="What a state dict belongs to; imported, so trust it."
        ),
    ],
    "shape": Annotated[
        str | None, typer.Option("--shape", metavar="C,H,W", help="Shape of one input, unless it is flat.")
    ],
}


@dataclass(frozen=True)
class NetworkFile:
    """Where a network is. A command that takes one is decorated by `with_networks`: Typer does not know this type."""

    path: Path
    architecture: str | None = None
    shape: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return self.path.name

    def load(self, examples: Tensor | None = None) -> Network:
        """The network; a named architecture is built without arguments and filled with the file's state.

        What a foreign network was recognised as is said on standard error; `examples` are inputs to compare it on.
        """
        module = None if self.architecture is None else _built(self.architecture)
        network, recognition = read_network(self.path, module, self.shape, examples)
        if recognition is not None:
            say(f"{self.path} is {recognition}")
        return network


NetworkArgument = Annotated[NetworkFile, typer.Argument(metavar="NETWORK", help="Network: .npz, .pt or .safetensors.")]


def with_networks(command: Command) -> Command:
    """Gives a command --architecture and --shape, for all its parameters that are a `NetworkFile`."""
    own = own_parameters(command)
    files = {name: _as_path(each.annotation) for name, each in own.items() if NetworkFile in _kinds(each.annotation)}
    offered = {name: each.replace(annotation=files.get(name, each.annotation)) for name, each in own.items()}
    shared = {name: parameter(name, kind) for name, kind in SHARED.items()}

    def arguments(values: Values) -> Values:
        architecture, shape = (values.pop(name) for name in SHARED)
        paths = {name: values[name] for name in files if values[name] is not None}
        stray = "--architecture" if architecture is not None else "--shape"
        needless = architecture is None and shape is None
        require(bool(paths) or needless, f"{stray} was given without a network: name its file too")
        known = {name: NetworkFile(path, architecture, _lengths(shape)) for name, path in paths.items()}
        return {**values, **known}

    return offering(command, {**offered, **shared}, arguments)


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """Annotated[NetworkFile | None, ...] is NetworkFile and None."""
    kind = get_args(annotation)[0] if hasattr(annotation, "__metadata__") else annotation
    return get_args(kind) or (kind,)


def _as_path(annotation: Any) -> Any:
    kind = Path | None if len(_kinds(annotation)) > 1 else Path
    return Annotated[kind, *annotation.__metadata__]


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
    kind = imported("--architecture", architecture)
    try:
        built = kind()
    except TypeError as error:
        raise InputError(f"--architecture {architecture} cannot be built: {error}") from None
    if not isinstance(built, nn.Module):
        raise InputError(f"--architecture {architecture} is no torch.nn.Module")
    return built
