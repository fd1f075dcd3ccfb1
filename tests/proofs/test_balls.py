"""Balls against fractions: the real result is always inside."""

from fractions import Fraction

import numpy as np
import pytest

from proofcheck.balls import Ball, Refused, ball, definite, lengths


def exact(values):
    return np.vectorize(Fraction, otypes=[object])(np.asarray(values, dtype=np.float64))


def contains(found: Ball, truth) -> bool:
    off = np.abs(exact(found.mid) - truth)
    return bool((off <= exact(found.rad)).all())


def some(rng, *shape):
    """A ball and a member of it, at scales that differ by far."""
    mid = rng.normal(size=shape) * 2.0 ** rng.integers(-60, 60, shape)
    rad = np.abs(mid) * 2.0 ** rng.integers(-60, 0, shape) * rng.integers(0, 2, shape)
    inside = exact(mid) + exact(rad) * exact(rng.choice([-1.0, 0.0, 0.5, 1.0], shape))
    return Ball(mid, rad), inside


@pytest.mark.parametrize("seed", range(20))
def test_operations_enclose_the_real_results(seed):
    rng = np.random.default_rng(seed)
    (A, a), (B, b), (C, c) = some(rng, 4, 5), some(rng, 4, 5), some(rng, 5, 3)
    assert contains(A + B, a + b)
    assert contains(A - B, a - b)
    assert contains(A * B, a * b)
    assert contains(A @ C, a @ c)
    assert contains(ball(A.mid) @ C, exact(A.mid) @ c)
    assert (exact(A.low()) <= a).all()
    assert (a <= exact(A.high())).all()
    assert (np.abs(a) <= exact(A.size())).all()
    assert all((column**2).sum() <= exact(size) ** 2 for column, size in zip(a.T, lengths(A), strict=True))


def test_what_falls_below_the_floats_is_paid_for():
    tiny = ball([2.0**-600])
    assert contains(tiny * tiny, exact([2.0**-600]) ** 2)
    assert contains(tiny[None] @ tiny[:, None], np.array([[exact(2.0**-600) ** 2]], dtype=object))


@pytest.mark.parametrize("seed", range(20))
def test_a_product_of_huge_and_denormal_matrices_pays_for_its_rounding(seed):
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(2, 4)) * 10.0 ** rng.integers(100, 300), rng.normal(size=(4, 2)) * 1e-309
    assert contains(ball(A) @ B, exact(A) @ exact(B))


def test_numbers_that_are_none_go_through_a_factor_and_prove_nothing():
    proof, one = definite(ball(np.eye(2))), ball(np.ones(()))
    for wrong in (np.nan, np.inf):
        with np.errstate(all="ignore"):
            floor = proof.floor(ball(np.eye(2)), ball([wrong, 1.0]), one)[0]
            W, r = proof.spread(ball([[wrong], [1.0]]))
        assert not floor > -np.inf
        assert not (lengths(W) + r < np.inf).any()


def test_nan_proves_nothing():
    with pytest.raises(Refused), np.errstate(all="ignore"):
        definite(ball(np.full((3, 3), np.nan)))


@pytest.mark.parametrize("least", [1e-3, 1e-7, -1e-12, -1e-3])
def test_a_matrix_is_definite_or_refused(least):
    rng = np.random.default_rng(0)
    U, _ = np.linalg.qr(rng.normal(size=(30, 30)))
    Q = (U * np.append(np.linspace(0.1, 1, 29), least)) @ U.T
    if least < 0:
        with pytest.raises(Refused):
            definite(ball((Q + Q.T) / 2))
        return
    proof = definite(ball((Q + Q.T) / 2))
    assert 0 < proof.sigma < 1e-3
    smallest = np.linalg.eigvalsh(proof.scale[:, None] * Q * proof.scale - proof.L @ proof.L.T)[0]
    assert smallest >= proof.sigma - 1e-12


def test_a_ball_that_holds_an_indefinite_matrix_is_refused():
    Q = np.diag([1.0, 1e-3])
    definite(ball(Q))
    with pytest.raises(Refused):
        definite(Ball(Q, np.full((2, 2), 2e-3)))


def test_a_floor_lies_under_the_quadratic_and_spreads_over_the_truth():
    rng = np.random.default_rng(1)
    B = rng.normal(size=(6, 6))
    Q, q = ball(B @ B.T + 0.1 * np.eye(6)), ball(rng.normal(size=6))
    proof = definite(Q)
    floor, _, rest = proof.floor(Q, q, ball(0.7))
    truth = 0.7 - 0.5 * q.mid @ np.linalg.solve(Q.mid, q.mid)
    assert truth - 1e-9 < floor <= truth + 1e-12
    assert rest < 1e-6
    V = rng.normal(size=(6, 4))
    W, r = proof.spread(ball(V))
    sizes = np.sqrt(np.einsum("ij,ij->j", V, np.linalg.solve(Q.mid, V)))
    assert (np.linalg.norm(W, axis=0) + r >= sizes * (1 - 1e-12)).all()
    assert (np.linalg.norm(W, axis=0) + r <= sizes * 1.01).all()


def test_the_scale_brings_every_diagonal_near_1_by_powers_of_2():
    Q = np.diag([2.0**80, 1.0, 2.0**-60, 3.0])
    proof = definite(ball(Q))
    assert proof.scale[:3].tolist() == [2.0**-40, 1.0, 2.0**30]
    assert (np.frexp(proof.scale)[0] == 0.5).all()
    ones = Q.diagonal() * proof.scale**2
    assert (ones >= 0.5).all()
    assert (ones <= 2).all()
