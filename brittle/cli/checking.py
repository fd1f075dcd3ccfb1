"""What `brittle check` does once its arguments are in order; each way says whether the claims hold."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table

from brittle.cli.console import emit, rows_table, say, watching
from brittle.cli.imported import import_object
from brittle.cli.models import DataFile, NetworkFile
from brittle.cli.options import generator
from brittle.cli.theorem_fields import axes, configure_theorem, facts
from brittle.common.errors import require
from brittle.common.progress import Progress
from brittle.common.result import short
from brittle.data import Data
from brittle.networks import Network, as_two_layer
from brittle.theorems import (
    THEOREMS,
    CheckOutcome,
    CheckResult,
    Theorem,
    Trials,
    check_data,
    check_default,
    check_many,
    find,
)
from brittle.theorems import check as check_given
from brittle.theorems.instance import KnownFacts
from brittle.theorems.registry import make_theorem


@dataclass(frozen=True)
class UserInstance:
    """Data of the user's own, perhaps with a network, where its training began, and what is known of that."""

    data: DataFile
    net: NetworkFile | None
    start: NetworkFile | None
    facts: list[str]


def find_theorem(identity: str, settings: list[str]) -> Theorem:
    """The theorem of that name, or MODULE:CLASS, with some of its fields changed."""
    theorem = make_theorem(import_object("the theorem", identity), identity) if ":" in identity else find(identity)
    return configure_theorem(theorem, settings)


def check_sweep(
    theorem: Theorem, sweeps: list[str], seed: int, csv: Path | None, latex: Path | None, json_file: str | None
) -> bool:
    from brittle.cli.sweeping import Files, check_each  # draws tables: a single check does not wait for Matplotlib

    return not check_each(theorem, axes(theorem, sweeps), seed, Files(csv, latex, json_file))


def check_solved(theorem: Theorem, unknown: str, json_file: str | None) -> bool:
    emit(theorem.solve_for(unknown).to_json(), json_file)
    return True


def check_once(
    theorem: Theorem, given: UserInstance | None, trials: int | None, beyond: bool, seed: int, json_file: str | None
) -> bool:
    """On the user's own, or on its default instance and perhaps many draws of it."""
    beyond = beyond or json_file is not None
    with watching(theorem.id):
        if given is not None:
            verdict = _on_files(theorem, given, beyond)
        else:
            verdict = check_default(theorem, generator(seed), beyond=beyond)
    counted = _over_draws(theorem, trials, seed) if trials else None
    emit(_content(theorem, verdict, counted), json_file, verdict_table(verdict, counted))
    return (counted or verdict).verdict is not CheckOutcome.VIOLATED


def _over_draws(theorem: Theorem, trials: int, seed: int) -> Trials:
    with watching(f"{trials} draws") as watch:
        return check_many(theorem, trials, generator(seed), watch)


def _network(given: UserInstance, data: Data) -> Network | None:
    """With its start, where that is in a file of its own."""
    net, start = given.net, given.start
    if net is None:
        return None
    if start is None:
        return net.load(data)
    network, begun = (as_two_layer(file.load(data), "a start") for file in (net, start))
    same = network.W.shape == begun.W.shape
    shapes = (
        f"{start.name} has {begun.width} neurons of {begun.dim} inputs, {net.name} {network.width} of {network.dim}"
    )
    require(same, f"--start is no start of --net: {shapes}")
    return replace(network, start=replace(begun, start=None))


def _on_files(theorem: Theorem, given: UserInstance, beyond: bool) -> CheckResult:
    numbers, examples = facts(given.facts), given.data.load()
    network = _network(given, examples)
    told = KnownFacts(numbers) if numbers else None
    if network is None:
        verdict = check_data(theorem, examples, told, beyond=beyond)
    else:
        verdict = check_given(theorem, examples.labelled_for(network.classes), network, told, beyond=beyond)
    require(told is None or bool(told.kinds), f"--fact: {theorem.id} asks for no facts; leave it out")
    if told is not None and told.missing:
        say(f"facts that were not told: {', '.join(told.missing)}")
    return verdict


def _content(theorem: Theorem, verdict: CheckResult, counted: Trials | None = None) -> dict[str, Any]:
    known = {"flaw": theorem.flaw, "repaired": theorem.repaired}
    if counted is None:
        return verdict.to_json() | known | {"trials": None}
    judged = {"verdict": counted.verdict, "advice": counted.advice}
    return verdict.to_json() | judged | known | {"trials": counted.to_json()}


def verdict_table(verdict: CheckResult, counted: Trials | None = None) -> Table:
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


def check_all(seed: int, json_file: str | None) -> bool:
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
    return not any(each.verdict is CheckOutcome.VIOLATED for each in standing)


def _counts(verdicts: list[CheckResult]) -> dict[str, int]:
    return {outcome.value: sum(each.verdict is outcome for each in verdicts) for outcome in CheckOutcome}


def _all_table(verdicts: list[CheckResult]) -> Table:
    rows = [[each.id, each.verdict.value, _headline(each), f"{each.seconds:.2f} s", each.claim] for each in verdicts]
    return _uncut(rows_table(["id", "verdict", "measured and promised", "time", "claim"], rows))


def _flawed_table(verdicts: list[CheckResult]) -> Table:
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


def _headline(verdict: CheckResult) -> str:
    """What decides: an exponent, a hypothesis that fails, a broken promise, or the first promise."""
    if verdict.scaling:
        each = verdict.scaling[0]
        return f"exponent {each.fitted:+.2f} ± {each.standard_error:.2f}, claimed {each.claimed:+.2g}"
    decisive = [c for c in (*verdict.hypotheses, *verdict.bound) if not c.holds] or list(verdict.bound)
    return "" if not decisive else f"{decisive[0].value:.4g} {decisive[0].relation.value} {decisive[0].threshold:.4g}"
