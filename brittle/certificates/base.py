"""What every certificate is: a part that proves a radius, and an entry that judges the proof against the network."""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
import torch
from torch import Tensor

from brittle.attacks import Attack, MinimumNorm
from brittle.attacks.base import Bounds as Box
from brittle.attacks.subject import Holder, Model, subject
from brittle.certificates.example import SHORTEST, Example, RadiusInterval, check_bound, lengths, reason
from brittle.certificates.rounding import SMALLEST
from brittle.common.ending import Status
from brittle.common.errors import require, require_positive
from brittle.common.kinds import check_kinds
from brittle.common.parts import check_fields
from brittle.common.progress import Progress, Watch, silent
from brittle.common.result import Result
from brittle.common.threads import one_blas_thread, one_thread_unless_chosen
from brittle.common.time_limit import TimeLimitReached, check_time, limit_time
from brittle.data import Data
from brittle.networks import Network

LONGEST = 2.0**1020  # no default cap is larger
LowerBound = Callable[[Example, RadiusInterval], RadiusInterval]  # a tighter enclosure: its lower bound is proved


@dataclass(frozen=True, eq=False)
class RadiusBounds(Result):
    """The radius of example i is inf ‖δ‖ over all strict flips (margin(x_i+δ) < 0), and 0 for an error (margin ≤ 0).

    lower, upper (n,) enclose it (upper is infinity where no flip is known); exact (n,): they agree up to the method's
    gap, or no flip exists below the cap; seconds (n,), the attack's share included; status (n,), one of `error`,
    `exact`, `capped` (proved that no flip lies below the cap), `open`; flips (n, dim), the perturbations behind
    `upper`, measured on the network, 0 where none is known; reason (n,), why nothing was proved where `open` has the
    lower bound 0, and empty elsewhere; nodes (n,), the branches that were looked at, 0 where the method has none.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> found = bt.certificates.Exact().bound(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> found.status[0], bool((found.lower <= found.upper).all()), found.exact.tolist()
        (<Status.EXACT: 'exact'>, True, [True, True, True, True])
    """

    lower: Tensor
    upper: Tensor
    exact: Tensor
    seconds: Tensor
    status: tuple[Status, ...]
    method: str
    cap: float
    flips: Tensor
    reason: tuple[str, ...] = ()
    nodes: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))

    @property
    def ratio(self) -> Tensor:
        """lower/upper of the examples that are neither errors nor without a known flip."""
        flipped = self.upper.isfinite() & (self.upper > 0)
        return self.lower[flipped] / self.upper[flipped]

    def content(self) -> dict[str, Any]:
        """Everything but the flips, which are as large as the examples."""
        return {name: value for name, value in super().content().items() if name != "flips"}

    def summary(self) -> dict[str, str]:
        """The words of all examples are counted."""
        counted = {
            name: ", ".join(f"{count} {word}" for word, count in Counter(filter(None, words)).most_common()) or "-"
            for name, words in (("status", self.status), ("reason", self.reason))
        }
        return super().summary() | counted


class Certificate(ABC):
    """A proof of robustness. Its fields are its parameters; `bound` is its verb.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> from brittle.certificates import Dual, Exact, Lipschitz, LinearRelaxation
        >>> proofs = Lipschitz(), LinearRelaxation(), Dual(), Exact()
        >>> [round(float(proof.bound(network, data).lower[0]), 3) for proof in proofs]
        [0.894, 0.962, 1.0, 1.0]
    """

    name: ClassVar[str]  # what the command line calls it

    def __post_init__(self) -> None:
        check_fields(self)

    @final
    @check_kinds
    def bound(
        self,
        network: Model,
        data: Holder,
        *,
        attack: Attack[Any] | None = None,
        bounds: Box | None = None,
        cap: float | None = None,
        rng: torch.Generator | None = None,
        watch: Watch = silent,
    ) -> RadiusBounds:
        """Enclose the radius of every example.

        The attack (`MinimumNorm()` by default) finds the flips; a box (lowest, highest) restricts only them, so that
        the lower bounds hold in the box too; `cap` is the radius beyond which nobody asks, by default 100 times the
        longest example.

        PyTorch uses one thread, unless OMP_NUM_THREADS or `torch.set_num_threads` say otherwise. Where a time limit
        (`brittle.common.time_limit`) is reached on the way, the bounds are those of the first examples, as many as were
        finished; TimeLimitReached where not one was.
        """
        with one_thread_unless_chosen():
            return self._bound(network, data, attack or MinimumNorm(), bounds, cap, rng, watch)

    def _bound(
        self,
        network: Model,
        data: Holder,
        attack: Attack[Any],
        bounds: Box | None,
        cap: float | None,
        rng: torch.Generator | None,
        watch: Watch,
    ) -> RadiusBounds:
        known, data = subject(network, data)
        double = _double(known)
        double.check(data.X, data.y)
        _require_finite(double)
        require(2 * SMALLEST > 0, "numbers below the normal floats are flushed to 0; torch.set_flush_denormal(False)")
        cap = default_cap(data) if cap is None else cap
        require_positive("cap", cap)
        started = time.perf_counter()
        flips = attack.run(double, data, bounds=bounds, rng=rng).perturbations
        share = (time.perf_counter() - started) / len(data)
        with limit_time(None):
            examples = _examples(double, data, bounds)
            enclosures, seconds = list(_attacked(examples, data, flips, cap)), list[float]()
        with torch.no_grad(), one_blas_thread(), np.errstate(all="ignore"):
            lower_bound = self.prepare(double)
            for row, example in enumerate(examples):
                started = time.perf_counter()
                try:
                    check_time()
                    if example.margin > 0 and enclosures[row].ball > SHORTEST:
                        enclosures[row] = check_bound(example, lower_bound(example, enclosures[row]))
                except TimeLimitReached:
                    if row == 0:
                        raise
                    examples, enclosures = examples[:row], enclosures[:row]
                    break
                seconds.append(share + time.perf_counter() - started)
                watch(Progress((row + 1) / len(data), f"{row + 1} of {len(data)} examples"))
        return self._bounds(examples, enclosures, seconds)

    @abstractmethod
    def prepare(self, network: Network) -> LowerBound:
        """What is shared by all examples.

        The lower bound is called for each, with what is known of it: `enclosure.proven(radius)` says that no flip of
        the ball undercuts the radius, `example.attacked(enclosure, directions)` tries directions as attacks.
        """

    @property
    def _gap(self) -> float:
        """The relative gap at which the enclosure counts as exact."""
        return 1e-6

    def _bounds(
        self, examples: Sequence[Example], enclosures: Sequence[RadiusInterval], seconds: Sequence[float]
    ) -> RadiusBounds:
        lower = torch.tensor([enclosure.lower for enclosure in enclosures], dtype=torch.float64)
        upper = torch.tensor([enclosure.upper for enclosure in enclosures], dtype=torch.float64)
        flips, cap = torch.stack([enclosure.flip for enclosure in enclosures]), enclosures[0].cap
        capped = (lower >= cap) & (upper > cap)
        exact = capped | (upper.isfinite() & (upper - lower <= self._gap * upper))
        status = tuple(map(_ending, examples, capped.tolist(), exact.tolist()))
        reasons = tuple(
            reason(example) if word is Status.OPEN and radius == 0 else ""
            for example, word, radius in zip(examples, status, lower.tolist(), strict=True)
        )
        times, nodes = torch.tensor(seconds, dtype=torch.float64), torch.tensor([each.nodes for each in enclosures])
        return RadiusBounds(lower, upper, exact, times, status, self.name, cap, flips, reasons, nodes)


def default_cap(data: Data) -> float:
    """100 times the longest example: where nobody says otherwise, nobody asks farther."""
    return min(100 * max(1.0, float(lengths(data.X).max())), LONGEST)


def _examples(network: Network, data: Data, box: Box | None) -> list[Example]:
    margins = network.margins(data.X, data.y).tolist()
    return [Example(network, row, data.X[row], data.y[row], margin, box) for row, margin in enumerate(margins)]


def _attacked(examples: Sequence[Example], data: Data, flips: Tensor, cap: float) -> Iterator[RadiusInterval]:
    """Before anything is proved; the flips are measured on the network, all at once."""
    flipped = examples[0].network.margins(data.X + flips, data.y) < 0
    upper = torch.where(flipped, lengths(flips), torch.inf).tolist()
    for example, length, flip in zip(examples, upper, flips, strict=True):
        length = 0.0 if example.margin <= 0 else length
        yield RadiusInterval(0.0, length, flip if 0 < length < torch.inf else torch.zeros_like(flip), cap)


def _ending(example: Example, capped: bool, exact: bool) -> Status:
    if example.margin <= 0:
        return Status.ERROR
    if capped:
        return Status.CAPPED
    return Status.EXACT if exact else Status.OPEN


def _require_finite(network: Network) -> None:
    """Of weights that are not finite nothing is known: NaN compares as neither right nor wrong."""
    for name, values in network.arrays.items():
        finite = not values.is_floating_point() or bool(values.isfinite().all())
        require(finite, f"{name} of the network holds NaN or infinity; finite weights are needed")


def _double(network: Network) -> Network:
    require(network.dtype.is_floating_point, f"the network has type {network.dtype}; a float type is needed")
    return network.to(torch.float64)
