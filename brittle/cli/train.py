"""brittle train: data from a setting or a file, a network, a regime; the trained network goes to a file."""

from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Generator

from brittle.cli.console import complain, emit, fields_table, say, watching
from brittle.cli.models import NetworkFile, NetworkOut, require_format, with_networks
from brittle.cli.options import JsonFile, Seed, file_to_write, generator
from brittle.cli.parts import Family, PartsCommand, called, with_part
from brittle.cli.sampling import Sampling, with_sampling
from brittle.common import interrupts
from brittle.common.ending import Ending
from brittle.common.errors import require
from brittle.networks import PARTS as INITIALISATIONS
from brittle.networks import Initialisation, Network, PyTorch, save_network
from brittle.settings import Data, load_data, save_data
from brittle.training import PARTS, Regime, Training
from brittle.training.checkpoint import require_place

app = typer.Typer(rich_markup_mode=None, add_completion=False)

REGIMES = Family("regime", Regime, PARTS, default="flow")
STARTS = Family("initialisation", Initialisation, INITIALISATIONS, default="pytorch", short="init")
INTERRUPTED = {"interrupt": 130, "termination": 143}


@app.command(cls=PartsCommand, help="Train a network by one of the papers' regimes.")
@with_networks
@with_sampling
@with_part(STARTS)
@with_part(REGIMES)
def train(
    sampling: Sampling | None,
    init: Initialisation,
    regime: Regime,
    data_file: Annotated[
        Path | None, typer.Option("--data", metavar="FILE", help="Data: .npz, .csv or .pt, instead of a setting.")
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
        typer.Option(metavar="FILE", callback=file_to_write(".npz"), help="Where to write the data, as .npz."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=file_to_write(),
            help="Where Ctrl-C leaves the run; next to --out unless given.",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint; all else as before.")] = False,
    json_file: JsonFile = None,
) -> None:
    place = checkpoint or (out.with_suffix(".checkpoint.npz") if out is not None else None)
    require(not resume or place is not None, "--resume needs --out or --checkpoint, to know where the run was left")
    if place is not None:
        require_place(place)
    if threads is not None:
        torch.set_num_threads(threads)
    rng = generator(seed)
    data = _data(sampling, data_file, rng)
    network = _network(network_file, width, init, data, rng)
    require_format(network, out)
    if data_out is not None:
        save_data(data, data_out)
    stamp = _stamp(place)
    with interrupts.keeping(lambda: _left(place, None if resume else stamp)), watching(called(regime)) as watch:
        result = regime.train(network, data, rng, watch=watch, checkpoint=place, resume=resume)
    _report(result, data, {"regime": called(regime), "seed": seed}, out, place, json_file)


def _data(sampling: Sampling | None, file: Path | None, rng: Generator) -> Data:
    require((sampling is None) != (file is None), "give either --setting or --data: say where the data come from")
    if file is not None:
        return load_data(file)
    assert sampling is not None
    return sampling.draw(rng)


def _network(file: NetworkFile | None, width: str | None, start: Initialisation, data: Data, rng: Generator) -> Network:
    if file is not None:
        require(width is None, "--width and --network exclude each other: the file has a width of its own")
        require(start == PyTorch(), "--init with its options and --network exclude each other: the file has weights")
        return file.load(data.X)
    widths = _widths(width)
    if len(widths) == 1 and data.binary:
        return start.draw(data.columns, widths[0], rng, ambient=data.dim)
    deep = isinstance(start, PyTorch)
    require(deep, f"--init is {called(start)!r}; several hidden layers or classes begin as 'pytorch'")
    assert isinstance(start, PyTorch)
    outputs = 1 if data.binary else data.classes
    return start.draw_deep(data.columns, widths, rng, outputs=outputs, ambient=data.dim)


def _widths(text: str | None) -> list[int]:
    parts = ["1000"] if text is None else text.split(",")
    good = all(part.strip().isdigit() and int(part) > 0 for part in parts)
    require(good, f"--width is {text!r}; it must be a number of neurons, or several with commas between them")
    return [int(part) for part in parts]


def _report(
    result: Training[Network],
    data: Data,
    context: dict[str, Any],
    out: Path | None,
    place: Path | None,
    json_file: str | None,
) -> None:
    """Write the network and the result; an unreached stop is said in one line and keeps the checkpoint.

    A reached one gives the checkpoint up last: where the disk is full, it is all that there is.
    """
    kept = None if result.reached else _existing(place)
    if result.status is not Ending.INTERRUPTED:
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


def _test(result: Training[Network], data: Data) -> dict[str, float]:
    if data.X_test is None or data.y_test is None:
        return {}
    return {"test_error": 1 - result.network.accuracy(data.X_test, data.y_test)}
