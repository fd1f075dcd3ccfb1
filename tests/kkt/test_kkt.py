"""The residual against cvxpy, against KKT points made by hand, and under the symmetries of the problem."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from brittle import InputError
from brittle.data import Data
from brittle.kkt import residual
from brittle.kkt.examples import Weights
from brittle.kkt.residual import stationarity_problem
from brittle.networks import TwoLayer
from tests.kkt.reference import (
    closed_form,
    fitted,
    gaussian,
    generator,
    smaller_norm,
    stationarity_by_cvxpy,
    stationarity_by_vertices,
)

seeds = st.integers(0, 10**6)


def with_kinks(data, width, seed):
    """Some neurons of the first layer pass exactly through an example."""
    network = fitted(data, width, seed)
    b = network.b.clone()
    for j in range(0, width, 3):
        b[j] = -(data.X[j % len(data)] @ network.W[j])
    hidden = TwoLayer(network.W, b, network.v).preactivations(data.X).relu()
    v = torch.linalg.lstsq(hidden, data.y[:, None], driver="gelsd").solution[:, 0]
    return TwoLayer(network.W, b, v)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("margin_tolerance", [1e-6, 0.6])
def test_stationarity_agrees_with_two_other_solvers(seed, margin_tolerance):
    data = gaussian(5 + seed, 3, seed)
    network = with_kinks(data, 18, seed) if seed % 2 else fitted(data, 18, seed)
    kkt = residual(network, data, margin_tolerance=margin_tolerance)
    assert (len(kkt.kinks) > 0) == bool(seed % 2)
    cvxpy, vertices = (
        reference(network, data, margin_tolerance=margin_tolerance)
        for reference in (stationarity_by_cvxpy, stationarity_by_vertices)
    )
    assert kkt.stationarity == pytest.approx(cvxpy, abs=1e-6)
    assert kkt.stationarity == pytest.approx(vertices, abs=1e-10)


def test_free_slopes_matter():
    data = gaussian(8, 3, 1)
    network = with_kinks(data, 18, 1)
    free, fixed = (residual(network, data, margin_tolerance=1, kink_tolerance=t) for t in (1e-6, 0.0))
    assert fixed.kinks.shape[0] < free.kinks.shape[0]
    assert free.stationarity < fixed.stationarity


@pytest.mark.parametrize(("dim", "examples"), [(2, 2), (8, 8), (30, 10), (60, 60)])
def test_the_closed_form_is_a_kkt_point_with_biases(dim, examples):
    kkt = residual(*closed_form(dim, examples))
    assert kkt.stationarity < 1e-10
    assert kkt.complementarity < 1e-10
    assert kkt.balance < 1e-10
    assert kkt.norm_gap < 1e-10
    share = examples / dim
    bias = share / (2 * (1 + share))
    torch.testing.assert_close(kkt.slopes, torch.full_like(kkt.slopes, bias / (1 - bias)), atol=1e-9, rtol=0)


def test_the_smaller_norm_network_is_a_kkt_point_without_biases_only():
    network, data = smaller_norm(8)
    assert residual(network, data, biases=False).stationarity < 1e-10
    assert residual(network, data).stationarity == pytest.approx(0.2, abs=1e-6)


def test_a_perturbed_network_gives_what_was_put_in():
    """A neuron that is dead on the data cannot be explained: its weights are the residual."""
    network, data = closed_form(12, 12)
    for size in (1e-1, 1e-4, 1e-7):
        dead = torch.zeros(1, 12, dtype=torch.float64)
        bias = torch.full((1,), -size, dtype=torch.float64)
        W, b, v = torch.cat([network.W, dead]), torch.cat([network.b, bias]), torch.cat([network.v, bias * 0])
        kkt = residual(TwoLayer(W, b, v), data)
        norm = float(network.squared_norm + size**2) ** 0.5
        assert kkt.stationarity == pytest.approx(size / norm, rel=1e-6)


def test_imbalance_is_seen():
    network, data = closed_form(12, 12)
    tilted = TwoLayer(network.W * 1.1, network.b * 1.1, network.v / 1.1)
    kkt = residual(tilted, data)
    assert kkt.balance > 0.05
    assert kkt.stationarity > 0.05
    assert kkt.normalised_margin < residual(network, data).normalised_margin


@settings(max_examples=15)
@given(seeds, st.floats(0.1, 10))
def test_scale_rotation_and_order_do_not_matter(seed, factor):
    data = gaussian(9, 4, seed)
    network = with_kinks(data, 20, seed)
    expected = residual(network, data, margin_tolerance=0.2)
    rng = generator(seed)
    Q = torch.linalg.qr(torch.randn(4, 4, generator=rng, dtype=torch.float64)).Q
    order, neurons = torch.randperm(9, generator=rng), torch.randperm(20, generator=rng)
    turned = Data((data.X @ Q)[order], data.y[order])
    moved = TwoLayer((network.W @ Q)[neurons], network.b[neurons], network.v[neurons]).scaled(factor)
    kkt = residual(moved, turned, margin_tolerance=0.2)
    assert kkt.stationarity == pytest.approx(expected.stationarity, abs=1e-7)
    assert kkt.normalised_margin == pytest.approx(expected.normalised_margin, rel=1e-9)
    assert kkt.share_on_margin == expected.share_on_margin


@settings(max_examples=15)
@given(seeds)
def test_the_residual_is_attained_and_never_below_the_distance(seed):
    data = gaussian(7, 3, seed)
    network = with_kinks(data, 16, seed)
    kkt = residual(network, data, margin_tolerance=0.5)
    assert (kkt.multipliers >= 0).all()
    assert ((kkt.slopes >= 0) & (kkt.slopes <= 1)).all()
    assert (kkt.multipliers[~kkt.on_margin] == 0).all()
    assert 0 <= kkt.complementarity <= 0.5
    assert kkt.stationarity == pytest.approx(attained(network, data, kkt), rel=1e-9)
    assert kkt.stationarity >= stationarity_by_vertices(network, data, margin_tolerance=0.5) - 1e-12


def attained(network, data, kkt):
    """‖θ - Σ λ_i g_i‖/‖θ‖ at the reported multipliers and slopes, through autograd."""
    network = network.scaled(float(network.margins(data.X, data.y).min()) ** -0.5)
    slopes = (network.preactivations(data.X) > 0).double()
    slopes[kkt.kinks[:, 0], kkt.kinks[:, 1]] = kkt.slopes
    theta = [p.clone().requires_grad_() for p in (network.W, network.b, network.v)]
    W, b, v = theta
    hidden = data.X @ W.T + b
    frozen = (slopes * hidden) @ network.v + hidden.detach().relu() @ v
    gradients = torch.autograd.grad((kkt.multipliers * data.y * frozen).sum(), theta)
    square = sum(float((p.detach() - g).square().sum()) for p, g in zip(theta, gradients, strict=True))
    return (square / float(network.squared_norm)) ** 0.5


def test_the_margin_set_is_the_papers():
    data = gaussian(30, 3, 0)
    network = fitted(data, 60, 0)
    q = network.margins(data.X, data.y)
    kkt = residual(network, data)
    assert kkt.share_on_margin == float((q <= 1.1 * q.min()).double().mean())
    assert kkt.normalised_margin == pytest.approx(float(q.min() / network.squared_norm))


def test_every_multiplier_allowed_is_a_lower_bound():
    data = gaussian(10, 3, 3)
    network = fitted(data, 30, 3)
    values = [residual(network, data, margin_tolerance=tol).stationarity for tol in (1e-6, 0.1, math.inf)]
    assert values == sorted(values, reverse=True)


def test_zero_neurons_change_nothing():
    network, data = closed_form(6, 6)
    zero = torch.zeros(3, dtype=torch.float64)
    W = torch.cat([network.W, torch.zeros(3, 6, dtype=torch.float64)])
    kkt = residual(TwoLayer(W, torch.cat([network.b, zero]), torch.cat([network.v, zero])), data)
    assert kkt.stationarity < 1e-10


def test_single_precision_networks_are_measured_in_double():
    network, data = closed_form(20, 20)
    assert 1e-9 < residual(network.to(torch.float32), data, margin_tolerance=1e-5).stationarity < 1e-6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda n, d: (TwoLayer(n.W, n.b, -n.v), d), "misclassifies 4 of 4 examples"),
        (lambda n, d: (TwoLayer(n.W, n.b, n.v, torch.tensor(0.5).double()), d), "output bias 0.5"),
        (lambda n, d: (n, Data(d.X, torch.tensor([0, 1, 2, 0]))), "labels -1 and 1"),
        (lambda n, d: (n, Data(d.X[:, :3], d.y)), "takes 4 features"),
        (lambda n, d: (TwoLayer(n.W, n.b * math.nan, n.v), d), "b of the network holds NaN"),
    ],
)
def test_bad_input_is_named(change, words):
    network, data = change(*closed_form(4, 4))
    with pytest.raises(InputError, match=words):
        residual(network, data)


def test_a_network_with_biases_cannot_be_judged_without_them():
    with pytest.raises(InputError, match="biases=False"):
        residual(*closed_form(4, 4), biases=False)


@pytest.mark.parametrize("wrong", [-1e-9, -1.0, math.nan])
def test_a_tolerance_below_0_is_refused(wrong):
    with pytest.raises(InputError, match=f"margin_tolerance is {wrong!r}"):
        residual(*closed_form(4, 4), margin_tolerance=wrong)


def test_slopes_are_free_where_an_input_is_small_against_both_lengths_by_hand():
    """‖x‖ = 5 and 1, ‖w‖ = 4, ¼ and 4 with the tolerance 0.1: |z| up to 2, ⅛ and 2, and up to 0.4, 0.025 and 0.4."""
    X = torch.tensor([[3.0, 4.0], [1.0, 0.0]], dtype=torch.float64)
    W = torch.tensor([[4.0, -3.2], [0.0, 0.25], [-0.3, -4.0]], dtype=torch.float64)
    W[0] *= 4 / W[0].norm()
    Z = X @ W.T  # -0.6.., 1 and -16.9; 3.1.., 0 and -0.3
    weights = Weights(W, torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64))
    found = stationarity_problem(X, torch.ones(2, dtype=torch.float64), weights, 0.1)
    assert sorted(map(tuple, found.kinks.tolist())) == [(0, 0), (1, 1), (1, 2)]
    assert found.active.tolist() == [[False, True, False], [True, False, False]]
    torch.testing.assert_close(found.Z, Z)
    dead = Weights(W, torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64))
    assert len(stationarity_problem(X, found.y, dead, 0.1).kinks) == 2


def test_complementarity_is_that_of_the_multipliers_of_large_examples_too():
    """Their ‖θ‖² and all multipliers are far below 1."""
    data = gaussian(11, 3, 3)
    small = with_kinks(data, 18, 3)
    uneven = small.v * torch.linspace(0.99, 1.01, 18, dtype=torch.float64)
    big, network = Data(1000 * data.X, data.y), TwoLayer(small.W, 1000 * small.b, uneven)
    kkt = residual(network, big, margin_tolerance=math.inf)
    q, lam = network.margins(big.X, big.y), kkt.multipliers
    assert 0 < lam.sum() < 1
    expected = float((lam * (q / q.min() - 1)).sum() / lam.sum())
    assert expected > 1e-4
    assert kkt.complementarity == pytest.approx(expected, rel=1e-9)
    assert (kkt.slopes > 0).any()
    assert kkt.stationarity == pytest.approx(attained(network, big, kkt), rel=1e-6)
