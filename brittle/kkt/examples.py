"""The examples as the solver sees them: each once, in units that make the Gram matrix of order one."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.common.errors import InputError


def first_of_each(group: Tensor) -> Tensor:
    """Where each group first stands, for the number (n,) of every row's group."""
    count = int(group.max()) + 1 if len(group) else 0
    place = torch.full((count,), len(group), dtype=torch.long)
    return place.scatter_reduce(0, group, torch.arange(len(group)), "amin")


# Neurons by the one vector that matters at a KKT point, where |v| = ‖w̃‖.


class Weights(NamedTuple):
    """W (m, d) rows w̃ and v (m,): the network x̃ ↦ Σ v_j φ(w̃_j·x̃)."""

    W: Tensor
    v: Tensor

    def margins(self, X: Tensor, y: Tensor) -> Tensor:
        """q (n,) on the rows x̃ of X (n, d) with labels y (n,)."""
        return y * ((X @ self.W.T).relu_() @ self.v)

    def divided(self, number: float) -> "Weights":
        """Every weight divided by a number."""
        return Weights(self.W / number, self.v / number)


@dataclass(frozen=True, eq=False)
class Neurons:
    """U (G, d) rows u_g = |v_g| w̃_g, signs (G,) of v_g."""

    U: Tensor
    signs: Tensor

    @classmethod
    def of(cls, weights: Weights) -> "Neurons":
        """Those of a network, zero ones included."""
        return cls(weights.v.abs()[:, None] * weights.W, weights.v.sign())

    @property
    def sizes(self) -> Tensor:
        """‖u_g‖ (G,)."""
        sizes: Tensor = self.U.norm(dim=1)
        return sizes

    def take(self, chosen: Tensor) -> "Neurons":
        """Some of them."""
        return Neurons(self.U[chosen], self.signs[chosen])

    def nonzero(self) -> "Neurons":
        """Those with u ≠ 0."""
        return self.take((self.U != 0).any(1))

    def balanced(self, divisor: float = 1.0) -> Weights:
        """Weights with |v_g| = ‖w̃_g‖ of the function divided by a number."""
        root = (self.U.norm(dim=1) / divisor).sqrt()
        return Weights(self.U / (divisor * root)[:, None], self.signs * root)


@dataclass(frozen=True, eq=False)
class MasterSolution:
    """neurons, and what they took: programs (convex ones) and steps of the interior point."""

    neurons: Neurons
    programs: int
    steps: int


@dataclass(frozen=True, eq=False)
class DistinctExamples:
    """X (n, d) distinct rows x̃, y (n,), K (n, n) = X Xᵀ / unit, with `unit` the mean of ‖x̃_i‖² (0 if all are zero)."""

    X: Tensor
    y: Tensor
    K: Tensor
    unit: float

    def take(self, chosen: Tensor) -> "DistinctExamples":
        """Some of the examples, in the same units."""
        return DistinctExamples(self.X[chosen], self.y[chosen], self.K[chosen][:, chosen], self.unit)

    def margins(self, neurons: Neurons) -> Tensor:
        """q (n,) of these neurons."""
        return self.y * ((self.X @ neurons.U.T).relu_() @ neurons.signs)


def distinct(X: Tensor, y: Tensor) -> Tensor:
    """Where each labelled example first stands; an example with both labels is an error."""
    rows, group = torch.unique(X, dim=0, return_inverse=True)
    if len(rows) == len(X):
        return torch.arange(len(X))
    _require_one_label(len(rows), group, y)
    return first_of_each(group).sort().values


def gather(X: Tensor, y: Tensor) -> DistinctExamples:
    """Each labelled example once; an example with both labels is an error."""
    keep = distinct(X, y)
    X, y = X[keep], y[keep]
    K = X @ X.T
    unit = float(K.diagonal().mean())
    return DistinctExamples(X, y, K / unit if unit > 0 else K, unit)


def _require_one_label(count: int, group: Tensor, y: Tensor) -> None:
    """No group of equal examples carries both labels."""
    total = torch.zeros(count, dtype=y.dtype).index_add_(0, group, y)
    size = torch.zeros(count, dtype=y.dtype).index_add_(0, group, torch.ones_like(y))
    mixed = torch.nonzero(total.abs() != size)[:, 0]
    if len(mixed):
        rows = torch.nonzero(group == mixed[0])[:, 0]
        plus, minus = rows[y[rows] > 0][0], rows[y[rows] < 0][0]
        raise InputError(
            f"examples {int(plus)} and {int(minus)} are equal and carry the labels 1 and -1; "
            "no network separates them: drop one"
        )


# Columns of the convex programs: a neuron's sign and its activation pattern on the examples of its own class.


@dataclass(frozen=True, eq=False)
class PatternColumns:
    """signs (G,) in ±1, positive ones first; patterns (G, n) of 0 and 1, zero on the other class."""

    signs: Tensor
    patterns: Tensor

    def __len__(self) -> int:
        """G."""
        return len(self.signs)

    def take(self, index: Tensor) -> "PatternColumns":
        """Some of the columns, by index or mask."""
        return PatternColumns(self.signs[index], self.patterns[index])

    def joined(self, other: "PatternColumns") -> "PatternColumns":
        """The distinct columns of both."""
        both = PatternColumns(torch.cat([self.signs, other.signs]), torch.cat([self.patterns, other.patterns]))
        return both.distinct()

    def distinct(self) -> "PatternColumns":
        """Positive columns first, each column once (where it first stood), none that is nowhere active."""
        return self.take(self.first())

    def first(self) -> Tensor:
        """The index that `distinct` takes."""
        rows = torch.cat([self.signs[:, None], self.patterns], 1)
        _, group = torch.unique(rows, dim=0, return_inverse=True)
        place = first_of_each(group)
        place = place[self.patterns[place].any(1)].sort().values
        return torch.cat([place[self.signs[place] > 0], place[self.signs[place] < 0]])


def find_columns(Z: Tensor, signs: Tensor, y: Tensor) -> PatternColumns:
    """The columns of neurons with these preactivations Z (n, m) and signs (m,)."""
    own = signs[:, None] == y
    return PatternColumns(signs, ((Z.T > 0) & own).to(Z.dtype))


def first_choice(pool: PatternColumns, y: Tensor, count: int) -> Tensor:
    """A mask of columns to begin with: the first ones of each sign, the fullest, and one for every example."""
    chosen = torch.zeros(len(pool), dtype=torch.bool)
    for sign in (1.0, -1.0):
        mine = torch.nonzero(pool.signs == sign)[:, 0]
        if not len(mine):
            continue
        chosen[mine[:count]] = True
        chosen[mine[pool.patterns[mine].sum(1).argmax()]] = True
        for i in torch.nonzero(y == sign)[:, 0].tolist():
            if not bool(pool.patterns[chosen, i].any()):
                chosen[mine[pool.patterns[mine, i].argmax()]] = True
    return chosen
