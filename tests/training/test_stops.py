"""Stops: how they are written, what they judge, what they refuse."""

import math

import pytest
import torch

from brittle.common.errors import InputError
from brittle.data import Sphere
from brittle.networks import TorchLinearInit
from brittle.training import (
    KKT,
    Accuracy,
    Flow,
    LogLoss,
    Loss,
    Margin,
    MarginStalls,
    PathPoint,
    Steps,
    Time,
    parse_stop,
    parse_stops,
)
from brittle.training.stops import RunStatus


def look(**changes):
    values = {
        "steps": 10,
        "evaluations": 30,
        "seconds": 2.0,
        "log_loss": -4.0,
        "log_loss_sum": -3.0,
        "margins": torch.tensor([1.0, 1.05, -0.5, 3.0]),
        "theta_norm": lambda: 2.0,
        "degree": 2,
        "recorded": True,
        "network": lambda: None,
    }
    return RunStatus(**(values | changes))


@pytest.mark.parametrize(
    ("text", "stop"),
    [
        ("loss=1e-30", Loss(1e-30)),
        ("log_loss=-1e4", LogLoss(-1e4)),
        ("log-loss=-70", LogLoss(-70.0)),
        ("margin=0.3", Margin(0.3)),
        ("accuracy=1", Accuracy(1.0)),
        ("margin_stalls=0.01", MarginStalls(0.01)),
        ("steps=1000", Steps(1000)),
        ("seconds=60", Time(60.0)),
    ],
)
def test_stops_are_written_as_they_are_printed(text, stop):
    assert parse_stop(text) == stop
    assert parse_stop(str(stop)) == stop


def test_several_stops_in_one_text():
    assert parse_stops("loss=1e-5,steps=9") == (Loss(1e-5), Steps(9))
    assert parse_stops(["loss=1e-5", "steps=9, seconds=3"]) == (Loss(1e-5), Steps(9), Time(3.0))


@pytest.mark.parametrize(
    "text", ["", "loss", "los=3", "loss=", "loss=x", "loss=0", "loss=-1", "loss=nan", "log_loss=-inf", "accuracy=1.5",
             "steps=0", "steps=1.5", "steps=inf", "seconds=-1", "margin=nan", "margin_stalls=0"],
)  # fmt: skip
def test_stops_that_make_no_sense_are_refused_in_one_line(text):
    with pytest.raises(InputError) as error:
        parse_stop(text)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(f"until is {text!r}")


def test_what_a_look_says():
    now = look()
    assert now.margin == -0.5
    assert now.accuracy == 0.75
    assert now.share_on_margin == 0.0
    assert now.normalised_margin == -0.125
    assert now.smoothed_margin == 0.75
    right = look(margins=torch.tensor([1.0, 1.05, 1.2, 3.0]))
    assert right.share_on_margin == 0.5


@pytest.mark.parametrize(
    ("stop", "reached"),
    [
        (LogLoss(-4.0), True),
        (LogLoss(-4.1), False),
        (Loss(math.exp(-3.9)), True),
        (Loss(math.exp(-4.0)), False),
        (Margin(-0.6), True),
        (Margin(-0.5), False),
        (Accuracy(0.75), True),
        (Accuracy(0.76), False),
        (Steps(10), True),
        (Steps(11), False),
        (Time(2.0), True),
        (Time(2.1), False),
    ],
    ids=lambda value: str(value),
)
def test_each_stop_at_its_edge(stop, reached):
    assert stop.reached(look(), []) is reached


def test_the_margin_stalls_when_it_rises_too_little_while_the_log_loss_doubles():
    def point(log_loss, margin):
        return PathPoint(1, 1, log_loss, margin, margin, 1.0, 1.0)

    now = look(log_loss=-8.0, margins=torch.tensor([4.0]), theta_norm=lambda: 2.0)  # normalised margin 1
    assert MarginStalls(0.1).reached(now, [point(-4.0, 0.95), point(-6.0, 0.99)])
    assert not MarginStalls(0.01).reached(now, [point(-4.0, 0.95), point(-6.0, 0.999)])
    assert not MarginStalls(0.1).reached(now, [point(-6.0, 0.99)])


def test_the_kkt_stop_measures_recorded_points_only():
    seen = []
    stop = KKT(lambda network: seen.append(network) or 0.5, 0.6)
    right = {"margins": torch.tensor([1.0]), "network": lambda: "net"}
    assert stop.reached(look(**right), [])
    assert not stop.reached(look(**right, recorded=False), [])
    assert not stop.reached(look(margins=torch.tensor([-1.0])), [])
    assert seen == ["net"]


def test_a_kkt_stop_ends_the_flow(rng):
    data = Sphere(10).sample(4, rng)

    def unbalance(network):
        return 1 / float(network.margins(data.X, data.y).min())

    result = Flow(until=(KKT(unbalance, 0.1), Steps(500))).train(TorchLinearInit().draw(10, 30, rng), data)
    assert result.stopped_by == "kkt=0.1"
    assert result.margin >= 10


def test_no_stop_at_all_is_refused(rng):
    with pytest.raises(InputError, match="until is empty"):
        Flow(until=()).train(TorchLinearInit().draw(10, 30, rng), Sphere(10).sample(4, rng))
