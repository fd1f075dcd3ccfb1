"""Training with layers of norm 1: the margin is a proved radius, and it grows."""

import math

import pytest
import torch

from brittle.attacks import MinimumNorm
from brittle.common.errors import InputError
from brittle.data import Data, Sphere
from brittle.geometry import nearest_rivals
from brittle.networks import Adapter, Deep, TorchLinearInit
from brittle.networks.affine import Convolution, Dense
from brittle.training import Flow, LipschitzMargin, Logistic, LogLoss, Steps
from brittle.training.lipschitz_margin import operator_norm, with_unit_norms


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


@pytest.fixture(scope="module")
def sphere():
    data = Sphere(20).sample(16, generator())
    start = TorchLinearInit().draw(20, 30, generator(1))
    return Flow(until=LogLoss(-3.0), loss=Logistic()).train(start, data).network, data


def several():
    return Deep(
        (Dense(draw(12, 20), draw(12)), Dense(draw(9, 12, seed=1), draw(9)), Dense(draw(3, 9, seed=2), draw(3)))
    )


def norms_of(network):
    return [float(torch.linalg.matrix_norm(layer.matrix, 2)) for layer in network.layers]


def test_layers_of_norm_one_decide_the_same():
    network, X = several(), draw(30, 20, seed=4)
    same = with_unit_norms(network)
    assert torch.equal(same.predict(X), network.predict(X))
    assert [float(torch.linalg.matrix_norm(layer.matrix, 2)) for layer in same.layers] == pytest.approx([1.0] * 3)
    kernel = Convolution(draw(3, 1, 2, 2), draw(3), (1, 4, 4))
    assert operator_norm(kernel) == pytest.approx(float(torch.linalg.matrix_norm(kernel.matrix, 2)), rel=1e-2)


@pytest.mark.parametrize("classes", [1, 3])
def test_what_the_run_counts_on_is_the_margin_over_the_norms(classes, sphere):
    """Power iteration against singular values; of several classes the nearest rival by hand."""
    network, data = sphere
    if classes == 3:
        network = several()
        data = Data(data.X, network.predict(data.X))
    run = LipschitzMargin().begin(network, data, generator())
    inner = run.form.network
    last, logits = inner.layers[-1].matrix, inner.logits(run.form.X)
    lengths = last.norm()
    if classes == 3:
        order = logits.argsort(1, descending=True)
        lengths = (last[order[:, 0]] - last[order[:, 1]]).norm(dim=1)
    expected = inner.margins(run.form.X, data.y) / lengths / math.prod(norms_of(inner)[:-1])
    assert torch.allclose(run.proved(run.theta, torch.arange(16)), expected, rtol=1e-2)


def test_the_margin_is_a_radius_that_no_attack_beats_and_it_grows(sphere):
    network, data = sphere
    training = LipschitzMargin(until=Steps(150)).train(network, data, generator())
    margins, norms = training.network.margins(data.X, data.y), MinimumNorm().run(training.network, data).norms
    assert bool((norms >= margins * (1 - 1e-9)).all())
    assert float(norms.median()) > 1.1 * float(MinimumNorm().run(network, data).norms.median())
    assert float((margins / nearest_rivals(data.X, data.y)[0]).median()) > 0.1
    assert norms_of(training.network) == pytest.approx([1, 1])
    assert training.accuracy == 1


def test_several_classes(sphere):
    _, data = sphere
    three = Data(data.X, torch.arange(16) % 3)
    network = Flow(until=LogLoss(-3.0), loss=Logistic()).train(several(), three).network
    training = LipschitzMargin(until=Steps(60)).train(network, three, generator())
    before, after = (MinimumNorm().run(each, three).norms.median() for each in (network, training.network))
    assert float(after) > 1.1 * float(before)
    assert training.accuracy == 1


def test_unknown_layers_are_refused(sphere):
    module = torch.nn.Sequential(torch.nn.Linear(20, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)).double()
    with pytest.raises(InputError, match="needs dense or convolutional layers; this is a"):
        LipschitzMargin().train(Adapter(module), sphere[1], generator())
