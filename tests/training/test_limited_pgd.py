"""Adversarial training within what the data allow, and TRADES."""

import pytest
import torch

from brittle.attacks import MinimumNorm
from brittle.data import Data, Sphere
from brittle.geometry import nearest_rivals
from brittle.networks import Deep, TorchLinearInit
from brittle.networks.affine import Dense
from brittle.training import Flow, LimitedPGD, Logistic, LogLoss, Steps


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def sphere():
    data = Sphere(20).sample(16, generator())
    start = TorchLinearInit().draw(20, 30, generator(1))
    return Flow(until=LogLoss(-3.0), loss=Logistic()).train(start, data).network, data


@pytest.mark.parametrize("trades", [None, 3.0])
def test_the_radius_grows_at_no_loss_of_accuracy(trades, sphere):
    network, data = sphere
    training = LimitedPGD(until=Steps(150), inner_steps=5, trades=trades, target=0.7).train(network, data, generator())
    before, after = (MinimumNorm().run(each, data).norms.median() for each in (network, training.network))
    assert float(after) > 1.15 * float(before)
    assert training.accuracy == 1


@pytest.mark.parametrize("trades", [None, 3.0])
def test_no_example_is_moved_farther_than_its_share(trades, sphere):
    network, data = sphere
    run = LimitedPGD(inner_steps=4, trades=trades).begin(network, data, generator())
    run.kappa, rows = 0.3, torch.arange(len(data))
    delta = run._attacked(rows)
    assert bool((delta.norm(dim=1) <= 0.3 * run.limits * (1 + 1e-5)).all())
    assert bool((delta.norm(dim=1) >= 0.29 * run.limits).all())
    limits = nearest_rivals(data.X, data.y)[0] / 2 / run.form.unit
    inside = limits.clamp(float(limits.median()) / 2, 2 * float(limits.median()))
    assert torch.allclose(run.limits.double(), inside, rtol=1e-4)


def test_an_attack_raises_the_loss(sphere):
    network, data = sphere
    rows = torch.arange(len(data))
    for trades in (None, 3.0):
        run = LimitedPGD(inner_steps=4, trades=trades).begin(network, data, generator())
        run.kappa = 0.5
        points = run.objective.X[rows] + run._attacked(rows)
        assert float(run._loss(run.theta, rows, points)) > 1.05 * float(
            run._loss(run.theta, rows, run.objective.X[rows])
        )


def test_the_divergence_is_that_of_the_textbooks(sphere):
    """Kullback and Leibler's, against PyTorch's own, of one logit and of several."""
    network, data = sphere
    several = Deep(
        (
            Dense(network.W, network.b),
            Dense(torch.randn(3, 30, generator=generator()).double(), torch.zeros(3).double()),
        )
    )
    for each, labels in ((network, data.y), (several, torch.arange(16) % 3)):
        run = LimitedPGD(trades=1.0).begin(each, Data(data.X, labels), generator())
        rows, X = torch.arange(16), run.objective.X
        points = X + 0.1 * torch.randn(X.shape, generator=generator())
        found = run._divergence(run.theta, rows, points)
        p, q = (run._log_probabilities(run.theta, at) for at in (X, points))
        expected = torch.nn.functional.kl_div(q, p, log_target=True, reduction="none").sum(1)
        assert torch.allclose(found, expected, atol=1e-6)
        assert torch.allclose(p.exp().sum(1), torch.ones(16), atol=1e-6)
        assert float(run._divergence(run.theta, rows, X).abs().max()) < 1e-6
