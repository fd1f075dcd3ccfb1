"""The residual along the flow, and the picture of it."""

import pytest

from brittle import InputError
from brittle.data import Sphere
from brittle.kkt import along_flow, residual, solve
from brittle.networks import TorchLinearInit
from brittle.report.plot.movement import kkt_path
from brittle.training import Flow, LogLoss


def test_the_flow_nears_a_kkt_point_and_the_picture_shows_it(rng):
    data = Sphere(30).sample(6, rng)
    network = TorchLinearInit().draw(30, 40, rng)
    moments = along_flow(network, data, [-3, -100, -3000], Flow(tolerance=1e-4))
    assert [m.log_loss for m in moments] == pytest.approx([-3, -100, -3000], rel=2e-3)
    assert moments[-1].stationarity < moments[0].stationarity
    assert moments[-1].complementarity < moments[0].complementarity
    counts = [m.gradient_evaluations for m in moments]
    assert counts == sorted(counts)
    at_once = Flow(tolerance=1e-4, until=LogLoss(-3000)).train(network, data).network
    direct = residual(at_once, data, margin_tolerance=float("inf"))
    assert moments[-1].stationarity == pytest.approx(direct.stationarity, rel=0.3)
    point = solve(network=at_once, data=data)
    figure = kkt_path(moments, point, recipe=moments[1])
    left, right = figure.axes
    assert list(left.lines[0].get_ydata()) == [m.stationarity for m in moments]
    assert right.lines[2].get_ydata()[0] == point.normalised_margin


def test_log_losses_must_fall(rng):
    data = Sphere(5).sample(2, rng)
    with pytest.raises(InputError, match="log_losses"):
        along_flow(TorchLinearInit().draw(5, 4, rng), data, [-3, -2])
