"""brittle audit: why is this network not robust, exactly how much, and what would help?"""

from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.table import Table

from brittle.auditing import Audit, Remedy, audit
from brittle.cli.console import deliver, emit, rows_table, say, watching
from brittle.cli.harden import REMEDIES
from brittle.cli.models import NetworkFile, with_networks
from brittle.cli.options import JsonFile, Seed, file_to_write, folder_to_write, generator
from brittle.common.errors import InputError, require, required
from brittle.common.result import short
from brittle.networks import Network, PyTorch
from brittle.settings import Data, Digits, load_data
from brittle.training import Flow, Logistic, LogLoss, Time

app = typer.Typer(rich_markup_mode=None)
JUDGED = ("certified", "attacked")


@app.command()
@with_networks
def run(
    model: Annotated[
        NetworkFile | None, typer.Argument(metavar="[MODEL]", help="Network file; none: digits, trained here.")
    ] = None,
    data: Annotated[Path | None, typer.Option("--data", metavar="FILE", help="Its training data.")] = None,
    init: Annotated[
        NetworkFile | None, typer.Option("--init", metavar="FILE", help="The network before training.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", callback=file_to_write(), help="Write a page: out.html."),
    ] = None,
    pictures: Annotated[
        Path | None,
        typer.Option(
            "--pictures", metavar="FOLDER", callback=folder_to_write, help="Write the page's pictures as PNG files."
        ),
    ] = None,
    budget: Annotated[float, typer.Option("--budget", metavar="SECONDS", help="Time to spend.")] = 60.0,
    examples: Annotated[int, typer.Option("--examples", help="How many examples to attack at most.")] = 200,
    remedy: Annotated[list[str] | None, typer.Option("--remedy", help="Try only these; 'none' for none.")] = None,
    fail_below: Annotated[
        float | None, typer.Option("--fail-below", metavar="R", help="Exit with 1 if the median radius is below R.")
    ] = None,
    judge: Annotated[
        str, typer.Option("--judge", help="What --fail-below looks at: certified or attacked.")
    ] = "certified",
    seed: Seed = 0,
    json: JsonFile = None,
) -> None:
    """Why is this network not robust, exactly how much, and what would help?"""
    require(judge in JUDGED, f"--judge is {judge!r}; it must be certified or attacked")
    rng, chosen = generator(seed), _remedies(remedy)
    with watching("audit") as watch:
        network, examined, title = _subject(model, data, rng)
        found = audit(
            network,
            examined,
            start=None if init is None else init.load(),
            budget=budget,
            examples=examples,
            remedies=chosen,
            rng=rng,
            watch=watch,
        )
    deliver(
        lambda: _write_page(found, network, examined, report, title),
        lambda: _write_pictures(found, network, examined, pictures),
        lambda: emit(found.to_json(), json, _table(found)),
    )
    if fail_below is not None:
        _judge(found, fail_below, judge)


def _write_page(found: Audit, network: Network, data: Data, report: Path | None, title: str) -> None:
    from brittle.report.audit_page import write_audit_page

    if report is not None:
        write_audit_page(found, network, data, report, title)
        say(f"wrote {report}")


def _write_pictures(found: Audit, network: Network, data: Data, pictures: Path | None) -> None:
    from brittle.report.audit_page import write_audit_pictures

    if pictures is not None:
        write_audit_pictures(found, network, data, pictures)
        say(f"wrote {pictures}")


def _remedies(words: list[str] | None) -> tuple[Remedy, ...] | None:
    return None if not words else () if words == ["none"] else tuple(REMEDIES.chosen(word, {}) for word in words)


def _subject(model: NetworkFile | None, data: Path | None, rng: torch.Generator) -> tuple[Network, Data, str]:
    if model is None:
        require(data is None, "--data was given without a model: name the network file too")
        return *embedded(rng), "Audit of a network trained on the digits 3 and 8"
    data = required(data, "--data is missing: an audit needs the data that the network was trained on")
    examples = load_data(data)
    return model.load(examples.X), examples, f"Audit of {model.name}"


def embedded(rng: torch.Generator) -> tuple[Network, Data]:
    """The default subject: a two-layer network trained on scikit-learn's digits 3 and 8."""
    data = Digits(classes=(3, 8)).sample()
    start = PyTorch().draw(data.columns, 200, rng)
    training = Flow(loss=Logistic(), until=(LogLoss(-6), Time(20))).train(start, data)
    return training.network, data


def _judge(found: Audit, radius: float, judge: str) -> None:
    weak = found.vulnerability
    if judge == "certified" and weak.certified is None:
        raise InputError("this network cannot be certified here; use --judge attacked")
    median = weak.certified.median_lower if judge == "certified" and weak.certified else weak.free.median
    if not median >= radius:
        say(f"the {judge} median radius {median:.6g} is below {radius:g}")
        raise typer.Exit(1)


def _table(found: Audit) -> Any:
    from rich.console import Group

    weak = found.vulnerability
    radii = {
        "shortest flip anywhere": weak.free,
        "on the data's subspace": weak.on,
        "off it": weak.off,
        "one gradient step": weak.gradient_step,
    }
    rows = [[name, each.median, len(each.rows)] for name, each in radii.items() if each is not None]
    if weak.certified is not None:
        rows.append(["certified, no flip below", weak.certified.median_lower, len(weak.certified.rows)])
    rows += [[f"all at once, from the {one.name}", one.smallest, len(weak.examples)] for one in weak.universal]
    parts: list[Any] = [found.verdict, "", rows_table(["radius", "median", "examples"], rows), "", _treatments(found)]
    if found.partial:
        parts.append(f"partial: time ran out for {', '.join(found.partial)}")
    return Group(*parts)


def _treatments(found: Audit) -> Table:
    table = Table("remedy", "radius", "factor", "accuracy", box=None, pad_edge=False, header_style="bold")
    for each in found.remedies:
        if each.applied:
            table.add_row(each.name, short(each.radius_after), f"{each.factor:.2f}", f"{each.accuracy_after:.1%}")
        else:
            table.add_row(each.name, "-", "-", f"not tried: {each.reason}")
    return table
