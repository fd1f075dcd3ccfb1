"""Descent and the paper's recipe against plain loops, and melamed2023 A.2 and 6.2."""

import math

import pytest
import torch

from brittle.common.errors import InputError
from brittle.data import Data, Sphere, Subspace
from brittle.networks import Kaiming, TorchLinearInit, TwoLayer
from brittle.training import (
    Accuracy,
    Exponential,
    Flow,
    GradientDescent,
    Logistic,
    LogLoss,
    Loss,
    Margin,
    SgdSchedule,
    Steps,
)


def case(rng, dim=6, width=8, examples=10):
    return TorchLinearInit().draw(dim, width, rng), Sphere(dim).sample(examples, rng)


def plain_descent(network, data, rates, loss, decay=0.0):
    """The textbook loop with torch.optim; its weight decay is on W alone."""
    W, b, v = (part.clone().requires_grad_() for part in (network.W, network.b, network.v))
    optimiser = torch.optim.SGD([{"params": [W], "weight_decay": decay}, {"params": [b, v]}], lr=1.0)
    for rate in rates:
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.zero_grad()
        loss(data.y * (torch.relu(data.X @ W.T + b) @ v)).backward()
        optimiser.step()
    return TwoLayer(W.detach(), b.detach(), v.detach())


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_descent_is_the_textbook_loop(rng, decay):
    network, data = case(rng)
    found = GradientDescent(until=Steps(50), rate=0.2, decay=decay).train(network, data).network
    expected = plain_descent(network, data, [0.2] * 50, lambda q: torch.log1p(torch.exp(-q)).mean(), decay)
    for name in ("W", "b", "v"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-12)


def test_the_recipe_is_the_papers(rng):
    """vardi2022 6: exponential loss, 1e-5 at first and 1.1 times more every 100 iterations."""
    network, data = case(rng)
    recipe = SgdSchedule(until=Steps(350))
    assert (recipe.rate, recipe.growth, recipe.every, recipe.batch) == (1e-5, 1.1, 100, 5000)
    assert SgdSchedule().stops == (Loss(1e-30),)
    found = recipe.train(network, data).network
    rates = [1e-5 * 1.1 ** (step // 100) for step in range(350)]
    expected = plain_descent(network, data, rates, lambda q: torch.exp(-q).mean())
    for name in ("W", "b", "v"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), rtol=0, atol=1e-14)


def test_the_recipe_ends_where_the_flow_ends(rng):
    """At equal loss, on a small instance and with a rate that grows faster than the paper's."""
    network, data = TorchLinearInit().draw(20, 60, rng), Sphere(20).sample(5, rng)
    recipe = SgdSchedule(until=(LogLoss(-5), Steps(20_000)), rate=2e-3, growth=1.3).train(network, data)
    flow = Flow(until=LogLoss(recipe.log_loss)).train(network, data)
    assert recipe.status == "reached"
    assert flow.normalised_margin == pytest.approx(recipe.normalised_margin, rel=1e-3)
    assert flow.gradient_evaluations < recipe.gradient_evaluations / 3


def test_off_the_subspace_decay_is_the_only_force(rng):
    """melamed2023 6.2 with data on the first coordinates: exactly T multiplications by 1 - ηλ."""
    inner = Sphere(5).sample(12, rng)
    data = Data(torch.cat([inner.X, torch.zeros(12, 7)], 1), inner.y)
    network = Kaiming().draw(12, 20, rng)
    after = GradientDescent(until=Steps(60), rate=0.05, decay=0.4, loss=Logistic("sum"), layers="first").train(
        network, data
    )
    expected = network.W[:, 5:]
    for _ in range(60):
        expected = expected * (1 - 0.05 * 0.4)
    assert torch.equal(after.network.W[:, 5:], expected)
    torch.testing.assert_close(after.network.W[:, 5:], network.W[:, 5:] * (1 - 0.05 * 0.4) ** 60, rtol=1e-13, atol=0)
    assert torch.equal(after.network.v, network.v)


def test_off_a_rotated_subspace_decay_is_the_only_force(rng):
    data = Subspace(30, 20).sample(15, rng)
    network = Kaiming().draw(30, 20, rng)
    after = GradientDescent(until=Steps(40), rate=0.05, decay=0.4, layers="first").train(network, data).network
    off = data.truth.complement
    torch.testing.assert_close(after.W @ off, network.W @ off * (1 - 0.05 * 0.4) ** 40, rtol=0, atol=1e-12)
    still = GradientDescent(until=Steps(40), rate=0.05).train(network, data).network
    assert float(((still.W - network.W) @ off).abs().max()) < 1e-12


@pytest.mark.parametrize("part", ["weights", "first", "all"])
def test_decay_acts_on_the_part_that_was_named(rng, part):
    """Without a data force (one far outlier right by far) only the regularised part shrinks."""
    network = TwoLayer(torch.ones(2, 2), torch.ones(2), torch.ones(2))
    data = Data(torch.full((1, 2), 1e3), torch.tensor([1.0]))
    after = GradientDescent(until=Steps(1), rate=0.5, decay=0.5, decay_on=part).train(network, data).network
    shrunk = {"weights": (0.75, 1, 1), "first": (0.75, 0.75, 1), "all": (0.75, 0.75, 0.75)}[part]
    for value, expected in zip((after.W, after.b, after.v), shrunk, strict=True):
        assert bool((value == expected).all())


def test_the_unsquared_penalty(rng):
    """The gradient of λ‖W‖ is λW/‖W‖."""
    network = TwoLayer(torch.ones(2, 2), torch.ones(2), torch.ones(2))
    data = Data(torch.full((1, 2), 1e3), torch.tensor([1.0]))
    after = GradientDescent(until=Steps(1), rate=0.5, decay=0.5, squared=False).train(network, data).network
    torch.testing.assert_close(after.W, torch.full((2, 2), 1 - 0.5 * 0.5 / 2))


@pytest.mark.parametrize(
    ("stop", "holds"),
    [
        (Margin(0.3), lambda result: result.margin > 0.3),
        (Loss(0.2), lambda result: result.log_loss < math.log(0.2)),
        (Accuracy(1.0), lambda result: result.accuracy == 1.0),
        (Steps(7), lambda result: result.steps == 7),
    ],
    ids=lambda value: None if callable(value) else str(value),
)
def test_every_stop_is_reached_and_named(rng, stop, holds):
    network, data = case(rng, dim=30)
    result = GradientDescent(until=(stop, Steps(3000)), rate=0.1).train(network, data)
    assert result.status == "reached"
    assert result.stopped_by == str(stop)
    assert holds(result)
    if not isinstance(stop, Steps):
        earlier = GradientDescent(until=Steps(max(result.steps - 1, 1)), rate=0.1).train(network, data)
        assert not holds(earlier)


def test_a_stop_out_of_reach_is_reported(rng):
    network, data = case(rng)
    result = GradientDescent(until=(Margin(1e6), Steps(5))).train(network, data)
    assert result.status == "budget"
    assert result.stopped_by == "steps=5"
    assert result.message == "ended by steps=5 before margin=1e+06 was reached"


@pytest.mark.parametrize(
    "regime", [GradientDescent(until=Steps(9), rate=1e9, loss=Exponential()), SgdSchedule(Steps(9), rate=1e9)]
)
def test_too_long_a_step_leaves_the_last_good_network(rng, regime):
    network, data = case(rng)
    result = regime.train(network, data)
    assert result.status == "diverged"
    assert "rate 1e+09 is too large" in result.message
    assert math.isfinite(result.log_loss)
    assert bool(result.network.W.isfinite().all())


def test_the_recipe_never_claims_a_loss_that_its_floats_cannot_hold(rng):
    network, data = TorchLinearInit().draw(20, 30, rng), Sphere(20).sample(4, rng)
    result = SgdSchedule(until=(LogLoss(-1e4), Steps(200)), rate=1e-2, growth=30.0, every=1).train(network, data)
    assert not result.reached
    assert -800 < result.log_loss < -300


def test_batches_take_every_example_once_per_epoch(rng):
    network, data = case(rng, examples=12)
    result = GradientDescent(until=Steps(30), rate=0.1, batch=4).train(network, data, rng)
    again = GradientDescent(until=Steps(30), rate=0.1, batch=4).train(network, data, torch.Generator().manual_seed(9))
    assert result.gradient_evaluations == 30
    assert not torch.equal(result.network.W, again.network.W)
    with pytest.raises(InputError, match=r"give it a torch\.Generator"):
        GradientDescent(batch=4).train(network, data)


def test_the_recipe_makes_batches_of_large_data(rng):
    network, data = case(rng, examples=12)
    result = SgdSchedule(until=Steps(6), batch=5).train(network, data, rng)
    assert result.steps == 6
    assert result.log_loss == pytest.approx(Exponential().total(result.network.margins(data.X, data.y)))


def test_deep_networks_and_classes_descend(rng):
    data = Data(torch.eye(6), torch.tensor([0, 1, 2, 0, 1, 2]))
    network = TorchLinearInit().draw_deep(6, [20, 10], rng, outputs=3)
    result = GradientDescent(until=(Accuracy(1.0), Steps(2000)), rate=0.5).train(network, data)
    assert result.status == "reached"
    assert result.network.accuracy(data.X, data.y) == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0.0}, "rate is 0.0"),
        ({"rate": math.nan}, "rate is nan"),
        ({"decay": -1.0}, "decay is -1.0"),
        ({"layers": "second"}, "layers is 'second'"),
        ({"decay_on": "none"}, "decay_on is 'none'"),
        ({"batch": 0}, "batch is 0"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    with pytest.raises(InputError, match=message):
        GradientDescent(**options)


def test_class_numbers_for_a_sign_network_are_refused(rng):
    data = Data(torch.eye(3), torch.tensor([0, 1, 2]))
    with pytest.raises(InputError, match="needs the labels -1 and 1"):
        Flow().train(TorchLinearInit().draw(3, 4, rng), data)


@pytest.mark.parametrize("biases", [False, True, None])
def test_the_biases_of_deep_networks_stay_where_they_shall(rng, biases):
    """None trains them, as True does; those that stay count in the norm all the same."""
    start, data = TorchLinearInit().draw_deep(6, [7, 5], rng), Sphere(6).sample(8, rng)
    training = GradientDescent(until=Steps(5), rate=0.5, biases=biases).train(start, data)
    moved = [not torch.equal(b, b0) for b, b0 in zip(training.network.biases, start.biases, strict=True)]
    assert moved == [biases is not False] * 3
    assert not torch.equal(training.network.weights[0], start.weights[0])
    assert training.norm == pytest.approx(float(training.network.squared_norm) ** 0.5, rel=1e-12)
