"""How far the audited examples provably do not flip: the dual bound for all, then branch and bound."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

import torch
from torch import Tensor

from brittle.auditing.budget import WorkBudget
from brittle.auditing.costs import Costs
from brittle.auditing.pieces import Outcome, ProvedPiece, median, median_interval, some
from brittle.certificates import Certificate, Dual, Exact
from brittle.common.ending import Status
from brittle.common.result import Result
from brittle.data import Data
from brittle.networks import Layered, Network
from brittle.networks.affine import LARGEST_MATRIX

AT_ONCE = 16  # examples between two looks at the clock
PATIENCE = 5  # seconds of the clock for one of computing, beside other processes
DUAL = 0.8  # of the work, at most, before branch and bound begins
FOREMOST = 2  # subjects that are certified before the others: the network itself, and the best that was made of it
WAVES = (0.25, 1.0)  # of the work that is left, for branch and bound
OPEN = ("open", "proved")
GAP = 1e-4  # at which an enclosure counts as exact


@dataclass(frozen=True, eq=False)
class CertifiedExamples(Result):
    """Proved enclosures lower ≤ radius ≤ upper of the examples `rows`, the first of those audited.

    `status` is what is known of each: `error` (misclassified, radius 0), `exact`, `proved` (a positive lower bound) or
    `open` (none). `interval` encloses the median of the lower bounds of all examples that these were drawn from.
    `flips` (n, columns) have the lengths `upper`: those that were known before, and shorter ones that relaxed points of
    the proofs led to.
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
    flips: Tensor

    def content(self) -> dict[str, Any]:
        """Everything but the flips, which are as long as the data."""
        return {name: value for name, value in super().content().items() if name != "flips"}

    @property
    def counts(self) -> dict[str, int]:
        """How many examples of each status."""
        found = Counter(self.status)
        return {word: found[word] for word in ("exact", "proved", "open", "error")}

    @property
    def open_rows(self) -> Tensor:
        """Those whose radius is not known exactly."""
        return self.rows[torch.tensor([word in OPEN for word in self.status], dtype=torch.bool)]


class CertifiedSubject(NamedTuple):
    """A network, with perturbations `flips` (k, columns) of the audited examples that flip it."""

    network: Network
    flips: Tensor

    @property
    def right(self) -> Tensor:
        """1 for the examples that are classified rightly, which a bound has to work for; 0 for the others."""
        return self.flips.ne(0).any(1).double()


class RadiusIntervals(NamedTuple):
    """Of several examples, with the flips that have the upper lengths."""

    lower: Tensor
    upper: Tensor
    flips: Tensor

    def narrow(self, row: int, found: Outcome) -> None:
        """By what was found of this one: both enclosures hold, and so does what they share."""
        self.lower[row] = torch.maximum(self.lower[row], found["lower"][0])
        if found["upper"][0] < self.upper[row]:
            self.upper[row], self.flips[row] = found["upper"][0], found["flips"][0]


def certifiable(network: Network) -> TypeGuard[Layered]:
    """Whether an audit can prove radii of this network.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> smooth = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        >>> bt.auditing.certifiable(bt.networks.as_network(smooth))
        False
    """
    small = (each.inputs * each.outputs <= LARGEST_MATRIX for each in getattr(network, "layers", ()))
    return isinstance(network, Layered) and all(small)


def certify(subjects: Sequence[CertifiedSubject], data: Data, budget: WorkBudget) -> list[CertifiedExamples | None]:
    """In the order of interest: the first two, and then the others with what they leave.

    Each of these groups has the dual bound for all examples, or for as many first ones as DUAL of the work pays for,
    and then branch and bound, in which everyone but the last of all may use half of what is left. None for a foreign
    module, and where not one example can be afforded.
    """
    found: list[CertifiedExamples | None] = []
    for group in (subjects[:FOREMOST], subjects[FOREMOST:]):
        for subject, known in zip(group, _first_bounds(group, data, budget), strict=True):
            last = len(found) == len(subjects) - 1
            share = budget.grant(budget.left if last else budget.left / 2)
            found.append(None if known is None else with_exact(known, subject, data, share))
    return found


def _first_bounds(
    subjects: Sequence[CertifiedSubject], data: Data, budget: WorkBudget
) -> list[CertifiedExamples | None]:
    layered = [subject for subject in subjects if certifiable(subject.network)]
    if not layered:
        return [None] * len(subjects)
    examples = min(len(subject.flips) for subject in layered)
    work = torch.stack([Costs.of(each.network).dual() * each.right[:examples] for each in layered]).sum(0)
    work[::AT_ONCE] += sum(Costs.of(each.network).preparing() for each in layered)
    count = int((work.cumsum(0) <= DUAL * budget.left).sum())
    return [dual_bounds(subject, data, count, budget) for subject in subjects]


def dual_bounds(subject: CertifiedSubject, data: Data, count: int, budget: WorkBudget) -> CertifiedExamples | None:
    """The quick bound for the first `count` examples."""
    if not certifiable(subject.network) or count == 0:
        return None
    groups = torch.split(torch.arange(count), AT_ONCE)
    found = list(budget.in_time([_piece(subject, data, rows, Dual()) for rows in groups]))
    if not found:
        return None
    lower, upper, flips = (torch.cat([each[name] for each in found]) for name in ("lower", "upper", "flips"))
    budget.charge(Costs.of(subject.network).dual() * float(subject.right[: len(lower)].sum()))
    endings = [ending for each in found for ending in each["status"]]
    status = [_word(*each) for each in zip(endings, lower.tolist(), upper.tolist(), strict=True)]
    return _certified(RadiusIntervals(lower, upper, flips), status, "dual", len(lower) < count)


def with_exact(
    first: CertifiedExamples, subject: CertifiedSubject, data: Data, budget: WorkBudget
) -> CertifiedExamples:
    """Branch and bound for the examples that are open, in waves: a search that was too short begins anew in the next.

    All examples of a wave get the same number of nodes, whoever does the work and in whatever order.
    """
    known, status = RadiusIntervals(first.lower.clone(), first.upper.clone(), first.flips.clone()), list(first.status)
    branch, method = Costs.of(subject.network).branch(), first.method
    for share in WAVES:
        rows = [row for row, word in enumerate(status) if word in OPEN]
        affordable = int(share * budget.left / branch)
        rows = rows[:affordable]
        if not rows or budget.late:
            continue
        exact = Exact(gap=GAP, seconds=PATIENCE * budget.longest, nodes=affordable // len(rows))
        foe = subject._replace(flips=known.flips)
        pieces = [_piece(foe, data, torch.tensor([row]), exact) for row in rows]
        for row, found in zip(rows, budget.in_time(pieces), strict=False):
            budget.charge(branch * max(1, int(found["nodes"])))
            known.narrow(row, found)
            status[row] = _word(found["status"][0], float(known.lower[row]), float(known.upper[row]))
            method = "dual, exact"
    return _certified(known, status, method, first.partial or budget.late)


def _piece(subject: CertifiedSubject, data: Data, rows: Tensor, method: Certificate) -> ProvedPiece:
    return ProvedPiece(subject.network, some(data, rows), method, subject.flips[rows])


def _certified(known: RadiusIntervals, status: Sequence[str], method: str, partial: bool) -> CertifiedExamples:
    lower, upper, flips = known
    rows, medians = torch.arange(len(lower)), (median(lower), median(upper))
    return CertifiedExamples(
        rows, lower, upper, tuple(status), method, *medians, median_interval(lower), partial, flips
    )


def _word(ending: str, lower: float, upper: float) -> str:
    if ending == Status.ERROR:
        return "error"
    if ending in (Status.EXACT, Status.CAPPED) or lower >= (1 - GAP) * upper:
        return "exact"
    return "proved" if lower > 0 else "open"
