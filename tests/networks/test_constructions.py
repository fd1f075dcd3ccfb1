"""The papers' networks: their radius holds against random and worst directions, and broken hypotheses are named."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from brittle.common.errors import InputError
from brittle.networks import clustered, linear_model, nearly_orthogonal, orthogonal_kkt, smaller_norm

BUILDERS = [nearly_orthogonal, clustered, smaller_norm, orthogonal_kkt, linear_model]
EXACT = [orthogonal_kkt, linear_model]


def orthogonal(n, norm, seed, columns=None):
    """n orthogonal rows in general position with alternating labels."""
    rng = torch.Generator().manual_seed(seed)
    basis, _ = torch.linalg.qr(torch.randn(columns or n + 2, columns or n + 2, generator=rng, dtype=torch.float64))
    return norm * basis[:n], torch.tensor([1.0, -1.0] * n)[:n].double()


def worst_margins(network, X, y, radius, rng, starts=30):
    """The lowest margins found within the radius: random directions and steepest descent from each of them."""
    worst = network.margins(X, y)
    for _ in range(starts):
        delta = torch.randn(X.shape, generator=rng, dtype=torch.float64)
        for _ in range(25):
            delta = radius * delta / delta.norm(dim=1, keepdim=True)
            worst = worst.minimum(network.margins(X + delta, y))
            delta = delta - 0.3 * radius * torch.nn.functional.normalize(network.margin_gradients(X + delta, y))
    return worst


@pytest.mark.parametrize("build", BUILDERS)
@pytest.mark.parametrize("norm", [1.0, 5.0])
def test_no_perturbation_within_the_radius_flips(build, norm, rng):
    X, y = orthogonal(6, norm, 0)
    result = build(X, y)
    assert (result.network.margins(X, y) > 0).all()
    assert 0 < result.promised <= result.radius <= result.flip
    assert (worst_margins(result.network, X, y, result.radius * (1 - 1e-9), rng) >= 0).all()


@pytest.mark.parametrize("build", EXACT)
def test_exact_radii_are_attained(build, rng):
    X, y = orthogonal(6, 4.0, 1)
    result = build(X, y)
    direction = torch.nn.functional.normalize((y[:, None] * X).sum(0), dim=0)
    flipped = result.network.margins(X - (result.flip * (1 + 1e-9)) * y[:, None] * direction, y)
    assert (flipped < 0).all()
    assert result.radius == pytest.approx(result.flip)


@given(st.integers(2, 8), st.integers(0, 20), st.floats(0.5, 20))
def test_the_smaller_norm_network_flips_as_the_paper_says(n, seed, norm):
    X, y = orthogonal(n, norm, seed)
    result = smaller_norm(X, y)
    for x, label in zip(X, y, strict=True):
        others = X[y == -label]
        z = 2 * others.mean(0)
        assert float(result.network.logits((x + z)[None])) == pytest.approx(-float(label))
        assert float(z.norm()) <= result.flip * (1 + 1e-9)
    x, others = X[0], X[y == -y[0]]
    nearest = (others.sum(0) - x) / norm
    delta = nearest / nearest.norm() * norm / math.sqrt(1 + len(others))
    assert float(result.network.margins((x + delta)[None], y[:1])) == pytest.approx(0, abs=1e-12)
    assert result.radius <= float(delta.norm()) * (1 + 1e-9)


def test_the_worked_example_of_the_paper():
    d = 16
    X, y = math.sqrt(d) * torch.eye(d).double(), torch.tensor([1.0] * 8 + [-1.0] * 8).double()
    robust, smaller = nearly_orthogonal(X, y), smaller_norm(X, y)
    assert robust.radius == math.sqrt(d) / 2
    assert torch.allclose(robust.network.W, 2 * X / d)
    assert (robust.network.b == -1).all()
    assert smaller.flip == pytest.approx(2 * math.sqrt(2))
    assert smaller.network.squared_norm < robust.network.squared_norm


@given(st.integers(1, 5), st.integers(0, 50), st.floats(0.7, 30))
def test_the_closed_form_is_a_kkt_point(half, seed, norm):
    """Stationarity in W, b and v, feasibility and complementarity, from the definition alone."""
    X, y = orthogonal(2 * half, norm, seed)
    result = orthogonal_kkt(X, y)
    network, lam, d = result.network, result.multipliers, norm**2
    Z = network.preactivations(X)
    beta = len(X) / d / (2 * (1 + len(X) / d))
    share = torch.where(Z.gt(Z.max() / 2), 1.0, beta / (1 - beta)).double()
    assert 0 < beta / (1 - beta) < 1
    weights = lam[:, None] * y[:, None] * network.v * share
    assert torch.allclose(network.margins(X, y), torch.ones_like(y))
    assert torch.allclose(weights.T @ X, network.W, atol=1e-10)
    assert torch.allclose(weights.sum(0), network.b, atol=1e-10)
    assert torch.allclose((lam * y) @ Z.relu(), network.v, atol=1e-10)
    assert float(Z.abs().min(1).values.max()) < 1e-12
    assert float(network.squared_norm) == pytest.approx(2 * float(lam.sum()))


@settings(max_examples=12)
@given(st.integers(2, 6), st.integers(0, 50))
def test_nearly_orthogonal_examples_and_their_radius(n, seed):
    X, y = orthogonal(n, 1.0, seed)
    X = X + 0.15 * X.roll(1, 0)
    X = 3 * X / X.norm(dim=1, keepdim=True)
    result = nearly_orthogonal(X, y)
    c = float((X @ X.T).fill_diagonal_(0).abs().max()) / 9
    assert result.radius == pytest.approx(3 * (1 - c) / 2)
    assert torch.allclose(result.network.margins(X, y), torch.ones_like(y))
    rng = torch.Generator().manual_seed(seed)
    assert (worst_margins(result.network, X, y, result.radius * (1 - 1e-9), rng, starts=5) >= 0).all()


def test_the_cluster_network_is_robust_on_noisy_examples_too(rng):
    means, labels = orthogonal(4, 40.0, 3, columns=60)
    result = clustered(means, labels, noise=1.0)
    assert result.radius == pytest.approx(10)
    cluster = torch.randint(0, 4, (200,), generator=rng)
    X = means[cluster] + torch.randn(200, 60, generator=rng, dtype=torch.float64)
    y = labels[cluster]
    assert (worst_margins(result.network, X, y, result.radius, rng) > 0).all()


def test_the_linear_model_is_linear(rng):
    means, labels = orthogonal(5, 3.0, 0)
    network = linear_model(means, labels).network
    X = torch.randn(20, means.shape[1], generator=rng, dtype=torch.float64)
    assert torch.allclose(network.logits(X), X @ (labels @ means) / 9)


X, y = orthogonal(4, 2.0, 0)
FAN = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.8, 0.6]]).double()
SKEW = X + torch.roll(X, 1, 0)


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (lambda: nearly_orthogonal(X * torch.tensor([1, 1, 1, 2.0])[:, None], y), "norms from 2 to 4"),
        (lambda: nearly_orthogonal(SKEW, y, coherence=0.1), r"\|x_i·x_j\| is 0.5 d.*c = 0.1"),
        (lambda: nearly_orthogonal(torch.ones(2, 3), y[:2]), "parallel"),
        (lambda: nearly_orthogonal(X, y, coherence=1.5), "coherence is 1.5"),
        (lambda: nearly_orthogonal(X, y[:3]), "labels must be -1 or 1"),
        (lambda: nearly_orthogonal(X, 2 * y), "labels must be -1 or 1"),
        (lambda: nearly_orthogonal(X * torch.nan, y), "NaN"),
        (lambda: nearly_orthogonal(X[0], y), r"shape \(6,\)"),
        (lambda: nearly_orthogonal(0 * X, y), "norms from 0 to 0"),
        (lambda: clustered(SKEW, y), r"is 0.5 d; the construction needs at most d/4"),
        (lambda: clustered(X, y, noise=3.0), "needs at most d/4"),
        (lambda: clustered(X, y, noise=-1.0), "noise is -1.0"),
        (lambda: clustered(X / 4, y, noise=0.1), "squared norm 0.25"),
        (lambda: smaller_norm(SKEW, y), "orthogonal examples are needed"),
        (lambda: smaller_norm(X, y.abs()), "both are needed"),
        (lambda: orthogonal_kkt(X[:3], y[:3]), "2 of 3 labels are positive"),
        (lambda: orthogonal_kkt(SKEW, y), "orthogonal examples are needed"),
        (lambda: linear_model(torch.ones(2, 3), y[:2]), "the means cancel"),
        (lambda: linear_model(FAN, torch.tensor([1.0, 1.0, -1.0])), "not separate"),
    ],
)
def test_a_broken_hypothesis_is_named(attempt, words):
    with pytest.raises(InputError, match=words):
        attempt()
