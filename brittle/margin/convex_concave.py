"""The convex-concave procedure: linearise at the patterns of the last program's neurons, until Newton can finish."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from brittle.common.progress import Progress, Watch
from brittle.margin.active_set_newton import active_set_newton
from brittle.margin.candidate import Candidate
from brittle.margin.columns import Columns
from brittle.margin.examples import Examples
from brittle.margin.neurons import Neurons
from brittle.margin.solved_master import SolvedMaster, solve_master

ROUNDS = 80
LOOSEST, LOOSE = 1e-2, 1e-3  # gap at which patterns are corrected, at first and before Newton
TIGHTEST = 1e-10  # an interior point gives no more digits
CORRECTIONS = 10  # times that Newton goes on after patterns were corrected
SHARE = 1.0  # wrong patterns per neuron up to which Newton may start
SAFE = 0.3  # the least margin with which a program may be left
FLIP = 0.3  # a pattern is wrong where |z| exceeds this many tolerances of the largest |z|
BEGUN, SHARE_OF_WORK = 0.3, 0.6  # for the progress bar


@dataclass(frozen=True, eq=False)
class State:
    """columns: of the next master; tolerance: its gap; solved and neurons: the last master and what it gave, if any.

    done: the neurons are those of a KKT point, or nothing better is to be had.
    """

    columns: Columns
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

    examples: Examples
    columns: Columns
    last: SolvedMaster | None
    watch: Watch

    def start(self) -> State:
        """Before the first master."""
        return State(self.columns, self.last)

    def step(self, state: State) -> State:
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

    def run(self) -> State:
        """Until Newton converged, or there were enough masters."""
        state = self.start()
        for taken in range(ROUNDS):
            share = BEGUN + SHARE_OF_WORK * taken / ROUNDS
            self.watch(Progress(share, f"linearising, {len(state.columns)} columns"))
            state = self.step(state)
            if state.done:
                break
        return state


def _after_newton(state: State, finished: Finish) -> State:
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
