"""Few examples carry the margin of clustered data: solve on those, look at the rest, take in what was missed."""

import torch
from torch import Tensor

from brittle.common.progress import Watch
from brittle.margin.column_generation import ColumnGeneration
from brittle.margin.examples import Examples

SMALL = 300  # so many examples are solved at once
FIRST_SHARE = 0.2
MISSED = 1e-10  # below margin 1
ALIKE = 0.9  # cosine above which one of two examples is enough for now


class WorkingSet:
    """A run of rounds on growing sets of examples; what is left out has margin above 1 and multiplier 0."""

    def __init__(self, examples: Examples, watch: Watch) -> None:
        self.examples, self.watch = examples, watch
        self.count = self.steps = 0

    def run(self, W: Tensor, v: Tensor, pricing: float) -> tuple[Tensor, Tensor]:
        """Neurons U (G, d) and signs (G,) from a network that classifies every example."""
        chosen = self._first(W, v)
        U, signs = self._solve(chosen, W, v, pricing)
        while True:
            q = self.examples.margins(U, signs)
            missed = ~chosen & (q < float(q[chosen].min()) - MISSED)
            if not bool(missed.any()):
                return U, signs
            chosen = chosen | self._added(q, missed, int((~chosen).sum()))
            root = U.norm(dim=1, keepdim=True).sqrt()
            W, v = torch.cat([U / root, W]), torch.cat([signs * root[:, 0], v])
            U, signs = self._solve(chosen, W, v, pricing)

    def _first(self, W: Tensor, v: Tensor) -> Tensor:
        """The examples of smallest margin, as many of each class."""
        y = self.examples.y
        if len(y) <= SMALL:
            return torch.ones_like(y, dtype=torch.bool)
        q = self.examples.margins(v.abs()[:, None] * W, v.sign())
        chosen = torch.zeros_like(y, dtype=torch.bool)
        for sign in (1.0, -1.0):
            chosen[self._unlike(q, y == sign)[: int(FIRST_SHARE * len(y) / 2)]] = True
        return chosen

    def _added(self, q: Tensor, missed: Tensor, left: int) -> Tensor:
        """What joins: everything where most of the rest is missed, otherwise the worst of each kind."""
        unlike = self._unlike(q, missed)
        if len(unlike) > left / 2:
            return torch.ones_like(missed)
        added = torch.zeros_like(missed)
        added[unlike] = True
        return added

    def _unlike(self, q: Tensor, among: Tensor) -> Tensor:
        """Examples by rising margin, none of them close in direction to one before it."""
        order = torch.nonzero(among)[:, 0]
        order = order[q[order].argsort()]
        K = self.examples.K[order][:, order]
        length = K.diagonal().sqrt()
        close = ALIKE * length[:, None] * length < K
        kept, free = [], torch.ones(len(order), dtype=torch.bool)
        for i in range(len(order)):
            if free[i]:
                kept.append(i)
                free &= ~close[i]
        return order[torch.tensor(kept, dtype=torch.long)]

    def _solve(self, chosen: Tensor, W: Tensor, v: Tensor, pricing: float) -> tuple[Tensor, Tensor]:
        rounds = ColumnGeneration(self.examples.take(chosen), self.watch)
        U, signs = rounds.run(W, v, pricing)
        self.count += rounds.count
        self.steps += rounds.steps
        alive = (U != 0).any(1)
        return U[alive], signs[alive]
