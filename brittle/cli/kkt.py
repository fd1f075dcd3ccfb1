"""brittle kkt: how far a network is from a KKT point of the max-margin problem, the KKT point, the largest margin."""

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from brittle.cli.console import deliver, emit, fields_table, say, watching
from brittle.cli.margins import LargestMarginRequest, largest_margin, share_of_largest
from brittle.cli.models import DataOption, NetworkFile, NetworkOut, load_model_and_data, with_networks
from brittle.cli.options import JsonFile, Seed, file_to_write
from brittle.cli.sections import SectionedCommand
from brittle.common.errors import NETWORKS, PROGRAMS, require, require_value

if TYPE_CHECKING:
    from brittle.data import Data
    from brittle.kkt import DeepKKTResidual, KKTResidual
    from brittle.networks import Layered

app = typer.Typer(rich_markup_mode=None, add_completion=False)
HIDDEN = ("multipliers", "on_margin", "kinks", "slopes", "pairs")  # too long for a table


LARGEST = "The largest margin"  # a section of the help


@app.command(
    cls=SectionedCommand,
    help="Measure how far a network is from a KKT point, solve for one, or for the largest margin of all.",
)
@with_networks
def kkt(
    data_file: DataOption,
    network_file: Annotated[
        NetworkFile | None,
        typer.Argument(metavar="NETWORK", help=f"Network: {', '.join((*NETWORKS, *PROGRAMS))}; --largest needs none."),
    ] = None,
    solve_for: Annotated[
        bool, typer.Option("--solve", help="Solve for a KKT point from the network's patterns.")
    ] = False,
    out: NetworkOut = None,
    without_biases: Annotated[
        bool, typer.Option("--without-biases", help="The biases are no parameters; all of them must be zero.")
    ] = False,
    kink_tolerance: Annotated[
        float, typer.Option(metavar="NUMBER", min=0, help="The slope is free where |z| is below this share.")
    ] = 1e-6,
    margin_tolerance: Annotated[
        float, typer.Option(metavar="NUMBER", min=0, help="A multiplier needs q ≤ (1 + this) min q; inf for all.")
    ] = 1e-6,
    tolerance: Annotated[float, typer.Option(metavar="NUMBER", help="What --solve has to reach.")] = 1e-9,
    largest: Annotated[
        bool,
        typer.Option(
            "--largest", help="Search for the largest margin over all widths, and prove it.", rich_help_panel=LARGEST
        ),
    ] = False,
    gap: Annotated[
        float,
        typer.Option(metavar="NUMBER", help="What --largest has to prove: upper/γ - 1.", rich_help_panel=LARGEST),
    ] = 1e-6,
    seconds: Annotated[
        float, typer.Option(metavar="NUMBER", help="How long --largest may take.", rich_help_panel=LARGEST)
    ] = 60.0,
    proof: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=file_to_write(".npz"),
            help="Where --largest writes its proof, for python -m margincheck.",
            rich_help_panel=LARGEST,
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A proof that --largest goes on with.", rich_help_panel=LARGEST),
    ] = None,
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    require(
        out is None or solve_for or largest, "--out is given without --solve or --largest; there is nothing to write"
    )
    require(
        largest or (proof is None and resume is None), "--proof and --resume belong to --largest, which is not given"
    )
    require(not (largest and solve_for), "--solve and --largest are both given; name one")
    if largest:
        search = LargestMarginRequest(not without_biases, gap, seconds, seed, out, proof, resume)
        largest_margin(network_file, data_file, search, json_file)
        return
    from brittle.kkt import solve
    from brittle.networks import as_layered, as_two_layer

    network_file = require_value(network_file, "no network is given; only --largest needs none")
    given, data = load_model_and_data(network_file, data_file)
    network = as_layered(given, f"{network_file.path}: a KKT point")
    if solve_for:
        two = as_two_layer(network, f"{network_file.path}: a KKT point to solve for")
        with watching("kkt") as watch:
            point = solve(two, data, biases=not without_biases, tolerance=tolerance, watch=watch)
        content = point.to_json()
        network = point.network
    else:
        with watching("kkt"):
            content = _measured(network, data, not without_biases, kink_tolerance, margin_tolerance)
    content = {**content, "seed": seed}
    table = fields_table({name: value for name, value in content.items() if name not in HIDDEN})
    deliver(lambda: _save(network, out), lambda: emit(content, json_file, table))
    if solve_for and content["status"] != "solved":
        say(f"{content['status']}: {content['advice']}")
        raise typer.Exit(1)


def _save(network: "Layered", out: Path | None) -> None:
    from brittle.networks import save_network

    if out is not None:
        save_network(network, out)
        say(f"wrote {out}")


def _measured(network: "Layered", data: "Data", biases: bool, kinks: float, margins: float) -> dict[str, Any]:
    """The residual, and beside it the least over all multipliers: a lower bound that even margins off 1 may use."""
    began = time.perf_counter()
    found, least = (_residual(network, data, biases, kinks, allowed) for allowed in (margins, math.inf))
    return {
        **found.to_json(),
        "stationarity_any_multipliers": least.stationarity,
        **share_of_largest(network, data, biases),
        "neurons": sum(network.widths),
        "seconds": time.perf_counter() - began,
    }


def _residual(
    network: "Layered", data: "Data", biases: bool, kinks: float, margins: float
) -> "KKTResidual | DeepKKTResidual":
    """With two layers and one output the slopes at kinks are the best of all; beyond, the best that were found."""
    from brittle.kkt import deep_residual, residual
    from brittle.networks import as_two_layer

    if network.depth == 2 and network.classes == 1:
        two = as_two_layer(network, "a KKT point")
        return residual(two, data, biases=biases, kink_tolerance=kinks, margin_tolerance=margins)
    return deep_residual(network, data, biases=biases, kink_tolerance=kinks, margin_tolerance=margins)
