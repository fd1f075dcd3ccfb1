"""How long work tells the outside where it is, without printing."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """`done` is the share of the work that is finished, in [0, 1]; `note` is what a person would like to see."""

    done: float
    note: str = ""


Watch = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """Watches nothing."""


def duration(seconds: float) -> str:
    """As one would say it: 0.12 s, 35 s, 12 min, 3.5 h."""
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 or seconds < 5e-3 else f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
