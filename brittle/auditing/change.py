"""Two audits beside each other: of the same examples, which came nearer to a flip, and which provably so."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from brittle.auditing.pieces import median, median_interval
from brittle.common.errors import InputError
from brittle.common.result import Result, frame

SAME = 1e-3  # relative: radii that differ by less are the same
MEASURES = {  # what both audits say of the whole, by where it stands in their JSON
    "median distance to a flip": ("vulnerability", "free", "median"),
    "proved for half of the examples": ("vulnerability", "certified", "median_lower"),
    "share of what the data allow": ("limit", "share"),
    "proved share of it": ("limit", "proved_share"),
    "training accuracy": ("regime", "accuracy"),
}


@dataclass(frozen=True)
class Measure(Result):
    """One number by its `name`, `before` and `after`, None where an audit does not have it.

    >>> from brittle.auditing import Measure
    >>> Measure("median distance to a flip", before=0.5, after=0.75).after
    0.75
    """

    name: str
    before: float | None
    after: float | None


@dataclass(frozen=True, eq=False)
class Change(Result):
    """What is different in the second of two audits.

    `measures` are about all that each has measured. Of the `examples` that both have audited, `farther` are flipped
    at a longer distance than before, `nearer` at a shorter one, by more than a thousandth; `surely_farther` and
    `surely_nearer` provably so: what is proved after is more than what flips before, or the other way round. `median`
    is that of the differences of the flips' lengths, and `interval` encloses it for all examples with 95 %.

    >>> from brittle.auditing import Change
    >>> print(Change((), 10, 7, 1, 4, 0, 0.2, (0.1, 0.3)).sentence[:66])
    Of 10 examples that both audits attacked, 7 are farther from a fli
    """

    measures: tuple[Measure, ...]
    examples: int
    farther: int
    nearer: int
    surely_farther: int
    surely_nearer: int
    median: float
    interval: tuple[float, float]

    @property
    def sentence(self) -> str:
        """In words; empty where the audits have no example in common."""
        if not self.examples:
            return ""
        sure = f"provably for {self.surely_farther}", f"provably for {self.surely_nearer}"
        return (
            f"Of {self.examples} examples that both audits attacked, {self.farther} are farther from a flip than "
            f"before ({sure[0]}) and {self.nearer} nearer ({sure[1]})."
        )

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for every measure."""
        return frame([each.plain() for each in self.measures])

    def content(self) -> dict[str, Any]:
        """The fields and the sentence."""
        return {**super().content(), "sentence": self.sentence}


def compare_audits(before: Mapping[str, Any], after: Mapping[str, Any]) -> Change:
    """From what two audits wrote as JSON; examples are compared where both audited the same ones.

    >>> from brittle.auditing import compare_audits
    >>> compare_audits({}, {})
    Traceback (most recent call last):
    brittle.common.errors.InputError: this is not the JSON of an audit; `brittle audit --json FILE` writes it
    """
    try:
        measures = tuple(Measure(name, _at(before, path), _at(after, path)) for name, path in MEASURES.items())
        first, second = _radii(before), _radii(after)
        same = before["vulnerability"]["held_out"] == after["vulnerability"]["held_out"]
    except (KeyError, TypeError, ValueError):
        raise InputError("this is not the JSON of an audit; `brittle audit --json FILE` writes it") from None
    shared = [row for row in second if row in first] if same else []
    return _change(measures, _of(first, shared), _of(second, shared))


def _change(measures: tuple[Measure, ...], old: "AuditPair", new: "AuditPair") -> Change:
    differences = torch.where(old.upper == new.upper, 0.0, new.upper - old.upper)  # infinity beside itself
    close = differences.abs() <= SAME * torch.minimum(old.upper, new.upper)
    return Change(
        measures=measures,
        examples=len(differences),
        farther=int(((differences > 0) & ~close).sum()),
        nearer=int(((differences < 0) & ~close).sum()),
        surely_farther=int((new.lower > old.upper).sum()),
        surely_nearer=int((new.upper < old.lower).sum()),
        median=median(differences),
        interval=median_interval(differences) if len(differences) else (-math.inf, math.inf),
    )


class AuditPair(NamedTuple):
    """Enclosures (k,) of radii."""

    lower: Tensor
    upper: Tensor


def _of(radii: Mapping[int, tuple[float, float]], rows: list[int]) -> AuditPair:
    both = torch.tensor([radii[row] for row in rows], dtype=torch.float64).reshape(-1, 2)
    return AuditPair(both[:, 0], both[:, 1])


def _radii(content: Mapping[str, Any]) -> dict[int, tuple[float, float]]:
    """What is proved and what flips, of every example by its place in the data."""
    weak = content["vulnerability"]
    names, proofs = weak["examples"], weak["certified"]
    found = {
        names[row]: (0.0, _finite(norm)) for row, norm in zip(weak["free"]["rows"], weak["free"]["norms"], strict=True)
    }
    if proofs is not None:
        for row, lower, upper in zip(proofs["rows"], proofs["lower"], proofs["upper"], strict=True):
            found[names[row]] = (_finite(lower), min(_finite(upper), found.get(names[row], (0.0, math.inf))[1]))
    return found


def _finite(value: float | None) -> float:
    """JSON has no word for infinity."""
    return math.inf if value is None else float(value)


def _at(content: Mapping[str, Any], path: tuple[str, ...]) -> float | None:
    value: Any = content
    for name in path:
        value = None if value is None else value[name]
    return None if value is None else float(value)
