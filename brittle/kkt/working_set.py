"""Few examples carry the margin of clustered data: solve on those, look at the rest, take in what was missed."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.common.progress import Progress, Watch
from brittle.kkt.active_set_newton import Candidate, active_set_newton
from brittle.kkt.examples import (
    DistinctExamples,
    MasterSolution,
    Neurons,
    PatternColumns,
    Weights,
    find_columns,
    first_choice,
)
from brittle.kkt.restricted_master import SolvedMaster, solve_master

CHECK = 10  # steps between two looks at which columns are settled


def compute_reduced_costs(
    K: Tensor, y: Tensor, lam: Tensor, pool: PatternColumns, below: float, steps: int = 150
) -> Tensor:
    """For every column a lower bound that some t attains; columns are followed only while theirs is below `below`."""
    costs = torch.ones(len(pool), dtype=K.dtype)
    for sign in (1.0, -1.0):
        mine = torch.nonzero(pool.signs == sign)[:, 0]
        if len(mine):
            own, other = y == sign, y == -sign
            load = pool.patterns[mine][:, own] * lam[own]
            rows = K[own]
            square = ((load @ rows[:, own]) * load).sum(1)
            shortest = _shortest(K[other][:, other], load @ rows[:, other], square, lam[other], 1 - below, steps)
            costs[mine] = 1 - shortest
    return costs


def _shortest(K: Tensor, rhs: Tensor, square: Tensor, top: Tensor, limit: float, steps: int) -> Tensor:
    """√ of min_t tᵀKt - 2 tᵀrhs + square over the box, row by row, by accelerated projected gradients."""
    if not len(top):
        return square.sqrt()
    live, shortest = torch.arange(len(rhs)), torch.full_like(square, torch.inf)
    rate, momentum = 1 / _largest_eigenvalue(K), 1.0
    t = ahead = (top / 2).expand(rhs.shape)
    for taken in range(1, steps + 1):
        projected = torch.minimum((ahead - rate * (ahead @ K - rhs[live])).clamp(min=0), top)
        next_momentum = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = projected + (momentum - 1) / next_momentum * (projected - t)
        t, momentum = projected, next_momentum
        if taken % CHECK == 0:
            squares = square[live] + ((t @ K - 2 * rhs[live]) * t).sum(1)
            shortest[live] = torch.minimum(shortest[live], squares.clamp(min=0).sqrt())
            unsettled = shortest[live] > limit
            live, t, ahead = live[unsettled], t[unsettled], ahead[unsettled]
            if not len(live):
                break
    return shortest


def _largest_eigenvalue(K: Tensor) -> float:
    """A slight overestimate, by the power method."""
    x = K.sum(1) + 1e-3 * K.diagonal()
    for _ in range(40):
        x = K @ (x / x.norm())
    return 1.05 * float(x.norm()) + 1e-300


# Column generation: which of a start's patterns are needed? Solve with a few, price the others, let the best enter.


FIRST = 10  # columns of each sign to begin with
ENTERING = 10  # columns that enter in one round of pricing
ROUNDS = 8
ACCURACY = 1e-2  # gap to which the masters are solved
SHARE_OF_WORK = 0.3  # for the progress bar


@dataclass(frozen=True, eq=False)
class ColumnGenerationState:
    """chosen: a mask of the pool; columns: those that it takes; solved: the last master, perhaps of fewer columns.

    complete: no column of the pool improves on them.
    """

    chosen: Tensor
    columns: PatternColumns
    solved: SolvedMaster | None = None
    complete: bool = False


@dataclass(frozen=True, eq=False)
class ColumnGeneration:
    """Columns of the pool that no other one improves by more than a share `pricing`, for these examples.

    `watch` is told of every round.
    """

    examples: DistinctExamples
    pool: PatternColumns
    pricing: float
    watch: Watch

    def start(self) -> ColumnGenerationState:
        """A few columns for every example."""
        chosen = first_choice(self.pool, self.examples.y, FIRST)
        return ColumnGenerationState(chosen, self.pool.take(chosen))

    def step(self, state: ColumnGenerationState) -> ColumnGenerationState:
        """One restricted master, and the columns that enter by it."""
        if bool(state.chosen.all()):
            return replace(state, complete=True)
        solved = solve_master(self.examples, state.columns, ACCURACY, state.solved)
        lam = solved.iterate.values.lam
        costs = compute_reduced_costs(self.examples.K, self.examples.y, lam, self.pool, -self.pricing)
        costs = costs.masked_fill(state.chosen, torch.inf)
        entering = costs.argsort()[:ENTERING]
        entering = entering[costs[entering] < -self.pricing]
        if not len(entering):
            return replace(state, solved=solved, complete=True)
        chosen = state.chosen.index_fill(0, entering, True)
        return ColumnGenerationState(chosen, self.pool.take(chosen), solved)

    def run(self) -> ColumnGenerationState:
        """Rounds of pricing until the columns are complete, or there were enough."""
        state = self.start()
        for done in range(ROUNDS):
            self.watch(Progress(SHARE_OF_WORK * done / ROUNDS, f"pricing, {len(state.columns)} columns"))
            state = self.step(state)
            if state.complete:
                break
        return state


# The convex-concave procedure: linearise at the patterns of the last program's neurons, until Newton can finish.


PROCEDURE_ROUNDS = 80
LOOSEST, LOOSE = 1e-2, 1e-3  # gap at which patterns are corrected, at first and before Newton
TIGHTEST = 1e-10  # an interior point gives no more digits
CORRECTIONS = 10  # times that Newton goes on after patterns were corrected
SHARE = 1.0  # wrong patterns per neuron up to which Newton may start
SAFE = 0.3  # the least margin with which a program may be left
FLIP = 0.3  # a pattern is wrong where |z| exceeds this many tolerances of the largest |z|
BEGUN, SHARE_OF_FULL_WORK = 0.3, 0.6  # for the progress bar


@dataclass(frozen=True, eq=False)
class ConvexConcaveState:
    """columns: of the next master; tolerance: its gap; solved and neurons: the last master and what it gave, if any.

    done: the neurons are those of a KKT point, or nothing better is to be had.
    """

    columns: PatternColumns
    solved: SolvedMaster | None
    tolerance: float = LOOSEST
    neurons: Neurons | None = None
    done: bool = False


class Finish(NamedTuple):
    """The candidate that Newton's method got to, whether it converged, and whether its patterns had to be corrected."""

    candidate: Candidate
    converged: bool
    corrected: bool


@dataclass(frozen=True, eq=False)
class ConvexConcave:
    """Masters of rising accuracy on these examples from these columns, then Newton.

    `last` is the master that was solved before them; `watch` is told of every one.
    """

    examples: DistinctExamples
    columns: PatternColumns
    last: SolvedMaster | None
    watch: Watch

    def start(self) -> ConvexConcaveState:
        """Before the first master."""
        return ConvexConcaveState(self.columns, self.last)

    def step(self, state: ConvexConcaveState) -> ConvexConcaveState:
        """One master; its candidate's patterns make the next one, unless Newton finishes from there."""
        solved = solve_master(self.examples, state.columns, state.tolerance, state.solved)
        candidate = solved.candidate()
        state = replace(state, solved=solved, neurons=candidate.neurons)
        wrong = candidate.mismatches(FLIP * state.tolerance)
        corrected = candidate.flipped(wrong)
        safe = bool((candidate.margins(corrected.columns.patterns) > SAFE).all())  # so that the next has a solution
        if state.tolerance > TIGHTEST and not safe:
            return replace(state, tolerance=max(0.1 * state.tolerance, TIGHTEST))
        few = int((wrong & candidate.margin).sum()) <= SHARE * len(state.columns)
        if few and state.tolerance <= LOOSE:
            return _after_newton(state, finish(corrected))
        tolerance = max(0.1 * state.tolerance, LOOSE) if few else state.tolerance
        return replace(state, columns=corrected.columns.distinct(), tolerance=tolerance)

    def run(self) -> ConvexConcaveState:
        """Until Newton converged, or there were enough masters."""
        state = self.start()
        for taken in range(PROCEDURE_ROUNDS):
            share = BEGUN + SHARE_OF_FULL_WORK * taken / PROCEDURE_ROUNDS
            self.watch(Progress(share, f"linearising, {len(state.columns)} columns"))
            state = self.step(state)
            if state.done:
                break
        return state


def _after_newton(state: ConvexConcaveState, finished: Finish) -> ConvexConcaveState:
    """Done if Newton converged; otherwise the patterns that it ended with, or more accuracy, or the end."""
    if finished.converged:
        return replace(state, neurons=finished.candidate.neurons, done=True)
    if not finished.corrected and state.tolerance <= TIGHTEST:
        return replace(state, done=True)
    tolerance = LOOSE if finished.corrected else max(1e-2 * state.tolerance, TIGHTEST)
    return replace(state, columns=finished.candidate.columns.distinct(), tolerance=tolerance)


def finish(candidate: Candidate) -> Finish:
    """Newton's answer; as long as a few patterns disagree with it, corrected and answered again."""
    corrected = False
    for _ in range(CORRECTIONS):
        solved = active_set_newton(candidate)
        if solved is None:
            break
        wrong = solved.mismatches(1e-9) & (solved.lam > 0)
        if not bool(wrong.any()):
            return Finish(solved, True, corrected)
        candidate, corrected = solved.flipped(wrong), True
        if len(candidate.columns.distinct()) < len(candidate.columns):
            break
    return Finish(candidate, False, corrected)


SMALL = 300  # so many examples are solved at once
FIRST_SHARE = 0.2
MISSED = 1e-10  # below margin 1
ALIKE = 0.9  # cosine above which one of two examples is enough for now


@dataclass(frozen=True, eq=False)
class WorkingSetState:
    """chosen (n,): the working set; `weights`: where the next patterns come from; `solution`: on the working set.

    missed (n,): examples outside the working set whose margin is below 1; q (n,): all margins.
    """

    chosen: Tensor
    weights: Weights
    solution: MasterSolution
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

    examples: DistinctExamples
    weights: Weights
    pricing: float
    watch: Watch

    def start(self) -> WorkingSetState:
        """Solved on the examples of smallest margin."""
        return self._state(self._first(), self.weights, 0, 0)

    def step(self, state: WorkingSetState) -> WorkingSetState:
        """Solved again with what was missed, from the patterns of the solution and of all that went before."""
        left = int((~state.chosen).sum())
        chosen = state.chosen | self._added(state.q, state.missed, left)
        balanced, before = state.solution.neurons.balanced(), state.weights
        weights = Weights(torch.cat([balanced.W, before.W]), torch.cat([balanced.v, before.v]))
        return self._state(chosen, weights, state.solution.programs, state.solution.steps)

    def run(self) -> MasterSolution:
        """A KKT point for all examples."""
        state = self.start()
        while not state.done:
            state = self.step(state)
        return state.solution

    def _state(self, chosen: Tensor, weights: Weights, programs: int, steps: int) -> WorkingSetState:
        """Solved on the chosen examples; programs and steps are those of the states before."""
        solution = solve_on(self.examples.take(chosen), weights, self.pricing, self.watch)
        q = self.examples.margins(solution.neurons)
        missed = ~chosen & (q < float(q[chosen].min()) - MISSED)
        total = MasterSolution(solution.neurons, solution.programs + programs, solution.steps + steps)
        return WorkingSetState(chosen, weights, total, q, missed)

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


def solve_on(examples: DistinctExamples, weights: Weights, pricing: float, watch: Watch) -> MasterSolution:
    """A KKT point of these examples from a network's patterns, its heaviest neurons first."""
    W, v = weights
    order = (v.abs() * W.norm(dim=1)).argsort(descending=True)
    order = order[v[order] != 0]
    pool = find_columns(examples.X @ W[order].T, v[order].sign(), examples.y).distinct()
    generated = ColumnGeneration(examples, pool, pricing, watch).run()
    state = ConvexConcave(examples, generated.columns, generated.solved, watch).run()
    assert state.solved is not None
    assert state.neurons is not None
    return MasterSolution(state.neurons.nonzero(), state.solved.programs, state.solved.steps)
