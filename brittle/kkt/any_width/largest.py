"""The network of largest normalised margin over all widths, with a proof."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.common.ending import Status
from brittle.common.errors import InputError, require, require_positive
from brittle.common.kinds import check_kinds
from brittle.common.progress import Progress, Watch, silent
from brittle.common.result import Result
from brittle.data import Data
from brittle.kkt.any_width.checker import check, confirm_ceiling, feasible
from brittle.kkt.any_width.generation import SIGNS, GainDual, Generation, GenerationState
from brittle.kkt.any_width.proof import Array, Index, MarginProof, ProofLeaf, ProofPoint, Signs, free_and_rest
from brittle.kkt.any_width.relaxation import NodeRelaxation
from brittle.kkt.any_width.side import SideExamples, side_of
from brittle.kkt.any_width.tree import BoundSource, SideTree
from brittle.kkt.any_width.tree import SearchLeaf as TreeLeaf
from brittle.kkt.examples import DistinctExamples, Neurons, PatternColumns, Weights, distinct, find_columns, gather
from brittle.kkt.residual import homogeneous, require_classified
from brittle.kkt.solve import as_network
from brittle.networks import TorchLinearInit, TwoLayer
from proofcheck.proof import digest

SMALL = 300  # so many examples are solved at once
FIRST = 100  # examples of a larger set to begin with
HEAVIEST = 100  # neurons of the start whose patterns enter at once
UNAIDED = 2000  # examples for which a first network is made
ATTEMPTS = 4
LARGEST = 1e80  # entry of an example; a proof holds multipliers that are inverse to it


def first_network(data: Data, biases: bool, seed: int) -> TwoLayer:
    """Random neurons, with output weights of least norm that give every example the margin 1.

    Where neurons at 0 of size 1 see no difference between the examples, they are drawn at their centre in their units.
    """
    data.require_binary()
    require(
        len(data) <= UNAIDED,
        f"there are {len(data)} examples; above {UNAIDED} give a network that classifies them to begin with",
    )
    ones = torch.ones(len(data), 1, dtype=torch.float64)
    X = torch.cat([data.X, ones], 1) if biases else data.X
    keep = distinct(X, data.y)
    if not biases:
        require_separable_without_biases(data)
    rng = torch.Generator().manual_seed(seed)
    centre = data.X[keep].mean(0) if biases else torch.zeros_like(data.X[0])
    spread = float((data.X[keep] - centre).square().mean().sqrt()) or 1.0
    for origin, unit in ((torch.zeros_like(centre), 1.0), (centre, spread)):
        for attempt in range(ATTEMPTS):
            drawn = TorchLinearInit().draw(data.columns, 2 ** (attempt + 1) * len(keep) + 10, rng)
            W = drawn.W / unit
            b = drawn.b - W @ origin if biases else torch.zeros_like(drawn.b)
            Z = torch.addmm(b, data.X[keep], W.T).relu()
            v = torch.linalg.lstsq(Z, data.y[keep, None], driver="gelsd").solution[:, 0]
            if bool((data.y[keep] * (Z @ v) > 0.5).all()):
                return TwoLayer(W, b, v)
    raise InputError(
        "no network was found that classifies the examples; some of them may nearly coincide: drop those, "
        "or centre the examples and scale them to size 1"
    )


def require_in_range(data: Data, biases: bool) -> None:
    """The largest entry of all is one that a proof can be about; with biases there is the entry 1."""
    largest = float(data.X.abs().max())
    require(
        largest <= LARGEST and (biases or largest == 0 or largest >= 1 / LARGEST),
        f"the largest entry of an example is {largest:.3g}; it must lie between {1 / LARGEST:g} and {LARGEST:g}",
    )


def require_separable_without_biases(data: Data) -> None:
    """Without biases N(ax) = aN(x) for a ≥ 0: examples on one ray share their label, and none is zero."""
    sizes = data.X.norm(dim=1)
    zero = torch.nonzero(sizes == 0)[:, 0]
    require(
        not len(zero), f"example {int(zero[0]) if len(zero) else 0} is zero; without biases every output there is 0"
    )
    try:
        distinct((data.X / sizes[:, None] * 2.0**40).round(), data.y)
    except InputError as error:
        raise InputError(f"without biases, where only directions count: {error}") from None


def first_set(examples: DistinctExamples, weights: Weights) -> Tensor:
    """A mask of the examples to begin with: all, or those of smallest margin, as many of each class."""
    y = examples.y
    if len(y) <= SMALL:
        return torch.ones(len(y), dtype=torch.bool)
    q = examples.margins(Neurons.of(weights))
    chosen = torch.zeros(len(y), dtype=torch.bool)
    for sign in (1.0, -1.0):
        mine = torch.nonzero(y == sign)[:, 0]
        chosen[mine[q[mine].argsort()[: FIRST // 2]]] = True
    return chosen


def first_columns(examples: DistinctExamples, weights: Weights, chosen: Tensor) -> PatternColumns:
    """All examples of a class, single ones of the working set, and what the heaviest neurons show."""
    W, v = weights
    order = (v.abs() * W.norm(dim=1)).argsort(descending=True)[:HEAVIEST]
    order = order[v[order] != 0]
    shown = find_columns(examples.X @ W[order].T, v[order].sign(), examples.y)
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64)
    whole = PatternColumns(signs, (signs[:, None] == examples.y).double())
    single = torch.eye(len(examples.y), dtype=torch.float64)[chosen]
    return whole.joined(PatternColumns(examples.y[chosen], single)).joined(shown)


# From trees to a proof in the units and the order of the data, and back.


SAFETY = 1e-9  # by which curvatures are raised, as a share of the bound
SLACK = 3e-8  # of the ceiling, for that and for rounding


def make_proof(dual: GainDual, network: TwoLayer, data: Data, biases: bool, unit: float, index: Index) -> MarginProof:
    """The proof about the data, of which the examples that the trees know are those of `index`, in units of √unit."""
    n, scale, X, y = len(data), unit**-0.5, data.X.double().numpy(), data.y.double().numpy()
    bound = max(tree.bound for tree in dual.trees)
    lam = np.zeros(n)
    lam[index] = scale * dual.lam
    points, leaves, places = list[ProofPoint](), list[ProofLeaf](), dict[tuple[int, int], int]()
    for tree in dual.trees:
        for leaf in tree.leaves():
            key = id(leaf.source.V), id(leaf.source.y)  # sources are alive as long as their trees
            if key not in places:
                places[key] = len(points)
                points.append(_feasible(_point(tree.side, leaf.source, index, n, scale, bound), lam, y))
            signs = np.zeros(n, dtype=np.int8)
            signs[index[tree.side.own]] = leaf.signs
            leaves.append(ProofLeaf(places[key], signs))
    proof = MarginProof(network, biases, lam, bound * (1 + SLACK), tuple(points), tuple(leaves), digest([X, y]))
    return proof if check(proof, data).accepted else replace(proof, ceiling=confirm_ceiling(proof, data))


def _point(side: SideExamples, source: BoundSource, index: Index, n: int, scale: float, bound: float) -> ProofPoint:
    """With curvatures a little larger: a matrix that is barely definite cannot be told from one that is not."""
    program = NodeRelaxation(side, source.signs, source.fixed)
    C = program.directions[:, None] * source.V
    C[:, 0] += program.anchor[program.rows]
    others = len(side.others)
    order = np.concatenate([np.arange(others), others + source.fixed.argsort()])
    signs = np.zeros(n, dtype=np.int8)
    signs[index[side.own]] = source.signs
    return ProofPoint(side.sign, signs, source.y + SAFETY * bound / max(1, len(source.y)) ** 0.5, scale * C[order])


def _feasible(point: ProofPoint, lam: Array, y: Array) -> ProofPoint:
    """With multipliers exactly where they must lie, which solvers only nearly reach."""
    _, rest = free_and_rest(y, lam, point.side, point.signs)
    return point._replace(C=feasible(point.C, lam[rest], point.signs[rest]))


def read(proof: MarginProof, examples: DistinctExamples, index: Index, threshold: float) -> GainDual:
    """The trees that a proof was written from, to be searched on."""
    lam = proof.lam[index] * examples.unit**0.5
    K, y = examples.K.numpy(), examples.y.numpy()
    trees = []
    for sign in SIGNS:
        side = side_of(K, y, lam, sign)
        sources = {
            i: _source(side, point, index, examples.unit**0.5)
            for i, point in enumerate(proof.points)
            if point.side == sign
        }
        mine = [leaf for leaf in proof.leaves if leaf.point in sources]
        known = [_bounded(side, sources[leaf.point], leaf.signs[index[side.own]], threshold) for leaf in mine]
        trees.append(SideTree.of(side, threshold, tuple(known)))
    return GainDual(lam, tuple(trees))


def _bounded(side: SideExamples, source: BoundSource, signs: Signs, threshold: float) -> TreeLeaf:
    """A leaf with the bound that its source gives it; what was raised for safety does not open it again."""
    known = source if np.array_equal(source.signs, signs) else source.folded(signs)
    bound = NodeRelaxation(side, known.signs, known.fixed).bound(known.V, known.y)
    return TreeLeaf(source, signs, threshold if bound <= threshold * (1 + SLACK) else bound)


def _source(side: SideExamples, point: ProofPoint, index: Index, scale: float) -> BoundSource:
    signs = point.signs[index[side.own]]
    fixed = np.flatnonzero(signs)
    program = NodeRelaxation(side, signs, fixed)
    C: Array = scale * point.C
    C[:, 0] -= program.anchor[program.rows]
    return BoundSource(signs, fixed, program.directions[:, None] * C, point.y)


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
        >>> best = bt.kkt.largest(bt.data.Orthogonal(4).sample(4), gap=1e-3)
        >>> best.proved_gap <= 1e-3, best.normalised_margin <= best.upper
        (True, True)
    """

    network: TwoLayer
    normalised_margin: float
    upper: float
    proved_gap: float
    status: Status
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


@check_kinds
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
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> best = bt.kkt.largest(data, gap=1e-3)
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

    def kept(state: GenerationState) -> None:
        if keep is not None and state.dual is not None and limits.due():
            keep(replace(_result(state, generation, data, biases, index, gap), seconds=clock() - began))

    generation = Generation(examples, gap, limits.over, np.random.default_rng(seed), limits.tell, kept)
    chosen = first_set(examples, weights)
    state = GenerationState(first_columns(examples, weights, chosen), chosen)
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


def _result(
    state: GenerationState, generation: Generation, data: Data, biases: bool, index: Tensor, gap: float
) -> LargestMargin:
    """The best network without neurons that do nothing, the proof, and what the checker makes of both."""
    assert state.dual is not None
    network = as_network(generation.fewest(state), generation.examples, biases)
    assert network is not None
    proof = make_proof(state.dual, network, data, biases, generation.examples.unit, index.numpy())
    found = check(proof, data)
    assert found.accepted, found.reason
    missed = Status.ROUNDING if state.done else Status.BUDGET
    return LargestMargin(
        network=network,
        normalised_margin=found.normalised_margin,
        upper=found.upper,
        proved_gap=found.proved_gap,
        status=Status.REACHED if found.proved_gap <= gap else missed,
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

    def tell(self, state: GenerationState, left: float) -> None:
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
