"""What settles a sign: prices by minimising over a grid, and every term of the rounding where γ can be seen."""

import numpy as np
import pytest

from brittle.certificates import dual_bound, settled_signs
from brittle.certificates.dual_bound import DualPoint, Kind
from brittle.certificates.margins import LocalModel

SHARE = 1e-3


def dual_point(seed):
    """A model in three dimensions, and multipliers with which A is definite."""
    rng = np.random.default_rng(seed)
    W, c = rng.normal(size=(6, 3)), rng.normal(size=6)
    model = LocalModel(
        W=W, a=rng.normal(size=6), c=c, q=rng.normal(size=3), beta=2.0, sizes=np.linalg.norm(W, axis=1),
        slips=rng.uniform(1, 2, size=6) * 1e-3, error=0.01, stretch=1.0, ball=1.0, pure=False,
    )  # fmt: skip
    kinds = dual_bound.initial_kinds(model)
    N = kinds == Kind.CONCAVE
    top = np.linalg.eigvalsh(W[N].T @ W[N])[-1]
    return model, DualPoint(0.5, rng.normal(size=6), np.full(6, 0.8 / (0.5 * top)), kinds)


@pytest.mark.parametrize("seed", range(8))
def test_every_rounding_and_every_slip_is_paid_for(seed, monkeypatch):
    monkeypatch.setattr(settled_signs, "gamma", lambda count: SHARE)
    model, dual = dual_point(seed)
    N, mu = dual.kinds == Kind.CONCAVE, 0.5
    slopes = dual_bound.feasible_slopes(model, dual)
    found = settled_signs._ranges(model, dual, 0.0)
    assert found is not None
    rows = np.flatnonzero(model.c < 0)
    assert found.rows.tolist() == rows.tolist()
    kappa, curvatures = np.where(N, mu * dual.curvatures, 0.0), np.where(N, dual.curvatures, 1.0)
    A = np.eye(3) - (model.W.T * kappa) @ model.W
    x = np.linalg.solve(A, mu * (model.q + slopes @ model.W))
    floor = max(each for each in settled_signs.FLOORS if each < np.linalg.eigvalsh(A)[0])
    trace, span = kappa @ model.sizes**2, np.linalg.norm(x)
    load = mu * (np.linalg.norm(model.q) + np.abs(slopes) @ model.sizes)
    slant = SHARE * (1 + trace) + SHARE * (3 + trace)
    off = slant * span + SHARE * (load + span)
    slip = SHARE * (np.abs(model.a) + model.sizes * span) + model.sizes * off / floor + model.slips
    z = model.a - model.W @ x
    touch = model.a + (slopes - np.where(z > 0, 0.0, model.c)) / curvatures
    far = np.abs(model.a) + np.where(N, (np.abs(slopes) + np.abs(model.c)) / curvatures, 0.0)
    V = np.linalg.solve(A, model.W.T)
    lengths, sizes = np.linalg.norm(V, axis=0), model.sizes
    residual = slant * lengths + SHARE * 2 * sizes
    spread = (model.W * V.T).sum(1) + residual**2 / floor + slant * lengths**2 + SHARE * 3 * sizes * lengths
    by_hand = (z, slip, spread, kappa, np.where(N, touch, 0.0), SHARE * far + model.slips)
    for ours, theirs in zip(by_hand, found[1:-1], strict=True):
        np.testing.assert_allclose(theirs, ours[rows], rtol=1e-8)
    np.testing.assert_allclose(found.below, (4 * mu * np.abs(model.c) * model.slips)[rows], rtol=1e-12)


def cheapest(z, slip, spread, kappa, touch, touch_slip, below):
    """Twice the least cost of the other side over what z and m may be, on a grid."""
    side = np.sign(z)
    there = -side * np.linspace(0, 40, 40_001)
    starts, touches = side * max(abs(z) - slip, 0), touch + np.linspace(-touch_slip, touch_slip, 41)
    alone = (there - starts) ** 2 / spread
    bent = min((alone + kappa * (there - m) ** 2).min() for m in touches) - below
    return max(alone.min(), bent)


@pytest.mark.parametrize("slips", [0.0, 0.05])
def test_a_price_is_a_lower_bound_and_without_slips_the_least_cost(slips):
    rng = np.random.default_rng(0)
    for _ in range(60):
        z, spread, kappa = rng.normal() * 2, rng.uniform(0.2, 2), rng.choice([0.0, 0.5, 3.0])
        touch, below = rng.normal(), slips * rng.uniform(0, 1)
        parts = (z, slips, spread, kappa, touch, slips, below)
        found = settled_signs._Ranges(np.array([0]), *(np.array([part]) for part in parts)).price[0]
        least = cheapest(*parts)
        assert found <= least + 1e-4
        inside = slips == 0 and (kappa == 0 or np.sign(z) * (np.abs(z) / spread + kappa * np.sign(z) * touch) >= 0)
        if inside and kappa == 0:
            assert found == pytest.approx(least, rel=1e-5)
        if slips == 0 and kappa > 0:
            assert found == pytest.approx(max(least, z**2 / spread), rel=1e-4)


@pytest.mark.parametrize("room", [0.0, 5.0, 8.0])
def test_only_neurons_are_looked_at_that_could_be_settled_if_a_was_the_identity(room):
    """The spread is at most ‖w‖², and what is cheaper than the room there stays unknown."""
    seen = set()
    for seed in range(8):
        model, dual = dual_point(seed)
        kappa = np.where(dual.kinds == Kind.CONCAVE, 0.5 * dual.curvatures, 0.0)
        slopes = dual_bound.feasible_slopes(model, dual)
        A = np.eye(3) - (model.W.T * kappa) @ model.W
        z = model.a - model.W @ np.linalg.solve(A, 0.5 * (model.q + slopes @ model.W))
        touch = model.a + (slopes - np.where(z > 0, 0.0, model.c)) / dual.curvatures
        likely = (model.c < 0) & (z**2 / model.sizes**2 + kappa * touch**2 > room)
        found = settled_signs._ranges(model, dual, room)
        assert found is not None
        assert found.rows.tolist() == np.flatnonzero(likely).tolist()
        seen |= set(likely[model.c < 0].tolist())
    assert seen == ({True} if room == 0 else {True, False})
