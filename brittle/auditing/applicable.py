"""Which theorems speak about this network and these data, and what keeps the others from it."""

from dataclasses import dataclass

from brittle.auditing.budget import Budget
from brittle.common.errors import InputError
from brittle.common.result import Result
from brittle.common.time_limit import TimeLimitReached
from brittle.theorems import Comparison, Instance, Outcome, Theorem, check_instance, find

# The statements about a given network on given data; the lemmas and the laws of random draws are left to `check`.
HEADLINES = (
    "vardi2022/4.1",
    "vardi2022/C4.1",
    "vardi2022/3.1",
    "frei2023/A2.2",
    "frei2023/3.1",
    "frei2023/4.1",
    "frei2023/4.2",
    "melamed2023/4.1",
    "melamed2023/5.1",
    "melamed2023/6.1",
    "wang2022/B.5",
    "wang2022/B.7",
    "wang2022/3.1",
)


@dataclass(frozen=True)
class TheoremRow(Result):
    """`applies`: every hypothesis holds; otherwise `obstacle` is the first that fails, or why none can be measured.

    `hypotheses` are all of them with what was measured, none where they cannot be.
    """

    id: str
    claim: str
    applies: bool
    verdict: str
    obstacle: str
    slack: float | None
    predicted: tuple[Comparison, ...]
    hypotheses: tuple[Comparison, ...]


def applicable(instance: Instance, budget: Budget) -> tuple[TheoremRow, ...]:
    """One row per statement, those that apply first; fewer rows where the time limit came first."""
    rows: list[TheoremRow] = []
    for name in HEADLINES:
        if budget.late:
            break
        try:
            rows.append(_row(find(name), instance))
        except TimeLimitReached:
            break
    return tuple(sorted(rows, key=lambda row: not row.applies))


def _row(theorem: Theorem, instance: Instance) -> TheoremRow:
    try:
        verdict = check_instance(theorem, instance)
    except InputError as error:
        return TheoremRow(theorem.id, theorem.claim, False, "not_applicable", str(error), None, (), ())
    failed = [hypothesis for hypothesis in verdict.hypotheses if not hypothesis.holds]
    obstacle = str(failed[0]) if failed else ""
    slack = failed[0].slack if failed else None
    applies = verdict.verdict is not Outcome.HYPOTHESES_FAIL
    outcome, promised = verdict.verdict.value, verdict.bound
    return TheoremRow(theorem.id, theorem.claim, applies, outcome, obstacle, slack, promised, verdict.hypotheses)
