"""brittle attack: perturbations that flip a network, measured; they go to a file."""

import time
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from brittle.attacks import (
    DIRECTIONS,
    FREE,
    PGD,
    Attack,
    AttackResult,
    Foolbox,
    GradientStep,
    MinimumNorm,
    Ray,
    Restriction,
    Universal,
    UniversalResult,
    pixels,
    restriction_for,
)
from brittle.cli.console import deliver, emit, fields_table, say, watching
from brittle.cli.options import ArraysOut, DataFile, JsonFile, NetworkFile, Seed, generator
from brittle.common.errors import require
from brittle.common.files import read_npz, write_npz
from brittle.networks import load_network
from brittle.settings import Data, load_data

app = typer.Typer(rich_markup_mode=None, add_completion=False)

ATTACKS: dict[str, type[Attack[Any]]] = {
    "minimum-norm": MinimumNorm,
    "universal": Universal,
    "gradient-step": GradientStep,
    "pgd": PGD,
    "ray": Ray,
}
PEER = "foolbox:"
CURVE_POINTS = 50


@app.command(help="Find perturbations that flip a network.")
def attack(
    network_file: NetworkFile,
    data_file: DataFile,
    kind: Annotated[
        str, typer.Option("--attack", metavar="WORD", help=f"{', '.join(ATTACKS)}, or {PEER}DDNAttack and the like.")
    ] = "minimum-norm",
    subspace: Annotated[str, typer.Option(metavar="WORD", help="on, off or free: where the data lie.")] = "free",
    basis: Annotated[
        Path | None, typer.Option(metavar="FILE", help="--subspace of this .npz (`basis`, or a pixel `mask`) instead.")
    ] = None,
    direction: Annotated[
        str | None, typer.Option(metavar="WORD", help=f"universal: {', '.join(DIRECTIONS)}; examples unless given.")
    ] = None,
    margin_slack: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="universal: only margins up to 1 + this times the smallest.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="pgd: radius of the ball; the smallest one unless given.")
    ] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", help="pgd, foolbox: how many.")] = None,
    starts: Annotated[int | None, typer.Option(metavar="N", help="minimum-norm: how many.")] = None,
    limit: Annotated[float | None, typer.Option(metavar="NUMBER", help="No perturbation longer than this.")] = None,
    bounds: Annotated[
        tuple[float, float] | None, typer.Option(metavar="LOW HIGH", help="Keep every feature in this range.")
    ] = None,
    test: Annotated[bool, typer.Option("--test", help="Attack the held-out examples.")] = False,
    seed: Seed = 0,
    out: ArraysOut = None,
    json_file: JsonFile = None,
) -> None:
    network, data = load_network(network_file), load_data(data_file)
    data = data.test if test else data
    given = {
        "direction": direction,
        "margin_slack": margin_slack,
        "budget": budget,
        "steps": steps,
        "starts": starts,
        "limit": limit,
        "subspace": _restriction(data, subspace, basis),
    }
    chosen = _chosen(kind, {name: value for name, value in given.items() if value is not None and value is not FREE})
    with watching(kind) as watch:
        begun = time.perf_counter()
        result = chosen.run(network, data, bounds=bounds, rng=generator(seed), watch=watch)
        seconds = time.perf_counter() - begun
    context = {"attack": kind, "subspace": subspace, "seed": seed, "examples": len(data), "dim": data.dim}
    content = {**context, **_figures(result), "seconds": seconds}
    table = fields_table({name: value for name, value in content.items() if name != "curve"})
    deliver(lambda: _save(result, out), lambda: emit(content, json_file, table))


def _restriction(data: Data, side: str, file: Path | None) -> Restriction:
    if file is None:
        return restriction_for(data, side)
    require(side in ("on", "off"), f"--subspace is {side!r}; with --basis it must be on or off")
    arrays = read_npz(file, ("basis", "mask"))
    require(len(arrays) == 1, f"{file}: holds {', '.join(arrays) or 'neither'}; one of basis and mask is needed")
    if "mask" in arrays:
        inside = pixels(torch.from_numpy(arrays["mask"]))
        return Restriction(inside.basis, off=side == "off")
    return Restriction(torch.from_numpy(arrays["basis"]).double(), off=side == "off")


def _chosen(kind: str, options: dict[str, Any]) -> Attack[Any]:
    if kind.startswith(PEER):
        budget = options.pop("budget", None)
        require("subspace" not in options, "--subspace does not apply to an attack of Foolbox")
        return Foolbox(kind.removeprefix(PEER), options, budget)
    require(kind in ATTACKS, f"--attack is {kind!r}; it must be one of {', '.join(ATTACKS)} or {PEER}NAME")
    if "direction" in options:
        word = options["direction"]
        require(word in DIRECTIONS, f"--direction is {word!r}; it must be one of {', '.join(DIRECTIONS)}")
        require(kind == "universal", f"--direction does not apply to --attack {kind}")
        options["direction"] = DIRECTIONS[word]
    part = ATTACKS[kind]
    wrong = [name for name in options if name not in part.__dataclass_fields__]  # type: ignore[attr-defined]
    require(not wrong, f"--{wrong[0].replace('_', '-') if wrong else ''} does not apply to --attack {kind}")
    return part(**options)


def _figures(result: AttackResult) -> dict[str, Any]:
    """Everything but the vectors, which go to the file."""
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


def _save(result: AttackResult, path: Path | None) -> None:
    if path is None:
        return
    arrays = {"delta": result.perturbations, "norms": result.norms, "success": result.success, "raw": result.raw}
    arrays |= {"direction": result.direction, "clipped": result.clipped}
    write_npz(path, {name: array.numpy() for name, array in arrays.items()})
    say(f"wrote {path}")
