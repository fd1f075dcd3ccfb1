"""What an audit counts as work, with the constants written again by hand: they are part of what a budget means."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from brittle.auditing.costs import (
    Costs,
    at_speed,
    get_known_speed,
    gradient_work,
    judging_work,
    largest,
    operations,
    rows_at_once,
    spectrum,
)
from brittle.common.errors import InputError
from brittle.data import Orthogonal
from brittle.networks import Convolution, Deep, Dense, TorchLinearInit, TwoLayer

TWO = Costs(1e6, 100, (50,), 3, two_layer=True)
ONE_HIDDEN = Costs(1e6, 1000, (50,), 3, two_layer=False)
DEEP = Costs(1e6, 100, (50, 30), 9, two_layer=False)
UNKNOWN = Costs(1e6, 100, (), 9, two_layer=False)


def test_the_costs_of_the_parts_are_those_of_the_definition():
    by_hand = [
        (TWO.gradient(10), 0.001 + 3e7 / 2e10),
        (TWO.attack(), 0.004 + 0.015),
        (TWO.attack(20), 0.004 + 0.015 + 4e-5),
        (TWO.ray(), 0.0019),
        (TWO.dual(), 2 * 2500 * 100 / 2e10 + 3 * (0.03 + 1.5e-4)),
        (ONE_HIDDEN.dual(), 2 * 2500 * 1000 / 2e10 + 3 * (0.03 + 6e-10 * 2500 * 333)),
        (TWO.branch(), 0.05 + 2e-4),
        (ONE_HIDDEN.attack(), 0.006 + 1e-3 + 0.04),
        (DEEP.attack(), 0.012 + 1.6e-3 + 0.04),
        (DEEP.attack(20), 0.012 + 1.6e-3 + 0.04 + 8e-5),
        (UNKNOWN.attack(), 3000 * (0.001 + 50 * 3e6 / 2e10) / 50),
        (UNKNOWN.ray(), 400 * (0.001 + 50 * 3e6 / 2e10) / 50),
        (replace(UNKNOWN, speed=8.0).attack(), 8 * 3000 * (0.001 + 50 * 3e6 / 2e10) / 50),
        (replace(DEEP, speed=8.0).attack(), 8 * (0.012 + 1.6e-3 + 0.04)),
        (replace(DEEP, speed=8.0).gradient(10), 8 * (0.001 + 3e7 / 2e10)),
        (DEEP.dual(), 0.024 + 3.2e-3 + 0.25),
        (DEEP.branch(), 0.03 + 2.5e-5 * 130**2),
        (replace(DEEP, squares=(50, 30)).preparing(), 3 * (50**3 + 30**3) / 2e10),
        (replace(ONE_HIDDEN, squares=(50,)).preparing(), 0.0),
        (Costs(1e6, 9000, (4000, 2000), 9, two_layer=False).branch(), 0.03 + 1e-8 * 10_000**3),
        (spectrum(10, 1000), 0.001 + 1.5e-9 * 1000 * 100),
        (spectrum(1000, 10), 0.001 + 1.5e-9 * 1000 * 100),
    ]
    for found, expected in by_hand:
        assert found == pytest.approx(expected, rel=1e-12)


def test_operations_are_counted_from_the_sizes(rng):
    network = TorchLinearInit().draw(5, 4, rng)
    assert operations(network) == 2 * (4 * 5 + 4 + 4 + 1)  # every parameter, as there are fewer products
    kernel = torch.randn(2, 1, 3, 3, generator=rng)
    folded = Convolution(kernel, torch.zeros(2), (1, 6, 6))
    layers = (folded, Dense(torch.randn(3, 32, generator=rng), torch.zeros(3)))
    assert operations(Deep(layers)) == 2 * (2 * (32 * 9) + 96)
    costs = Costs.of(Deep(layers))
    assert (costs.columns, costs.widths, costs.rivals, costs.two_layer) == (36, (32,), 2, False)
    assert Costs.of(network).rivals == 1
    assert Costs.of(network).two_layer


def test_a_pass_and_a_gradient_cost_a_call_and_their_operations(rng):
    network, data = TorchLinearInit().draw(6, 4, rng), Orthogonal(6).sample(6)
    assert judging_work(network, 1000) == pytest.approx(0.001 + operations(network) * 1000 / 2e10, rel=1e-12)
    assert gradient_work(network, data) == pytest.approx(0.001 + 3 * operations(network) * 6 / 2e10, rel=1e-12)


@pytest.mark.parametrize(
    ("rows", "work", "most"), [(10, 7.0, 7), (10, 7.9, 7), (10, 99.0, 10), (10, 0.5, 1), (1, 9.0, 1)]
)
def test_as_many_rows_as_the_work_pays_for(rows, work, most):
    assert largest(rows, float, work) == most


@pytest.mark.parametrize(
    ("dim", "width", "speed", "rows"),
    # of 2 operations a parameter, three times for a gradient: as many rows as 0.5 s of 2e10 operations a second pay for
    [(6, 4, 1.0, 1024), (998, 10_000, 1.0, 128), (998, 10_000, 8.0, 16), (998, 10_000, 4096.0, 1)],
)
def test_a_pass_that_nothing_can_interrupt_takes_half_a_second_at_most(dim, width, speed, rows):
    network = TwoLayer(torch.zeros(width, dim).double(), torch.zeros(width).double(), torch.zeros(width).double())
    with at_speed(speed):
        assert rows_at_once(network) == rows
    assert rows in (1, 1024) or rows <= 0.5 * 2e10 / (speed * 3 * 2 * (width * (dim + 2) + 1)) < 2 * rows


def test_the_rows_of_a_network_without_operations_are_counted_as_if_it_had_one():
    network = SimpleNamespace(classes=2, arrays={}, products=0, dim=3, widths=())
    assert rows_at_once(network) == 1024


@pytest.mark.parametrize("wrong", [3, 0.5, 8192.0, True, float("nan")])
def test_a_speed_is_a_power_of_two_up_to_4096(wrong):
    assert [get_known_speed("speed", good) for good in (1, 2.0, 4096)] == [1.0, 2.0, 4096.0]
    with pytest.raises(InputError, match="it must be a power of two from 1 to 4096"):
        get_known_speed("speed", wrong)
