"""What the judge of layered duals subtracts for rounding, term by term.

Real rounding is far below these terms, so that no comparison of bounds would miss a wrong one. Here γ, what falls below
the floats, and what squares lose there are numbers that can be seen, one at a time and all together, and the sums of
absolute values are written again from the Lagrangian.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
import torch

from brittle.certificates.deep_dual import definite, judge
from brittle.certificates.deep_dual.chain import Chain, LagrangianPoint, LayeredMultipliers, Margins
from brittle.certificates.deep_dual.definite import Curvatures, cholesky_floor
from brittle.networks import Deep

RIVALS, WIDTHS = 2, (3, 4, 5)


class Sizes(NamedTuple):
    """γ for every count, UNDERFLOW and SQUARES."""

    share: float
    lost: float
    squares: float


SIZES = [
    pytest.param(Sizes(1e-2, 0.0, 0.0), id="rounding"),
    pytest.param(Sizes(0.0, 1e-2, 0.0), id="underflow"),
    pytest.param(Sizes(0.0, 0.0, 1e-2), id="squares"),
    pytest.param(Sizes(1e-2, 1e-2, 1e-2), id="all"),
]


class Case(NamedTuple):
    margins: Margins
    multipliers: LayeredMultipliers
    point: LagrangianPoint
    proved: Curvatures


@pytest.fixture(params=[False, True], ids=["no box", "box"])
def case(request):
    rng = np.random.default_rng(0)

    def drawn(*shape):
        return torch.from_numpy(rng.normal(size=shape))

    layers = [(drawn(4, 3), drawn(4)), (drawn(5, 4), drawn(5)), (drawn(RIVALS + 1, 5), drawn(RIVALS + 1))]
    network = Deep.dense(*zip(*layers, strict=True))
    box = (-2.0, 2.0) if request.param else None
    margins = Chain.of(network).around(drawn(3), 1.0, torch.tensor(0), box)
    curvatures = tuple(drawn(width).abs() + 0.1 for width in WIDTHS[1:])
    signs, lines = (tuple(drawn(RIVALS, width).abs() for width in WIDTHS[1:]) for _ in range(2))
    walls = drawn(RIVALS, 3) if request.param else None
    multipliers = LayeredMultipliers(curvatures, signs, lines, drawn(RIVALS).abs(), walls)
    point = LagrangianPoint(drawn(RIVALS, 3), tuple(drawn(RIVALS, width) for width in WIDTHS[1:]))
    return Case(margins, multipliers, point, Curvatures(curvatures, 0.25))


@pytest.fixture(params=SIZES)
def sizes(request, monkeypatch):
    monkeypatch.setattr(judge, "gamma", lambda count: request.param.share)
    monkeypatch.setattr(judge, "UNDERFLOW", request.param.lost)
    monkeypatch.setattr(judge, "SQUARES", request.param.squares)
    return request.param


def matrices(case):
    return [each.matrix for each in case.margins.chain.maps]


def inputs(case, sizes):
    """z_k at the point, and what they may be off by."""
    before = (case.margins.x + case.point.delta, *case.point.hidden[:-1])
    large = (case.margins.x.abs() + case.point.delta.abs(), *(h.abs() for h in case.point.hidden[:-1]))
    z, off = [], []
    for W, b, h, size in zip(matrices(case), case.margins.offsets, before, large, strict=True):
        z.append(h @ W.T + b)
        off.append(sizes.share * (size @ W.abs().T + b.abs()) + sizes.lost * (1 + size.sum(1, keepdim=True)))
    return z, off


def test_the_inputs_of_every_layer_are_off_by_the_sums_of_their_terms(case, sizes):
    for found, expected in zip(judge._inputs(case.margins, case.point), inputs(case, sizes), strict=True):
        for mine, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(mine, theirs)


def value(case, sizes):
    """L at the point without walls, and what it may be off by."""
    (z, off), m, last = inputs(case, sizes), case.multipliers, case.point.hidden[-1]
    square = 0.5 * (case.point.delta**2).sum(1)
    f, f_size = case.margins.rows * last, (case.margins.rows * last).abs().sum(1) + case.margins.heights.abs()
    total, size = square + m.margin * (f.sum(1) + case.margins.heights), square + m.margin * f_size
    slip = sizes.lost * (1 + m.margin) * (1 + case.point.delta.abs().sum(1) + last.abs().sum(1))
    for lam, alpha, beta, h, z_k, off_k in zip(m.curvatures, m.signs, m.lines, case.point.hidden, z, off, strict=True):
        total = total - (alpha * h).sum(1) - (beta * (h - z_k)).sum(1) + (lam * h * (h - z_k)).sum(1)
        weight = lam * h.abs() + beta
        size = size + (alpha * h.abs()).sum(1) + (weight * (h.abs() + z_k.abs())).sum(1)
        factors = alpha + h.abs() + weight + z_k.abs()
        slip = slip + (weight * off_k).sum(1) + sizes.lost * (1 + factors.sum(1))
    return total, slip * (1 + sizes.share) + sizes.share * size


def test_the_value_is_off_by_the_sum_of_its_terms_and_what_the_inputs_are_off(case, sizes):
    z, off = judge._inputs(case.margins, case.point)
    found, slip = judge._value(case.margins, case.multipliers, case.point, z, off)
    total, expected = value(case, sizes)
    torch.testing.assert_close(found, total)
    torch.testing.assert_close(slip, expected)


def at_walls(case, sizes):
    if case.margins.walls is None:
        return torch.zeros(RIVALS, dtype=torch.float64), torch.zeros(RIVALS, dtype=torch.float64)
    p, (low, high) = case.multipliers.walls, case.margins.walls
    x = case.margins.x + case.point.delta
    total = (p * x - torch.where(p > 0, p * high, p * low)).sum(1)
    size = (p.abs() * (case.margins.x.abs() + case.point.delta.abs() + max(abs(low), abs(high)))).sum(1)
    return total, sizes.share * size + sizes.lost * (1 + p.abs().sum(1))


def test_walls_are_off_by_the_sum_of_their_terms(case, sizes):
    if case.margins.walls is None:
        pytest.skip("there is no box")
    found, slip = judge._walls(case.margins, case.multipliers.walls, case.margins.walls, case.point)
    total, expected = at_walls(case, sizes)
    torch.testing.assert_close(found, total)
    torch.testing.assert_close(slip, expected)


def squared_gradient(case, sizes):
    """‖∂L/∂δ‖² + Σ ∂L/∂h·Λ⁻¹∂L/∂h, where every entry is as large as its terms allow."""
    m, hidden, (z, off) = case.multipliers, case.point.hidden, inputs(case, sizes)
    pulled, slips = [], []
    for W, lam, beta, h in zip(matrices(case), m.curvatures, m.lines, hidden, strict=True):
        weight = lam * h.abs() + beta
        pulled.append((beta - lam * h) @ W)
        slips.append(sizes.share * weight @ W.abs() + sizes.lost * (1 + weight.sum(1, keepdim=True)))
    walls = torch.zeros_like(case.point.delta) if m.walls is None else m.walls
    entries = case.point.delta + pulled[0] + walls
    size = case.point.delta.abs() + pulled[0].abs() + walls.abs()
    total = ((entries.abs() + slips[0] + sizes.share * size + sizes.squares) ** 2).sum(1)
    last = m.margin[:, None] * case.margins.rows
    pulled.append(last)
    slips.append(sizes.share * last.abs() + sizes.lost * (1 + m.margin[:, None]))
    for k, (lam, alpha, beta, h) in enumerate(zip(m.curvatures, m.signs, m.lines, hidden, strict=True)):
        entries = lam * (2 * h - z[k]) - alpha - beta + pulled[k + 1]
        size = lam * (2 * h.abs() + z[k].abs()) + alpha + beta + pulled[k + 1].abs()
        ceiling = entries.abs() + slips[k + 1] + lam * off[k] * (1 + sizes.share) + sizes.share * size + sizes.lost
        total = total + ((ceiling + sizes.squares) ** 2 / lam).sum(1)
    return total * (1 + sizes.share)


def test_the_gradient_is_as_large_as_its_terms_allow(case, sizes):
    z, off = judge._inputs(case.margins, case.point)
    found = judge._squared_gradient(case.margins, case.multipliers, case.point, z, off)
    torch.testing.assert_close(found, squared_gradient(case, sizes))


def test_the_floor_pays_for_all_of_it(case, sizes):
    (total, slip), (more, more_slip) = value(case, sizes), at_walls(case, sizes)
    if case.margins.walls is not None:
        slip = slip + more_slip + sizes.share * (total.abs() + more.abs())
    loss = (slip + squared_gradient(case, sizes) / (2 * case.proved.floor)) * (1 + sizes.share)
    expected = total + more - loss - sizes.share * ((total + more).abs() + loss)
    found = judge.proven_values(*case)
    torch.testing.assert_close(found, expected)


def test_quotients_pay_for_every_layer(case, sizes):
    margins, h = case.margins, case.margins.x[None]
    off = torch.full_like(h, sizes.lost)
    for W, b in zip(matrices(case), margins.offsets, strict=True):
        size = h.abs() + off
        h, terms = (h @ W.T + b).relu(), size @ W.abs().T + b.abs()
        off = off @ W.abs().T * (1 + sizes.share) + sizes.share * terms + sizes.lost * (1 + size.sum())
    rows, heights = margins.rows, margins.heights
    slip = (rows.abs() * off).sum(1) * (1 + sizes.share)
    slip = slip + sizes.share * ((rows.abs() * (h + off)).sum(1) + heights.abs())
    floors = (rows * h).sum(1) + heights - slip * (1 + sizes.share) - sizes.lost * (1 + h.sum())
    slopes = (rows.norm(dim=1) + sizes.squares) * float(np.prod(margins.chain.norms)) * (1 + sizes.share)
    quotients = (floors / slopes).clamp(min=0)
    found = judge.proven_quotients(margins)
    torch.testing.assert_close(found, quotients)
    assert (found <= quotients * (1 - 4 * 2.0**-53)).all()


def test_pivots_are_positive_below_the_smallest_eigenvalue_alone():
    """(1, -1; -1, 2) has .38197 and 2.618; (1, -1, 0; -1, 2, -1; 0, -1, 2) has .19806."""
    one = Fraction(1)
    assert definite._pivots_are_positive([one], Fraction("0.3819"))
    assert not definite._pivots_are_positive([one], Fraction("0.382"))
    assert definite._pivots_are_positive([one, one], Fraction("0.198"))
    assert not definite._pivots_are_positive([one, one], Fraction("0.1981"))
    assert not definite._pivots_are_positive([one], one)


def scaled(rng):
    """Weights and curvatures of two layers, with V_1 and V_2."""
    weights = [rng.normal(size=(4, 3)) / 4, rng.normal(size=(5, 4)) / 4]
    curvatures = [rng.uniform(0.5, 1, size=len(W)) for W in weights]
    V_1 = curvatures[0][:, None] ** 0.5 * weights[0]
    return weights, curvatures, V_1, curvatures[1][:, None] ** 0.5 * weights[1] / curvatures[0] ** 0.5


@pytest.mark.parametrize("share", [0.0, 1e-3])
def test_the_complement_is_off_by_its_products(share, monkeypatch):
    monkeypatch.setattr(definite, "gamma", lambda count: share * (count >= 3 + 5))  # the terms of a product, and more
    weights, curvatures, V_1, V_2 = scaled(np.random.default_rng(1))
    matrix, slip = definite._complement(weights, curvatures, 0.5)
    expected = np.block([[1.5 * np.eye(4) - 2 * V_1 @ V_1.T, -V_2.T], [-V_2, 1.5 * np.eye(5)]])
    np.testing.assert_allclose(matrix, expected, atol=1e-12)
    assert slip == pytest.approx(share * (2 * np.linalg.norm(V_1) ** 2 + np.linalg.norm(V_2) + 2), rel=1e-9)


@pytest.mark.parametrize(("times", "proved"), [(0.99, True), (1.01, False)])
def test_a_hessian_is_proved_if_its_smallest_eigenvalue_pays_for_rounding(times, proved, monkeypatch):
    """Twice the rounding of the complement and of a factor of it, γ·tr for its nine rows of 2 at most."""
    weights, curvatures, V_1, V_2 = scaled(np.random.default_rng(1))
    smallest = np.linalg.eigvalsh(definite._complement(weights, curvatures, 0.3)[0])[0]
    per_share = np.linalg.norm(V_1) ** 2 / 0.7 + np.linalg.norm(V_2) + 2 + 18
    assert smallest > 0.1
    monkeypatch.setattr(definite, "gamma", lambda count: times * smallest / (2 * per_share))
    assert (cholesky_floor(weights, curvatures, 0.3) == 0.3) is proved


def test_every_layer_of_a_deep_network_counts(monkeypatch):
    """Widths of 1: the sums over layers are longer than those over neurons."""
    depth, counts = 80, list[int]()
    one = torch.ones(1, 1, dtype=torch.float64)
    network = Deep.dense([one] * depth, [one[0]] * depth)
    margins = Chain.of(network).around(one[0], 1.0, torch.tensor(1.0))
    curvatures, rows = tuple([one[0, 0]] * (depth - 1)), tuple([one] * (depth - 1))
    multipliers, point = LayeredMultipliers(curvatures, rows, rows, one[0]), LagrangianPoint(one, rows)
    monkeypatch.setattr(judge, "gamma", lambda count: counts.append(count) or 0.0)
    judge._squared_gradient(margins, multipliers, point, *judge._inputs(margins, point))
    assert max(counts) >= depth
    counts.clear()
    judge.proven_quotients(margins)
    assert max(counts) >= depth


def test_the_root_of_a_value_is_rounded_down(case, monkeypatch):
    values = torch.from_numpy(np.random.default_rng(0).uniform(0.1, 2, size=200))
    monkeypatch.setattr(judge, "proven_values", lambda *_: values)
    for radius, value in zip(judge.proven_radii(*case).tolist(), values.tolist(), strict=True):
        assert Fraction(radius) ** 2 < 2 * Fraction(value)
