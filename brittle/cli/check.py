"""`brittle check`: one theorem on its own instance or on yours, or all of them."""

import time
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table

from brittle.cli.console import emit, rows_table, watching
from brittle.cli.models import NetworkFile, with_networks
from brittle.cli.options import JsonFile, Seed, generator
from brittle.common.errors import InputError, require
from brittle.common.progress import Progress
from brittle.common.result import short
from brittle.common.threads import one_thread
from brittle.theorems import THEOREMS, Outcome, Theorem, Trials, Verdict, check_default, check_many, find
from brittle.theorems import check as check_given

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Net = Annotated[
    NetworkFile | None, typer.Option("--net", metavar="FILE", help="Your network: .npz, .pt or .safetensors.")
]
YourData = Annotated[Path | None, typer.Option("--data", metavar="FILE", help="Your data: .npz, .csv or .pt.")]
Draws = Annotated[
    int | None, typer.Option("--trials", min=1, help="Count failures over this many draws of the default instance.")
]
Unknown = Annotated[
    str | None, typer.Option("--solve-for", metavar="NAME", help="For which values of it can the hypotheses hold?")
]
Settings = Annotated[
    list[str], typer.Option("--set", metavar="NAME=VALUE", help="A field of the theorem, such as dim=12000.")
]
Beyond = Annotated[
    bool, typer.Option("--beyond", help="Evaluate the conclusion even where a hypothesis fails; --json always does.")
]


@app.command()
@with_networks
@one_thread()  # most of the work is on small matrices
def check(
    identity: Annotated[str, typer.Argument(metavar="ID", help="A theorem, such as melamed2023/5.1, or `all`.")],
    net: Net = None,
    data: YourData = None,
    trials: Draws = None,
    solve_for: Unknown = None,
    settings: Settings = [],  # noqa: B006
    beyond: Beyond = False,
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Check a theorem: on its embedded instance, on your own network and data, over many draws, or solved for one size.

    Exit code 1 if a claim does not hold although its hypotheses do; with `all`, statements that are known to be false
    as printed are listed as such and do not count.
    """
    if identity.lower() == "all":
        alone = not (net or data or trials or solve_for or settings)
        require(alone, "`brittle check all` takes no --net, --data, --trials, --solve-for or --set: name one theorem")
        _check_all(seed, json_file)
        return
    theorem = configured(find(identity), settings)
    if solve_for is not None:
        emit(theorem.solve_for(solve_for).to_json(), json_file)
        return
    own = net is not None or data is not None
    require(not (own and trials), "--trials draws instances of its own; leave out --net and --data")
    beyond = beyond or json_file is not None
    verdict = _on_files(theorem, net, data, beyond) if own else check_default(theorem, generator(seed), beyond=beyond)
    counted = _over_draws(theorem, trials, seed) if trials else None
    emit(_content(theorem, verdict, counted), json_file, verdict_table(verdict, counted))
    if (counted or verdict).verdict is Outcome.VIOLATED:
        raise typer.Exit(1)


def _over_draws(theorem: Theorem, trials: int, seed: int) -> Trials:
    with watching(f"{trials} draws") as watch:
        return check_many(theorem, trials, generator(seed), watch)


def _on_files(theorem: Theorem, net: NetworkFile | None, data: Path | None, beyond: bool) -> Verdict:
    from brittle.settings import load_data

    if data is None:
        raise InputError("--net is given without --data: a theorem is checked on examples (give --data FILE)")
    return check_given(theorem, load_data(data), None if net is None else net.load(), beyond=beyond)


def _content(theorem: Theorem, verdict: Verdict, counted: Trials | None = None) -> dict[str, Any]:
    known = {"flaw": theorem.flaw, "repaired": theorem.repaired}
    if counted is None:
        return verdict.to_json() | known | {"trials": None}
    judged = {"verdict": counted.verdict, "advice": counted.advice}
    return verdict.to_json() | judged | known | {"trials": counted.to_json()}


def configured(theorem: Theorem, settings: list[str]) -> Theorem:
    """The theorem with NAME=VALUE fields changed."""
    assert is_dataclass(theorem)
    known = {field.name: getattr(theorem, field.name) for field in fields(theorem)}
    changes = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        require(bool(equals), f"--set {setting!r} is not of the form NAME=VALUE")
        require(name in known, f"{theorem.id} has no field {name!r}; it has {', '.join(known)}")
        changes[name] = _parsed(name, text, known[name])
    return replace(theorem, **changes)


def _parsed(name: str, text: str, current: Any) -> Any:
    kind = int if isinstance(current, int) else float
    try:
        if isinstance(current, tuple):
            return tuple(type(current[0])(part) for part in text.split(","))
        return kind(float(text)) if kind is int and float(text).is_integer() else kind(text)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise InputError(f"--set {name}={text}: {wanted} is needed, such as {current}") from None


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
