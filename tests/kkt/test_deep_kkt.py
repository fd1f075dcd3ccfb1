"""The residual of deep networks against autograd with NNLS, the two-layer residual, and KKT points by hand."""

import math

import pytest
import torch
from scipy.optimize import nnls

from brittle import InputError
from brittle.data import Data
from brittle.kkt import deep_residual, residual, solve
from brittle.networks import Convolution, Deep, Dense, TwoLayer
from brittle.training import Flow, LogLoss
from tests.kkt.reference import chains, closed_form, fitted, gaussian, generator


def as_deep(network):
    return Deep((Dense(network.W, network.b), Dense(network.v[None], torch.zeros(1, dtype=torch.float64))))


def fit_last(hidden, data, classes):
    """Output weights that classify the data: least squares on what the layers before them give."""
    signs = data.y[:, None] if classes == 1 else 2 * torch.eye(classes, dtype=torch.float64)[data.y] - 1
    return torch.linalg.lstsq(hidden, signs, driver="gelsd").solution.T


def labelled(n, dim, classes, seed):
    rng = generator(seed)
    X = torch.randn(n, dim, generator=rng, dtype=torch.float64)
    if classes == 1:
        return Data(X, torch.where(torch.arange(n) % 2 == 0, 1.0, -1.0).double())
    return Data(X, torch.arange(n) % classes)


def random_deep(data, widths, classes, seed, convolutional=False):
    rng = generator(seed + 100)

    def draw(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    maps, entering = [], data.X
    if convolutional:
        maps.append(Convolution(draw(4, 1, 2, 2), draw(4), (1, 4, 4), stride=(2, 2), padding=(1, 1)))
        maps.append(Convolution(draw(6, 2, 2, 2), torch.zeros(6).double(), maps[0].result, groups=2))
    else:
        for place, width in enumerate(widths):
            dim = maps[-1].outputs if maps else data.dim
            maps.append(Dense(draw(width, dim), draw(width) * (place == 0)))
    for layer in maps:
        entering = layer.apply(entering).relu()
    return Deep((*maps, Dense(fit_last(entering, data, classes), torch.zeros(classes).double())))


def by_autograd(network, data):
    """ε with every constraint allowed: gradients by autograd of the module, multipliers by SciPy's NNLS."""
    module = network.module()
    zero = {id(layer.bias) for layer in list(module.modules())[1:] if getattr(layer, "bias", None) is not None}
    first = next(layer for layer in module.modules() if getattr(layer, "bias", None) is not None)
    parameters = [each for each in module.parameters() if id(each) not in zero - {id(first.bias)}]
    logits = module(data.X).reshape(len(data), -1)
    columns = []
    for i in range(len(data)):
        if network.classes == 1:
            rivals = [data.y[i] * logits[i, 0]]
        else:
            rivals = [logits[i, data.y[i]] - logits[i, k] for k in range(network.classes) if k != data.y[i]]
        for margin in rivals:
            gradient = torch.autograd.grad(margin, parameters, retain_graph=True)
            columns.append(torch.cat([part.flatten() for part in gradient]))
    theta = torch.cat([part.detach().flatten() for part in parameters])
    return nnls(torch.stack(columns, 1).numpy(), theta.numpy())[1] / float(theta.norm())


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("convolutional", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_stationarity_agrees_with_autograd_and_nnls(classes, convolutional, seed):
    data = labelled(12, 16, classes, seed)
    network = random_deep(data, (20, 25), classes, seed, convolutional)
    measured = deep_residual(network, data, margin_tolerance=math.inf)
    assert 0.01 < measured.stationarity == pytest.approx(by_autograd(network, data), abs=1e-9)
    assert convolutional or measured.kinks == 0  # zeros around an image can be all that a neuron sees


@pytest.mark.parametrize("seed", range(3))
def test_two_layers_give_what_the_two_layer_residual_gives_with_kinks(seed):
    data = gaussian(10, 4, seed)
    network = fitted(data, 18, seed)
    b = network.b.clone()
    for j in range(0, 18, 3):
        b[j] = -(data.X[j % len(data)] @ network.W[j])
    network = TwoLayer(network.W, b, network.v)
    if float((data.y * network.logits(data.X)).min()) <= 0:
        hidden = network.preactivations(data.X).relu()
        network = TwoLayer(network.W, b, fit_last(hidden, data, 1)[0])
    other = residual(network, data, margin_tolerance=math.inf)
    deep = deep_residual(as_deep(network), data, margin_tolerance=math.inf)
    assert deep.kinks >= len(other.kinks) > 0
    assert deep.stationarity == pytest.approx(other.stationarity, abs=1e-8)
    assert deep.normalised_margin == pytest.approx(other.normalised_margin)
    assert deep.share_on_margin == other.share_on_margin


def test_solved_kkt_points_are_kkt_points_of_the_deep_form():
    data = gaussian(12, 5, 3)
    point = solve(fitted(data, 40, 3), data).network
    deep = deep_residual(as_deep(point), data)
    assert deep.kinks > 0
    assert max(deep.stationarity, deep.complementarity, deep.balance, deep.norm_gap) < 1e-9


def test_the_closed_form_needs_its_slopes_at_kinks():
    network, data = closed_form(8, 8)
    assert deep_residual(as_deep(network), data).stationarity < 1e-9
    assert deep_residual(as_deep(network), data, kink_tolerance=-1.0).stationarity > 0.1  # none is free


def test_two_logits_of_opposite_sign_are_a_kkt_point_of_two_classes():
    """N = v·φ becomes logits ∓u·φ with 2u = v: ½(‖w‖² + v²/2), balanced again by 2^(1/4) between the layers."""
    data = gaussian(12, 5, 4)
    point = solve(fitted(data, 40, 4), data).network
    W, b, u = (part * 2**-0.25 for part in (point.W, point.b, point.v / 2**0.5))
    network = Deep((Dense(W, b), Dense(torch.stack([-u, u]), torch.zeros(2).double())))
    classes = Data(data.X, (data.y > 0).long())
    measured = deep_residual(network, classes)
    assert max(measured.stationarity, measured.balance, measured.norm_gap) < 1e-9
    spoiled = Deep((Dense(W * 1.1, b * 1.1), Dense(torch.stack([-u, u]), torch.zeros(2).double())))
    assert deep_residual(spoiled, classes).stationarity > 0.04


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_parallel_chains_on_orthogonal_examples_are_a_kkt_point(depth):
    network, data = chains(6, depth)
    measured = deep_residual(network, data, biases=False)
    assert measured.kinks > 0
    assert max(measured.stationarity, measured.complementarity, measured.balance, measured.norm_gap) < 1e-9
    torch.testing.assert_close(measured.multipliers, torch.full((6,), float(network.squared_norm) / depth / 6).double())


def test_a_neuron_that_explains_nothing_is_the_residual():
    network, data = chains(6, 3)
    extra = torch.zeros(1, 6).double()
    extra[0, 0] = -0.3  # dead on every example
    maps = [Dense(torch.cat([network.weights[0], extra]), torch.zeros(3).double())]
    maps.append(Dense(torch.cat([network.weights[1], torch.zeros(2, 1).double()], 1), torch.zeros(2).double()))
    spoiled = Deep((*maps, network.layers[2]))
    expected = 0.3 / float(spoiled.squared_norm) ** 0.5
    assert deep_residual(spoiled, data, biases=False).stationarity == pytest.approx(expected, rel=1e-6)


def test_bad_input_is_refused_in_one_line():
    network, data = chains(6, 3)
    biased = Deep((*network.layers[:2], Dense(network.weights[2], torch.ones(1).double())))
    with pytest.raises(InputError, match="biases beyond its first layer"):
        deep_residual(biased, data)
    with pytest.raises(InputError, match="misclassifies 6 of 6"):
        deep_residual(network, Data(data.X, -data.y))
    shifted = network.with_first_layer(network.weights[0], torch.ones(2).double())
    with pytest.raises(InputError, match="bias of 1"):
        deep_residual(shifted, data, biases=False)


def test_flow_of_a_deep_network_comes_nearer():
    data = gaussian(8, 10, 0)
    start = random_deep(data, (12, 12), 1, 0)
    start = Deep(tuple(Dense(layer.weight * 0.3, layer.bias * 0) for layer in start.layers))
    early, late = (
        deep_residual(flow.train(start, data).network, data, biases=False, margin_tolerance=math.inf)
        for flow in (Flow(until=LogLoss(until), biases=False) for until in (-2.0, -40.0))
    )
    assert late.stationarity < 0.8 * early.stationarity
    assert late.normalised_margin > early.normalised_margin


@pytest.mark.parametrize("wrong", [-1e-9, -1.0, math.nan])
def test_a_tolerance_below_0_is_refused(wrong):
    network, data = closed_form(4, 4)
    with pytest.raises(InputError, match=f"margin_tolerance is {wrong!r}"):
        deep_residual(as_deep(network), data, margin_tolerance=wrong)
