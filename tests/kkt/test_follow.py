"""A KKT point that is followed is the one that is solved for, and where it cannot be followed nothing is said."""

import pytest
import torch

from brittle import InputError
from brittle.data import Data, Sphere
from brittle.kkt import follow, residual, solve
from tests.kkt.reference import fitted, generator

DATA = {
    "more dimensions": Sphere(20).sample(8, generator(0)),
    "the plane": Data(
        Sphere(2).sample(9, generator(1)).X * torch.linspace(1, 2, 9).double()[:, None], [1.0, -1.0, 1.0] * 3
    ),
}


def shifted(data, size, seed=0):
    noise = torch.randn(data.X.shape, generator=generator(seed), dtype=torch.float64)
    return Data(data.X + size * noise, data.y)


@pytest.mark.parametrize("name", DATA)
def test_it_is_the_kkt_point_of_the_moved_examples(name):
    data = DATA[name]
    point = solve(fitted(data, 150, 0), data)
    moved = shifted(data, 1e-3)
    followed = follow(point, data, moved)
    assert followed is not None
    assert residual(followed.network, moved).stationarity < 1e-9
    assert followed.normalised_margin == pytest.approx(solve(point.network, moved).normalised_margin, rel=1e-6)


def test_where_it_stands_still_it_stays():
    data = DATA["more dimensions"]
    point = solve(fitted(data, 150, 0), data)
    again = follow(point, data, data)
    assert again.normalised_margin == pytest.approx(point.normalised_margin, rel=1e-12)


def test_nothing_is_said_where_newton_does_not_arrive():
    data = DATA["the plane"]
    point = solve(fitted(data, 150, 0), data)
    assert follow(point, data, shifted(data, 5.0)) is None
    assert follow(point, data, Data(data.X, -data.y)) is None
    doubled = data.X.clone()
    doubled[2] = doubled[0]  # the same label
    assert follow(point, data, Data(doubled, data.y)) is None


def test_examples_must_be_the_same_ones():
    data = DATA["more dimensions"]
    point = solve(fitted(data, 150, 0), data)
    with pytest.raises(InputError, match="before has examples"):
        follow(point, data, data.take(torch.arange(5)))
