"""brittle harden: apply one remedy and say what it changed."""

from pathlib import Path
from typing import Annotated

import typer

from brittle.auditing import PARTS, Remedy, audit
from brittle.cli.console import deliver, emit, say, watching
from brittle.cli.models import NetworkArgument, require_format, with_networks
from brittle.cli.options import DataFile, JsonFile, Seed, file_to_write, generator
from brittle.cli.parts import Family, PartsCommand, called, with_part
from brittle.common.errors import require, required
from brittle.networks import Network, save_network
from brittle.networks.store import SUFFIXES
from brittle.settings import load_data

app = typer.Typer(rich_markup_mode=None)
REMEDIES = Family("remedy", Remedy, PARTS)


@app.command(cls=PartsCommand)
@with_networks
@with_part(REMEDIES)
def run(
    network: NetworkArgument,
    data: DataFile,
    remedy: Remedy | None,
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="FILE", callback=file_to_write(*SUFFIXES), help="Where to write the hardened network."
        ),
    ],
    budget: Annotated[float, typer.Option("--budget", metavar="SECONDS", help="Time to spend.")] = 60.0,
    seed: Seed = 0,
    json: JsonFile = None,
) -> None:
    """Apply one remedy to a network and print before and after."""
    remedy = required(remedy, f"--remedy is missing; it must be one of {REMEDIES.words}")
    examined = load_data(data)
    subject = network.load(examined.X)
    require_format(subject, out)
    with watching(called(remedy)) as watch:
        found = audit(subject, examined, budget=budget, remedies=(remedy,), rng=generator(seed), watch=watch)
    require(len(found.remedies) > 0, f"--budget is {budget:g}; time ran out before the remedy: give it more")
    treatment = found.remedies[0]
    hardened = required(treatment.network if treatment.applied else None, f"{called(remedy)}: {treatment.reason}")
    deliver(lambda: _save(hardened, out), lambda: emit(treatment.to_json(), json))


def _save(network: Network, out: Path) -> None:
    save_network(network, out)
    say(f"wrote {out}")
