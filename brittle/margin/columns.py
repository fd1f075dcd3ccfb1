"""Columns of the convex programs: a neuron's sign and its activation pattern on the examples of its own class."""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.margin.groups import first_of_each


@dataclass(frozen=True, eq=False)
class Columns:
    """signs (G,) in ±1, positive ones first; patterns (G, n) of 0 and 1, zero on the other class."""

    signs: Tensor
    patterns: Tensor

    def __len__(self) -> int:
        """G."""
        return len(self.signs)

    def take(self, index: Tensor) -> "Columns":
        """Some of the columns, by index or mask."""
        return Columns(self.signs[index], self.patterns[index])

    def joined(self, other: "Columns") -> "Columns":
        """The distinct columns of both."""
        both = Columns(torch.cat([self.signs, other.signs]), torch.cat([self.patterns, other.patterns]))
        return both.distinct()

    def distinct(self) -> "Columns":
        """Positive columns first, each column once (where it first stood), none that is nowhere active."""
        return self.take(self.first())

    def first(self) -> Tensor:
        """The index that `distinct` takes."""
        rows = torch.cat([self.signs[:, None], self.patterns], 1)
        _, group = torch.unique(rows, dim=0, return_inverse=True)
        place = first_of_each(group)
        place = place[self.patterns[place].any(1)].sort().values
        return torch.cat([place[self.signs[place] > 0], place[self.signs[place] < 0]])


def realised(Z: Tensor, signs: Tensor, y: Tensor) -> Columns:
    """The columns of neurons with these preactivations Z (n, m) and signs (m,)."""
    own = signs[:, None] == y
    return Columns(signs, ((Z.T > 0) & own).to(Z.dtype))


def first_choice(pool: Columns, y: Tensor, count: int) -> Tensor:
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
