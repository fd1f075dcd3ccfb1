"""An audit in a few lines of Markdown, for the page that a pipeline shows: passed or failed, and what changed."""

from pathlib import Path
from typing import Any

from brittle.auditing import Audit
from brittle.auditing.change import Change
from brittle.common.errors import InputError
from brittle.report.numbers import number, share
from brittle.report.words import Words


def write_summary(
    path: str | Path, audit: Audit, title: str, failure: str | None, change: Change | None = None
) -> None:
    """At the end of the file, as GitHub's $GITHUB_STEP_SUMMARY wants it; `failure` is why the audit fails, if so."""
    try:
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.write(summary(audit, title, failure, change))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def summary(audit: Audit, title: str, failure: str | None, change: Change | None = None) -> str:
    """Heading, verdict in one sentence, a table, and the change since another audit."""
    words = Words(audit)
    heading = f"### ✅ {_plain(title)}" if failure is None else f"### ❌ {_plain(title)}: {_plain(failure)}"
    lines = [heading, "", words.headline, "", *_table(audit, change), "", f"{words.why} {words.helps}"]
    if change is not None and change.sentence:
        lines += ["", change.sentence]
    if not audit.reproducible:
        lines += ["", f"Not reproducible at this budget. Time limit reached during: {', '.join(audit.partial)}."]
    return "\n".join([*lines, "", ""])


def _table(audit: Audit, change: Change | None) -> list[str]:
    rows: list[tuple[str, Any]] = [
        ("median distance to a flip", number(audit.vulnerability.free.median)),
        ("proved for half of the examples", _proved(audit)),
        ("share of what the data allow", "–" if audit.limit is None else share(audit.limit.share)),
        ("training accuracy", share(audit.regime.accuracy)),
    ]
    if change is None:
        return ["| | now |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    before = {each.name: each.before for each in change.measures}
    told = [(name, value, _shown(name, before.get(name))) for name, value in rows]
    return ["| | before | now |", "|---|---|---|", *(f"| {name} | {old} | {value} |" for name, value, old in told)]


def _shown(name: str, value: float | None) -> str:
    return share(value) if name.startswith(("share", "training")) else number(value)


def _proved(audit: Audit) -> str:
    proofs = audit.vulnerability.certified
    return "–" if proofs is None else number(proofs.median_lower)


def _plain(text: str) -> str:
    """Without what Markdown or HTML would read as its own."""
    return "".join(f"\\{each}" if each in "\\`*_[]<>|#" else each for each in " ".join(text.split()))
