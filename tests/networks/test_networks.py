"""Every kind of network: margins and input gradients against autograd and finite differences, and its refusals."""

import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brittle.common.errors import InputError
from brittle.networks import Deep, NearestNeighbour, TorchLinearInit, TwoLayer, base
from tests.cases import NETWORKS

networks = pytest.mark.parametrize("network", [network for _, network in NETWORKS], ids=[name for name, _ in NETWORKS])


def examples(network, rng, n=40):
    """Points in general position: no kink lies within a finite difference of them."""
    X = torch.randn(n, network.dim, generator=rng, dtype=torch.float64)
    if network.classes == 1:
        return X, torch.randint(0, 2, (n,), generator=rng).double() * 2 - 1
    return X, torch.randint(0, network.classes, (n,), generator=rng)


@networks
def test_margins_follow_their_definition(network, rng):
    X, y = examples(network, rng)
    logits = network.logits(X)
    if network.classes == 1:
        expected = [float(label * logit) for label, logit in zip(y, logits, strict=True)]
    else:
        expected = []
        for row, label in zip(logits.tolist(), y.tolist(), strict=True):
            expected.append(row[label] - max(value for k, value in enumerate(row) if k != label))
    assert network.margins(X, y).tolist() == pytest.approx(expected)
    assert network.accuracy(X, y) == sum(value > 0 for value in expected) / len(expected)
    assert network.accuracy(X, y) == float((network.predict(X) == y).double().mean())


@networks
def test_input_gradients_are_those_of_autograd(network, rng):
    X, y = examples(network, rng)
    X.requires_grad_()
    (expected,) = torch.autograd.grad(network.margins(X, y).sum(), X)
    gradients = network.margin_gradients(X.detach(), y)
    assert torch.allclose(gradients, expected, atol=1e-12)
    with torch.no_grad():
        assert torch.equal(network.margin_gradients(X, y), gradients)


@networks
def test_input_gradients_are_those_of_finite_differences(network, rng):
    X, y = examples(network, rng)
    step, gradients = 1e-7, network.margin_gradients(X, y)
    for k, direction in enumerate(torch.eye(network.dim, dtype=torch.float64)):
        slope = (network.margins(X + step * direction, y) - network.margins(X - step * direction, y)) / (2 * step)
        assert torch.allclose(gradients[:, k], slope, atol=1e-6)


@networks
def test_the_trainable_copy_is_the_same_function(network, rng):
    X, _ = examples(network, rng)
    if isinstance(network, NearestNeighbour):
        with pytest.raises(InputError, match="no parameters"):
            network.module()
        return
    module = network.module()
    assert torch.allclose(module(X), network.logits(X), atol=1e-14)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.1
    assert torch.allclose(network.loaded(module).logits(X), module(X), atol=1e-14)
    assert not torch.allclose(network.logits(X), module(X))


@networks
def test_rows_in_chunks_give_the_same_numbers(network, rng, monkeypatch):
    X, y = examples(network, rng)
    whole = network.margins(X, y), network.margin_gradients(X, y)
    monkeypatch.setattr(base, "WORKING_BYTES", 600)
    monkeypatch.setattr("brittle.networks.adapter.ROWS_AT_ONCE", 7)
    assert torch.allclose(network.margins(X, y), whole[0], atol=1e-14)
    assert torch.allclose(network.margin_gradients(X, y), whole[1], atol=1e-14)


@networks
def test_no_rows_are_an_answer_too(network):
    y = torch.zeros(0, dtype=torch.float64 if network.classes == 1 else torch.int64)
    X = torch.zeros(0, network.dim, dtype=torch.float64)
    assert network.margins(X, y).shape == (0,)
    assert network.margin_gradients(X, y).shape == (0, network.dim)


@networks
def test_wrong_examples_are_refused(network, rng):
    X, y = examples(network, rng)
    with pytest.raises(InputError, match=f"takes {network.dim} features"):
        network.margins(X[:, 1:], y)
    with pytest.raises(InputError, match="labels have shape"):
        network.margin_gradients(X, y[1:])
    wrong = y.long() if network.classes == 1 else y.double()
    with pytest.raises(InputError, match="one output" if network.classes == 1 else "3 outputs"):
        network.margins(X, wrong)
    for outside in (2 * y, 0 * y) if network.classes == 1 else (y + 1 + (y < 0), y - 3):
        with pytest.raises(InputError, match="needs"):
            network.margins(X, outside)


def test_chunks_stay_within_their_memory(monkeypatch):
    monkeypatch.setattr(base, "WORKING_BYTES", 100)
    seen = []

    def compute(X):
        seen.append(len(X))
        return X

    X = torch.arange(25.0)
    assert torch.equal(base.in_chunks(compute, 10, X), X)
    assert seen == [10, 10, 5]


def test_rows_in_chunks_are_still_differentiable(monkeypatch):
    monkeypatch.setattr(base, "WORKING_BYTES", 100)
    X = torch.arange(25.0).requires_grad_()
    (gradient,) = torch.autograd.grad(base.in_chunks(torch.square, 10, X).sum(), X)
    assert torch.equal(gradient, 2 * X)


def test_a_part_of_many_is_not_kept_while_the_next_is_computed():
    parts = []

    def computed():
        for place in range(5):
            assert all(part() is None for part in parts[:-1])
            part = torch.full((2, 3), float(place))
            parts.append(weakref.ref(part))
            yield part
            del part

    assert base.join_parts(computed(), 10)[:, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_two_layers_by_hand():
    network = TwoLayer(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([0.0, -1.0]), torch.tensor([3.0, -1.0]))
    X = torch.tensor([[1.0, 0.0], [1.0, 2.0], [-1.0, 0.0]])
    assert network.logits(X).tolist() == [3, 0, 0]
    assert network.margin_gradients(X, torch.tensor([1.0, -1.0, 1.0])).tolist() == [[3, 0], [-3, 2], [0, 0]]


@given(st.floats(0.1, 4), st.integers(0, 99))
def test_scaling_a_two_layer_network_scales_its_output_by_the_square(factor, seed):
    rng = torch.Generator().manual_seed(seed)
    W, b, v, X = (torch.randn(size, generator=rng, dtype=torch.float64) for size in ((5, 3), 5, 5, (6, 3)))
    network = TwoLayer(W, b, v, torch.tensor(0.7))
    assert torch.allclose(network.scaled(factor).logits(X), factor**2 * network.logits(X))


@given(st.integers(0, 99))
def test_a_balanced_network_is_the_same_function_with_the_smallest_norm(seed):
    rng = torch.Generator().manual_seed(seed)
    W, b, v, X = (torch.randn(size, generator=rng, dtype=torch.float64) for size in ((5, 3), 5, 5, (6, 3)))
    W[0], b[0], v[1] = 0, 0, 0
    network = TwoLayer(W, b, v, torch.tensor(0.7))
    balanced = network.balanced()
    assert torch.allclose(balanced.logits(X), network.logits(X))
    assert torch.allclose(balanced.v.square(), balanced.W.square().sum(1) + balanced.b.square())
    sizes = (network.W.square().sum(1) + network.b.square()).sqrt() * network.v.abs()
    assert float(balanced.squared_norm) == pytest.approx(float(2 * sizes.sum() + 0.49))
    assert balanced.squared_norm <= network.squared_norm


def test_two_layers_and_classes_reduce_to_a_two_layer_network(rng):
    weights = torch.randn(6, 4, generator=rng), torch.randn(3, 6, generator=rng)
    network = Deep.dense(weights, (torch.randn(6, generator=rng), torch.randn(3, generator=rng)))
    network = network.moved(Deep.dense([2 * W for W in weights], network.biases).layers)
    reduced, X = network.pair(2, 1).as_two_layer(), torch.randn(9, 4, generator=rng)
    logits = network.logits(X)
    assert torch.allclose(reduced.logits(X), logits[:, 2] - logits[:, 1], atol=1e-5)
    assert torch.equal(reduced.start.W, weights[0])
    with pytest.raises(InputError, match="choose a pair of classes"):
        network.as_two_layer()
    with pytest.raises(InputError, match="has 3 layers"):
        Deep.dense((*network.weights, torch.ones(1, 3)), (*network.biases, torch.ones(1))).as_two_layer()


one, two = torch.ones(2, 3), torch.ones(1, 2)


@pytest.mark.parametrize(
    ("weights", "biases", "words"),
    [
        ((one,), (one[:, 0],), "1 layers"),
        ((one, two), (one[:, 0],), "1 biases for 2 layers"),
        ((one, one), (one[:, 0], one[:, 0]), r"weights\[1\] takes 3 inputs"),
        ((one, two), (one[:, 0], one[:, 0]), r"biases\[1\] has shape \(2,\)"),
        ((one, two.double()), (one[:, 0], two[:, 0].double()), r"weights\[1\] has type torch.float64"),
        ((one.long(), two.long()), (one[:, 0].long(), two[:, 0].long()), "a float type is needed"),
        ((one[0], two), (one[:, 0], two[:, 0]), r"weights\[0\] has shape \(3,\)"),
        ((one[:0], two[:, :0]), (one[:0, 0], two[:, 0]), r"weights\[0\] has shape \(0, 3\)"),
    ],
)
def test_layers_that_do_not_fit_are_refused(weights, biases, words):
    with pytest.raises(InputError, match=words):
        Deep.dense(weights, biases)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"W": one[0]}, r"W has shape \(3,\)"),
        ({"b": torch.ones(3)}, r"b has shape \(3,\)"),
        ({"v": torch.ones(2, 1)}, r"v has shape \(2, 1\)"),
        ({"c": torch.ones(1)}, r"c has shape \(1,\)"),
        ({"b": torch.ones(2).double()}, "b has type"),
        ({"start": TwoLayer(torch.ones(1, 3), torch.ones(1), torch.ones(1))}, "W0 has shape"),
    ],
)
def test_two_layer_arrays_that_do_not_fit_are_refused(arrays, words):
    with pytest.raises(InputError, match=words):
        TwoLayer(**{"W": one, "b": torch.ones(2), "v": torch.ones(2), **arrays})


def test_the_start_has_the_type_of_the_network(rng):
    for network in (TorchLinearInit().draw(3, 4, rng), TorchLinearInit().draw_deep(3, [4], rng)):
        assert network.to(torch.float32).start.dtype == torch.float32
        module = network.module().float()
        assert network.loaded(module).start.dtype == torch.float32
