"""Each initialisation against the law that its paper states."""

import math

import pytest
import torch
from scipy import stats
from torch import nn

from brittle.common.errors import InputError
from brittle.networks import Kaiming, LazyInit, TorchLinearInit
from tests.cases import INITIALISATIONS

DIM, WIDTH = 40, 3000


def uniform(bound):
    return stats.uniform(-bound, 2 * bound)


LAWS = {
    "pytorch": (uniform(DIM**-0.5), uniform(WIDTH**-0.5)),
    "kaiming": (stats.norm(0, DIM**-0.5), WIDTH**-0.5),
    "lazy": (stats.norm(0, 1), WIDTH**-0.5),
}


@pytest.mark.parametrize(("name", "part"), INITIALISATIONS, ids=[name for name, _ in INITIALISATIONS])
def test_the_weights_follow_their_law(name, part, rng):
    network = part.draw(DIM, WIDTH, rng)
    inner, outer = LAWS[name]
    assert stats.kstest(network.W.flatten(), inner.cdf).pvalue > 1e-3
    assert float(network.W.var()) == pytest.approx(inner.var(), rel=0.02)
    if isinstance(outer, float):
        assert network.v.abs().unique().tolist() == pytest.approx([outer])
        assert abs(float(network.v.sign().mean())) < 4 / math.sqrt(WIDTH)
        assert not network.b.any()
    else:
        assert stats.kstest(network.v, outer.cdf).pvalue > 1e-3
        assert stats.kstest(network.b, inner.cdf).pvalue > 1e-3
    assert network.homogeneous
    assert torch.equal(network.start.W, network.W)


@pytest.mark.parametrize(("name", "part"), INITIALISATIONS, ids=[name for name, _ in INITIALISATIONS])
def test_same_seed_same_weights_and_the_span_has_the_same_variance(name, part):
    def draw(seed, **more):
        return part.draw(DIM, WIDTH, torch.Generator().manual_seed(seed), **more)

    assert torch.equal(draw(1).W, draw(1).W)
    assert not torch.equal(draw(1).W, draw(2).W)
    ambient = 10**9
    expected = 1.0 if name == "lazy" else (1 / 3 if name == "pytorch" else 1) / ambient
    assert float(draw(1, ambient=ambient).W.var()) == pytest.approx(expected, rel=0.02)


def test_the_scale_divides_what_it_says():
    def draw(part):
        return part.draw(5, 6, torch.Generator().manual_seed(0))

    plain, all_of_it = draw(TorchLinearInit()), draw(TorchLinearInit(scale=3))
    assert torch.allclose(all_of_it.W * 3, plain.W)
    assert torch.allclose(all_of_it.b * 3, plain.b)
    assert torch.allclose(all_of_it.v * 3, plain.v)
    weights = draw(TorchLinearInit(scale=3, scale_biases=False, first_layer_only=True))
    assert torch.allclose(weights.W * 3, plain.W)
    assert torch.equal(weights.b, plain.b)
    assert torch.equal(weights.v, plain.v)
    assert not draw(TorchLinearInit(biases=False)).b.any()
    assert torch.equal(draw(Kaiming(scale=2)).v, draw(Kaiming()).v)
    assert torch.allclose(draw(Kaiming(beta=0.1)).W, 0.1 * draw(LazyInit()).W)


def test_deep_networks_are_drawn_as_nn_linear_draws_them(rng):
    network = TorchLinearInit().draw_deep(30, [400, 300], rng, outputs=2)
    assert network.shape == (30, 400, 300, 2)
    assert torch.equal(network.start.weights[1], network.weights[1])
    for W, b in zip(network.weights, network.biases, strict=True):
        bound = W.shape[1] ** -0.5
        assert max(float(W.abs().max()), float(b.abs().max())) <= bound
        if W.numel() > 1000:
            reference = nn.Linear(W.shape[1], W.shape[0]).weight.detach()
            assert stats.ks_2samp(W.flatten(), reference.flatten()).pvalue > 1e-3


def test_the_scale_of_deep_networks():
    def draw(part):
        return part.draw_deep(5, [6, 7], torch.Generator().manual_seed(0))

    plain, first = draw(TorchLinearInit()), draw(TorchLinearInit(scale=4, first_layer_only=True, scale_biases=False))
    everywhere, unbiased = draw(TorchLinearInit(scale=4)), draw(TorchLinearInit(biases=False))
    for layer in range(3):
        divisor = 4 if layer == 0 else 1
        assert torch.allclose(first.weights[layer] * divisor, plain.weights[layer])
        assert torch.equal(first.biases[layer], plain.biases[layer])
        assert torch.allclose(everywhere.weights[layer] * 4, plain.weights[layer])
        assert torch.allclose(everywhere.biases[layer] * 4, plain.biases[layer])
        assert not unbiased.biases[layer].any()


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (lambda rng: TorchLinearInit(scale=0), "scale is 0"),
        (lambda rng: Kaiming(beta=-1.0), "beta is -1.0"),
        (lambda rng: LazyInit().draw(0, 3, rng), "dim is 0"),
        (lambda rng: LazyInit().draw(3, 2.5, rng), "width is 2.5"),
        (lambda rng: LazyInit().draw(3, 2, rng, ambient=2), "ambient dimension is 2"),
        (lambda rng: TorchLinearInit().draw_deep(3, [], rng), "widths is empty"),
        (lambda rng: TorchLinearInit().draw_deep(3, [4, 0], rng), "width is 0"),
        (lambda rng: TorchLinearInit().draw_deep(3, [4], rng, outputs=0), "outputs is 0"),
        (lambda rng: TorchLinearInit().draw_deep(3, [4], rng, ambient=2), "ambient dimension is 2"),
    ],
)
def test_bad_parameters_are_named(attempt, words, rng):
    with pytest.raises(InputError, match=words):
        attempt(rng)
