"""Gradient flow against scipy's integrator, its invariants, and melamed2023 A.2."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from brittle.common.errors import InputError
from brittle.data import Data, Gaussian, Sphere, Subspace
from brittle.networks import Adapter, Convolution, Deep, Dense, Kaiming, TorchLinearInit, TwoLayer
from brittle.training import Exponential, Flow, Logistic, LogLoss, Loss, MarginStalls, Steps, Time
from brittle.training.flow import PAIRS, Tableau


def by_scipy(network, data, target):
    """The same path in the same time, walked by another integrator with another gradient; it ends at the target."""
    m, d = network.W.shape
    X, y = data.X.numpy(), data.y.numpy()

    def parts(theta):
        return theta[: m * d].reshape(m, d), theta[m * d : m * d + m], theta[-m:]

    def log_loss(theta):
        W, b, v = parts(theta)
        q = y * (np.maximum(X @ W.T + b, 0) @ v)
        return q.min() * -1 + math.log(np.exp(q.min() - q).mean())

    def field(_, theta):
        W, b, v = parts(theta)
        z = X @ W.T + b
        q = y * (np.maximum(z, 0) @ v)
        p = np.exp(q.min() - q)
        s = p / p.sum() * y
        open_ = (z > 0) * s[:, None] * v
        return np.concatenate([(open_.T @ X).ravel(), open_.sum(0), np.maximum(z, 0).T @ s])

    def event(_, theta):
        return log_loss(theta) - target

    event.terminal = True
    start = np.concatenate([network.W.numpy().ravel(), network.b.numpy(), network.v.numpy()])
    found = solve_ivp(field, (0, 100), start, rtol=1e-7, atol=1e-9, events=event)
    W, b, v = parts(found.y_events[0][0])
    return TwoLayer(torch.from_numpy(W.copy()), torch.from_numpy(b.copy()), torch.from_numpy(v.copy()))


@pytest.mark.parametrize("pair", PAIRS)
def test_the_path_is_scipys(pair):
    """On an instance in which neurons cross kinks and none slides along one: there both integrators would crawl."""
    rng = torch.Generator().manual_seed(3)
    data = Gaussian(3, variance=1.0).sample(2, rng)
    network = TorchLinearInit().draw(3, 4, rng)
    result = Flow(until=LogLoss(-3), pair=pair, tolerance=1e-5).train(network, data)
    expected = by_scipy(network, data, result.log_loss)
    for name in ("W", "b", "v"):
        torch.testing.assert_close(getattr(result.network, name), getattr(expected, name), rtol=0, atol=2e-4)


def taylor(tableau: Tableau, h: float) -> float:
    """One step on dx/dt = x from 1, whose answer is e^h."""
    slopes = [1.0]
    for row in tableau.a:
        slopes.append(1 + h * sum(a * k for a, k in zip(row, slopes, strict=True)))
    return 1 + h * sum(b * k for b, k in zip(tableau.b, slopes, strict=True))


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_has_the_order_that_it_declares(name):
    tableau = PAIRS[name]
    errors = [abs(taylor(tableau, h) - math.exp(h)) for h in (0.2, 0.1)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(tableau.order + 1, abs=0.15)
    assert sum(tableau.b) == pytest.approx(1)
    assert sum(tableau.e) == pytest.approx(0, abs=1e-15)
    assert len(tableau.e) == len(tableau.b) + 1


def test_it_lands_on_the_loss_that_was_asked_for(rng):
    data = Sphere(20).sample(8, rng)
    network = TorchLinearInit().draw(20, 50, rng)
    result = Flow(until=Loss(1e-30)).train(network, data)
    assert result.status == "reached"
    assert result.stopped_by == "loss=1e-30"
    target = math.log(1e-30)
    assert target * (1 + 2.1e-4) <= result.log_loss < target
    assert result.network.start is not None
    assert torch.equal(result.network.start.W, network.W)


def test_what_is_reported_is_true_of_the_network(rng):
    data = Sphere(20).sample(8, rng)
    result = Flow(until=LogLoss(-40)).train(TorchLinearInit().draw(20, 50, rng), data)
    q = result.network.margins(data.X, data.y)
    assert result.margin == pytest.approx(float(q.min()), rel=1e-9)
    assert result.normalised_margin == pytest.approx(float(q.min() / result.network.squared_norm), rel=1e-9)
    assert result.log_loss == pytest.approx(float(torch.logsumexp(-q, 0)) - math.log(8), rel=1e-9)
    assert result.share_on_margin == float((q <= 1.1 * q.min()).double().mean())
    assert result.accuracy == 1.0
    assert result.path[0].steps == 0
    assert result.path[-1].steps == result.steps
    assert result.to_json()["gradient_evaluations"] == result.gradient_evaluations


def test_the_smoothed_margin_never_falls(rng):
    """Lyu and Li: along gradient flow γ̃ = -ln L_sum/‖θ‖² does not fall once it is positive."""
    data = Sphere(30).sample(20, rng)
    path = Flow(until=LogLoss(-60)).train(TorchLinearInit().draw(30, 100, rng), data).path
    smoothed = [point.smoothed_margin for point in path if point.smoothed_margin > 0]
    assert len(smoothed) > 10
    assert all(later > earlier for earlier, later in pairwise(smoothed))


def test_balance_is_kept(rng):
    """v_j² - ‖w_j‖² - b_j² is constant along gradient flow, neuron by neuron."""
    data = Sphere(10).sample(6, rng)
    network = TorchLinearInit().draw(10, 20, rng)
    after = Flow(until=LogLoss(-5)).train(network, data).network
    before_after = [net.v**2 - net.W.square().sum(1) - net.b**2 for net in (network, after)]
    torch.testing.assert_close(*before_after, atol=2e-3, rtol=0)


def test_training_in_the_span_changes_nothing_but_rounding(rng):
    data = Sphere(40).sample(6, rng)
    network = TorchLinearInit().draw(40, 30, rng)
    inside, outside = (
        Flow(until=LogLoss(-10), tolerance=1e-3, span=span).train(network, data) for span in (True, False)
    )
    assert inside.gradient_evaluations == outside.gradient_evaluations
    torch.testing.assert_close(inside.network.W, outside.network.W, rtol=0, atol=1e-10)
    assert inside.normalised_margin == pytest.approx(outside.normalised_margin, rel=1e-10)


def test_weights_off_the_subspace_do_not_move_at_all(rng):
    """melamed2023 A.2 with data on the first coordinates: exactly 0.0 in the span and out of it."""
    inner = Sphere(5).sample(12, rng)
    data = Data(torch.cat([inner.X, torch.zeros(12, 7)], 1), inner.y)
    network = Kaiming().draw(12, 20, rng)
    for span in (True, False):
        after = Flow(until=LogLoss(-10), tolerance=1e-3, span=span).train(network, data).network
        assert float((after.W - network.W)[:, 5:].abs().max()) == 0.0
        assert float((after.W - network.W)[:, :5].abs().max()) > 0.1


def test_weights_off_a_rotated_subspace_move_by_rounding_only(rng):
    data = Subspace(30, 20).sample(15, rng)
    network = Kaiming().draw(30, 20, rng)
    for span in (True, False):
        after = Flow(until=LogLoss(-10), tolerance=1e-3, span=span).train(network, data).network
        assert float(((after.W - network.W) @ data.truth.complement).abs().max()) < 1e-12


def test_rotating_the_data_rotates_the_training(rng):
    """melamed2023 A.1."""
    data = Sphere(8).sample(6, rng)
    network = TorchLinearInit().draw(8, 15, rng)
    R = torch.linalg.qr(torch.randn(8, 8, generator=rng, dtype=torch.float64)).Q
    turned = TwoLayer(network.W @ R.T, network.b, network.v)
    flow = Flow(until=LogLoss(-5), tolerance=1e-3, span=False)
    one, other = flow.train(network, data).network, flow.train(turned, Data(data.X @ R.T, data.y)).network
    torch.testing.assert_close(other.W, one.W @ R.T, rtol=0, atol=1e-9)


def test_a_log_loss_of_minus_ten_thousand(rng):
    data = Data(torch.eye(2), torch.tensor([1.0, -1.0]))
    result = Flow(until=LogLoss(-1e4), tolerance=1e-2).train(TorchLinearInit().draw(2, 8, rng), data)
    assert result.status == "reached"
    assert result.margin == pytest.approx(1e4, rel=1e-2)


def test_float32_ends_near_float64(rng):
    data = Sphere(20).sample(8, rng)
    network = TorchLinearInit().draw(20, 50, rng)
    single, double = (Flow(until=LogLoss(-30), precision=kind).train(network, data) for kind in ("float32", "float64"))
    assert single.network.dtype == torch.float32
    assert single.normalised_margin == pytest.approx(double.normalised_margin, rel=1e-3)


def test_the_logistic_flow_joins_the_exponential_one(rng):
    """Both losses have the same tail, so that their networks turn to the same direction."""
    data = Data(torch.tensor([[1.0, 0.2], [-0.3, 1.0]]), torch.tensor([1.0, -1.0]))
    network = Kaiming(beta=0.1).draw(2, 6, rng)
    one, other = (Flow(until=LogLoss(-300), loss=loss).train(network, data) for loss in (Exponential(), Logistic()))
    assert one.normalised_margin == pytest.approx(other.normalised_margin, rel=2e-2)


def test_deep_networks_flow_too(rng):
    data = Sphere(6).sample(5, rng)
    network = TorchLinearInit().draw_deep(6, [10, 8], rng)
    result = Flow(until=LogLoss(-3), tolerance=1e-2).train(network, data)
    assert result.status == "reached"
    assert result.network.start is not None
    assert result.accuracy == 1.0


def test_plain_modules_flow_too(rng):
    module = torch.nn.Sequential(torch.nn.Linear(6, 10), torch.nn.Tanh(), torch.nn.Linear(10, 1)).double()
    result = Flow(until=LogLoss(-2), tolerance=1e-3).train(module, Sphere(6).sample(5, rng))
    assert result.status == "reached"


def test_contradictory_labels_end_in_a_stall(rng):
    """The margins are q and -q, the loss is cosh q ≥ 1; a step errs by 3e-4 of ‖θ‖ ≈ 2, so q² stays below 1e-5."""
    data = Data(torch.ones(2, 3), torch.tensor([1.0, -1.0]))
    result = Flow(until=LogLoss(-5)).train(TorchLinearInit().draw(3, 5, rng), data)
    assert result.status == "stalled"
    assert "falls no further" in result.message
    assert -1e-12 <= result.log_loss <= 5e-6


def test_it_can_stop_where_the_margin_stalls(rng):
    data = Data(torch.eye(2), torch.tensor([1.0, -1.0]))
    result = Flow(until=(MarginStalls(0.01), Steps(5000))).train(TorchLinearInit().draw(2, 8, rng), data)
    assert result.stopped_by == "margin_stalls=0.01"


def test_seconds_are_a_budget(rng):
    result = Flow(until=(LogLoss(-1e9), Time(1e-9))).train(TorchLinearInit().draw(4, 5, rng), Sphere(4).sample(3, rng))
    assert result.status == "budget"
    assert "before log_loss=-1e+09 was reached" in result.message


def test_networks_of_any_depth_are_converted(rng):
    flow = Flow(until=Steps(3), precision="float32")
    trained = flow.train(TorchLinearInit().draw_deep(6, [10, 8], rng), Sphere(6).sample(5, rng)).network
    assert trained.dtype == torch.float32


def test_a_deep_network_is_trained_in_the_span_as_outside_it(rng):
    """Weights off the span never move; to rounding both ways are the same path."""
    network, data = TorchLinearInit().draw_deep(20, [10, 8], rng, outputs=1), Sphere(20).sample(5, rng)
    inside, outside = (Flow(until=Steps(20), span=span).train(network, data).network for span in (True, False))
    for a, b in zip(inside.weights, outside.weights, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-8)  # rounding grows along the path
    off = torch.linalg.svd(data.X).Vh[5:]
    assert (inside.weights[0] @ off.T - network.weights[0] @ off.T).abs().max() < 1e-14 * 20


def test_where_weights_are_shared_the_span_is_refused(rng):
    kernel = Convolution(torch.randn(2, 1, 2, 2).double(), torch.zeros(2).double(), (1, 3, 3))
    last = Dense(torch.randn(1, 8).double(), torch.zeros(1).double())
    with pytest.raises(InputError, match="not dense"):
        Flow(span=True).train(Deep((kernel, last)), Sphere(9).sample(3, rng))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 0.0}, "tolerance is 0.0"),
        ({"pair": "euler"}, "pair is 'euler'"),
        ({"span": "yes"}, "span is 'yes'"),
        ({"precision": "float16"}, "precision is 'float16'"),
        ({"layers": "second"}, "layers is 'second'"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    with pytest.raises(InputError, match=message):
        Flow(**options)


class Single(torch.nn.Module):
    """Casts to float32 inside, so that it cannot be converted."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 1)

    def forward(self, X):
        return torch.tanh(self.linear(X.float()))[:, 0]


def test_a_module_that_keeps_its_type_is_trained_in_it(rng):
    network, data = Adapter(Single(), (4,)), Sphere(4).sample(3, rng)
    training = Flow(until=Steps(2)).train(network, data)
    assert training.network.dtype == torch.float32
    assert training.steps == 2
