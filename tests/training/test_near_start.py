"""Lazy training stays in its ball; adversarial training resists the attack that it trains against."""

import math

import pytest
import torch

from brittle.common.errors import InputError
from brittle.data import Data, Mnist, Sphere, downsample, unit_norm
from brittle.geometry import into_ball
from brittle.networks import LazyInit as LazyStart
from brittle.networks import TwoLayer
from brittle.training import Adversarial, GradientDescent, LazyTraining, Steps
from brittle.training.adversarial import perturb_examples
from brittle.training.descent import Batches


def case(rng, dim=10, width=40, examples=30):
    return LazyStart().draw(dim, width, rng), Sphere(dim, radius=1.0).sample(examples, rng)


def moved(network, start):
    return float((network.W - start.W).norm(dim=1).max())


def test_it_returns_the_last_iterate_inside_the_ball(rng):
    network, data = case(rng)
    lazy = LazyTraining(radius=2.0, batch=10)
    result = lazy.train(network, data, torch.Generator().manual_seed(5))
    ball = 2.0 / math.sqrt(40)
    assert result.status == "reached"
    assert result.stopped_by == "ball"
    assert moved(result.network, network) <= ball
    beyond = GradientDescent(until=Steps(result.steps), rate=0.1, batch=10, layers="first")
    outside = beyond.train(network, data, torch.Generator().manual_seed(5)).network
    assert moved(outside, network) > ball
    assert torch.equal(result.network.v, network.v)
    assert not result.network.b.any()
    last = (
        LazyTraining(radius=2.0, batch=10, inside=False).train(network, data, torch.Generator().manual_seed(5)).network
    )
    torch.testing.assert_close(last.W, outside.W)


def checked_in_every_step(start, data, lazy, steps, rng):
    """By autograd, and the ball measured after each step: the network, its number of steps, and whether it left."""
    W, b = start.W.clone().requires_grad_(), start.b.clone().requires_grad_()
    batches = Batches(len(data), lazy.batch, rng)
    for step in range(1, steps + 1):
        rows = batches.next()
        q = data.y[rows] * (torch.relu(data.X[rows] @ W.T + b) @ start.v)
        gradients = torch.autograd.grad(torch.nn.functional.softplus(-q).mean(), (W, b))
        before = W.detach().clone(), b.detach().clone()
        with torch.no_grad():
            W -= lazy.rate * gradients[0]
            if start.b.any():
                b -= lazy.rate * gradients[1]
        if float((W - start.W).detach().norm(dim=1).max()) > lazy.radius / math.sqrt(start.width):
            return (*(before if lazy.inside else (W.detach(), b.detach())), step, True)
    return W.detach(), b.detach(), steps, False


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("radius", [0.5, 2.0, 100.0])
def test_the_ball_is_left_in_the_step_in_which_a_check_of_every_step_finds_it(inside, biases, radius, rng):
    """The run measures the ball only where a sum of bounds says that it could have been left."""
    start, data = LazyStart(biases=biases).draw(10, 40, rng), Sphere(10, radius=3.0).sample(30, rng)
    lazy = LazyTraining(until=Steps(150), radius=radius, batch=10, inside=inside)
    W, b, steps, left = checked_in_every_step(start, data, lazy, 150, torch.Generator().manual_seed(6))
    result = lazy.train(start, data, torch.Generator().manual_seed(6))
    assert (result.steps, result.stopped_by == "ball") == (steps, left)
    assert left == (radius < 100)
    torch.testing.assert_close(result.network.W, W, rtol=0, atol=1e-12)
    torch.testing.assert_close(result.network.b, b, rtol=0, atol=1e-12)
    assert torch.equal(result.network.start.W, start.W)


def test_what_was_handed_out_is_not_written_into(rng):
    network, data = case(rng)
    run = LazyTraining(radius=100.0, batch=10).begin(network, data, rng)
    run.step()
    run.step()
    theta = run.snapshot()
    kept = theta.clone()
    run.step()
    assert torch.equal(theta, kept)
    assert not torch.equal(run.theta, kept)
    assert torch.equal(run.objective.start[:400].view(40, 10), network.W)
    before = run.theta
    run.step()
    assert run.theta is before  # in place, far inside the ball


def test_the_check_per_epoch_looks_only_there(rng):
    network, data = case(rng)
    result = LazyTraining(radius=2.0, batch=10, check="epoch").train(network, data, rng)
    assert result.steps % 3 == 0
    assert moved(result.network, network) <= 2.0 / math.sqrt(40)


def test_lazy_mnist_ends_in_the_ball_with_a_small_test_error(mnist_folder, rng):
    """wang2022 5.1 in small: 0/1, d = 14², width 200, C0 = 10."""
    digits = Mnist(folder=mnist_folder / "mnist", classes=(0, 1)).sample(1000, rng, test=1000)
    data = unit_norm(downsample(digits, 14))
    network = LazyStart().draw(196, 200, rng)
    result = LazyTraining(radius=10.0, precision="float32").train(network, data, rng)
    assert result.stopped_by == "ball"
    assert moved(result.network.to(torch.float64), network) <= 10 / math.sqrt(200) + 1e-5
    assert result.network.accuracy(data.X_test, data.y_test) > 0.99


def test_pgd_examples_are_within_the_budget_and_worse(rng):
    network, data = case(rng)
    regime = Adversarial(budget=0.3, inner_steps=10)
    for kind in (regime, Adversarial(budget=0.3, inner_steps=10, normalised=False, inner_rate=1.0)):
        X = perturb_examples(network, data, kind)
        assert float((X - data.X).norm(dim=1).max()) <= 0.3 * (1 + 1e-12)
        assert bool((network.margins(X, data.y) < network.margins(data.X, data.y)).all())
    assert regime.inner_length == pytest.approx(2.5 * 0.3 / 10)


def test_pgd_on_a_linear_network_is_exact(rng):
    """N(x) = φ(w·x) - φ(-w·x) = w·x: the worst example in the ball is x - y R w/‖w‖."""
    w = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    network = TwoLayer(torch.cat([w, -w]), torch.zeros(2).double(), torch.tensor([1.0, -1.0]).double())
    data = Data(torch.tensor([[1.0, 2.0], [-1.0, 0.5]]), torch.tensor([1.0, -1.0]))
    X = perturb_examples(network, data, Adversarial(budget=0.2, inner_steps=20))
    torch.testing.assert_close(X, data.X - 0.2 * data.y[:, None] * w / 5)


@pytest.mark.parametrize("project", ["epoch", "step"])
def test_adversarial_training_gains_robust_accuracy_within_the_ball(rng, project):
    network, data = case(rng, dim=20, width=60, examples=20)
    regime = Adversarial(
        budget=0.1, radius=math.sqrt(60), rate=0.5, batch=5, inner_steps=5, project=project, patience=10
    )
    result = regime.train(network, data, rng)
    before = network.accuracy(perturb_examples(network, data, regime), data.y)
    after = result.network.accuracy(perturb_examples(result.network, data, regime), data.y)
    assert result.stopped_by == "robust_accuracy"
    assert after == result.robust_accuracy
    assert after > before + 0.2
    assert moved(result.network, network) <= 1.0 + 1e-12


def test_projection_moves_only_what_is_outside(rng):
    W = torch.tensor([[3.0, 4.0, 0.0], [0.1, 0.2, 0.0]])
    torch.testing.assert_close(into_ball(W, 1.0), torch.tensor([[0.6, 0.8, 0.0], [0.1, 0.2, 0.0]]))


def test_what_is_missing_is_named(rng):
    network, data = case(rng)
    with pytest.raises(InputError, match="Generator"):
        LazyTraining().train(network, data)
    with pytest.raises(InputError, match="Generator"):
        Adversarial().train(network, data)
    for options, message in (({"radius": -1.0}, "radius is -1.0"), ({"check": "never"}, "check is 'never'")):
        with pytest.raises(InputError, match=message):
            LazyTraining(**options)
    for options, message in (({"budget": 0.0}, "budget is 0.0"), ({"project": "never"}, "project is 'never'")):
        with pytest.raises(InputError, match=message):
            Adversarial(**options)
