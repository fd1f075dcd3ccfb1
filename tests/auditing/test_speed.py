"""The factor between counted and measured passes: a table, and the same audit for the same factor."""

import pytest
import torch

import brittle as bt
from brittle.auditing.costs import SPEEDS, VARIABLE, Costs, at_speed, chosen_speed, measure_speed, nearest_speed
from brittle.common.errors import InputError


@pytest.fixture(scope="module")
def subject():
    data = bt.data.Orthogonal(8).sample(8)
    return bt.networks.orthogonal_kkt(data.X, data.y).network, data


@pytest.mark.parametrize(
    ("ratio", "factor"), [(0.1, 1), (1.0, 1), (1.4, 1), (1.5, 2), (2.8, 2), (2.9, 4), (7.2, 8), (1e9, 4096)]
)
def test_the_nearest_power_of_two(ratio, factor):
    assert nearest_speed(ratio) == factor
    assert factor in SPEEDS


def test_a_slow_clock_gives_a_large_factor(subject):
    network, data = subject
    seconds = iter(range(1000))
    passes = Costs.of(network).gradient(1)
    assert measure_speed(network, data, lambda: next(seconds) * 16.3 * passes) == 16
    seconds = iter(range(1000))
    assert measure_speed(network, data, lambda: next(seconds) * 0.01 * passes) == 1


def test_costs_of_passes_grow_with_the_factor(subject):
    network, _ = subject
    smooth = bt.networks.as_network(torch.nn.Sequential(torch.nn.Linear(8, 9), torch.nn.Tanh(), torch.nn.Linear(9, 1)))
    plain = Costs.of(network), Costs.of(smooth)
    with at_speed(8.0):
        slow = Costs.of(network), Costs.of(smooth)
    assert [each.gradient(7) for each in slow] == [8 * each.gradient(7) for each in plain]
    assert slow[1].attack() == 8 * plain[1].attack()
    assert Costs.of(network) == plain[0]


def test_the_same_seed_and_factor_give_the_same_audit(subject):
    first, second = (bt.audit(*subject, budget=1.0, remedies="none", speed=4).to_json() for _ in range(2))
    assert first["speed"] == 4
    for found in (first, second):
        found.pop("seconds")
        if found["vulnerability"]["certified"]:
            found["vulnerability"]["certified"].pop("seconds", None)
    assert first == second


def test_the_factor_comes_from_the_argument_or_the_environment(subject, monkeypatch):
    monkeypatch.setenv(VARIABLE, "32")
    assert chosen_speed(*subject, None) == 32
    assert chosen_speed(*subject, 2) == 2
    for wrong in ("3", "fast", "-1", "nan"):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(InputError, match=VARIABLE):
            chosen_speed(*subject, None)
    with pytest.raises(InputError, match="speed is 3"):
        bt.audit(*subject, speed=3)
