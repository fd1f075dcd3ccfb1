"""brittle harden: apply one remedy and say what it changed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group

from brittle.cli.console import deliver, emit, fields_table, rows_table, say, watching
from brittle.cli.models import DataOption, NetworkArgument, load_model_and_data, with_networks
from brittle.cli.options import JsonFile, Seed, file_to_write, generator
from brittle.cli.parts import Family, PartsCommand, get_part_name, with_part
from brittle.common.errors import WRITTEN, require, require_value

if TYPE_CHECKING:
    from brittle.auditing import Remedy, RemedyResult
    from brittle.networks import Network
    from brittle.networks.given_back import StateDictForm

app = typer.Typer(rich_markup_mode=None, add_completion=False)
REMEDIES = Family("remedy", "auditing", "Remedy")


@app.command(cls=PartsCommand)
@with_networks
@with_part(REMEDIES)
def run(
    network: NetworkArgument,
    data: DataOption,
    remedy: "Remedy | None",
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="FILE", callback=file_to_write(*WRITTEN), help="Where to write the hardened network."
        ),
    ],
    budget: Annotated[float, typer.Option("--budget", metavar="SECONDS", help="Time to spend.")] = 60.0,
    seed: Seed = 0,
    json: JsonFile = None,
) -> None:
    """Apply one remedy to a network and print before and after."""
    remedy = require_value(remedy, f"--remedy is missing; it must be one of {REMEDIES.words}")
    from brittle.auditing import audit
    from brittle.networks.given_back import require_form
    from brittle.networks.store import require_format

    subject, examined = load_model_and_data(network, data)
    require_format(subject, out)
    form = require_form(network.path, subject, out)
    fits = form is None or not remedy.reshapes
    require(
        fits, f"{get_part_name(remedy)} makes other layers than {network.path} has: choose --out FILE.onnx or FILE.npz"
    )
    with watching(get_part_name(remedy)) as watch:
        found = audit(subject, examined, budget=budget, remedies=(remedy,), rng=generator(seed), watch=watch)
    require(len(found.remedies) > 0, f"--budget is {budget:g}; time ran out before the remedy: give it more")
    treatment = found.remedies[0]
    hardened = require_value(
        treatment.network if treatment.applied else None, f"{get_part_name(remedy)}: {treatment.reason}"
    )
    deliver(lambda: _save(hardened, form, out), lambda: emit(treatment.to_json(), json, _table(treatment)))


def _table(treatment: "RemedyResult") -> Group:
    """Before and after, and the points of the curve that can be chosen from."""
    content = treatment.to_json()
    forecast, curve = content.pop("forecast"), content.pop("curve")
    if forecast is not None:
        content |= {f"forecast_{name}": value for name, value in forecast.items()}
    parts = [fields_table(content)]
    if curve is not None:
        names = ["role", "kappa", "accuracy", "radius", "tenth"]
        rows = [[point[name] for name in names] for point in curve["points"]]
        parts.append(rows_table(names, rows, f"Along κ, on {curve['examples']} examples; --kappa chooses"))
    return Group(*parts)


def _save(network: "Network", form: "StateDictForm | None", out: Path) -> None:
    """In the form in which it came, where that was a module's state."""
    from brittle.networks import save_network

    if form is None:
        save_network(network, out)
    else:
        form.write(network, out)
    say(f"wrote {out}")
