"""brittle train: data from a setting or a file, a network, a regime; the trained network goes to a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from brittle.cli.console import complain, emit, fields_table, say, watching
from brittle.cli.models import DATA_HELP, DataFile, NetworkFile, NetworkOut, with_networks
from brittle.cli.options import RESULTS, JsonFile, Seed, file_to_write, generator
from brittle.cli.parts import Family, PartsCommand, get_part_name, with_part
from brittle.cli.sampling import Sampling, with_sampling
from brittle.common import interrupts
from brittle.common.ending import Status
from brittle.common.errors import require

if TYPE_CHECKING:
    from torch import Generator

    from brittle.data import Data
    from brittle.networks import Initialisation, Network
    from brittle.training import Trainer, TrainingResult

app = typer.Typer(rich_markup_mode=None, add_completion=False)

REGIMES = Family("regime", "training", "Trainer", default="flow")
STARTS = Family("initialisation", "networks", "Initialisation", default="pytorch", short="init")
INTERRUPTED = {"interrupt": 130, "termination": 143}


@app.command(cls=PartsCommand, help="Train a network by one of the papers' regimes.")
@with_networks
@with_sampling
@with_part(STARTS)
@with_part(REGIMES)
def train(
    sampling: Sampling | None,
    init: "Initialisation",
    regime: "Trainer",
    data_file: Annotated[
        DataFile | None, typer.Option("--data", metavar="FILE", help=f"Instead of a setting. {DATA_HELP}")
    ] = None,
    network_file: Annotated[
        NetworkFile | None,
        typer.Option("--network", metavar="FILE", help="Begin from this network, not a random one."),
    ] = None,
    width: Annotated[
        str | None, typer.Option(metavar="N", help="Hidden neurons, 1000 unless given; 100,100 for two hidden layers.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, metavar="N", help="Processor threads.")] = None,
    seed: Seed = 0,
    out: NetworkOut = None,
    data_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=file_to_write(".npz"),
            help="Where to write the data, as .npz.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=file_to_write(),
            help="Where Ctrl-C leaves the run; next to --out unless given.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on from the checkpoint; all else as before.", rich_help_panel=RESULTS),
    ] = False,
    json_file: JsonFile = None,
) -> None:
    import torch

    from brittle.data import save_data
    from brittle.networks.store import require_format
    from brittle.training.base import require_place

    place = checkpoint or (out.with_suffix(".checkpoint.npz") if out is not None else None)
    require(not resume or place is not None, "--resume needs --out or --checkpoint, to know where the run was left")
    if place is not None:
        require_place(place)
    if threads is not None:
        torch.set_num_threads(threads)
    rng = generator(seed)
    data = _data(sampling, data_file, rng)
    network = _network(network_file, width, init, data, rng)
    if out is not None:
        require_format(network, out)
    if data_out is not None:
        save_data(data, data_out)
    stamp = _stamp(place)
    with interrupts.keeping(lambda: _left(place, None if resume else stamp)), watching(get_part_name(regime)) as watch:
        result = regime.train(network, data, rng, watch=watch, checkpoint=place, resume=resume)
    _report(result, data, {"regime": get_part_name(regime), "seed": seed}, out, place, json_file)


def _data(sampling: Sampling | None, file: DataFile | None, rng: "Generator") -> "Data":
    require((sampling is None) != (file is None), "give either --setting or --data: say where the data come from")
    if file is not None:
        return file.load()
    assert sampling is not None
    return sampling.draw(rng)


def _network(
    file: NetworkFile | None, width: str | None, start: "Initialisation", data: "Data", rng: "Generator"
) -> "Network":
    from brittle.networks import TorchLinearInit

    if file is not None:
        require(width is None, "--width and --network exclude each other: the file has a width of its own")
        require(
            start == TorchLinearInit(), "--init with its options and --network exclude each other: the file has weights"
        )
        return file.load(data)
    widths = _widths(width)
    if len(widths) == 1 and data.binary:
        return start.draw(data.columns, widths[0], rng, ambient=data.dim)
    deep = isinstance(start, TorchLinearInit)
    require(deep, f"--init is {get_part_name(start)!r}; several hidden layers or classes begin as 'pytorch'")
    assert isinstance(start, TorchLinearInit)
    outputs = 1 if data.binary else data.classes
    return start.draw_deep(data.columns, widths, rng, outputs=outputs, ambient=data.dim)


def _widths(text: str | None) -> list[int]:
    parts = ["1000"] if text is None else text.split(",")
    good = all(part.strip().isdigit() and int(part) > 0 for part in parts)
    require(good, f"--width is {text!r}; it must be a number of neurons, or several with commas between them")
    return [int(part) for part in parts]


def _report(
    result: "TrainingResult[Network]",
    data: "Data",
    context: dict[str, Any],
    out: Path | None,
    place: Path | None,
    json_file: str | None,
) -> None:
    """Write the network and the result; an unreached stop is said in one line and keeps the checkpoint.

    A reached one gives the checkpoint up last: where the disk is full, it is all that there is.
    """
    from brittle.networks import save_network

    kept = None if result.reached else _existing(place)
    if result.status is not Status.INTERRUPTED:
        if out is not None:
            save_network(result.network, out)
            say(f"wrote {out}")
        content = {**context, "examples": len(data), "dim": data.dim, **_test(result, data), **result.to_json()}
        content["checkpoint"] = kept
        emit(content, json_file, fields_table({name: value for name, value in content.items() if name != "path"}))
    if not result.reached:
        where = f"; {_left(kept)}" if kept is not None else ""
        complain(result.message + where)
        raise typer.Exit(INTERRUPTED.get(result.stopped_by, 2))
    if place is not None:
        place.unlink(missing_ok=True)


def _existing(place: Path | None) -> Path | None:
    return place if place is not None and place.exists() else None


def _stamp(place: Path | None) -> tuple[int, int] | None:
    found = place.stat() if place is not None and place.exists() else None
    return None if found is None else (found.st_ino, found.st_mtime_ns)


def _left(place: Path | None, before: tuple[int, int] | None = None) -> str:
    """What an interrupted run leaves; a checkpoint that was there before is another run's."""
    if _stamp(place) in (None, before):
        return ""
    return f"the run so far is in {place}, and --resume goes on from it"


def _test(result: "TrainingResult[Network]", data: "Data") -> dict[str, float]:
    if data.X_test is None or data.y_test is None:
        return {}
    return {"test_error": 1 - result.network.accuracy(data.X_test, data.y_test)}
