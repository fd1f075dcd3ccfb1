"""vardi2022 beside its main theorem: robust networks exist, the sphere is nearly orthogonal, flow finds KKT points."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from brittle.attacks import first_flip
from brittle.data import Data, DataInfo, Orthogonal, Sphere
from brittle.networks import TorchLinearInit, TwoLayer
from brittle.networks.constructions import nearly_orthogonal
from brittle.theorems import CheckOutcome, Instance, check_default, check_instance, check_many
from brittle.theorems.vardi2022.convergence import FlowFindsKKT
from brittle.theorems.vardi2022.existence import (
    RobustNetworkExists,
    SmallerNormIsFragile,
    SphereIsNearlyOrthogonal,
    cosine_tail,
)
from brittle.theorems.vardi2022.groups import fragile_network
from tests.theorems.breaking import failed, names


def one_example_twice() -> Instance:
    data = Orthogonal(30).sample(5)
    return Instance(Data(torch.cat([data.X, data.X[:1]]), torch.cat([data.y, data.y[:1]])))


def test_the_construction_needs_its_hypotheses():
    short = Instance(Data(torch.eye(5).double(), torch.ones(5).double()))
    assert failed(RobustNetworkExists(), short) == ["relative deviation of ‖x‖ from √d"]
    assert failed(RobustNetworkExists(), one_example_twice()) == ["largest |<x_i, x_j>|/d"]


def test_no_ray_flips_the_construction_within_its_radius(rng):
    data = Sphere(200).sample(12, rng)
    network = nearly_orthogonal(data.X, data.y).network
    radius = check_instance(RobustNetworkExists(), Instance(data)).bound[1].value
    for i in range(len(data)):
        rays = torch.nn.functional.normalize(data.X - data.X[i], dim=1)
        rays[i] = torch.nn.functional.normalize(torch.randn(200, generator=rng, dtype=torch.float64), dim=0)
        X, y = data.X[i].expand(len(rays), -1), data.y[i].expand(len(rays))
        assert float(first_flip(network, X, y, rays).min()) >= radius * (1 - 1e-9)


def orthogonal(dim: int, examples: int) -> Instance:
    data = Orthogonal(dim).sample(examples)
    return Instance(data, fragile_network(data))


def uneven() -> Instance:
    data = Orthogonal(8).sample(8)
    data = replace(data, y=torch.tensor([1.0, 1, 1, 1, 1, -1, -1, -1]).double())
    return Instance(data, fragile_network(data))


def tilted() -> Instance:
    """One example leans towards another by 10^-5."""
    data = Orthogonal(8).sample(8)
    X = data.X.clone()
    X[0, 1] = 1e-5 * math.sqrt(8)
    X[0] *= math.sqrt(8) / X[0].norm()
    data = replace(data, X=X)
    return Instance(data, TwoLayer(X / 8, torch.zeros(8).double(), data.y))


def orthogonal_of_another_norm() -> Instance:
    data = Orthogonal(8).sample(8)
    data = Data(data.X * 1.01, data.y)
    return Instance(data, TwoLayer(data.X / 8, torch.zeros(8).double(), data.y))


WORKED_EXAMPLE = {
    "relative deviation of ‖x‖ from √d": orthogonal_of_another_norm,
    "largest |<x_i, x_j>|/d": tilted,
    "examples": lambda: orthogonal(8, 6),
    "examples of one label more than of the other": uneven,
    "deviation from the network N'": lambda: Instance(orthogonal(8, 8).data, orthogonal(8, 8).two_layer.scaled(1.1)),
}


@pytest.mark.parametrize("name", WORKED_EXAMPLE)
def test_each_hypothesis_of_the_worked_example(name):
    assert failed(SmallerNormIsFragile(), WORKED_EXAMPLE[name]()) == [name]
    assert names(SmallerNormIsFragile(), orthogonal(8, 8)) == set(WORKED_EXAMPLE)


@given(st.integers(3, 400), st.floats(0.01, 0.99))
def test_the_exact_tail_is_the_integral_of_the_density(dim, threshold):
    def density(t):
        return (1 - t * t) ** ((dim - 3) / 2)

    below, above = quad(density, 0, threshold)[0], quad(density, threshold, 1)[0]
    assert cosine_tail(dim, threshold) == pytest.approx(above / (above + below), rel=1e-6, abs=1e-12)


@given(st.integers(6, 10_000))
def test_the_stated_probabilities_allow_for_the_exact_ones(dim):
    assert cosine_tail(dim, 0.5) <= dim * 0.75 ** ((dim - 3) / 2)
    assert cosine_tail(dim, min(1.0, math.log(dim) / math.sqrt(dim))) <= dim ** (1 - math.log(dim) / 4)


def test_near_orthogonality_needs_the_sphere_and_six_dimensions(rng):
    uneven = Sphere(50).sample(4, rng)
    uneven = replace(uneven, X=uneven.X * torch.tensor([[1.0], [1], [1], [2]]).double(), truth=DataInfo())
    assert failed(SphereIsNearlyOrthogonal(), Instance(uneven)) == ["relative spread of ‖x‖"]
    assert failed(SphereIsNearlyOrthogonal(), Instance(Sphere(5).sample(4, rng))) == ["dimension"]


def test_a_vacuous_probability_is_said_to_be_one(rng):
    verdict = check_default(SphereIsNearlyOrthogonal(dim=1000, examples=31), rng)
    assert verdict.verdict is CheckOutcome.INCONCLUSIVE
    assert verdict.measured["exact chance of > ln(d)/√d, summed over pairs"] < 1e-8


def test_near_orthogonality_over_many_draws(rng):
    trials = check_many(SphereIsNearlyOrthogonal(), 200, rng)
    assert (trials.failures, trials.skipped) == (0, 0)
    assert trials.verdict is CheckOutcome.CONFIRMED


def test_many_draws_at_once_fail_as_often_as_the_exact_tail_says(rng):
    """Two points of R^12, where ln(d)/√d > 1/2: what remains is |cos| > 1/2, and one pair needs no union bound."""
    theorem = SphereIsNearlyOrthogonal(dim=12, examples=2)
    counted = theorem.failures(20_000, rng)
    exact = cosine_tail(12, 0.5)
    assert counted.failures / 20_000 == pytest.approx(exact, abs=4 * math.sqrt(exact / 20_000))


def test_flow_must_begin_at_a_small_loss(rng):
    data = Sphere(20).sample(5, rng)
    instance = Instance(data, TorchLinearInit().draw(20, 10, rng))
    assert failed(FlowFindsKKT(), instance) == ["sum of the losses"]


def test_a_logistic_loss_below_one_does_not_classify():
    """The paper's condition as printed, with the natural logarithm: one example is wrong and L = 0.74 < 1."""
    X = torch.tensor([[1.0], [-1.0]]).double()
    network = TwoLayer(torch.tensor([[1.0], [-1.0]]).double(), torch.zeros(2).double(), torch.tensor([5, 0.1]).double())
    instance = Instance(Data(X, torch.tensor([1.0, -1.0])), network)
    (loss,) = FlowFindsKKT(logistic=True).hypotheses(instance)
    assert instance.smallest_margin < 0
    assert loss.value < 1
    assert not loss.holds
