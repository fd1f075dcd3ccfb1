"""brittle audit: why is this network not robust, exactly how much, and what would help?"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from brittle.cli.audit_outputs import JUDGED, AuditOutcome, earlier_audit
from brittle.cli.console import deliver, emit, say, watching
from brittle.cli.crews import EngineName, Jobs, Keep, crew_for
from brittle.cli.harden import REMEDIES
from brittle.cli.models import DATA_HELP, DataFile, NetworkFile, load_model_and_data, with_networks
from brittle.cli.options import (
    GUARD,
    RESULTS,
    JsonFile,
    Seed,
    file_to_write,
    folder_to_write,
    generator,
    suggesting,
    word_of,
)
from brittle.cli.proofs import ProofFile, ProofRequest
from brittle.cli.sections import SectionedCommand
from brittle.common.errors import require, require_count, require_positive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Generator

    from brittle.auditing import Audit, Remedy
    from brittle.data import Data
    from brittle.networks import Network
    from brittle.proving import Proof

app = typer.Typer(rich_markup_mode=None, add_completion=False)
HELD_OUT = 100  # of the 357 digits that the embedded network is about


@app.command(cls=SectionedCommand)
@with_networks
def run(
    context: typer.Context,
    model: Annotated[
        NetworkFile | None, typer.Argument(metavar="MODEL", help="Network file; none: digits, trained here.")
    ] = None,
    other: Annotated[
        NetworkFile | None,
        typer.Argument(metavar="OTHER", help="Another network: it is audited too, and compared with the first."),
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
            "--report",
            metavar="FILE",
            callback=file_to_write(".html", ".htm"),
            help="Write a page: out.html.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    pictures: Annotated[
        Path | None,
        typer.Option(
            "--pictures",
            metavar="FOLDER",
            callback=folder_to_write,
            help="Write the page's pictures as PNG files.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    budget: Annotated[
        float, typer.Option("--budget", metavar="SECONDS", help="Work to spend, in seconds of a nominal machine.")
    ] = 60.0,
    speed: Annotated[
        float | None,
        typer.Option(
            "--speed",
            metavar="FACTOR",
            help="How many times as long as counted a pass takes; measured unless given.",
        ),
    ] = None,
    examples: Annotated[int, typer.Option("--examples", help="How many examples to attack at most.")] = 200,
    remedy: Annotated[
        list[str] | None,
        typer.Option("--remedy", autocompletion=suggesting(REMEDIES.names), help="Try only these; 'none' for none."),
    ] = None,
    test: Annotated[bool, typer.Option("--test", help="Audit the held-out examples.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what would be done for the budget.")] = False,
    fail_below: Annotated[
        float | None,
        typer.Option(
            "--fail-below", metavar="R", help="Exit with 1 if the median radius is below R.", rich_help_panel=GUARD
        ),
    ] = None,
    judge: Annotated[
        str,
        typer.Option(
            "--judge",
            callback=word_of(*JUDGED),
            autocompletion=suggesting(lambda: JUDGED),
            help="What --fail-below looks at: certified or attacked.",
            rich_help_panel=GUARD,
        ),
    ] = "certified",
    since: Annotated[
        Path | None,
        typer.Option(
            "--since", metavar="FILE", help="JSON of an earlier audit, to say what changed.", rich_help_panel=GUARD
        ),
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(
            "--summary",
            metavar="FILE",
            callback=file_to_write(),
            help="Add a summary in Markdown to this file.",
            rich_help_panel=GUARD,
        ),
    ] = None,
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
    _refuse(model, data, remedy, other, since)
    from brittle.auditing import audit, certifiable, plan_audit
    from brittle.auditing.budget import WorkBudget
    from brittle.auditing.pieces import run_serially
    from brittle.common.time_limit import TimeLimit, limit_time

    limit: TimeLimit | None = WorkBudget(budget).until
    earlier = None if since is None else earlier_audit(since)
    options: dict[str, Any] = {"budget": budget, "examples": examples, "test": test, "remedies": _remedies(remedy)}
    options["speed"] = speed
    with watching("audit") as watch, crew_for(keep, engine, jobs) as crew:
        subjects = list(_subjects((model, other), data, seed))
        if plan:
            emit(plan_audit(subjects[0].network, subjects[0].data, **options).to_json(), json)
            return
        judged = fail_below is None or judge == "attacked" or all(certifiable(each.network) for each in subjects)
        require(judged, "this network cannot be certified here; use --judge attacked")
        options |= {"start": None if init is None else init.load(), "crew": crew or run_serially, "watch": watch}
        audits: tuple[Audit, ...] = ()
        for each in subjects:
            with limit_time(limit):
                audits += (audit(each.network, each.data, rng=each.rng, **options),)
            limit = None  # reading the files counts for the first one
    command, names = shlex.join(["brittle", *(context.obj or ())]), tuple(each.name for each in subjects)
    last, file = other or model, "" if data is None else str(data.path)
    outcome = AuditOutcome(audits, names, earlier, command, seed, "" if last is None else str(last.path), file)
    asked = ProofRequest(proof, None if last is None else last.path, None if data is None or test else data.path)
    failure = outcome.failure(fail_below, judge)
    deliver(
        lambda: emit(outcome.content, json, outcome.table),
        lambda: outcome.write_summary(summary, failure),
        lambda: asked.write(_proof(audits[-1], subjects[-1], asked, test)),
        lambda: outcome.write_page(report),
        lambda: outcome.write_pictures(pictures),
    )
    if failure is not None:
        say(failure)
        raise typer.Exit(1)


class AuditSubject(NamedTuple):
    """What is audited, with the generator that is used from here on."""

    network: "Network"
    data: "Data"
    name: str
    rng: "Generator"


def _proof(found: "Audit", subject: "AuditSubject", asked: ProofRequest, test: bool) -> "Proof | None":
    """Of the radii that were certified of the network itself."""
    import torch

    from brittle.auditing.pieces import select_audited_data

    weak, part = found.vulnerability, select_audited_data(subject.data, test)
    if asked.path is None or weak.certified is None:
        return None
    lower, flips = torch.zeros(len(part), dtype=torch.float64), torch.zeros_like(part.X)
    lower[weak.examples[weak.certified.rows]] = weak.certified.lower
    flips[weak.examples[weak.free.rows]] = weak.perturbations.to(flips.dtype)
    return asked.proof(subject.network, part, lower, flips)


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


def _remedies(words: list[str] | None) -> "tuple[Remedy, ...] | None":
    return None if not words else () if words == ["none"] else tuple(REMEDIES.chosen(word, {}) for word in words)


def _subjects(models: "tuple[NetworkFile | None, ...]", data: DataFile | None, seed: int) -> "Iterator[AuditSubject]":
    """The networks in their order, each with a generator of its own; the embedded one where none is named."""
    given = [model for model in models if model is not None]
    if not given or data is None:
        rng = generator(seed)
        yield AuditSubject(*make_default_subject(rng), "a network trained on the digits 3 and 8", rng)
    else:
        for model in given:
            yield AuditSubject(*load_model_and_data(model, data), model.name, generator(seed))


def make_default_subject(rng: "Generator") -> "tuple[Network, Data]":
    """The default subject: a two-layer network trained on scikit-learn's digits 3 and 8."""
    from brittle.data import Digits
    from brittle.networks import TorchLinearInit
    from brittle.training import Flow, Logistic, LogLoss, Time

    data = Digits(classes=(3, 8)).sample(rng=rng, test=HELD_OUT)
    start = TorchLinearInit().draw(data.columns, 200, rng)
    training = Flow(loss=Logistic(), until=(LogLoss(-6), Time(20))).train(start, data)
    return training.network, data
