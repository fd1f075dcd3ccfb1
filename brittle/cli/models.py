"""Networks and data from files, with what a file cannot say: the class of a foreign module, the shape of its input."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from brittle.cli.console import say
from brittle.cli.imported import import_object
from brittle.cli.options import RESULTS, file_to_write
from brittle.cli.signatures import Command, Values, offering, own_parameters, parameter
from brittle.common.errors import (
    DATA,
    KINDS_OF_DATA,
    NETWORKS,
    PROGRAMS,
    WRITTEN,
    InputError,
    existing,
    require,
    suffix_of,
)

if TYPE_CHECKING:
    from torch import nn

    from brittle.data import Data
    from brittle.networks import Network

FOREIGN = "What a network's file does not say"  # a section of the help
NetworkOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        callback=file_to_write(*WRITTEN),
        help="Where to write the network.",
        rich_help_panel=RESULTS,
    ),
]
SHARED = {
    "architecture": Annotated[
        str | None,
        typer.Option(
            "--architecture",
            metavar="MODULE:CLASS",
            help="What a state dict belongs to; imported, so trust it.",
            rich_help_panel=FOREIGN,
        ),
    ],
    "shape": Annotated[
        str | None,
        typer.Option(
            "--shape",
            metavar="C,H,W",
            help="Shape of one input, unless it is flat or the data say it.",
            rich_help_panel=FOREIGN,
        ),
    ],
    "activation": Annotated[
        str | None,
        typer.Option(
            "--activation",
            metavar="relu",
            help="What lies between the linear layers of a state dict.",
            rich_help_panel=FOREIGN,
        ),
    ],
    "output": Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="NAME",
            help="Name or place of the logits, where a module returns several things.",
            rich_help_panel=FOREIGN,
        ),
    ],
}


@dataclass(frozen=True)
class NetworkFile:
    """Where a network is. A command that takes one is decorated by `with_networks`: Typer does not know this type."""

    path: Path
    architecture: str | None = None
    shape: tuple[int, ...] = ()
    activation: str | None = None
    output: str | None = None

    @property
    def name(self) -> str:
        return self.path.name

    def refuse(self) -> None:
        """What can be said before anything heavy is imported."""
        suffix, known = suffix_of(existing(self.path)), (*NETWORKS, *PROGRAMS)
        require(suffix in known, f"{self.path}: the suffix is '{suffix}'; networks live in {', '.join(known)} files")

    def load(self, data: "Data | None" = None) -> "Network":
        """The network; a named architecture is built without arguments and filled with the file's state.

        It takes flat rows or, where it does not, examples of the shape of the data. What a foreign network was
        recognised as is said on standard error; it is compared on the data too.
        """
        module = None if self.architecture is None else _built(self.architecture)
        if self.shape or data is None or data.truth.image is None:
            return self._load(module, self.shape, data)
        try:
            return self._load(module, (), data)
        except InputError:
            return self._load(module, data.shape, data)

    def _load(self, module: "nn.Module | None", shape: tuple[int, ...], data: "Data | None") -> "Network":
        from brittle.networks import read_network

        X = None if data is None else data.X
        network, recognition = read_network(self.path, module, shape, X, self.activation, self.output)
        if recognition is not None:
            say(f"{self.path} is {recognition}")
        return network


@dataclass(frozen=True)
class DataFile:
    """Where data are: a file, or a folder of pictures."""

    path: Path

    def refuse(self) -> None:
        """What can be said before anything heavy is imported."""
        if not self.path.is_dir():
            suffix = suffix_of(existing(self.path))
            require(suffix in DATA, f"{self.path}: the suffix is {suffix!r}; {KINDS_OF_DATA} are read")

    def load(self) -> "Data":
        from brittle.data import load_data

        return load_data(self.path)


NetworkArgument = Annotated[
    NetworkFile, typer.Argument(metavar="NETWORK", help=f"Network: {', '.join((*NETWORKS, *PROGRAMS))}.")
]
DATA_HELP = f"Data: {KINDS_OF_DATA}."
DataOption = Annotated[DataFile, typer.Option("--data", metavar="FILE", help=DATA_HELP)]


def load_model_and_data(network: NetworkFile, data: DataFile) -> "tuple[Network, Data]":
    """Both, the data with the labels that the network takes."""
    examples = data.load()
    known = network.load(examples)
    return known, examples.labelled_for(known.classes)


def with_networks(command: Command) -> Command:
    """Gives a command the options of `SHARED`, for all its parameters that are a `NetworkFile`.

    Those that are a `DataFile` become one too; a file that is not there is said before the command begins.
    """
    own = own_parameters(command)
    kinds = {name: _kinds(each.annotation) for name, each in own.items()}
    networks = [name for name, kind in kinds.items() if NetworkFile in kind]
    files = [name for name, kind in kinds.items() if DataFile in kind]
    offered = {
        name: each.replace(annotation=_as_path(each.annotation)) if name in (*networks, *files) else each
        for name, each in own.items()
    }
    options = {name: parameter(name, kind) for name, kind in SHARED.items()}

    def arguments(values: Values) -> Values:
        shared = {name: values.pop(name) for name in SHARED}
        architecture = shared["architecture"]
        given = {name: values[name] for name in (*networks, *files) if values[name] is not None}
        stray = next((name for name, value in shared.items() if value is not None), None)
        named = any(name in given for name in networks)
        require(named or stray is None, f"--{stray} was given without a network: name its file too")
        named_well = architecture is None or all(architecture.partition(":")[::2])
        require(named_well, f"--architecture is {architecture!r}; MODULE:CLASS is needed")
        foreign = architecture, _lengths(shared["shape"]), shared["activation"], shared["output"]
        known: dict[str, NetworkFile | DataFile] = {
            name: NetworkFile(path, *foreign) if name in networks else DataFile(path) for name, path in given.items()
        }
        for each in known.values():
            each.refuse()
        return {**values, **known}

    return offering(command, {**offered, **options}, arguments)


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """Annotated[NetworkFile | None, ...] is NetworkFile and None."""
    kind = get_args(annotation)[0] if hasattr(annotation, "__metadata__") else annotation
    return get_args(kind) or (kind,)


def _as_path(annotation: Any) -> Any:
    kind = Path | None if len(_kinds(annotation)) > 1 else Path
    return Annotated[kind, *annotation.__metadata__]


def _lengths(shape: str | None) -> tuple[int, ...]:
    if shape is None:
        return ()
    parts = shape.split(",")
    require(
        all(part.strip().isdecimal() for part in parts), f"--shape is {shape!r}; whole numbers like 1,28,28 are needed"
    )
    return tuple(int(part) for part in parts)


def _built(architecture: str) -> "nn.Module":
    from torch import nn

    kind = import_object("--architecture", architecture)
    try:
        built = kind()
    except TypeError as error:
        way_out = "name a function without arguments that builds it"
        raise InputError(f"--architecture {architecture} cannot be built: {error}; {way_out}") from None
    if not isinstance(built, nn.Module):
        raise InputError(f"--architecture {architecture} is no torch.nn.Module")
    return built
