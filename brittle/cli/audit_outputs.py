"""What becomes of an audit, or of two that are compared: page, pictures, summary, JSON and what is printed."""

from dataclasses import dataclass
from functools import cached_property
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Any

from brittle.cli.audit_tables import audit_table, change_table
from brittle.cli.console import say
from brittle.common.errors import InputError

if TYPE_CHECKING:
    from rich.console import Group

    from brittle.auditing import Audit
    from brittle.auditing.change import Change

JUDGED = ("certified", "attacked")


@dataclass(frozen=True, eq=False)
class AuditOutcome:
    """The `audits` in their order, with the `names` of what they are about; the last one is the one to judge.

    `earlier` is the name and the JSON of an audit that it is compared with, None where the first of two is or none.
    `network` and `data` are the files that the next command would need, empty for the embedded network.
    """

    audits: tuple["Audit", ...]
    names: tuple[str, ...]
    earlier: tuple[str, Any] | None
    command: str
    seed: int
    network: str
    data: str

    @property
    def found(self) -> "Audit":
        return self.audits[-1]

    @property
    def title(self) -> str:
        return f"Audit of {self.names[-1]}"

    @cached_property
    def before(self) -> tuple[str, Any] | None:
        """What it is compared with, by its name."""
        return (self.names[0], self.audits[0].to_json()) if len(self.audits) == 2 else self.earlier

    @cached_property
    def change(self) -> "Change | None":
        from brittle.auditing.change import compare_audits

        return None if self.before is None else compare_audits(self.before[1], self.found.to_json())

    @property
    def content(self) -> dict[str, Any]:
        """What is written as JSON: the audit, or both with what changed, and how it came about."""
        origin = {"command": self.command, "seed": self.seed}
        if len(self.audits) == 1:
            return {**self.found.to_json(), **origin}
        return {"first": self.audits[0], "second": self.found, "change": self.change, **origin}

    @property
    def table(self) -> "Group":
        if len(self.audits) == 1 or self.change is None:
            return audit_table(self.found, self.change)
        return change_table(self.audits, self.names, self.change)

    def write_page(self, path: Path | None) -> None:
        if path is None:
            return
        from brittle.report import audit_page
        from brittle.report.words import Origin

        files = {"network": self.network, "data": self.data} if self.network else {}
        origin, found = Origin(self.command, self.seed, **files), self.found
        audit_page.write_audit_page(found, found.model, found.data, path, self.title, origin, self.before)
        say(f"wrote {path}")

    def write_pictures(self, folder: Path | None) -> None:
        if folder is None:
            return
        from brittle.report.audit_figures import write_audit_pictures

        write_audit_pictures(self.found, self.found.model, self.found.data, folder)
        say(f"wrote {folder}")

    def write_summary(self, path: Path | None, failure: str | None) -> None:
        if path is None:
            return
        from brittle.report.words import write_summary

        write_summary(path, self.found, self.title, failure, self.change)
        say(f"wrote {path}")

    def failure(self, radius: float | None, judge: str) -> str | None:
        """Why the audit fails; None where it does not, or nothing is asked of it."""
        weak = self.found.vulnerability
        median = weak.certified.median_lower if judge == "certified" and weak.certified else weak.free.median
        passed = radius is None or median >= radius
        return None if passed else f"the {judge} median radius {median:.6g} is below {radius:g}"


def earlier_audit(path: Path) -> tuple[str, Any]:
    """The name and the content of what an earlier audit wrote as JSON."""
    from brittle.auditing.change import compare_audits

    try:
        content = loads(path.read_text(encoding="utf-8"))
        compare_audits(content, content)
    except (OSError, ValueError, InputError):
        raise InputError(f"--since is {path}; it must be what brittle audit --json wrote") from None
    return str(path), content
