"""How far the audited examples provably do not flip: the dual bound for all, then branch and bound."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

import torch
from torch import Tensor

from brittle.attacks import Attack, AttackResult
from brittle.attacks.base import Attempt, Target
from brittle.auditing.budget import Budget
from brittle.auditing.costs import Costs
from brittle.auditing.sample import median, median_interval
from brittle.certificates import Bounds, Dual, Exact
from brittle.common.ending import Ending
from brittle.common.result import Result
from brittle.networks import Layered, Network
from brittle.settings import Data

AT_ONCE = 16  # examples between two looks at the clock
PATIENCE = 5  # seconds of the clock for one of computing, beside other processes
DUAL = 0.8  # of the work, at most, before branch and bound begins
FOREMOST = 2  # subjects that are certified before the others: the network itself, and the best that was made of it
GAP = 1e-4  # at which an enclosure counts as exact


@dataclass(frozen=True, eq=False)
class Certified(Result):
    """Proved enclosures lower ≤ radius ≤ upper of the examples `rows`, the first of those audited.

    `status` is what is known of each: `error` (misclassified, radius 0), `exact`, `proved` (a positive lower bound) or
    `open` (none). `interval` encloses the median of the lower bounds of all examples that these were drawn from.
    """

    rows: Tensor
    lower: Tensor
    upper: Tensor
    status: tuple[str, ...]
    method: str
    median_lower: float
    median_upper: float
    interval: tuple[float, float]
    partial: bool  # the hard stop cut it short

    @property
    def counts(self) -> dict[str, int]:
        """How many examples of each status."""
        found = Counter(self.status)
        return {word: found[word] for word in ("exact", "proved", "open", "error")}

    @property
    def open_rows(self) -> Tensor:
        """Those whose radius is not known exactly."""
        return self.rows[torch.tensor([word in ("open", "proved") for word in self.status], dtype=torch.bool)]


@dataclass(frozen=True, eq=False)
class Known(Attack[AttackResult]):
    """Perturbations (n, columns) that were found already: a certificate need not look for them again."""

    perturbations: Tensor

    def propose(self, target: Target) -> Attempt:
        return Attempt(self.perturbations, self.perturbations)


class Subject(NamedTuple):
    """A network, with perturbations `flips` (k, columns) of the audited examples that flip it."""

    network: Network
    flips: Tensor


def certifiable(network: Network) -> TypeGuard[Layered]:
    """Whether an audit can prove radii of this network."""
    return isinstance(network, Layered)


def certify(subjects: Sequence[Subject], data: Data, budget: Budget) -> list[Certified | None]:
    """In the order of interest: the first two, and then the others with what they leave.

    Each of these groups has the dual bound for all examples, or for as many first ones as DUAL of the work pays for,
    and then branch and bound, in which everyone but the last of all may use half of what is left. None for a foreign
    module, and where not one example can be afforded.
    """
    found: list[Certified | None] = []
    for group in (subjects[:FOREMOST], subjects[FOREMOST:]):
        for subject, known in zip(group, _first_bounds(group, data, budget), strict=True):
            last = len(found) == len(subjects) - 1
            share = budget.grant(budget.left if last else budget.left / 2)
            found.append(None if known is None else with_exact(known, subject, data, share))
    return found


def _first_bounds(subjects: Sequence[Subject], data: Data, budget: Budget) -> list[Certified | None]:
    layered = [subject for subject in subjects if certifiable(subject.network)]
    if not layered:
        return [None] * len(subjects)
    work = sum(Costs.of(subject.network).dual() for subject in layered)
    count = min(budget.grant(DUAL * budget.left).steps(work), *(len(subject.flips) for subject in layered))
    return [dual_bounds(subject, data, count, budget) for subject in subjects]


def dual_bounds(subject: Subject, data: Data, count: int, budget: Budget) -> Certified | None:
    """The quick bound for the first `count` examples."""
    if not certifiable(subject.network) or count == 0:
        return None
    parts: list[Bounds] = []
    for rows in torch.split(torch.arange(count), AT_ONCE):
        parts.append(Dual().bound(subject.network, data.take(rows), attack=Known(subject.flips[rows])))
        budget.charge(Costs.of(subject.network).dual() * len(rows))
        if budget.late:
            break
    lower, upper = (torch.cat([getattr(part, name) for part in parts]) for name in ("lower", "upper"))
    endings = [ending for part in parts for ending in part.status]
    status = [_word(*each) for each in zip(endings, lower.tolist(), upper.tolist(), strict=True)]
    return _certified(lower, upper, status, "dual", len(lower) < count)


def with_exact(first: Certified, subject: Subject, data: Data, budget: Budget) -> Certified:
    """Branch and bound for the examples that are open: each gets its part of the nodes that the work left pays for."""
    lower, upper, status = first.lower.clone(), first.upper.clone(), list(first.status)
    branch, rows, tried = Costs.of(subject.network).branch(), first.open_rows.tolist(), 0
    for place, row in enumerate(rows):
        nodes = int(max(budget.left / (len(rows) - place), min(budget.left, branch)) / branch)
        if nodes < 1 or budget.late:
            break
        exact = Exact(gap=GAP, seconds=max(PATIENCE * budget.seconds_left, 0.1), nodes=nodes)
        known = Known(subject.flips[row : row + 1])
        found = exact.bound(subject.network, data.take(torch.tensor([row])), attack=known)
        budget.charge(branch * max(1, int(found.nodes)))
        tried += 1
        lower[row] = torch.maximum(lower[row], found.lower[0])  # both enclosures hold, so their intersection does
        upper[row] = torch.minimum(upper[row], found.upper[0])
        status[row] = _word(found.status[0], float(lower[row]), float(upper[row]))
    method = "dual, exact" if tried else first.method
    return _certified(lower, upper, status, method, first.partial or budget.late)


def _certified(lower: Tensor, upper: Tensor, status: Sequence[str], method: str, partial: bool) -> Certified:
    rows, medians = torch.arange(len(lower)), (median(lower), median(upper))
    return Certified(rows, lower, upper, tuple(status), method, *medians, median_interval(lower), partial)


def _word(ending: Ending, lower: float, upper: float) -> str:
    if ending is Ending.ERROR:
        return "error"
    if ending in (Ending.EXACT, Ending.CAPPED) or lower >= (1 - GAP) * upper:
        return "exact"
    return "proved" if lower > 0 else "open"
