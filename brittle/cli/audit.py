"""brittle audit: why is this network not robust, exactly how much, and what would help?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from brittle.cli.console import deliver, emit, rows_table, say, watching
from brittle.cli.crews import EngineName, Jobs, Keep, crew_for
from brittle.cli.harden import REMEDIES
from brittle.cli.models import DATA_HELP, DataFile, NetworkFile, loaded, with_networks
from brittle.cli.options import JsonFile, Seed, file_to_write, folder_to_write, generator, word_of
from brittle.cli.proofs import Asked, ProofFile
from brittle.common.errors import require, require_count, require_positive
from brittle.common.result import short

if TYPE_CHECKING:
    from torch import Generator

    from brittle.auditing import Audit, Remedy
    from brittle.auditing.proofs import Certified
    from brittle.auditing.vulnerability import Radii
    from brittle.networks import Network
    from brittle.proving import Proof
    from brittle.settings import Data

app = typer.Typer(rich_markup_mode=None)
JUDGED = ("certified", "attacked")
HELD_OUT = 100  # of the 357 digits that the embedded network is about


@app.command()
@with_networks
def run(
    model: Annotated[
        NetworkFile | None, typer.Argument(metavar="[MODEL]", help="Network file; none: digits, trained here.")
    ] = None,
    data: Annotated[
        DataFile | None, typer.Option("--data", metavar="FILE", help=f"Its training data. {DATA_HELP}")
    ] = None,
    init: Annotated[
        NetworkFile | None, typer.Option("--init", metavar="FILE", help="The network before training.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE", callback=file_to_write(".html", ".htm"), help="Write a page: out.html."
        ),
    ] = None,
    pictures: Annotated[
        Path | None,
        typer.Option(
            "--pictures", metavar="FOLDER", callback=folder_to_write, help="Write the page's pictures as PNG files."
        ),
    ] = None,
    budget: Annotated[
        float, typer.Option("--budget", metavar="SECONDS", help="Work to spend, in seconds of a nominal machine.")
    ] = 60.0,
    examples: Annotated[int, typer.Option("--examples", help="How many examples to attack at most.")] = 200,
    remedy: Annotated[list[str] | None, typer.Option("--remedy", help="Try only these; 'none' for none.")] = None,
    test: Annotated[bool, typer.Option("--test", help="Audit the held-out examples.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what would be done for the budget.")] = False,
    fail_below: Annotated[
        float | None, typer.Option("--fail-below", metavar="R", help="Exit with 1 if the median radius is below R.")
    ] = None,
    judge: Annotated[
        str,
        typer.Option("--judge", callback=word_of(*JUDGED), help="What --fail-below looks at: certified or attacked."),
    ] = "certified",
    proof: ProofFile = None,
    keep: Keep = None,
    engine: EngineName = "local",
    jobs: Jobs = 1,
    seed: Seed = 0,
    json: JsonFile = None,
) -> None:
    """Why is this network not robust, exactly how much, and what would help?"""
    require_count("--examples", examples)
    require_positive("--budget", budget)
    _refuse(model, data, remedy)
    from brittle.auditing import audit, certifiable, planned
    from brittle.auditing.pieces import alone

    rng, chosen = generator(seed), _remedies(remedy)
    with watching("audit") as watch, crew_for(keep, engine, jobs) as crew:
        network, examined, title = _subject(model, data, rng)
        options: dict[str, Any] = {"budget": budget, "examples": examples, "test": test, "remedies": chosen}
        if plan:
            emit(planned(network, examined, **options).to_json(), json)
            return
        judged = fail_below is None or judge == "attacked" or certifiable(network)
        require(judged, "this network cannot be certified here; use --judge attacked")
        found = audit(
            network,
            examined,
            start=None if init is None else init.load(),
            rng=rng,
            crew=crew or alone,
            watch=watch,
            **options,
        )
    asked = Asked(proof, model and model.path, None if data is None or test else data.path)
    proved = _proof(found, network, examined, asked, test)
    deliver(
        lambda: _write_page(found, network, examined, report, title),
        lambda: _write_pictures(found, network, examined, pictures),
        lambda: asked.write(proved),
        lambda: emit(found.to_json(), json, _table(found)),
    )
    if fail_below is not None:
        _judge(found, fail_below, judge)


def _proof(found: "Audit", network: "Network", data: "Data", asked: Asked, test: bool) -> "Proof | None":
    """Of the radii that were certified of the network itself."""
    import torch

    from brittle.auditing.sample import audited

    weak, part = found.vulnerability, audited(data, test)
    if asked.path is None or weak.certified is None:
        return None
    lower, flips = torch.zeros(len(part), dtype=torch.float64), torch.zeros_like(part.X)
    lower[weak.examples[weak.certified.rows]] = weak.certified.lower
    flips[weak.examples[weak.free.rows]] = weak.perturbations.to(flips.dtype)
    return asked.proof(network, part, lower, flips)


def _refuse(model: NetworkFile | None, data: DataFile | None, remedies: list[str] | None) -> None:
    """What can be said before anything heavy is imported."""
    require(model is not None or data is None, "--data was given without a model: name the network file too")
    missing = model is not None and data is None
    require(not missing, "--data is missing: an audit needs the data that the network was trained on")
    for word in remedies or ():
        if remedies != ["none"]:
            REMEDIES.refuse(word, {})


def _write_page(found: "Audit", network: "Network", data: "Data", report: Path | None, title: str) -> None:
    from brittle.report.audit_page import write_audit_page

    if report is not None:
        write_audit_page(found, network, data, report, title)
        say(f"wrote {report}")


def _write_pictures(found: "Audit", network: "Network", data: "Data", pictures: Path | None) -> None:
    from brittle.report.audit_page import write_audit_pictures

    if pictures is not None:
        write_audit_pictures(found, network, data, pictures)
        say(f"wrote {pictures}")


def _remedies(words: list[str] | None) -> "tuple[Remedy, ...] | None":
    return None if not words else () if words == ["none"] else tuple(REMEDIES.chosen(word, {}) for word in words)


def _subject(model: NetworkFile | None, data: DataFile | None, rng: "Generator") -> "tuple[Network, Data, str]":
    if model is None or data is None:
        return *embedded(rng), "Audit of a network trained on the digits 3 and 8"
    return *loaded(model, data), f"Audit of {model.name}"


def embedded(rng: "Generator") -> "tuple[Network, Data]":
    """The default subject: a two-layer network trained on scikit-learn's digits 3 and 8."""
    from brittle.networks import PyTorch
    from brittle.settings import Digits
    from brittle.training import Flow, Logistic, LogLoss, Time

    data = Digits(classes=(3, 8)).sample(rng=rng, test=HELD_OUT)
    start = PyTorch().draw(data.columns, 200, rng)
    training = Flow(loss=Logistic(), until=(LogLoss(-6), Time(20))).train(start, data)
    return training.network, data


def _judge(found: "Audit", radius: float, judge: str) -> None:
    weak = found.vulnerability
    median = weak.certified.median_lower if judge == "certified" and weak.certified else weak.free.median
    if not median >= radius:
        say(f"the {judge} median radius {median:.6g} is below {radius:g}")
        raise typer.Exit(1)


def _table(found: "Audit") -> Any:
    from rich.console import Group

    weak = found.vulnerability
    radii = {
        "shortest flip anywhere": weak.free,
        "on the data's subspace": weak.on,
        "off it": weak.off,
        "one gradient step": weak.gradient_step,
    }
    rows = [[name, each.median, _interval(each), len(each.rows)] for name, each in radii.items() if each is not None]
    proved = weak.certified
    if proved is not None:
        rows.append(["certified, no flip below", proved.median_lower, _interval(proved), len(proved.rows)])
    if found.limit is not None:
        rows.append(["what the data allow", found.limit.median, "", len(found.limit.radii)])
    rows += [[f"all at once, from the {one.name}", one.smallest, "", len(weak.examples)] for one in weak.universal]
    table = rows_table(["radius", "median", "95 % interval", "examples"], rows)
    parts: list[Any] = [found.verdict, "", table, "", _treatments(found)]
    if proved is not None:
        parts.append(", ".join(f"{count} {word}" for word, count in proved.counts.items()))
    if found.partial:
        parts.append(f"not reproducible at this budget: the clock cut short {', '.join(found.partial)}")
    return Group(*parts)


def _interval(radii: "Radii | Certified") -> str:
    return " to ".join(map(short, radii.interval))


def _treatments(found: "Audit") -> Table:
    judge = found.remedies[0].judged_on if found.remedies else "training"
    columns = ("remedy", "radius", "factor", "proved", f"{judge} accuracy")
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for each in found.remedies:
        if each.applied:
            proved = (
                f"{short(each.proved_before)} → {short(each.proved_after)}" if each.proved_after is not None else "-"
            )
            numbers = (short(each.radius_after), f"{each.factor:.2f}", proved)
            table.add_row(each.name, *numbers, f"{each.accuracy_after:.1%}")
        else:
            table.add_row(each.name, "-", "-", "-", each.reason)
    return table
