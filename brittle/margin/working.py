"""Few examples carry the margin of clustered data: solve on those, look at the rest, take in what was missed."""

import torch
from torch import Tensor

from brittle.common.progress import Watch
from brittle.margin.examples import Examples
from brittle.margin.rounds import Rounds

SMALL = 300  # so many examples are solved at once
FIRST_SHARE = 0.2
MISSED = 1e-10  # below margin 1


class Working:
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
            chosen = chosen | missed if int(missed.sum()) <= int((~chosen).sum()) / 2 else torch.ones_like(chosen)
            root = U.norm(dim=1, keepdim=True).sqrt()
            W, v = torch.cat([U / root, W]), torch.cat([signs * root[:, 0], v])
            U, signs = self._solve(chosen, W, v, pricing)

    def _first(self, W: Tensor, v: Tensor) -> Tensor:
        """The examples of smallest margin, as many of each class."""
        y = self.examples.y
        chosen = torch.ones_like(y, dtype=torch.bool)
        if len(y) <= SMALL:
            return chosen
        q = self.examples.margins(v.abs()[:, None] * W, v.sign())
        for sign in (1.0, -1.0):
            mine = torch.nonzero(y == sign)[:, 0]
            late = q[mine].argsort()[int(FIRST_SHARE * len(y) / 2) :]
            chosen[mine[late]] = False
        return chosen

    def _solve(self, chosen: Tensor, W: Tensor, v: Tensor, pricing: float) -> tuple[Tensor, Tensor]:
        rounds = Rounds(self.examples.take(chosen), self.watch)
        U, signs = rounds.run(W, v, pricing)
        self.count += rounds.count
        self.steps += rounds.steps
        alive = (U != 0).any(1)
        return U[alive], signs[alive]
