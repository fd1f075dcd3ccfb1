"""What each part of an audit costs, in seconds of a nominal machine, from the sizes alone.

The nominal machine is one core of a laptop. The constants were measured once and are part of the definition of a
budget. What a pass costs beyond them on this network and this machine is measured at the start of an audit, rounded to
one of SPEEDS, and multiplies every cost that consists of passes: with the same speed factor the same work is done.
"""

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch

from brittle.auditing.geometry import MOST_PAIRED
from brittle.common.errors import InputError, require
from brittle.common.kinds import check_kinds
from brittle.common.result import Result
from brittle.data import Data
from brittle.networks import Convolution, Layered, Network, TwoLayer

SPEEDS = tuple(2.0**power for power in range(13))  # how many times as long as counted a pass may take
VARIABLE = "BRITTLE_SPEED"  # of the environment: the factor to use instead of a measured one
PROBED, ENOUGH, REPEATED = 50, 0.05, 3  # rows of a timed pass, its seconds, how often it is timed
LONGEST_PASS = 0.5  # seconds of a pass that nothing can interrupt

RATE = 2e10  # floating-point operations per second in products of matrices
CALL = 1e-3  # a pass through a network, however small
SINGULAR = 1.5e-9  # of the larger side times the square of the smaller, for singular values and vectors
BYTES = 5e8  # read and hashed per second
BLACK_BOX_PASSES, RAY_PASSES = 3000, 400  # gradients that an attack on a black box and an exact search take at least

_speed: ContextVar[float] = ContextVar("speed", default=1.0)


@dataclass(frozen=True)
class Costs:
    """`operations` of one pass through the network for one example; its `columns`, `widths` and `rivals`.

    `speed` is how many times as long as counted a pass takes; `squares` are the smaller sides of its layers' matrices.
    """

    operations: float
    columns: int
    widths: tuple[int, ...]  # of the hidden layers; none for a module whose layers are unknown
    rivals: int
    two_layer: bool
    speed: float = 1.0
    squares: tuple[int, ...] = ()

    @classmethod
    def of(cls, network: Network) -> "Costs":
        rivals = max(1, network.classes - 1)
        sides = [min(each.inputs, each.outputs) for each in network.layers[:-1]] if isinstance(network, Layered) else []
        known = (operations(network), network.dim, network.widths, rivals, isinstance(network, TwoLayer))
        return cls(*known, _speed.get(), tuple(sides))

    def judging(self, examples: int) -> float:
        """A pass of so many examples."""
        return self.speed * (CALL + self.operations * examples / RATE)

    def gradient(self, examples: int) -> float:
        """Of the loss in all parameters, or of the margins in x, on so many examples."""
        return self.speed * (CALL + 3 * self.operations * examples / RATE)

    def _passes(self, count: int) -> float:
        """So many gradients of the margin at one example, beside others."""
        return count * self.gradient(PROBED) / PROBED

    def attack(self, rank: int = 0) -> float:
        """The minimum-norm attack on one example, in a subspace of dimension `rank` or anywhere."""
        projected = 4.0 * self.columns * rank
        if self.two_layer:
            return 0.004 + 1.5e-8 * self.operations + 5e-9 * projected
        hidden = max(1, len(self.widths))
        counted = 0.006 * hidden + 2e-5 * sum(self.widths) + 4e-8 * self.operations + 1e-8 * projected
        return max(self.speed * counted, 0.0 if self.widths else self._passes(BLACK_BOX_PASSES))

    def ray(self) -> float:
        """An exact search along one direction, for one example."""
        return self.speed * 0.1 * self.attack() if self.widths else self._passes(RAY_PASSES)

    def dual(self) -> float:
        """The dual bound of one example.

        With one hidden layer the products of its weights are taken once, and each rival works with those of neurons.
        """
        if len(self.widths) == 1:
            pairs = self.widths[0] ** 2
            return 2 * pairs * self.columns / RATE + self.rivals * (0.03 + 6e-10 * pairs * min(self.columns, 333))
        counted = 0.012 * len(self.widths) + 4e-5 * sum(self.widths) + 2.5e-7 * self.operations
        return self.speed * counted

    def preparing(self) -> float:
        """What the dual bound needs before the first example: a Cholesky factor for the norm of every layer."""
        return sum(3.0 * side**3 for side in self.squares) / RATE if len(self.widths) > 1 else 0.0

    def branch(self) -> float:
        """One branch of the exact certificate, for one rival of one example."""
        if len(self.widths) == 1:
            return 0.05 + 8e-10 * self.widths[0] ** 2 * self.columns
        unknowns = min(self.columns, self.widths[0]) + sum(self.widths)
        return 0.03 + max(2.5e-5 * unknowns**2, 1e-8 * unknowns**3)


def judging_work(network: Network, examples: int) -> float:
    """What one pass of so many examples costs."""
    return Costs.of(network).judging(examples)


@contextmanager
def at_speed(factor: float) -> Iterator[None]:
    """Costs inside are those of a machine on which a pass takes so many times as long as counted."""
    token = _speed.set(factor)
    try:
        yield
    finally:
        _speed.reset(token)


def chosen_speed(network: Network, data: Data, wanted: float | None) -> float:
    """The factor that is `wanted`, or that the environment names, or that is measured on this network."""
    if wanted is not None:
        return get_known_speed("speed", wanted)
    named = os.environ.get(VARIABLE)
    if named is None:
        return measure_speed(network, data)
    try:
        return get_known_speed(VARIABLE, float(named))
    except ValueError:
        raise InputError(f"{VARIABLE} is {named!r}; it must be {_WORDS}") from None


_WORDS = f"a power of two from 1 to {SPEEDS[-1]:g}"


def get_known_speed(name: str, value: float) -> float:
    require(not isinstance(value, bool) and value in SPEEDS, f"{name} is {value!r}; it must be {_WORDS}")
    return float(value)


def measure_speed(network: Network, data: Data, clock: Callable[[], float] = time.process_time) -> float:
    """The factor for this network on this machine: a few timed gradients of some examples."""
    cost, rows = Costs.of(network), 1
    while True:
        some = data.take(torch.arange(min(rows, len(data))))
        seconds = min(_timed(network, some, clock) for _ in range(REPEATED))
        if rows >= min(PROBED, len(data)) or REPEATED * seconds >= ENOUGH:
            break
        rows *= 4
    return nearest_speed(seconds / cost.gradient(len(some)))


def _timed(network: Network, some: Data, clock: Callable[[], float]) -> float:
    began = clock()
    network.margin_gradients(some.X, some.y)
    return clock() - began


def nearest_speed(ratio: float) -> float:
    """The factor of the table that is nearest to this ratio."""
    place = round(math.log2(ratio)) if ratio > 1 else 0
    return SPEEDS[min(place, len(SPEEDS) - 1)]


def rows_at_once(network: Network) -> int:
    """How many rows a pass may have that cannot be interrupted; a power of two."""
    cost = Costs.of(network)
    rows = LONGEST_PASS / (cost.speed * 3 * max(1.0, cost.operations) / RATE)
    return 1 << int(math.log2(min(max(rows, 1.0), 1024.0)))


@check_kinds
def gradient_work(network: Network, data: Data) -> float:
    """What one gradient of the loss on all examples costs, in the unit of a budget.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> bt.auditing.gradient_work(bt.networks.orthogonal_kkt(data.X, data.y).network, data) < 0.01  # seconds
        True
    """
    return Costs.of(network).gradient(len(data))


def operations(network: Network) -> float:
    """Multiplications and additions of one pass for one example; at least two for every parameter.

    Those of convolutions count twice, because they are half as quick.
    """
    parameters = sum(array.numel() for array in network.arrays.values())
    layers = network.layers if isinstance(network, Layered) else ()
    again = sum(layer.products for layer in layers if isinstance(layer, Convolution))
    return float(2 * max(network.products + again, parameters))


def spectrum(rows: int, columns: int) -> float:
    """Singular values and vectors of a matrix, and the values of its centred form."""
    return CALL + SINGULAR * max(rows, columns) * min(rows, columns) ** 2


def largest(rows: int, cost: Callable[[int], float], work: float) -> int:
    """The most rows, up to `rows` and one at least, whose cost, which grows with them, is no more than this work."""
    low, high = 1, rows
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cost(middle) <= work else (low, middle - 1)
    return low


# What an audit is going to do, from the sizes and the budget alone, before anything is measured.


# Shares of the budget. What a part leaves unspent goes to those after it, and in the end to the proofs.
GEOMETRY, ATTACKS, THEOREMS, REMEDIES, PROOFS = 0.10, 0.25, 0.10, 0.40, 0.15
JUDGING = 0.03  # margins of training examples, and as much for accuracies of held-out ones
MEASURING = 0.5  # of the remedies' share: attacks on what they made
TRAINS = 100  # gradients that a remedy needs to have any effect: where they are too dear, their share buys examples
FEWEST = 6  # examples: an interval for the median needs as many
LARGEST_GRAM = 10_000  # examples whose pairwise products the theorems may ask for: 800 MB
LARGEST_KKT = 5_000_000  # examples times width for which the distance from a KKT point is measured


@dataclass(frozen=True)
class AuditPlan(Result):
    """How much work goes where; `budget` and every share are in seconds of the nominal machine.

    `examples` are attacked, before and after every remedy; `geometry_rows` is from how many rows (of the data, or of
    random sums of them) the data's span is found, `paired` of how many examples the angles are measured, `judged` on
    how many training or held-out examples accuracies and margins are. `theorems` and
    `kkt` say whether the theorems and the distance from a KKT point are measured. `remedies` is how many are tried.
    `remedy_work` is what each of them has at least, `proof_work` what certificates have.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> plan = bt.auditing.plan_audit(bt.networks.orthogonal_kkt(data.X, data.y).network, data, budget=10)
        >>> plan.examples, plan.theorems
        (6, True)
    """

    budget: float
    examples: int
    geometry_rows: int
    paired: int
    judged: int
    theorems: bool
    kkt: bool
    remedies: int
    remedy_work: float
    proof_work: float

    @classmethod
    def of(cls, network: Network, data: Data, available: int, budget: float, wanted: int, remedies: int) -> "AuditPlan":
        """`available` examples may be audited, `wanted` is how many of them at most."""
        cost, most = Costs.of(network), min(wanted, available)
        held_out = 0 if data.y_test is None else len(data.y_test)
        rows = cls._rows(data, budget)
        once = cost.attack() + 2 * cost.attack(rank=min(rows, data.columns)) + 4 * cost.ray()
        if remedies and TRAINS * cost.gradient(len(data)) <= REMEDIES * budget / remedies:
            again = MEASURING * REMEDIES * budget / remedies
            affordable = min(ATTACKS * budget / once, again / cost.attack())
        else:
            affordable = (ATTACKS + MEASURING * REMEDIES) * budget / once
        width = cost.widths[0] if cost.two_layer else 0
        kkt = 20 * len(data) * width * data.columns / RATE <= THEOREMS * budget
        return cls(
            budget=budget,
            examples=max(min(FEWEST, most), min(most, int(affordable))),
            geometry_rows=rows,
            paired=max(2, min(MOST_PAIRED, len(data), int((0.02 * budget * RATE / data.columns) ** 0.5))),
            judged=largest(max(len(data), held_out), cost.judging, JUDGING * budget),
            theorems=len(data) <= LARGEST_GRAM and theorem_work(data) <= THEOREMS * budget,
            kkt=kkt and 0 < len(data) * width <= LARGEST_KKT,
            remedies=remedies,
            remedy_work=REMEDIES * budget / remedies if remedies else 0.0,
            proof_work=PROOFS * budget,
        )

    def geometry_work(self, data: Data) -> float:
        return spectrum(self.geometry_rows, data.columns) + 8 * data.X.numel() / BYTES

    @staticmethod
    def _rows(data: Data, budget: float) -> int:
        """All of them, or as many random sums of them as the share allows, once every number was read."""
        whole = spectrum(len(data), data.columns)
        if whole <= GEOMETRY * budget:
            return len(data)
        work = GEOMETRY * budget - 8 * data.X.numel() / BYTES
        most = min(len(data), 4 * data.columns)
        return largest(most, lambda rows: spectrum(rows, data.columns), max(work, 0.02 * budget))


def limit_work(data: Data, examples: int) -> float:
    """All distances from so many examples to the data."""
    return 2.0 * examples * data.X.numel() / RATE


def theorem_work(data: Data) -> float:
    """A few products of all pairs of examples."""
    return 6 * len(data) ** 2 * data.columns / RATE


def largest_margin_work(data: Data) -> float:
    """A relaxation over all sign patterns of either class."""
    return 0.02 + 6e-8 * len(data) ** 3
