"""`brittle check`: one theorem on its own instance or on yours, over a sweep of its sizes, or all of them."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table

from brittle.cli.console import emit, rows_table, say, watching
from brittle.cli.imported import imported
from brittle.cli.models import NetworkFile, with_networks
from brittle.cli.options import JsonFile, Seed, file_to_write, generator
from brittle.cli.sweeping import Files, check_each
from brittle.cli.theorem_fields import axes, configured, facts
from brittle.common.errors import InputError, require
from brittle.common.progress import Progress
from brittle.common.result import short
from brittle.common.threads import one_thread
from brittle.networks import Network, as_two_layer
from brittle.theorems import THEOREMS, Outcome, Theorem, Trials, Verdict, check_data, check_default, check_many, find
from brittle.theorems import check as check_given
from brittle.theorems.instance import Told
from brittle.theorems.registry import made

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Net = Annotated[
    NetworkFile | None, typer.Option("--net", metavar="FILE", help="Your network: .npz, .pt or .safetensors.")
]
YourData = Annotated[Path | None, typer.Option("--data", metavar="FILE", help="Your data: .npz, .csv or .pt.")]
Start = Annotated[
    NetworkFile | None, typer.Option("--start", metavar="FILE", help="Where its training began, unless --net says it.")
]
Known = Annotated[
    list[str],
    typer.Option("--fact", metavar="NAME=NUMBER", help="Of its training: rate, decay, steps, beta (melamed2023)."),
]
Draws = Annotated[
    int | None, typer.Option("--trials", min=1, help="Count failures over this many draws of the default instance.")
]
Unknown = Annotated[
    str | None, typer.Option("--solve-for", metavar="NAME", help="For which values of it can the hypotheses hold?")
]
Settings = Annotated[
    list[str], typer.Option("--set", metavar="NAME=VALUE", help="A field of the theorem, such as dim=12000.")
]
Sweeps = Annotated[
    list[str],
    typer.Option("--sweep", metavar="NAME=VALUE,...", help="Check every combination of these values of its fields."),
]
CsvFile = Annotated[
    Path | None,
    typer.Option(
        "--csv", metavar="FILE", callback=file_to_write(), help="Write the sweep, a row for every comparison."
    ),
]
LatexFile = Annotated[
    Path | None,
    typer.Option("--latex", metavar="FILE", callback=file_to_write(), help="Write the sweep's table for LaTeX."),
]
Beyond = Annotated[
    bool, typer.Option("--beyond", help="Evaluate the conclusion even where a hypothesis fails; --json always does.")
]


@app.command()
@with_networks
@one_thread()  # most of the work is on small matrices
def check(
    identity: Annotated[
        str, typer.Argument(metavar="ID", help="A theorem, such as melamed2023/5.1, yours as MODULE:CLASS, or `all`.")
    ],
    net: Net = None,
    data: YourData = None,
    start: Start = None,
    known: Known = [],  # noqa: B006
    trials: Draws = None,
    solve_for: Unknown = None,
    settings: Settings = [],  # noqa: B006
    sweeps: Sweeps = [],  # noqa: B006
    csv: CsvFile = None,
    latex: LatexFile = None,
    beyond: Beyond = False,
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Check a theorem: on its embedded instance, on your own network and data, over many draws, at every combination of
    some sizes, or solved for one size. Data alone, without a network, are compared with what it supposes of data.

    Exit code 1 if a claim does not hold although its hypotheses do; with `all`, statements that are known to be false
    as printed are listed as such and do not count.
    """
    own = net is not None or data is not None
    require(own or not (start or known), "--start and --fact are about your own network: give --net and --data too")
    require(bool(sweeps) or not (csv or latex), "--csv and --latex write a sweep: give --sweep NAME=VALUE,... too")
    if identity.lower() == "all":
        alone = not (own or trials or solve_for or settings or sweeps)
        require(alone, "`brittle check all` takes no --net, --data, --trials, --solve-for, --set or --sweep: name one")
        _check_all(seed, json_file)
        return
    named = made(imported("the theorem", identity), identity) if ":" in identity else find(identity)
    theorem = configured(named, settings)
    if sweeps:
        alone = not (own or trials or solve_for)
        require(alone, "--sweep is over default instances: leave out --net, --data, --trials and --solve-for")
        if check_each(theorem, axes(theorem, sweeps), seed, Files(csv, latex, json_file)):
            raise typer.Exit(1)
        return
    if solve_for is not None:
        emit(theorem.solve_for(solve_for).to_json(), json_file)
        return
    require(not (own and trials), "--trials draws instances of its own; leave out --net and --data")
    beyond = beyond or json_file is not None
    if own:
        verdict = _on_files(theorem, net, data, start, known, beyond)
    else:
        verdict = check_default(theorem, generator(seed), beyond=beyond)
    counted = _over_draws(theorem, trials, seed) if trials else None
    emit(_content(theorem, verdict, counted), json_file, verdict_table(verdict, counted))
    if (counted or verdict).verdict is Outcome.VIOLATED:
        raise typer.Exit(1)


def _over_draws(theorem: Theorem, trials: int, seed: int) -> Trials:
    with watching(f"{trials} draws") as watch:
        return check_many(theorem, trials, generator(seed), watch)


def _network(net: NetworkFile | None, start: NetworkFile | None) -> Network | None:
    """With its start, where that is in a file of its own."""
    if start is None or net is None:
        require(start is None, "--start is given without --net: give the trained network too")
        return None if net is None else net.load()
    network, begun = (as_two_layer(file.load(), "a start") for file in (net, start))
    same = network.W.shape == begun.W.shape
    shapes = (
        f"{start.name} has {begun.width} neurons of {begun.dim} inputs, {net.name} {network.width} of {network.dim}"
    )
    require(same, f"--start is no start of --net: {shapes}")
    return replace(network, start=replace(begun, start=None))


def _on_files(
    theorem: Theorem,
    net: NetworkFile | None,
    data: Path | None,
    start: NetworkFile | None,
    known: list[str],
    beyond: bool,
) -> Verdict:
    from brittle.settings import load_data

    if data is None:
        raise InputError("--net is given without --data: a theorem is checked on examples (give --data FILE)")
    numbers, network = facts(known), _network(net, start)
    told = Told(numbers) if numbers else None
    examples = load_data(data)
    if network is None:
        verdict = check_data(theorem, examples, told, beyond=beyond)
    else:
        verdict = check_given(theorem, examples, network, told, beyond=beyond)
    require(told is None or bool(told.kinds), f"--fact: {theorem.id} asks for no facts; leave it out")
    if told is not None and told.missing:
        say(f"facts that were not told: {', '.join(told.missing)}")
    return verdict


def _content(theorem: Theorem, verdict: Verdict, counted: Trials | None = None) -> dict[str, Any]:
    known = {"flaw": theorem.flaw, "repaired": theorem.repaired}
    if counted is None:
        return verdict.to_json() | known | {"trials": None}
    judged = {"verdict": counted.verdict, "advice": counted.advice}
    return verdict.to_json() | judged | known | {"trials": counted.to_json()}


def verdict_table(verdict: Verdict, counted: Trials | None = None) -> Table:
    rows: list[list[Any]] = []
    kinds = (("hypothesis", verdict.hypotheses), ("promise", verdict.bound), ("outside", verdict.beyond))
    for kind, comparisons in kinds:
        for each in comparisons:
            holds = "holds" if each.holds else "fails"
            rows.append([kind, each.name, each.value, each.relation.value, each.threshold, each.slack, holds])
    promised = {each.name for each in (*verdict.bound, *verdict.beyond)}
    rows += [["measured", name, value] for name, value in verdict.measured.items() if name not in promised]
    rows += [["exponent", each.measure, each.fitted, "±", each.standard_error] for each in verdict.scaling]
    if counted:
        allowed = f"allowed {short(counted.promised_failure_rate)}, skipped {counted.skipped}"
        interval = "[{:.4g}, {:.4g}]".format(*counted.confidence_interval)
        rows.append(["trials", f"{counted.failures} of {counted.trials - counted.skipped} fail", interval, "", allowed])
    table = Table(title=f"{verdict.id}: {verdict.claim}", title_justify="left", box=None, pad_edge=False)
    for column in ("", "", "value", "", "limit", "slack", ""):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(short(cell) for cell in row))
    outcome, advice = (counted.verdict, counted.advice) if counted else (verdict.verdict, verdict.advice)
    table.caption = f"{outcome.value}: {advice}" + (f"\nnote: {verdict.note}" if verdict.note else "")
    table.caption_justify = "left"
    return table


def _check_all(seed: int, json_file: str | None) -> None:
    begun, verdicts = time.perf_counter(), []
    with watching("theorems") as watch:
        for number, theorem in enumerate(THEOREMS.values()):
            watch(Progress(number / len(THEOREMS), theorem.id))
            verdicts.append(check_default(theorem, generator(seed), beyond=json_file is not None))
    results = [_content(THEOREMS[each.id], each) for each in verdicts]
    standing = [each for each in verdicts if not THEOREMS[each.id].flaw]
    flawed = [each for each in verdicts if THEOREMS[each.id].flaw]
    counts = {"counts": _counts(standing), "counts_as_printed": _counts(flawed)}
    seconds = time.perf_counter() - begun
    emit(
        {"results": results, **counts, "seconds": seconds},
        json_file,
        Group(_all_table(standing), _flawed_table(flawed)),
    )
    if any(each.verdict is Outcome.VIOLATED for each in standing):
        raise typer.Exit(1)


def _counts(verdicts: list[Verdict]) -> dict[str, int]:
    return {outcome.value: sum(each.verdict is outcome for each in verdicts) for outcome in Outcome}


def _all_table(verdicts: list[Verdict]) -> Table:
    rows = [[each.id, each.verdict.value, _headline(each), f"{each.seconds:.2f} s", each.claim] for each in verdicts]
    return _uncut(rows_table(["id", "verdict", "measured and promised", "time", "claim"], rows))


def _flawed_table(verdicts: list[Verdict]) -> Table:
    """Statements that are known to be false, or to say nothing, as they are printed."""
    theorems = [THEOREMS[each.id] for each in verdicts]
    rows = [
        [each.id, each.verdict.value, _headline(each), theorem.repaired, theorem.flaw]
        for each, theorem in zip(verdicts, theorems, strict=True)
    ]
    columns = ["id", "verdict", "measured and promised", "instead", "as printed it is"]
    return _uncut(rows_table(columns, rows, title="\nknown to be wrong as printed"))


def _uncut(table: Table) -> Table:
    for column in table.columns:
        column.no_wrap = column.header in ("id", "verdict", "instead")  # an id that is cut short cannot be asked for
    return table


def _headline(verdict: Verdict) -> str:
    """What decides: an exponent, a hypothesis that fails, a broken promise, or the first promise."""
    if verdict.scaling:
        each = verdict.scaling[0]
        return f"exponent {each.fitted:+.2f} ± {each.standard_error:.2f}, claimed {each.claimed:+.2g}"
    decisive = [c for c in (*verdict.hypotheses, *verdict.bound) if not c.holds] or list(verdict.bound)
    return "" if not decisive else f"{decisive[0].value:.4g} {decisive[0].relation.value} {decisive[0].threshold:.4g}"
