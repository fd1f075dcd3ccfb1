"""Few examples carry the margin of clustered data: solve on those, look at the rest, take in what was missed."""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.common.progress import Watch
from brittle.margin.column_generation import ColumnGeneration
from brittle.margin.columns import realised
from brittle.margin.convex_concave import ConvexConcave
from brittle.margin.examples import Examples
from brittle.margin.neurons import Neurons, Solution, Weights

SMALL = 300  # so many examples are solved at once
FIRST_SHARE = 0.2
MISSED = 1e-10  # below margin 1
ALIKE = 0.9  # cosine above which one of two examples is enough for now


@dataclass(frozen=True, eq=False)
class State:
    """chosen (n,): the working set; `weights`: where the next patterns come from; `solution`: on the working set.

    missed (n,): examples outside the working set whose margin is below 1; q (n,): all margins.
    """

    chosen: Tensor
    weights: Weights
    solution: Solution
    q: Tensor
    missed: Tensor

    @property
    def done(self) -> bool:
        """What is left out has margin above 1 and multiplier 0: the solution is one for all examples."""
        return not bool(self.missed.any())


@dataclass(frozen=True, eq=False)
class WorkingSetMethod:
    """KKT points on growing sets of examples, from the weights of a network that classifies all of them.

    pricing: the share by which a pattern that was left out may improve the norm; watch: is told of every program.
    """

    examples: Examples
    weights: Weights
    pricing: float
    watch: Watch

    def start(self) -> State:
        """Solved on the examples of smallest margin."""
        return self._state(self._first(), self.weights, 0, 0)

    def step(self, state: State) -> State:
        """Solved again with what was missed, from the patterns of the solution and of all that went before."""
        left = int((~state.chosen).sum())
        chosen = state.chosen | self._added(state.q, state.missed, left)
        balanced, before = state.solution.neurons.balanced(), state.weights
        weights = Weights(torch.cat([balanced.W, before.W]), torch.cat([balanced.v, before.v]))
        return self._state(chosen, weights, state.solution.programs, state.solution.steps)

    def run(self) -> Solution:
        """A KKT point for all examples."""
        state = self.start()
        while not state.done:
            state = self.step(state)
        return state.solution

    def _state(self, chosen: Tensor, weights: Weights, programs: int, steps: int) -> State:
        """Solved on the chosen examples; programs and steps are those of the states before."""
        solution = solve_on(self.examples.take(chosen), weights, self.pricing, self.watch)
        q = self.examples.margins(solution.neurons)
        missed = ~chosen & (q < float(q[chosen].min()) - MISSED)
        total = Solution(solution.neurons, solution.programs + programs, solution.steps + steps)
        return State(chosen, weights, total, q, missed)

    def _first(self) -> Tensor:
        """The examples of smallest margin, as many of each class."""
        y = self.examples.y
        if len(y) <= SMALL:
            return torch.ones_like(y, dtype=torch.bool)
        q = self.examples.margins(Neurons.of(self.weights))
        chosen = torch.zeros_like(y, dtype=torch.bool)
        for sign in (1.0, -1.0):
            chosen[self._unlike(q, y == sign)[: int(FIRST_SHARE * len(y) / 2)]] = True
        return chosen

    def _added(self, q: Tensor, missed: Tensor, left: int) -> Tensor:
        """What joins: everything where most of the rest is missed, otherwise the worst of each kind."""
        unlike = self._unlike(q, missed)
        if len(unlike) > left / 2:
            return torch.ones_like(missed)
        return torch.zeros_like(missed).index_fill(0, unlike, True)

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


def solve_on(examples: Examples, weights: Weights, pricing: float, watch: Watch) -> Solution:
    """A KKT point of these examples from a network's patterns, its heaviest neurons first."""
    W, v = weights
    order = (v.abs() * W.norm(dim=1)).argsort(descending=True)
    order = order[v[order] != 0]
    pool = realised(examples.X @ W[order].T, v[order].sign(), examples.y).distinct()
    generated = ColumnGeneration(examples, pool, pricing, watch).run()
    state = ConvexConcave(examples, generated.columns, generated.solved, watch).run()
    assert state.solved is not None
    assert state.neurons is not None
    return Solution(state.neurons.nonzero(), state.solved.programs, state.solved.steps)
