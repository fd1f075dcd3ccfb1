"""brittle audit: why is this network not robust, exactly how much, and what would help?"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from brittle.cli.audit_tables import audit_table, change_table
from brittle.cli.console import deliver, emit, say, watching
from brittle.cli.crews import EngineName, Jobs, Keep, crew_for
from brittle.cli.harden import REMEDIES
from brittle.cli.models import DATA_HELP, DataFile, NetworkFile, loaded, with_networks
from brittle.cli.options import JsonFile, Seed, file_to_write, folder_to_write, generator, word_of
from brittle.common.errors import InputError, require, require_count, require_positive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Generator

    from brittle.auditing import Audit, Remedy
    from brittle.auditing.change import Change
    from brittle.networks import Network
    from brittle.settings import Data

app = typer.Typer(rich_markup_mode=None)
JUDGED = ("certified", "attacked")
HELD_OUT = 100  # of the 357 digits that the embedded network is about


@app.command()
@with_networks
def run(
    context: typer.Context,
    model: Annotated[
        NetworkFile | None, typer.Argument(metavar="[MODEL]", help="Network file; none: digits, trained here.")
    ] = None,
    other: Annotated[
        NetworkFile | None,
        typer.Argument(metavar="[OTHER]", help="Another network: it is audited too, and compared with the first."),
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
    since: Annotated[
        Path | None, typer.Option("--since", metavar="FILE", help="JSON of an earlier audit, to say what changed.")
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(
            "--summary", metavar="FILE", callback=file_to_write(), help="Add a summary in Markdown to this file."
        ),
    ] = None,
    keep: Keep = None,
    engine: EngineName = "local",
    jobs: Jobs = 1,
    seed: Seed = 0,
    json: JsonFile = None,
) -> None:
    """Why is this network not robust, exactly how much, and what would help?"""
    require_count("--examples", examples)
    require_positive("--budget", budget)
    _refuse(model, data, remedy, other, since)
    from brittle.auditing import audit, certifiable, planned
    from brittle.auditing.change import changed
    from brittle.auditing.pieces import alone
    from brittle.common.result import jsonable

    earlier = None if since is None else _earlier(since)
    options: dict[str, Any] = {"budget": budget, "examples": examples, "test": test, "remedies": _remedies(remedy)}
    begun, audits = None if init is None else init.load(), list["Audit"]()
    with watching("audit") as watch, crew_for(keep, engine, jobs) as crew:
        for subject in _subjects((model, other), data, seed):
            if plan:
                emit(planned(subject.network, subject.data, **options).to_json(), json)
                return
            judged = fail_below is None or judge == "attacked" or certifiable(subject.network)
            require(judged, "this network cannot be certified here; use --judge attacked")
            rng, crewed = subject.rng, crew or alone
            audits.append(
                audit(subject.network, subject.data, start=begun, rng=rng, crew=crewed, watch=watch, **options)
            )
    found, first = audits[-1], audits[0].to_json() if len(audits) == 2 else earlier
    change = None if first is None else changed(first, found.to_json())
    made = Made(found, subject.title, shlex.join(["brittle", *(context.obj or ())]), seed, change)
    names = tuple(each.name for each in (model, other) if each is not None)
    before = None if first is None else (names[0] if len(audits) == 2 else str(since), first)
    failure = None if fail_below is None else _failure(found, fail_below, judge)
    content = found.to_json() if len(audits) == 1 else {"first": first, "second": found, "change": change}
    table = audit_table(found, change) if len(audits) == 1 else change_table(*audits, change, names)
    deliver(
        lambda: _write_page(made, report, model if len(audits) == 1 else other, data, before),
        lambda: _write_pictures(found, pictures),
        lambda: _write_summary(made, summary, failure),
        lambda: emit(jsonable({**content, "command": made.command, "seed": seed}), json, table),
    )
    if failure is not None:
        say(failure)
        raise typer.Exit(1)


class Subject(NamedTuple):
    """What is audited, with the generator that is used from here on."""

    network: "Network"
    data: "Data"
    title: str
    rng: "Generator"


class Made(NamedTuple):
    """An audit with what there is to say about how it came about, and what changed since another one."""

    found: "Audit"
    title: str
    command: str
    seed: int
    change: "Change | None"


def _refuse(
    model: NetworkFile | None,
    data: DataFile | None,
    remedies: list[str] | None,
    other: NetworkFile | None,
    since: Path | None,
) -> None:
    """What can be said before anything heavy is imported."""
    require(other is None or since is None, "--since was given with two networks: these are compared with each other")
    require(since is None or since.is_file(), f"--since is {since}; there is no such file")
    require(model is not None or data is None, "--data was given without a model: name the network file too")
    missing = model is not None and data is None
    require(not missing, "--data is missing: an audit needs the data that the network was trained on")
    for word in remedies or ():
        if remedies != ["none"]:
            REMEDIES.refuse(word, {})


def _earlier(path: Path) -> Any:
    from json import loads

    from brittle.auditing.change import changed

    try:
        content = loads(path.read_text(encoding="utf-8"))
        changed(content, content)
    except (OSError, ValueError, InputError):
        raise InputError(f"--since is {path}; it must be what brittle audit --json wrote") from None
    return content


def _write_page(
    made: Made,
    report: Path | None,
    model: NetworkFile | None,
    data: DataFile | None,
    before: tuple[str, Any] | None,
) -> None:
    from brittle.report import audit_page
    from brittle.report.origin import Origin

    if report is not None:
        files = {} if model is None or data is None else {"network": str(model.path), "data": str(data.path)}
        origin, found = Origin(made.command, made.seed, **files), made.found
        audit_page.write_audit_page(found, found.model, found.data, report, made.title, origin, before)
        say(f"wrote {report}")


def _write_pictures(found: "Audit", pictures: Path | None) -> None:
    if pictures is not None:
        from brittle.report.audit_figures import write_audit_pictures

        write_audit_pictures(found, found.model, found.data, pictures)
        say(f"wrote {pictures}")


def _write_summary(made: Made, summary: Path | None, failure: str | None) -> None:
    if summary is not None:
        from brittle.report.summary import write_summary

        write_summary(summary, made.found, made.title, failure, made.change)
        say(f"wrote {summary}")


def _remedies(words: list[str] | None) -> "tuple[Remedy, ...] | None":
    return None if not words else () if words == ["none"] else tuple(REMEDIES.chosen(word, {}) for word in words)


def _subjects(models: "tuple[NetworkFile | None, ...]", data: DataFile | None, seed: int) -> "Iterator[Subject]":
    """The networks in their order, each with a generator of its own; the embedded one where none is named."""
    given = [model for model in models if model is not None]
    if not given or data is None:
        rng = generator(seed)
        yield Subject(*embedded(rng), "Audit of a network trained on the digits 3 and 8", rng)
    else:
        for model in given:
            yield Subject(*loaded(model, data), f"Audit of {model.name}", generator(seed))


def embedded(rng: "Generator") -> "tuple[Network, Data]":
    """The default subject: a two-layer network trained on scikit-learn's digits 3 and 8."""
    from brittle.networks import PyTorch
    from brittle.settings import Digits
    from brittle.training import Flow, Logistic, LogLoss, Time

    data = Digits(classes=(3, 8)).sample(rng=rng, test=HELD_OUT)
    start = PyTorch().draw(data.columns, 200, rng)
    training = Flow(loss=Logistic(), until=(LogLoss(-6), Time(20))).train(start, data)
    return training.network, data


def _failure(found: "Audit", radius: float, judge: str) -> str | None:
    """Why the audit fails; None where it does not."""
    weak = found.vulnerability
    median = weak.certified.median_lower if judge == "certified" and weak.certified else weak.free.median
    return None if median >= radius else f"the {judge} median radius {median:.6g} is below {radius:g}"
