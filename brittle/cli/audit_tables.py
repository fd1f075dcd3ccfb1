"""What `brittle audit` prints: one audit as its verdict with tables, two of them beside each other."""

from typing import TYPE_CHECKING, Any

from rich.table import Table

from brittle.cli.console import rows_table
from brittle.common.result import short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Group

    from brittle.auditing import Audit, RemedyResult
    from brittle.auditing.change import Change
    from brittle.auditing.proofs import CertifiedExamples
    from brittle.auditing.vulnerability import Radii


def audit_table(found: "Audit", change: "Change | None" = None) -> "Group":
    """The verdict, radii and remedies; what changed since another audit."""
    from rich.console import Group

    weak = found.vulnerability
    radii = {
        "shortest flip anywhere": weak.free,
        "no class ahead from": weak.tied,
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
    parts: list[Any] = [found.verdict, "", table]
    if proved is not None:
        parts.append(", ".join(f"{count} {word}" for word, count in proved.counts.items()))
    parts += _treatments(found) if found.remedies else []
    if found.partial:
        parts.append(f"not reproducible at this budget: time limit reached during: {', '.join(found.partial)}")
    return Group(*parts) if change is None else Group(*parts, "", *change_parts(change, "before", "now"))


def change_table(audits: "Sequence[Audit]", names: "Sequence[str]", change: "Change") -> "Group":
    """Two verdicts, and what is different."""
    from rich.console import Group

    verdicts = [f"{name}: {found.verdict}\n" for name, found in zip(names, audits, strict=True)]
    return Group(*verdicts, *change_parts(change, *names))


def change_parts(change: "Change", before: str, after: str) -> list[Any]:
    rows = [[each.name, each.before, each.after] for each in change.measures]
    return [rows_table(["measure", before, after], rows), *([change.sentence] if change.sentence else [])]


def _interval(radii: "Radii | CertifiedExamples") -> str:
    return " to ".join(map(short, radii.interval))


def _treatments(found: "Audit") -> list[Any]:
    """A table of those that were applied, and a line for every other one: reasons are too long for a column."""
    applied = [each for each in found.remedies if each.applied]
    parts: list[Any] = [""]
    if applied:
        columns = ("remedy", "radius", "factor", "expected", "proved", "accuracy")
        table = Table(*columns, box=None, pad_edge=False, header_style="bold")
        table.columns[0].no_wrap = True
        for each in applied:
            strict = "" if each.strict_after is None else f" (strict {each.strict_after:.3g})"
            numbers = (f"{each.radius_after:.3g}{strict}", f"{each.factor:.2f}", _expected(each), _proved(each))
            table.add_row(each.name, *numbers, f"{each.accuracy_after:.1%}")
        parts += [table, f"accuracy on {applied[0].judged_on} examples"]
    return parts + [f"{each.name} was not applied: {each.reason}" for each in found.remedies if not each.applied]


def _proved(treatment: "RemedyResult") -> str:
    if treatment.proved_before is None or treatment.proved_after is None:
        return "-"
    fewer = f" (of {treatment.proved_examples})" if treatment.fewer_proved else ""
    return f"{treatment.proved_before:.3g} → {treatment.proved_after:.3g}{fewer}"


def _expected(treatment: "RemedyResult") -> str:
    said = treatment.forecast
    return "-" if said is None else f"{said.low:.2f} to {said.high:.2f}"
