"""Training for the radius: its coordinates, its boundary points, what it keeps and what it reaches."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from brittle.attacks import MinimumNorm
from brittle.certificates import Dual
from brittle.common.errors import InputError
from brittle.data import Clusters, Data, Sphere, Subspace
from brittle.geometry import nearest_rivals
from brittle.networks import Adapter, Deep, TorchLinearInit, TwoLayer, as_network
from brittle.networks.affine import Convolution, Dense
from brittle.networks.folded import Folded
from brittle.training import Flow, GradientDescent, LimitedPGD, Logistic, LogLoss, MaximumRadius, Status, Steps, Time
from brittle.training.descent import Batches
from brittle.training.guarded import GuardedObjective
from brittle.training.maximum_radius import BoundaryPath, MaximumRadiusRun
from brittle.training.normal_form import NormalForm, balance_layers
from brittle.training.run import RunEnded
from brittle.training.stops import RunLimit


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def dense(*widths):
    pairs = zip(widths[1:], widths, strict=False)
    return [Dense(draw(a, b, seed=a) / b**0.5, 0.1 * draw(a, seed=b)) for a, b in pairs]


def convolutional():
    kernel = Convolution(draw(3, 1, 2, 2), 0.1 * draw(3), (1, 4, 4))
    return Deep((kernel, *dense(kernel.outputs, 2)))


NETWORKS = {
    "two layers": TwoLayer(draw(7, 16), 0.1 * draw(7), draw(7, seed=1)),
    "several classes": Deep(tuple(dense(16, 9, 8, 3))),
    "a convolution": convolutional(),
}


def labelled(network, X):
    predicted = network.predict(X)
    return Data(X, predicted.double() if network.classes == 1 else predicted)


@pytest.mark.parametrize("name", NETWORKS)
def test_there_and_back_is_the_same_function_of_the_data(name):
    network, X = NETWORKS[name], 5 * draw(20, 6, seed=3) @ draw(6, 16, seed=4)
    form = NormalForm.of(network, labelled(network, X), generator())
    returned = form.back(form.network)
    scale = float(network.logits(X).abs().max())
    assert torch.allclose(returned.logits(X), network.logits(X), rtol=0, atol=1e-5 * scale)  # by way of float32
    assert type(returned) is type(network)
    assert float(form.X.square().sum(1).mean()) == pytest.approx(1, rel=1e-5)
    slopes = form.network.margin_gradients(form.X, labelled(network, X).y).norm(dim=1)
    assert float(slopes.median()) == pytest.approx(1, rel=1e-5)
    sizes = [float(layer.parameters[0].norm()) for layer in form.network.layers]
    assert sizes == pytest.approx([sizes[0]] * len(sizes), rel=1e-5)


def test_weights_off_the_span_are_gone():
    data = Subspace(20, 12).sample(30, generator())
    network = TwoLayer(draw(7, 20), 0.1 * draw(7), draw(7, seed=1))
    form = NormalForm.of(network, data, generator())
    off = data.truth.complement
    assert float((form.back(form.network).W @ off).norm()) < 1e-5
    assert float((network.W @ off).norm()) > 1


def test_balanced_layers_are_the_same_function():
    layers = [Dense(3 * layer.weight, layer.bias) for layer in dense(4, 5, 6, 2)]
    X = draw(10, 4)
    assert torch.allclose(Deep(tuple(balance_layers(layers))).logits(X), Deep(tuple(layers)).logits(X))


def test_a_boundary_point_of_a_line_is_found_at_once():
    """x₁ - 5/4 between (2, 0) and (1, 0), in the network's own coordinates whatever they are."""
    data = Data(torch.tensor([[2.0, 0.0], [1.0, 0.0]]).double(), torch.tensor([1.0, -1.0]))
    both = torch.tensor([1.0, -1.0]).double()
    line = TwoLayer(torch.stack([both, 0 * both], 1), 0 * both, both, torch.tensor(-1.25).double())
    form = NormalForm.of(line, data, generator())
    boundary = BoundaryPath.of(GuardedObjective(form, data))
    rows = torch.arange(2)
    delta = boundary.shortest(boundary.objective.start, rows, boundary.starts(rows), 5)
    assert (delta.norm(dim=1) * form.unit).tolist() == pytest.approx([0.75, 0.25], rel=1e-5)
    assert (boundary.limits * form.unit).tolist() == pytest.approx([0.5, 0.5], rel=1e-5)


@pytest.fixture(scope="module")
def sphere():
    data = Sphere(30).sample(24, generator())
    start = TorchLinearInit().draw(30, 40, generator(1))
    return Flow(until=LogLoss(-3.0), loss=Logistic()).train(start, data).network, data


def test_the_certified_radius_grows(sphere):
    network, data = sphere
    training = MaximumRadius(until=Steps(200)).train(network, data, generator())
    assert training.status is Status.REACHED
    before, after = (Dual().bound(each, data).lower for each in (network, training.network))
    limits = nearest_rivals(data.X, data.y)[0] / 2
    assert float((after / limits).median()) > 0.55
    assert float(after.median()) > 1.4 * float(before.median())
    assert training.accuracy == 1


def test_several_classes(sphere):
    _, data = sphere
    three = Data(data.X, torch.arange(24) % 3)
    network = Deep(tuple(dense(30, 12, 12, 3)))
    network = Flow(until=LogLoss(-3.0), loss=Logistic()).train(network, three).network
    training = MaximumRadius(until=Steps(100)).train(network, three, generator())
    before, after = (MinimumNorm().run(each, three).norms.median() for each in (network, training.network))
    assert float(after) > 1.2 * float(before)
    assert training.network.accuracy(three.X, three.y) == 1


class Halfway(RunLimit):
    """Ends a run where no schedule does."""

    def __init__(self, value):
        self.value = value

    def spent(self, look):
        return look.steps


def test_a_run_that_was_stopped_goes_on_to_the_same_network(sphere, tmp_path):
    network, data = sphere
    regime = MaximumRadius(until=Steps(40), batch=10)
    whole = regime.train(network, data, generator()).network
    place = tmp_path / "run.npz"
    short = replace(regime, until=(Steps(40), Halfway(17), LogLoss(-1e9)))
    stopped = short.train(network, data, generator(), checkpoint=place)
    assert (stopped.status, stopped.steps) == (Status.BUDGET, 17)
    resumed = regime.train(network, data, generator(), checkpoint=place, resume=True).network
    assert torch.equal(resumed.W, whole.W)


def test_where_nothing_is_accurate_enough_the_network_is_as_it_was(sphere):
    network, data = sphere
    regime = MaximumRadius(until=Steps(16), lost_accuracy=0.0)
    run = MaximumRadiusRun(NormalForm.of(network, data, generator()), data, regime, Batches(24, 24, generator()))
    run.wanted = [1.1]
    for _ in range(15):
        run.step()
    with pytest.raises(RunEnded, match="the network is as it was"):
        run.step()
    assert run.network() is network


def test_held_out_examples_guard_the_accuracy():
    data = Clusters(20, 4, 0.3).sample(24, generator(), test=10)
    start = TorchLinearInit().draw(20, 30, generator(1))
    network = Flow(until=LogLoss(-3.0), loss=Logistic()).train(start, data).network
    run = MaximumRadius(until=Steps(16)).begin(network, data, generator())
    for _ in range(16):
        run.step()
    assert run.curve.shape == (8, 4)
    assert not run.curve.isnan().any()
    assert run.curve[:, 0].tolist() == sorted(run.curve[:, 0].tolist())
    assert float(run.curve[-1, 0]) == pytest.approx(1.0)


def test_bad_input_is_one_line(sphere):
    network, data = sphere
    with pytest.raises(InputError, match="there is no other class"):
        MaximumRadius().train(network, Data(data.X, torch.ones(24)), generator())
    twice = Data(torch.cat([data.X, data.X]), torch.cat([torch.ones(24), -torch.ones(24)]))
    with pytest.raises(InputError, match=r"rows 0 and 24, 1 and 25, .* and 19 more pairs are the same"):
        MaximumRadius().train(network, twice, generator())
    once = Data(torch.cat([data.X, data.X[5:6]]), torch.cat([data.y, -data.y[5:6]]))
    with pytest.raises(InputError, match="rows 5 and 24 are the same example with two labels"):
        MaximumRadius().train(network, once, generator())
    with pytest.raises(InputError, match="misclassifies all 24 examples"):
        MaximumRadius().train(network, Data(data.X, -data.y), generator())
    with pytest.raises(InputError, match="needs one number of steps"):
        MaximumRadius(until=Time(1.0)).train(network, data, generator())
    with pytest.raises(InputError, match=r"give it a torch\.Generator"):
        MaximumRadius().train(network, data)


def test_what_cannot_be_trained_says_so(sphere):
    _, data = sphere
    frozen = nn.Sequential(nn.Linear(30, 4), nn.ReLU(), nn.Linear(4, 1)).double().requires_grad_(False)
    for regime in (MaximumRadius(), LimitedPGD(), Flow()):
        with pytest.raises(InputError, match="every parameter of the module is frozen"):
            regime.train(frozen, data, generator())
    empty = Adapter(Cosine(draw(30)), shape=(30,))
    for regime in (MaximumRadius(), LimitedPGD(), GradientDescent()):
        with pytest.raises(InputError, match="the module has no parameters"):
            regime.train(empty, data, generator())


class Cosine(nn.Module):
    """A smooth function of x along a direction, without parameters."""

    def __init__(self, direction):
        super().__init__()
        self.register_buffer("direction", direction)

    def forward(self, X):
        return torch.cos(X @ self.direction)


@pytest.mark.parametrize("regime", [MaximumRadius(until=Steps(100)), LimitedPGD(until=Steps(100), target=0.7)])
def test_a_module_of_any_kind_is_trained_as_it_is(regime, sphere):
    """Smooth, and normalised in between."""
    _, data = sphere
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(30, 20), nn.LayerNorm(20), nn.GELU(), nn.Linear(20, 1)).double()
    module = Flow(until=LogLoss(-3.0), loss=Logistic()).train(inner, data).network
    assert isinstance(module, Adapter)
    training, few = regime.train(module, data, generator()), data.take(torch.arange(9))
    before, after = (MinimumNorm().run(each, few).norms.median() for each in (module, training.network))
    assert isinstance(training.network, Adapter)
    assert [tuple(each.shape) for each in training.network.arrays.values()] == [
        tuple(each.shape) for each in module.arrays.values()
    ]
    assert training.accuracy == 1
    assert float(after) > 1.1 * float(before)


def test_a_folded_network_keeps_its_form():
    """Its kernel stays shared, its maximum and its normalisation what they are."""
    torch.manual_seed(1)
    inner = nn.Sequential(
        nn.Conv2d(1, 4, 2), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(16, 1)
    )
    pictures = Data(draw(20, 16), torch.ones(20).double().index_fill(0, torch.arange(0, 20, 2), -1))
    given = as_network(inner.double().eval(), shape=(1, 4, 4))
    network = Flow(until=LogLoss(-3.0), loss=Logistic()).train(given, pictures).network
    assert isinstance(network, Folded)
    training = MaximumRadius(until=Steps(100)).train(network, pictures, generator())
    assert isinstance(training.network, Folded)
    assert {name: each.shape for name, each in training.network.graph.constants.items()} == {
        name: each.shape for name, each in network.graph.constants.items()
    }
    before, after = (MinimumNorm().run(each, pictures).norms.median() for each in (network, training.network))
    assert training.accuracy == 1
    assert float(after) > 1.1 * float(before)
