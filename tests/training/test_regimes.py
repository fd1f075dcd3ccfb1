"""What holds for every regime and every stop, row by row of the table of cases."""

import pytest
import torch

from brittle.data import Sphere
from brittle.networks import TorchLinearInit
from brittle.training import GradientDescent, Logistic, LogLoss, Status, Steps
from tests.cases import REGIMES, STOPS


def setup():
    rng = torch.Generator().manual_seed(0)
    data = Sphere(12).sample(10, rng)
    return TorchLinearInit().draw(12, 16, rng), data, rng


@pytest.mark.parametrize("regime", [regime for _, regime in REGIMES], ids=[name for name, _ in REGIMES])
def test_a_regime_reports_what_is_true_of_its_network(regime):
    network, data, rng = setup()
    result = regime.train(network, data, rng)
    q = result.network.margins(data.X, data.y).double()
    assert result.status == "reached"
    assert result.margin == pytest.approx(float(q.min()), rel=1e-5, abs=1e-6)
    assert result.normalised_margin == pytest.approx(float(q.min() / result.network.squared_norm), rel=1e-5, abs=1e-8)
    loss = getattr(regime, "loss", Logistic())  # training for the radius has none of its own
    assert result.log_loss == pytest.approx(loss.total(q), rel=1e-5, abs=1e-6)
    assert result.norm == pytest.approx(float(result.network.squared_norm) ** 0.5, rel=1e-6)
    assert torch.equal(result.network.start.W.double(), network.W.to(result.network.dtype).double())
    assert not torch.equal(result.network.W, network.W)
    assert [point.steps for point in result.path] == sorted({point.steps for point in result.path})


@pytest.mark.parametrize("regime", [regime for _, regime in REGIMES], ids=[name for name, _ in REGIMES])
def test_the_same_seed_gives_the_same_network(regime):
    one, other = (regime.train(*setup()).network for _ in range(2))
    assert torch.equal(one.W, other.W)
    assert torch.equal(one.v, other.v)


@pytest.mark.parametrize("stop", [stop for _, stop in STOPS], ids=[name for name, _ in STOPS])
def test_a_stop_ends_a_run_and_gives_its_name(stop):
    result = GradientDescent(until=(stop, Steps(5000)), rate=0.2).train(*setup())
    assert result.status == "reached" or stop.budget
    assert result.stopped_by == str(stop)


def test_an_ending_is_its_word_in_json_and_knows_what_to_do():
    result = GradientDescent(until=(LogLoss(-70), Steps(3))).train(*setup())
    assert result.status is Status.BUDGET
    assert "allow more" in result.status.advice
    assert type(result.to_json()["status"]) is str
    assert result.to_json()["status"] == "budget"
