"""brittle harden: apply one remedy and say what it changed."""

from pathlib import Path
from typing import Annotated

import typer

from brittle.audit import REMEDIES, audit
from brittle.cli.console import emit, say, watching
from brittle.cli.models import Architecture, Shape, model_from
from brittle.cli.options import DataFile, JsonFile, NetworkFile, Seed, generator
from brittle.common.errors import require
from brittle.networks import save_network
from brittle.settings import load_data

app = typer.Typer(rich_markup_mode=None)


@app.command()
def run(
    network: NetworkFile,
    data: DataFile,
    remedy: Annotated[str, typer.Option("--remedy", help=f"One of {', '.join(REMEDIES)}.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write the hardened network.")],
    budget: Annotated[float, typer.Option("--budget", metavar="SECONDS", help="Time to spend.")] = 60.0,
    architecture: Architecture = None,
    shape: Shape = None,
    seed: Seed = 0,
    json: JsonFile = None,
) -> None:
    """Apply one remedy to a network and print before and after."""
    require(remedy in REMEDIES, f"--remedy is {remedy!r}; it must be one of {', '.join(REMEDIES)}")
    require(out.parent.is_dir(), f"{out}: the folder {out.parent} does not exist")
    subject, examined = model_from(network, architecture, shape), load_data(data)
    with watching(remedy) as watch:
        found = audit(subject, examined, budget=budget, remedies=(remedy,), rng=generator(seed), watch=watch)
    treatment = found.remedies[0]
    require(treatment.applied and treatment.network is not None, f"{remedy}: {treatment.reason}")
    assert treatment.network is not None
    save_network(treatment.network, out)
    say(f"wrote {out}")
    emit(treatment.to_json(), json)
