"""The network of largest normalised margin over all widths, with a proof."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from brittle.common.ending import Ending
from brittle.common.errors import require, require_positive
from brittle.common.kinds import kinds_checked
from brittle.common.progress import Progress, Watch, silent
from brittle.common.result import Result
from brittle.margin.any_width.checker import check
from brittle.margin.any_width.generation import Generation, State
from brittle.margin.any_width.proof import MarginProof
from brittle.margin.any_width.starts import first_columns, first_network, first_set, require_in_range
from brittle.margin.any_width.writing import read, written
from brittle.margin.examples import distinct, gather
from brittle.margin.kkt import homogeneous, require_classified
from brittle.margin.neurons import Neurons
from brittle.margin.solve import as_network
from brittle.networks import TwoLayer
from brittle.settings import Data

MEMORY = 1.5e9  # bytes that the trees of a proof may take
MOST = 10_000  # examples
KEEP_EVERY = 20.0  # seconds


@dataclass(frozen=True, eq=False)
class LargestMargin(Result):
    """A network with nearly the largest normalised margin that any network of any width has, and the proof.

    network: scaled to min q = 1
    normalised_margin: its γ = min q/‖θ‖² is at least this
    upper: no network has a larger one
    proved_gap: upper/γ - 1
    status: REACHED; BUDGET if seconds or memory ran out before the gap that was asked for; ROUNDING if nothing was left
        to try, which happens below a gap of about 1e-7 and where examples nearly coincide beside their size
    rounds: convex programs that were solved; nodes: of the last search through sign patterns
    seconds: from the call to the answer
    proof: what `check_margin` accepts

    Examples:
        >>> import brittle as bt
        >>> best = bt.margin.largest(bt.settings.Orthogonal(4).sample(4), gap=1e-3)
        >>> best.proved_gap <= 1e-3, best.normalised_margin <= best.upper
        (True, True)
    """

    network: TwoLayer
    normalised_margin: float
    upper: float
    proved_gap: float
    status: Ending
    rounds: int
    nodes: int
    seconds: float
    proof: MarginProof

    @property
    def neurons(self) -> int:
        """The network's width."""
        return self.network.width

    def content(self) -> dict[str, Any]:
        """Everything but the weights and the proof, which belong in files."""
        named = {name: value for name, value in super().content().items() if name not in ("network", "proof")}
        return {**named, "neurons": self.neurons, "leaves": len(self.proof.leaves), "advice": self.status.advice}


@kinds_checked
def largest(
    data: Data,
    *,
    start: TwoLayer | None = None,
    proof: MarginProof | None = None,
    biases: bool = True,
    gap: float = 1e-6,
    seconds: float = 60.0,
    memory: float = MEMORY,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
    watch: Watch = silent,
    keep: Callable[[LargestMargin], object] | None = None,
) -> LargestMargin:
    """The largest margin on these data, until upper/γ - 1 ≤ gap is proved or the seconds are over.

    `start` is a network that classifies the data, whose patterns are tried first: that of an earlier call goes on from
    there, and with its `proof` too the search through patterns goes on where it was. The trees that the proof is read
    off take `memory` bytes at most. `clock` tells which seconds are meant: `time.process_time` on a busy machine.
    `keep` is handed what is proved so far, between rounds and every 20 seconds, for searches that may be cut off.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(4).sample(4)
        >>> best = bt.margin.largest(data, gap=1e-3)
        >>> best.status.value, bool((best.network.margins(data.X, data.y) > 0).all())
        ('reached', True)
    """
    require_positive("gap", gap)
    require_positive("seconds", seconds)
    require_positive("memory", memory)
    require(len(data) <= MOST, f"there are {len(data)} examples; {MOST} are the most, for the memory of their products")
    require_in_range(data, biases)
    began = clock()
    start = start if start is not None else first_network(data, biases, seed)
    X, weights = homogeneous(start, data, biases)
    index, examples = distinct(X, data.y), gather(X, data.y)
    require_classified(weights.margins(X, data.y))
    limits = _Limits(clock, began, seconds, memory, gap, watch)

    def kept(state: State) -> None:
        if keep is not None and state.dual is not None and limits.due():
            keep(replace(_result(state, generation, data, biases, index, gap), seconds=clock() - began))

    generation = Generation(examples, gap, limits.over, np.random.default_rng(seed), limits.tell, kept)
    chosen = first_set(examples, weights)
    state = State(first_columns(examples, weights, chosen), chosen)
    state = generation.considered(state, Neurons.of(weights).nonzero())
    if proof is not None:
        _require_about(proof, data, biases, index)
        state = generation.resumed(state, read(proof, examples, index.numpy(), generation.threshold))
    state = generation.run(state)
    result = _result(state, generation, data, biases, index, gap)
    return replace(result, seconds=clock() - began)


def _require_about(proof: MarginProof, data: Data, biases: bool, index: Tensor) -> None:
    """A proof to go on with is right, and about these data."""
    require(proof.biases == biases, f"the proof has biases={proof.biases}, and biases={biases} is asked for")
    found = check(proof, data)
    require(found.accepted, f"the proof to go on with is refused for these data: {found.reason}")
    elsewhere = np.delete(proof.lam, index.numpy())
    require(not elsewhere.any(), "the proof to go on with has multipliers on examples that are there twice")


def _result(state: State, generation: Generation, data: Data, biases: bool, index: Tensor, gap: float) -> LargestMargin:
    """The best network without neurons that do nothing, the proof, and what the checker makes of both."""
    assert state.dual is not None
    network = as_network(generation.fewest(state), generation.examples, biases)
    assert network is not None
    proof = written(state.dual, network, data, biases, generation.examples.unit, index.numpy())
    found = check(proof, data)
    assert found.accepted, found.reason
    missed = Ending.ROUNDING if state.done else Ending.BUDGET
    return LargestMargin(
        network=network,
        normalised_margin=found.normalised_margin,
        upper=found.upper,
        proved_gap=found.proved_gap,
        status=Ending.REACHED if found.proved_gap <= gap else missed,
        rounds=state.rounds,
        nodes=sum(tree.nodes for tree in state.dual.trees),
        seconds=0.0,
        proof=proof,
    )


class _Limits:
    """When to stop, and what a person is told until then."""

    def __init__(
        self, clock: Callable[[], float], began: float, seconds: float, memory: float, gap: float, watch: Watch
    ) -> None:
        self.clock, self.began, self.seconds, self.memory = clock, began, seconds, memory
        self.gap, self.watch, self.told, self.kept = gap, watch, began, began

    def over(self, size: int) -> bool:
        """Whether the seconds or the memory are used up."""
        return self.clock() - self.began > self.seconds or size > self.memory

    def due(self) -> bool:
        """Whether it is time to keep what there is."""
        due = self.clock() - self.kept >= KEEP_EVERY
        self.kept = self.clock() if due else self.kept
        return due

    def tell(self, state: State, left: float) -> None:
        """Ten times a second: the share of the way down to the gap, on a logarithmic scale, or of the time."""
        now = self.clock()
        if now - self.told < 0.1:
            return
        self.told = now
        spent = (now - self.began) / self.seconds
        fallen = math.log(max(left, self.gap)) / math.log(self.gap) if 0 < left < 1 and self.gap < 1 else 0.0
        said = f"gap left {left:.1e}" if left < np.inf else "no proof yet"
        self.watch(
            Progress(min(1.0, max(spent, fallen)), f"{said}, round {state.rounds}, {len(state.columns)} columns")
        )
