"""What `brittle audit` prints: one audit as its verdict with tables, two of them beside each other."""

from typing import TYPE_CHECKING, Any

from rich.table import Table

from brittle.cli.console import rows_table
from brittle.common.result import short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Group

    from brittle.auditing import Audit, Treatment
    from brittle.auditing.change import Change
    from brittle.auditing.proofs import Certified
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
    parts: list[Any] = [found.verdict, "", table, *(["", _treatments(found)] if found.remedies else [])]
    if proved is not None:
        parts.append(", ".join(f"{count} {word}" for word, count in proved.counts.items()))
    if found.partial:
        parts.append(f"not reproducible at this budget: the clock cut short {', '.join(found.partial)}")
    return Group(*parts) if change is None else Group(*parts, "", *change_parts(change, "before", "now"))


def change_table(audits: "Sequence[Audit]", names: "Sequence[str]", change: "Change") -> "Group":
    """Two verdicts, and what is different."""
    from rich.console import Group

    verdicts = [f"{name}: {found.verdict}\n" for name, found in zip(names, audits, strict=True)]
    return Group(*verdicts, *change_parts(change, *names))


def change_parts(change: "Change", before: str, after: str) -> list[Any]:
    rows = [[each.name, each.before, each.after] for each in change.measures]
    return [rows_table(["measure", before, after], rows), *([change.sentence] if change.sentence else [])]


def _interval(radii: "Radii | Certified") -> str:
    return " to ".join(map(short, radii.interval))


def _treatments(found: "Audit") -> Table:
    judge = found.remedies[0].judged_on if found.remedies else "training"
    columns = ("remedy", "radius", "factor", "expected", "proved", f"{judge} accuracy")
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for each in found.remedies:
        if each.applied:
            strict = "" if each.strict_after is None else f" (strict {short(each.strict_after)})"
            numbers = (short(each.radius_after) + strict, f"{each.factor:.2f}", _expected(each), _proved(each))
            table.add_row(each.name, *numbers, f"{each.accuracy_after:.1%}")
        else:
            table.add_row(each.name, "-", "-", _expected(each), "-", each.reason)
    return table


def _proved(treatment: "Treatment") -> str:
    if treatment.proved_before is None or treatment.proved_after is None:
        return "-"
    fewer = f" ({treatment.proved_examples} of them)" if treatment.fewer_proved else ""
    return f"{short(treatment.proved_before)} → {short(treatment.proved_after)}{fewer}"


def _expected(treatment: "Treatment") -> str:
    said = treatment.forecast
    return "-" if said is None else f"{said.low:.2f} to {said.high:.2f}"
