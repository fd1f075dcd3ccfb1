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
