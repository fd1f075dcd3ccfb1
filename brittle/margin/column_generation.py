"""Column generation: which of a start's patterns are needed? Solve with a few, price the others, let the best enter."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from brittle.common.progress import Progress, Watch
from brittle.margin.columns import Columns, first_choice
from brittle.margin.examples import Examples
from brittle.margin.pricing import reduced_costs
from brittle.margin.solved_master import SolvedMaster, solve_master

FIRST = 10  # columns of each sign to begin with
ENTERING = 10  # columns that enter in one round of pricing
ROUNDS = 8
ACCURACY = 1e-2  # gap to which the masters are solved
SHARE_OF_WORK = 0.3  # for the progress bar


@dataclass(frozen=True, eq=False)
class State:
    """chosen: a mask of the pool; columns: those that it takes; solved: the last master, perhaps of fewer columns.

    complete: no column of the pool improves on them.
    """

    chosen: Tensor
    columns: Columns
    solved: SolvedMaster | None = None
    complete: bool = False


@dataclass(frozen=True, eq=False)
class ColumnGeneration:
    """Columns of the pool that no other one improves by more than a share `pricing`, for these examples.

    `watch` is told of every round.
    """

    examples: Examples
    pool: Columns
    pricing: float
    watch: Watch

    def start(self) -> State:
        """A few columns for every example."""
        chosen = first_choice(self.pool, self.examples.y, FIRST)
        return State(chosen, self.pool.take(chosen))

    def step(self, state: State) -> State:
        """One restricted master, and the columns that enter by it."""
        if bool(state.chosen.all()):
            return replace(state, complete=True)
        solved = solve_master(self.examples, state.columns, ACCURACY, state.solved)
        lam = solved.iterate.values.lam
        costs = reduced_costs(self.examples.K, self.examples.y, lam, self.pool, -self.pricing)
        costs = costs.masked_fill(state.chosen, torch.inf)
        entering = costs.argsort()[:ENTERING]
        entering = entering[costs[entering] < -self.pricing]
        if not len(entering):
            return replace(state, solved=solved, complete=True)
        chosen = state.chosen.index_fill(0, entering, True)
        return State(chosen, self.pool.take(chosen), solved)

    def run(self) -> State:
        """Rounds of pricing until the columns are complete, or there were enough."""
        state = self.start()
        for done in range(ROUNDS):
            self.watch(Progress(SHARE_OF_WORK * done / ROUNDS, f"pricing, {len(state.columns)} columns"))
            state = self.step(state)
            if state.complete:
                break
        return state
