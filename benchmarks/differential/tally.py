"""Counts of generated models that were compared with a reference, refused, or read as another function."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class ReadingTally:
    """Outcomes of reading generated models.

    Attributes:
        compared: Models that were read and whose outputs were compared with the reference's.
        refused: Reasons for refusal (shortened) and how often each was given.
        skipped: Models on which the reference itself fails, by reason.
        kinds: How often each kind of model or operation was compared.
        violations: One line for each model that was read as another function, or that ended in another exception.
    """

    compared: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, other: "ReadingTally") -> None:
        """Add the counts of another tally to this one."""
        self.compared += other.compared
        self.refused += other.refused
        self.skipped += other.skipped
        self.kinds += other.kinds
        self.violations += other.violations
