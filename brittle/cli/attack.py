"""brittle attack: perturbations that flip a network, measured; they go to a file."""

import time
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from brittle.cli.console import deliver, emit, fields_table, say, watching
from brittle.cli.crews import EngineName, Jobs, Keep, crew_for
from brittle.cli.models import DataOption, NetworkArgument, load_model_and_data, with_networks
from brittle.cli.options import ArraysOut, JsonFile, Seed, generator, word_of
from brittle.cli.parts import Family, PartsCommand, get_part_name, with_part
from brittle.common.errors import require
from brittle.common.files import read_npz, write_npz

if TYPE_CHECKING:
    from brittle.attacks import Attack, AttackResult, Restriction
    from brittle.data import Data

app = typer.Typer(rich_markup_mode=None, add_completion=False)

ATTACKS = Family("attack", "attacks", "Attack", default="minimum-norm")
CURVE_POINTS = 50


@app.command(cls=PartsCommand, help="Find perturbations that flip a network.")
@with_networks
@with_part(ATTACKS)
def run(
    network_file: NetworkArgument,
    data_file: DataOption,
    attack: "Attack[AttackResult]",
    subspace: Annotated[
        str,
        typer.Option(
            metavar="WORD", callback=word_of("on", "off", "free"), help="on, off or free: where the data lie."
        ),
    ] = "free",
    basis: Annotated[
        Path | None, typer.Option(metavar="FILE", help="--subspace of this .npz (`basis`, or a pixel `mask`) instead.")
    ] = None,
    bounds: Annotated[
        tuple[float, float] | None, typer.Option(metavar="LOW HIGH", help="Keep every feature in this range.")
    ] = None,
    test: Annotated[bool, typer.Option("--test", help="Attack the held-out examples.")] = False,
    seed: Seed = 0,
    keep: Keep = None,
    engine: EngineName = "local",
    jobs: Jobs = 1,
    out: ArraysOut = None,
    json_file: JsonFile = None,
) -> None:
    free, kind = subspace == "free" and basis is None, get_part_name(attack)
    require(free or "subspace" in _fields(attack), f"--subspace does not belong to the attack {kind}")
    network, data = load_model_and_data(network_file, data_file)
    data = data.test if test else data
    if not free:
        attack = replace(attack, subspace=_restriction(data, subspace, basis))  # type: ignore[type-var]
    vectors = out is not None
    with watching(kind) as watch, crew_for(keep, engine, jobs) as crew:
        begun = time.perf_counter()
        if crew is None:
            result = attack.run(network, data, bounds=bounds, rng=generator(seed), watch=watch, vectors=vectors)
        else:
            from brittle.experiments.pieces import attack_in_chunks

            result = attack_in_chunks(network, data, attack, crew, box=bounds, seed=seed, watch=watch, vectors=vectors)
        seconds = time.perf_counter() - begun
    context = {"attack": kind, "subspace": subspace, "seed": seed, "examples": len(data), "dim": data.dim}
    content = {**context, **_figures(result), "seconds": seconds}
    table = fields_table({name: value for name, value in content.items() if name != "curve"})
    deliver(lambda: _save(result, out), lambda: emit(content, json_file, table))


def _restriction(data: "Data", side: str, file: Path | None) -> "Restriction":
    import torch

    from brittle.attacks import Restriction, pixels, restriction_for

    if file is None:
        return restriction_for(data, side)
    require(side in ("on", "off"), f"--subspace is {side!r}; with --basis it must be on or off")
    arrays = read_npz(file, ("basis", "mask"))
    require(len(arrays) == 1, f"{file}: holds {', '.join(arrays) or 'neither'}; one of basis and mask is needed")
    if "mask" in arrays:
        inside = pixels(torch.from_numpy(arrays["mask"]))
        return Restriction(inside.basis, off=side == "off")
    return Restriction(torch.from_numpy(arrays["basis"]).double(), off=side == "off")


def _fields(attack: "Attack[AttackResult]") -> set[str]:
    return {each.name for each in fields(attack)}  # type: ignore[arg-type]


def _figures(result: "AttackResult") -> dict[str, Any]:
    """Everything but the vectors, which go to the file."""
    import torch

    from brittle.attacks import UniversalResult

    large = {"perturbations", "direction", "raw", "z", "intervals"}
    norms = result.norms[result.success]
    summary: dict[str, Any] = {"flipped": result.rate, "mean_norm": result.mean_norm}
    if len(norms):
        summary |= {"smallest_norm": float(norms.min()), "largest_norm": float(norms.max())}
    summary |= {name: value for name, value in result.to_json().items() if name not in large}
    if isinstance(result, UniversalResult):
        top = 2 * (result.lower if result.lower < torch.inf else result.size)
        sizes = torch.linspace(0, top, CURVE_POINTS, dtype=torch.float64)
        summary["curve"] = {"sizes": sizes.tolist(), "flipped": result.curve(sizes).tolist()}
    return summary


def _save(result: "AttackResult", path: Path | None) -> None:
    if path is None:
        return
    arrays = {"delta": result.perturbations, "norms": result.norms, "success": result.success, "raw": result.raw}
    arrays |= {"direction": result.direction, "clipped": result.clipped}
    write_npz(path, {name: array.numpy() for name, array in arrays.items()})
    say(f"wrote {path}")
