"""Counts of generated models that were compared with a reference, refused, or read as another function."""

import re
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class ReadingTally:
    """Outcomes of reading generated models.

    Attributes:
        compared: Models that were read and whose outputs were compared with the reference's.
        refused: Reasons for refusal (shortened) and how often each was given.
        black_boxes: Models of which only the outputs are known afterwards, by reason.
        skipped: Models on which the reference itself fails, by reason.
        kinds: How often each kind of model or operation was compared.
        violations: One line for each model that was read as another function, or that ended in another exception.
    """

    compared: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    black_boxes: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, other: "ReadingTally") -> None:
        """Add the counts of another tally to this one."""
        self.compared += other.compared
        self.refused += other.refused
        self.black_boxes += other.black_boxes
        self.skipped += other.skipped
        self.kinds += other.kinds
        self.violations += other.violations

    @property
    def cases(self) -> int:
        """The number of models that were generated."""
        counted = self.refused.total() + self.black_boxes.total() + self.skipped.total()
        return self.compared + counted + len(self.violations)


def shortened(reason: str, path: str = "") -> str:
    """A reason without names and numbers, so that equal reasons are counted together."""
    text = (reason.replace(path, "").lstrip(": ") if path else reason).partition(";")[0]
    text = re.sub(r"'[^']*'", lambda name: name[0] if name[0].strip("'").isidentifier() else "'…'", text)
    return re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "#", text)[:100]


def skipped(reason: str) -> ReadingTally:
    """The tally of one model on which the reference itself fails."""
    return ReadingTally(skipped=Counter([reason]))
