"""Closed-form gradients against autograd, chunks against one piece, the span against the whole space."""

import math

import pytest
import torch
from torch.func import functional_call

from brittle.data import Data, Sphere, Subspace
from brittle.networks import TorchLinearInit, TwoLayer
from brittle.training import Exponential, Logistic
from brittle.training.objective import DataSpan, ModuleObjective, TwoLayerObjective, margins_of


def case(rng, dim=7, width=9, examples=12):
    return TorchLinearInit().draw(dim, width, rng), Sphere(dim).sample(examples, rng)


def by_autograd(network, data, loss):
    """-∇ ln L of the loss written down directly, for W, b, v in this order."""
    W, b, v = (part.clone().requires_grad_() for part in (network.W, network.b, network.v))
    q = data.y * (torch.relu(data.X @ W.T + b) @ v)
    values = torch.exp(-q) if isinstance(loss, Exponential) else torch.log1p(torch.exp(-q))
    total = values.sum() if loss.reduction == "sum" else values.mean()
    gradients = torch.autograd.grad(torch.log(total), (W, b, v))
    return math.log(total.item()), -torch.cat([gradient.reshape(-1) for gradient in gradients])


@pytest.mark.parametrize("loss", [Exponential("sum"), Logistic("mean")])
@pytest.mark.parametrize("chunk", [1, 5, 100])
def test_closed_form_is_autograd(rng, loss, chunk):
    network, data = case(rng)
    objective = TwoLayerObjective(network, data)
    objective.chunk = min(chunk, len(data))
    found = objective.evaluate(objective.start, loss)
    log_loss, direction = by_autograd(network, data, loss)
    assert found.log_loss == pytest.approx(log_loss, rel=1e-13)
    torch.testing.assert_close(found.direction[:-1], direction, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(found.margins, network.margins(data.X, data.y))


def test_chunks_do_not_overflow_where_margins_differ_by_thousands(rng):
    """The running softmax must rescale what came before, in whichever order the worst example comes."""
    network, data = case(rng)
    network = network.scaled(60.0)
    whole = TwoLayerObjective(network, data)
    parts = TwoLayerObjective(network, data)
    parts.chunk = 1
    one, many = (each.evaluate(each.start, Exponential()) for each in (whole, parts))
    assert float(one.margins.max() - one.margins.min()) > 1000
    torch.testing.assert_close(one.direction, many.direction, rtol=1e-12, atol=1e-14)


def test_batches_are_the_same_as_fewer_data(rng):
    network, data = case(rng)
    index = torch.tensor([3, 1, 8])
    some = TwoLayerObjective(network, data.take(index))
    found = TwoLayerObjective(network, data).evaluate(some.start, Logistic(), index)
    torch.testing.assert_close(found.direction, some.evaluate(some.start, Logistic()).direction)


def test_an_output_bias_trains_where_there_is_one(rng):
    network, data = case(rng)
    network = TwoLayer(network.W, network.b, network.v, torch.tensor(0.5))
    closed, module = TwoLayerObjective(network, data), ModuleObjective(network, data)
    found, expected = (each.evaluate(each.start, Logistic()).direction for each in (closed, module))
    assert found[-1] != 0
    torch.testing.assert_close(found, expected)


def test_parts_that_do_not_train_stay(rng):
    network, data = case(rng)
    first = TwoLayerObjective(network, data, "first")
    direction = first.evaluate(first.start, Logistic()).direction
    W, b, v, c = first.split(direction)
    assert W.any()
    assert b.any()
    assert not v.any()
    assert c == 0
    bare = TwoLayerObjective(TwoLayer(network.W, torch.zeros_like(network.b), network.v), data)
    assert not bare.split(bare.evaluate(bare.start, Logistic()).direction)[1].any()


def test_deep_networks_by_autograd_and_in_chunks(rng):
    network, data = TorchLinearInit().draw_deep(5, [6, 4], rng), Sphere(5).sample(9, rng)
    objective = ModuleObjective(network, data)
    objective.chunk = 4
    found = objective.evaluate(objective.start, Exponential("sum"))
    module = network.module()
    loss = torch.log(torch.exp(-data.y * module(data.X)).sum())
    gradients = torch.autograd.grad(loss, list(module.parameters()))
    torch.testing.assert_close(found.direction, -torch.cat([each.reshape(-1) for each in gradients]))
    assert objective.degree == 3


def test_the_logistic_loss_of_class_numbers_is_the_cross_entropy(rng):
    network = TorchLinearInit().draw_deep(5, [6], rng, outputs=3)
    data = Data(torch.randn(8, 5, generator=rng), torch.tensor([0, 1, 2, 0, 1, 2, 0, 1]))
    objective = ModuleObjective(network, data)
    found = objective.evaluate(objective.start, Logistic("mean"))
    logits = functional_call(objective.module, objective.parameters(objective.start), (data.X,))
    assert math.exp(found.log_loss) == pytest.approx(float(torch.nn.functional.cross_entropy(logits, data.y)))
    q, soft = margins_of(logits, data.y)
    torch.testing.assert_close(q, network.margins(data.X, data.y))
    assert bool((soft <= q).all())


def test_the_span_holds_the_examples_and_nothing_else(rng):
    data = Subspace(20, 14).sample(50, rng)
    span = DataSpan.of(data.X)
    assert span.basis.shape == (20, 6)
    torch.testing.assert_close(span.coordinates @ span.basis.T, data.X)
    torch.testing.assert_close(span.basis.T @ span.basis, torch.eye(6, dtype=torch.float64))
    network = TorchLinearInit().draw(20, 5, rng)
    off = network.W - network.W @ span.basis @ span.basis.T
    assert span.frozen_squared_norm(network) == pytest.approx(float(off.square().sum()))
    torch.testing.assert_close(span.inside(network).logits(span.coordinates), network.logits(data.X))
