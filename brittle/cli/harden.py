"""brittle harden: apply one remedy and say what it changed."""

from pathlib import Path
from typing import Annotated

import typer

from brittle.auditing import REMEDIES, audit
from brittle.cli.console import deliver, emit, say, watching
from brittle.cli.models import Architecture, Shape, model_from, require_format
from brittle.cli.options import DataFile, JsonFile, NetworkFile, Seed, file_to_write, generator
from brittle.common.errors import require, required
from brittle.networks import Network, save_network
from brittle.networks.store import SUFFIXES
from brittle.settings import load_data

app = typer.Typer(rich_markup_mode=None)


@app.command()
def run(
    network: NetworkFile,
    data: DataFile,
    remedy: Annotated[str, typer.Option("--remedy", help=f"One of {', '.join(REMEDIES)}.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="FILE", callback=file_to_write(*SUFFIXES), help="Where to write the hardened network."
        ),
    ],
    budget: Annotated[float, typer.Option("--budget", metavar="SECONDS", help="Time to spend.")] = 60.0,
    architecture: Architecture = None,
    shape: Shape = None,
    seed: Seed = 0,
    json: JsonFile = None,
) -> None:
    """Apply one remedy to a network and print before and after."""
    require(remedy in REMEDIES, f"--remedy is {remedy!r}; it must be one of {', '.join(REMEDIES)}")
    subject, examined = model_from(network, architecture, shape), load_data(data)
    require_format(subject, out)
    with watching(remedy) as watch:
        found = audit(subject, examined, budget=budget, remedies=(remedy,), rng=generator(seed), watch=watch)
    treatment = found.remedies[0]
    hardened = required(treatment.network if treatment.applied else None, f"{remedy}: {treatment.reason}")
    deliver(lambda: _save(hardened, out), lambda: emit(treatment.to_json(), json))


def _save(network: Network, out: Path) -> None:
    save_network(network, out)
    say(f"wrote {out}")
