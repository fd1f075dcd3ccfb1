"""Column generation over all activation patterns: masters, cheap pricing, branch and bound where that finds nothing.

The working set of examples grows as in `working_set.py`: multipliers that are zero elsewhere prove as much, and a
neuron is a neuron on all examples.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from brittle.kkt.active_set_newton import active_set_newton
from brittle.kkt.any_width.proof import Array
from brittle.kkt.any_width.side import SideExamples, cheap_patterns, side_of, without_negligible
from brittle.kkt.any_width.tree import SideTree
from brittle.kkt.examples import DistinctExamples, Neurons, PatternColumns, find_columns
from brittle.kkt.restricted_master import SolvedMaster, solve_master

SIGNS = (1, -1)
COARSE, FINE = 1e-5, 1e-9  # gaps of the masters
ENTERING = 15  # cheap patterns of either sign that enter in a round
CHEAP = 400  # random patterns that are tried
PROBE = 25  # nodes of either tree to begin with, and then in turns of the higher one
SLACK, TIGHT_SLACK, MANY = 0.02, 0.005, 300  # columns stay whose length is within this of 1; fewer where there are many
LIVE = (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)  # neurons below this share of the largest are left out
LOSS = 0.05  # of the gap, for the sake of fewer neurons
MISSED = 1e-10  # below margin 1
MOST = 400  # examples of the working set: programs of more take minutes each


@dataclass(frozen=True, eq=False)
class GainDual:
    """Multipliers lam (n,) and what is proved of the gains at them: a tree for either sign."""

    lam: Array
    trees: tuple[SideTree, ...]

    @property
    def norm(self) -> float:
        """No network has a smaller Σ‖u‖: Σλ over the largest gain, in units of the examples."""
        bound = max(tree.bound for tree in self.trees)
        return float(self.lam.sum()) / bound**0.5 if bound > 0 else np.inf


@dataclass(frozen=True, eq=False)
class GenerationState:
    """What is known so far.

    columns: of the next master, on all examples; chosen (n,): the working set; fine: whether masters are solved finely
    neurons, norm: the best network and its Σ‖u‖ at margin 1, in units of the examples; dual: the best proof
    solved: the master that they come from, if from one; lam (n,): multipliers of the last master; rounds: masters
    done: nothing is left to do; tired: what ended the search is time, memory or the size of the working set
    """

    columns: PatternColumns
    chosen: Tensor
    fine: bool = False
    neurons: Neurons | None = None
    norm: float = np.inf
    solved: SolvedMaster | None = None
    dual: GainDual | None = None
    lam: Array | None = None
    rounds: int = 0
    done: bool = False
    tired: bool = False

    @property
    def gap(self) -> float:
        """By this share the margin may still be raised."""
        return self.norm / self.dual.norm - 1 if self.dual is not None else np.inf


@dataclass(frozen=True, eq=False)
class Generation:
    """The largest margin on these examples up to a gap; `stop` says when time or memory is used up.

    tell: is called with the state after every round and, within a tree, now and then with the gap that it leaves
    keep: is called with the state after every round
    """

    examples: DistinctExamples
    gap: float
    stop: Callable[[int], bool]
    rng: np.random.Generator
    tell: Callable[[GenerationState, float], None]
    keep: Callable[[GenerationState], None] = lambda state: None

    @property
    def threshold(self) -> float:
        """Squared gain that a neuron may have: what the masters and rounding leave of the gap."""
        return (1 + 0.8 * self.gap) ** 2

    def step(self, state: GenerationState) -> GenerationState:
        """One master, and what enters by it: examples, columns, or nothing more."""
        state = self._distinct(state)
        solved = self._master(state)
        state = self._better(replace(state, rounds=state.rounds + 1), solved)
        if self.stop(0) and state.lam is not None and solved.iterate.gap > self._tolerance(state):
            return state
        lam = self._multipliers(state, solved)
        state = replace(state, lam=lam)
        grown = self._grown(state, solved)
        if grown is not None:
            return grown
        sides = [side_of(self.examples.K.numpy(), self.examples.y.numpy(), lam, sign) for sign in SIGNS]
        entering = self._cheap(state, sides)
        if not len(entering):
            if not state.fine:
                return replace(state, fine=True)
            state, entering = self._proved(state, lam, tuple(SideTree.of(side, self.threshold) for side in sides))
        if state.gap <= self.gap or not len(entering):
            tired = state.gap > self.gap and (state.tired or self._full(state))
            return replace(state, done=not tired, tired=tired)
        state = replace(state, tired=False)
        return replace(state, columns=self._kept(state.columns, solved).joined(entering))

    def run(self, state: GenerationState) -> GenerationState:
        """Rounds until the gap is closed or time is up; a proof there is in any case."""
        while not state.done and not state.tired and not self.stop(0):
            state = self.step(state)
            self.tell(state, state.gap)
            self.keep(state)
        return state if state.dual is not None else self.one_shot(state)

    def one_shot(self, state: GenerationState) -> GenerationState:
        """What the roots alone prove at the last master's multipliers, or at those of a first one."""
        if state.lam is not None:
            return self.rooted(state, state.lam)
        state = replace(self._distinct(state), fine=True)
        solved = self._master(state)
        return self.rooted(self._better(state, solved), self._multipliers(state, solved))

    def rooted(self, state: GenerationState, lam: Array) -> GenerationState:
        """What the roots alone prove at given multipliers."""
        return self._proved_by(state, roots(self.examples, lam, self.threshold))

    def resumed(self, state: GenerationState, dual: GainDual) -> GenerationState:
        """The trees of an earlier proof, searched on."""
        state = self._proved_by(state, dual)
        state, entering = self._proved(state, dual.lam, dual.trees)
        columns = state.columns.joined(entering) if len(entering) else state.columns
        return replace(state, columns=columns, done=state.gap <= self.gap, tired=False)

    def _distinct(self, state: GenerationState) -> GenerationState:
        """Without columns that are the same on the working set."""
        return replace(state, columns=state.columns.take(_inside(state).first()))

    def _master(self, state: GenerationState) -> SolvedMaster:
        """The first one is solved in any case: its multipliers prove something."""
        stop = partial(self.stop, 0) if state.lam is not None else lambda: False
        return solve_master(self.examples.take(state.chosen), _inside(state), self._tolerance(state), stop=stop)

    def _tolerance(self, state: GenerationState) -> float:
        return FINE if state.fine else COARSE

    def _multipliers(self, state: GenerationState, solved: SolvedMaster) -> Array:
        lam = torch.zeros(len(state.chosen), dtype=torch.float64)
        lam[state.chosen] = solved.iterate.values.lam
        return without_negligible(lam.numpy())

    def _better(self, state: GenerationState, solved: SolvedMaster) -> GenerationState:
        """The master's network, if its margin is the largest so far."""
        better = self.considered(state, neurons_of(solved))
        return state if better is state else replace(better, solved=solved)

    def considered(self, state: GenerationState, neurons: Neurons) -> GenerationState:
        """With these neurons, if their margin is the largest so far."""
        norm = self.norm(neurons)
        return replace(state, neurons=neurons, norm=norm) if norm < state.norm else state

    def norm(self, neurons: Neurons) -> float:
        """Σ‖u‖ at margin 1, in units of the examples; infinite if one is misclassified."""
        least = float(self.examples.margins(neurons).min())
        return float(neurons.U.norm(dim=1).sum()) * self.examples.unit**0.5 / least if least > 0 else np.inf

    def fewest(self, state: GenerationState) -> Neurons:
        """The best network's neurons without those that carry nothing, or as Newton's method finds them."""
        assert state.neurons is not None
        newton = None if state.solved is None else active_set_newton(state.solved.candidate())
        kinds = [state.neurons.nonzero()] if newton is None else [newton.neurons.nonzero(), state.neurons.nonzero()]
        found = [each.take(each.sizes > share * each.sizes.max()) for each in kinds for share in LIVE]
        good = [each for each in found if self.norm(each) <= state.norm * (1 + LOSS * self.gap)]
        return min(good, key=lambda each: len(each.signs), default=state.neurons.nonzero())

    def _grown(self, state: GenerationState, solved: SolvedMaster) -> GenerationState | None:
        """With the examples that the master's network misses, if there are any."""
        if bool(state.chosen.all()) or self._full(state):
            return None
        room = MOST - int(state.chosen.sum())
        neurons = neurons_of(solved)
        q = self.examples.margins(neurons)
        missed = ~state.chosen & (q < float(q[state.chosen].min()) * (1 - MISSED))
        if not bool(missed.any()):
            return None
        worst = torch.nonzero(missed)[:, 0]
        worst = worst[q[worst].argsort()][: min(room, max(20, int(state.chosen.sum()) // 4))]
        shown = find_columns(self.examples.X @ neurons.U.T, neurons.signs, self.examples.y)
        alone = torch.zeros(len(worst), len(q), dtype=torch.float64).scatter_(1, worst[:, None], 1.0)
        columns = self._kept(state.columns, solved).joined(PatternColumns(self.examples.y[worst], alone)).joined(shown)
        return replace(state, chosen=state.chosen.index_fill(0, worst, True), columns=columns)

    def _full(self, state: GenerationState) -> bool:
        """Whether no more examples are taken in, though there are more."""
        return MOST <= int(state.chosen.sum()) < len(state.chosen)

    def _cheap(self, state: GenerationState, sides: list[SideExamples]) -> PatternColumns:
        """Patterns that gain more than 1, found without a proof."""
        least = 1 + max(self.gap, 0.0 if state.fine else 2 * COARSE)
        found = PatternColumns(torch.zeros(0).double(), torch.zeros(0, len(state.chosen)).double())
        for side in sides:
            if not side.k:
                continue
            mine = state.columns.patterns[state.columns.signs == side.sign].numpy()[:, side.own]
            gains = cheap_patterns(side, mine, CHEAP * (1 + state.fine), self.rng)
            promising = gains.patterns[gains.lengths > least][:ENTERING]
            truly = [pattern for pattern in promising if side.length(pattern).square > least**2]
            found = found.joined(self._extended(side, truly))
        return found

    def _proved(
        self, state: GenerationState, lam: Array, trees: tuple[SideTree, ...]
    ) -> tuple[GenerationState, PatternColumns]:
        """A few nodes of either tree, then of whichever is higher until both are closed or patterns are found."""
        dual, tired = GainDual(lam, trees), False

        def some_nodes(tree: SideTree) -> None:
            """Either root is solved in any case; where a pattern gains, the tree itself knows when to stop."""
            until = tree.nodes + PROBE

            def over(tree: SideTree) -> bool:
                nonlocal tired
                tired = self._tired(state, dual, tree) or tired
                return tree.nodes > 0 and (tired or (tree.nodes >= until and not tree.gains))

            tree.run(over)

        for tree in trees:
            some_nodes(tree)
        while not tired and not any(tree.gains for tree in trees) and any(tree.left for tree in trees):
            some_nodes(max((tree for tree in trees if tree.left), key=lambda each: each.bound))
        first, second = (self._extended(tree.side, tree.patterns()) for tree in trees)
        return replace(self._proved_by(state, GainDual(lam, trees)), tired=tired), first.joined(second)

    def _tired(self, state: GenerationState, dual: GainDual, tree: SideTree) -> bool:
        """Whether time or memory is used up; every node is told of."""
        self.tell(state, min(state.gap, state.norm / dual.norm - 1))
        return tree.nodes > 0 and self.stop(sum(each.size for each in dual.trees))

    def _proved_by(self, state: GenerationState, dual: GainDual) -> GenerationState:
        better = state.dual is None or dual.norm > state.dual.norm
        return replace(state, dual=dual) if better else state

    def _extended(self, side: SideExamples, patterns: list[Array]) -> PatternColumns:
        """Patterns on a side's examples as columns on all: elsewhere as their best neuron shows."""
        n, sign = len(self.examples.y), torch.full((len(patterns),), float(side.sign), dtype=torch.float64)
        loads = np.zeros((len(patterns), n))
        for load, pattern in zip(loads, patterns, strict=True):
            load[side.own], load[side.others] = pattern * side.lam[: side.k], -side.length(pattern).t
        shown = find_columns(self.examples.K @ torch.from_numpy(loads).T, sign, self.examples.y).patterns
        if len(patterns):
            shown[:, torch.from_numpy(side.own)] = torch.from_numpy(np.array(patterns))
        return PatternColumns(sign, shown)

    def _kept(self, columns: PatternColumns, solved: SolvedMaster) -> PatternColumns:
        """The master's columns that carry a neuron or nearly do."""
        slack, mu = solved.iterate.values.slack, solved.iterate.duals.slack
        few = len(columns) <= MANY
        used = (mu > (1e-7 if few else 1e-4) * mu.max()) | (slack < (SLACK if few else TIGHT_SLACK))
        return columns.take(used)


def _inside(state: GenerationState) -> PatternColumns:
    """The columns on the working set."""
    return PatternColumns(state.columns.signs, state.columns.patterns[:, state.chosen])


def roots(examples: DistinctExamples, lam: Array, threshold: float) -> GainDual:
    """Either tree's root at given multipliers, and nothing below it."""
    K, y = examples.K.numpy(), examples.y.numpy()
    trees = tuple(SideTree.of(side_of(K, y, lam, sign), threshold) for sign in SIGNS)
    for tree in trees:
        tree.run(lambda each: each.nodes >= 1)
    return GainDual(lam, trees)


def neurons_of(solved: SolvedMaster) -> Neurons:
    """u_g = μ_g Σ c_gi x̃_i of a master's columns."""
    iterate, examples = solved.iterate, solved.examples
    c = solved.master.coefficients(iterate.values.lam, iterate.values.t)
    U = iterate.duals.slack[:, None] * (c @ examples.X) / examples.unit
    return Neurons(U, solved.master.columns.signs)
