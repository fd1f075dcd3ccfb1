"""The checker of margin proofs: by hand, against brute force, and against forgers."""

from dataclasses import replace
from fractions import Fraction
from operator import mul

import numpy as np
import pytest
import torch

from brittle.common.errors import InputError
from brittle.data import Data
from brittle.kkt import gap
from brittle.kkt.any_width import checker
from brittle.kkt.any_width.checker import (
    check,
    compute_coverage,
    confirm_ceiling,
    find_unconfirmed,
    network_margin,
    overlap,
    rows,
    upper_margin,
)
from brittle.kkt.any_width.proof import MarginProof, ProofLeaf, ProofPoint
from brittle.networks import TwoLayer
from tests.kkt.gains import featured, largest_gain
from tests.kkt.invented import arbitrary, by_hand, lowest, split


def test_a_ceiling_is_raised_until_it_is_confirmed():
    proof, data = arbitrary(0)
    ceiling = confirm_ceiling(replace(proof, ceiling=proof.ceiling * (1 - 1e-11)), data)
    assert proof.ceiling * (1 - 1e-14) <= ceiling <= proof.ceiling * (1 + 1e-9)


def test_a_proof_by_hand_is_accepted():
    proof, data = by_hand()
    found = check(proof, data)
    assert found.accepted, found.reason
    assert found.normalised_margin == pytest.approx(0.25, rel=1e-12)
    assert found.normalised_margin <= 0.25 <= found.upper
    assert found.proved_gap < 1e-11
    assert "proved_gap" in found.to_json()


@pytest.mark.parametrize("seed", range(12))
def test_no_accepted_ceiling_lies_below_the_largest_gain(seed):
    proof, data = arbitrary(seed, biases=seed % 2 == 0)
    gain = largest_gain(featured(data, proof.biases), data.y.numpy(), proof.lam)
    assert proof.ceiling >= gain**2 * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_what_a_point_proves_of_all_patterns_it_proves_of_some(seed):
    """Leaves that share one point, with signs of their own fixed: the Gram matrix is folded."""
    proof, data = arbitrary(seed)
    y, rng = data.y.numpy(), np.random.default_rng(seed)
    points, leaves = [], []
    for side in (1, -1):
        first = next(p for p in proof.points if p.side == side)
        own, others = (y == side) & (proof.lam > 0), (y == -side) & (proof.lam > 0)
        k, r = int(own.sum()), int(others.sum())
        C = np.c_[-proof.lam[others] / 2, 0.1 * rng.standard_normal((r, k)) / k]
        points.append(ProofPoint(side, np.zeros_like(first.signs), np.full(k, 30.0), C))
        leaves += [ProofLeaf(len(points) - 1, signs) for signs in split(rng, np.flatnonzero(own), len(y), 4)]
    shared = replace(proof, points=tuple(points), leaves=tuple(leaves))
    ceiling = lowest(shared, data)
    whole = replace(shared, leaves=tuple(ProofLeaf(i, p.signs) for i, p in enumerate(points)))
    assert ceiling <= lowest(whole, data)
    assert ceiling >= largest_gain(featured(data, True), y, proof.lam) ** 2 * (1 - 1e-9)


def changed(proof, data):
    """One lie at a time, each about a proof whose ceiling is as low as the checker lets it be."""
    tight = next(i for i, leaf in enumerate(proof.leaves) if unsafe(proof, data, i))
    point = proof.points[proof.leaves[tight].point]
    other = proof.leaves[tight].signs.copy()
    fixed = np.flatnonzero(other)[0]
    other[fixed] *= -1

    def with_point(**changes):
        points = list(proof.points)
        points[proof.leaves[tight].point] = point._replace(**changes)
        return replace(proof, points=tuple(points))

    def with_leaf(leaf):
        leaves = list(proof.leaves)
        leaves[tight : tight + 1] = leaf
        return replace(proof, leaves=tuple(leaves))

    yield "a ceiling that is too low", replace(proof, ceiling=0.9 * proof.ceiling)
    yield "multipliers that are too large", replace(proof, lam=2 * proof.lam)
    yield "a negative multiplier", replace(proof, lam=-proof.lam)
    yield "no multipliers", replace(proof, lam=0 * proof.lam)
    yield "NaN among the multipliers", replace(proof, lam=proof.lam * np.nan)
    yield "an infinite ceiling", replace(proof, ceiling=np.inf)
    yield "a ceiling that is no number", replace(proof, ceiling=np.nan)
    yield "other curvatures", with_point(y=0.5 * point.y)
    yield "curvatures that are no numbers", with_point(y=np.nan * point.y)
    yield "other slopes", with_point(C=point.C + np.abs(point.C).max())
    yield "slopes that are no numbers", with_point(C=point.C * np.nan)
    yield "slopes of another shape", with_point(C=point.C[:, :-1])
    yield "a side that there is not", with_point(side=0)
    yield "a leaf that is missing", with_leaf([])
    yield "a leaf that is there twice", with_leaf([proof.leaves[tight]] * 2)
    yield "a leaf with another sign", with_leaf([ProofLeaf(proof.leaves[tight].point, other)])
    yield "a leaf with a sign of 2", with_leaf([ProofLeaf(proof.leaves[tight].point, 2 * other)])
    yield "a leaf with a sign less", with_leaf([ProofLeaf(proof.leaves[tight].point, 0 * other)])
    yield "a leaf without a point", with_leaf([ProofLeaf(len(proof.points), other)])
    yield "a negative point", with_leaf([ProofLeaf(-1, proof.leaves[tight].signs)])
    yield "an output bias", replace(proof, network=replace(proof.network, c=torch.tensor(1.0)))
    yield "no biases", replace(proof, biases=False)
    yield "a network with NaN", replace(proof, network=replace(proof.network, v=proof.network.v * torch.nan))


def unsafe(proof, data, place):
    """Whether the leaf is one that holds the ceiling where it is."""
    return bool(find_unconfirmed(proof, rows(data, proof.biases), data.y.numpy(), 0.9 * proof.ceiling, [place]))


FORGED, DATA = arbitrary(3)
LIES = dict(changed(FORGED, DATA))


def test_the_proof_that_is_forged_is_right():
    assert check(FORGED, DATA).accepted


@pytest.mark.parametrize("lie", LIES)
def test_a_changed_proof_is_refused(lie):
    found = check(LIES[lie], DATA)
    assert not found.accepted
    assert found.reason
    assert found.upper == np.inf
    assert found.normalised_margin == 0


def test_a_network_that_misclassifies_has_no_margin():
    assert check(FORGED, DATA).normalised_margin == 0


def test_coverage_is_counted_and_overlaps_are_seen():
    halves = np.array([[1, 0], [-1, 0]], dtype=np.int8)
    assert compute_coverage(halves) == 1
    assert overlap(halves) is None
    crossed = np.array([[1, 0], [0, 1]], dtype=np.int8)  # as large together as all patterns, with one in common
    assert compute_coverage(crossed) == 1
    assert overlap(crossed) == (0, 1)


def test_leaves_that_are_compared_in_parts_keep_their_numbers(monkeypatch):
    last = np.array([[-1, -1, 0], [-1, 1, 0], [1, -1, 0], [1, 1, 0], [1, 1, 1]], dtype=np.int8)
    for rows_at_once in 1, 2, 3, 5:
        monkeypatch.setattr(checker, "AT_ONCE", rows_at_once * len(last))
        assert overlap(last) == (3, 4)
        assert overlap(last[:4]) is None


def test_a_proof_survives_its_file(tmp_path):
    FORGED.save(tmp_path / "proof.npz")
    again = MarginProof.load(tmp_path / "proof.npz", DATA.y.numpy())
    assert again.ceiling == FORGED.ceiling
    assert check(again, DATA) == check(FORGED, DATA)
    with pytest.raises(InputError, match="there are 8 examples"):
        MarginProof.load(tmp_path / "proof.npz", np.ones(8))


def test_a_file_without_a_proof_is_refused(tmp_path):
    np.savez(tmp_path / "no.npz", W=np.ones((1, 1)))
    with pytest.raises(InputError, match="holds no proof"):
        MarginProof.load(tmp_path / "no.npz", np.ones(3))


@pytest.mark.parametrize("seed", range(30))
def test_margins_are_rounded_to_the_safe_side(seed):
    """Against fractions: the network's own from below, the bound from above, both nearly the truth."""
    proof, data = arbitrary(seed, biases=seed % 2 == 0)
    rng, X = np.random.default_rng(seed), rows(data, proof.biases)
    W, b, v = (torch.from_numpy(rng.normal(size=size)) for size in ((6, data.X.shape[1]), 6, 6))
    proof = replace(proof, network=TwoLayer(W, b * proof.biases, v))
    exact_W = [[*map(Fraction, row)] for row in torch.cat([W, b[:, None]], 1)[:, : X.shape[1]].tolist()]
    outputs = [
        sum(Fraction(u) * max(0, sum(map(mul, w, map(Fraction, x)))) for u, w in zip(v.tolist(), exact_W, strict=True))
        for x in X.tolist()
    ]
    size = sum(w * w for row in exact_W for w in row) + sum(Fraction(u) ** 2 for u in v.tolist())
    labels = np.array([1.0 if output > 0 else -1.0 for output in outputs])
    exact = min(abs(output) for output in outputs) / size
    found = network_margin(proof, X, labels)
    assert Fraction(found) <= exact
    assert found == pytest.approx(float(exact), rel=1e-9, abs=1e-13)
    doubled = 2 * sum(map(Fraction, proof.lam.tolist())) * Fraction(upper_margin(proof))
    assert Fraction(proof.ceiling) <= doubled**2 <= Fraction(proof.ceiling) * (1 + Fraction(1, 10**12))
    assert network_margin(proof, X, -labels) == 0


def test_sums_that_leave_the_floats_confirm_no_leaf():
    """Gram matrices of infinities and NaN: LAPACK says of NaN that it is definite."""
    X, y, lam = np.array([[1, 1], [1, -1], [1, 1.5]]) * 1e80, np.array([1.0, 1.0, -1.0]), np.full(3, 1e90)
    none = np.zeros(3, dtype=np.int8)
    points = (
        ProofPoint(1, none, np.full(2, 1e-5), np.array([[-1e89, 0, 0]])),
        ProofPoint(-1, none, np.full(1, 1e-5), np.array([[-1e89, 0], [-9e89, 0]])),
    )
    signs = [(0, (a, b, 0)) for a in (1, -1) for b in (1, -1)] + [(1, (0, 0, a)) for a in (1, -1)]
    leaves = tuple(ProofLeaf(place, np.array(each, dtype=np.int8)) for place, each in signs)
    network = TwoLayer(*(torch.ones(shape, dtype=torch.float64) for shape in ((1, 2), (1,), (1,))))
    proof = MarginProof(network, False, lam, 1e-3, points, leaves)
    with np.errstate(all="ignore"):
        assert find_unconfirmed(proof, X, y, proof.ceiling, range(6)) == list(range(6))


def test_a_network_with_the_largest_margin_has_all_of_it():
    """e₁, e₂ and (2, -5), which carries no multiplier: γ* = ¼ still."""
    X = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, -5.0]], dtype=torch.float64)
    data = Data(X, torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64))
    found = gap(by_hand()[0].network, data, biases=False)
    assert found.normalised_margin == pytest.approx(0.25, rel=1e-9)
    assert found.upper == pytest.approx(0.25, rel=1e-6)
    assert 1 - 1e-6 < found.share <= 1


def room_beside(G, error, y, signs, share):
    """The lowest ceiling with diag(top, y) - G - shift·I ⪰ 0, by bisection; every γ is the share."""
    free, taken = np.flatnonzero(signs == 0), np.append(1.0, signs)
    B = np.column_stack([taken, np.eye(len(taken))[:, 1 + free]])
    small, sizes = B.T @ G @ B, np.abs(G) @ np.abs(taken)
    off = (len(taken) - len(free)) * error + share * (np.abs(taken) @ sizes + 2 * np.linalg.norm(sizes))
    low, high = 0.0, 100.0
    for _ in range(100):
        middle = (low + high) / 2
        diagonal = np.append(middle - y[free].sum() * (1 + share), y[free])
        shift = (off + share * (np.abs(diagonal).sum() + small.trace())) * (1 + share)
        definite = np.linalg.eigvalsh(np.diag(diagonal) - small)[0] > shift
        low, high = (low, middle) if definite else (middle, high)
    return high


@pytest.mark.parametrize("signs", [[], [0], [1], [-1, 0], [1, -1], [0, 1, 0]])
def test_a_leaf_is_below_a_ceiling_that_pays_for_all_rounding(signs, monkeypatch):
    monkeypatch.setattr(checker, "gamma", lambda count: 1e-3)
    rng, signs = np.random.default_rng(len(signs)), np.array(signs, dtype=np.int8)
    B = rng.normal(size=(4, 1 + len(signs))) / 2
    G, y = B.T @ B, rng.uniform(6, 7, size=len(signs))
    least = room_beside(G, 1e-2, y, signs, 1e-3)
    assert least > y[signs == 0].sum() + 0.02
    assert checker._below(checker.Gram(G, 1e-2), y, signs, least * (1 + 1e-9))
    assert not checker._below(checker.Gram(G, 1e-2), y, signs, least * (1 - 1e-9))
