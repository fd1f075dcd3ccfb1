"""From trees to a proof in the units and the order of the data, and back."""

from dataclasses import replace

import numpy as np

from brittle.margin.any_width.checker import check, confirmed_ceiling, feasible
from brittle.margin.any_width.generation import SIGNS, Dual
from brittle.margin.any_width.proof import Array, Index, Leaf, MarginProof, Point, Signs, free_and_rest
from brittle.margin.any_width.relaxation import Relaxation
from brittle.margin.any_width.side import Side, side_of
from brittle.margin.any_width.tree import Leaf as TreeLeaf
from brittle.margin.any_width.tree import Source, Tree
from brittle.margin.examples import Examples
from brittle.networks import TwoLayer
from brittle.settings import Data
from proofcheck.proof import digest

SAFETY = 1e-9  # by which curvatures are raised, as a share of the bound
SLACK = 3e-8  # of the ceiling, for that and for rounding


def written(dual: Dual, network: TwoLayer, data: Data, biases: bool, unit: float, index: Index) -> MarginProof:
    """The proof about the data, of which the examples that the trees know are those of `index`, in units of √unit."""
    n, scale, X, y = len(data), unit**-0.5, data.X.double().numpy(), data.y.double().numpy()
    bound = max(tree.bound for tree in dual.trees)
    lam = np.zeros(n)
    lam[index] = scale * dual.lam
    points, leaves, places = list[Point](), list[Leaf](), dict[tuple[int, int], int]()
    for tree in dual.trees:
        for leaf in tree.leaves():
            key = id(leaf.source.V), id(leaf.source.y)  # sources are alive as long as their trees
            if key not in places:
                places[key] = len(points)
                points.append(_feasible(_point(tree.side, leaf.source, index, n, scale, bound), lam, y))
            signs = np.zeros(n, dtype=np.int8)
            signs[index[tree.side.own]] = leaf.signs
            leaves.append(Leaf(places[key], signs))
    proof = MarginProof(network, biases, lam, bound * (1 + SLACK), tuple(points), tuple(leaves), digest([X, y]))
    return proof if check(proof, data).accepted else replace(proof, ceiling=confirmed_ceiling(proof, data))


def _point(side: Side, source: Source, index: Index, n: int, scale: float, bound: float) -> Point:
    """With curvatures a little larger: a matrix that is barely definite cannot be told from one that is not."""
    program = Relaxation(side, source.signs, source.fixed)
    C = program.directions[:, None] * source.V
    C[:, 0] += program.anchor[program.rows]
    others = len(side.others)
    order = np.concatenate([np.arange(others), others + source.fixed.argsort()])
    signs = np.zeros(n, dtype=np.int8)
    signs[index[side.own]] = source.signs
    return Point(side.sign, signs, source.y + SAFETY * bound / max(1, len(source.y)) ** 0.5, scale * C[order])


def _feasible(point: Point, lam: Array, y: Array) -> Point:
    """With multipliers exactly where they must lie, which solvers only nearly reach."""
    _, rest = free_and_rest(y, lam, point.side, point.signs)
    return point._replace(C=feasible(point.C, lam[rest], point.signs[rest]))


def read(proof: MarginProof, examples: Examples, index: Index, threshold: float) -> Dual:
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
        trees.append(Tree.of(side, threshold, tuple(known)))
    return Dual(lam, tuple(trees))


def _bounded(side: Side, source: Source, signs: Signs, threshold: float) -> TreeLeaf:
    """A leaf with the bound that its source gives it; what was raised for safety does not open it again."""
    known = source if np.array_equal(source.signs, signs) else source.folded(signs)
    bound = Relaxation(side, known.signs, known.fixed).bound(known.V, known.y)
    return TreeLeaf(source, signs, threshold if bound <= threshold * (1 + SLACK) else bound)


def _source(side: Side, point: Point, index: Index, scale: float) -> Source:
    signs = point.signs[index[side.own]]
    fixed = np.flatnonzero(signs)
    program = Relaxation(side, signs, fixed)
    C: Array = scale * point.C
    C[:, 0] -= program.anchor[program.rows]
    return Source(signs, fixed, program.directions[:, None] * C, point.y)
