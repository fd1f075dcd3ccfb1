"""What is measured beside a promise, computed again by hand: no network makes these numbers wrong by being unusual."""

import math

import pytest
import torch

from brittle.common.errors import InputError
from brittle.data import Data, Sphere
from brittle.networks import TwoLayer
from brittle.theorems import Instance, Theorem
from brittle.theorems.check import measure
from brittle.theorems.comparison import Witness
from brittle.theorems.frei2023.statements import NearlyNotRobust
from brittle.theorems.kkt_proof.steps import approximations
from brittle.theorems.vardi2022.convergence import FlowFindsKKT, TrajectoryPoint
from brittle.theorems.vardi2022.existence import SphereIsNearlyOrthogonal, cosine_tail
from brittle.theorems.vardi2022.groups import orthogonal_instance
from brittle.theorems.vardi2022.universal import NearlyUniversal
from brittle.theorems.wang2022.ball import WeightBall, lazy_instance
from brittle.theorems.wang2022.change import displace_examples, from_above
from tests.theorems.clusters import changed, known


def test_approximations_do_not_depend_on_the_scale_of_the_network():
    data, network = known().data, known().two_layer
    ones, threes = approximations(network, data, 24.0), approximations(network.scaled(3.0), data, 24.0)
    for one, three in zip(ones, threes, strict=True):
        assert three.norm == pytest.approx(one.norm, rel=1e-9)
        assert three.outer == pytest.approx(one.outer, rel=1e-9)
        assert three.total == pytest.approx(one.total, rel=1e-6)
        assert three.reach == 24.0
    margin_one = network.scaled(float(network.margins(data.X, data.y).min()) ** -0.5)
    assert ones[0].norm == pytest.approx(
        math.sqrt(float(sum(p.square().sum() for p in (margin_one.W, margin_one.b, margin_one.v))))
    )
    assert ones[0].outer == pytest.approx(float(margin_one.v.square().sum().sqrt()))


def test_a_turn_is_measured_against_what_the_growth_pays_for():
    """½ ln(γ̃₂/γ̃₁) ln(‖θ₂‖/‖θ₁‖), with γ̃ known up to the fidelity."""
    theorem = FlowFindsKKT(fidelity=0.01)
    east, north = torch.tensor([1.0, 0.0]).double(), torch.tensor([0.6, 0.8]).double()
    before, after = TrajectoryPoint(-1.0, 2.0, east, 0.1), TrajectoryPoint(-9.0, 6.0, north, 0.3)
    turned = 0.4**2 + 0.8**2
    assert theorem._turn(before, after) == pytest.approx(turned / (0.5 * (math.log(3) + 0.01) * math.log(3)))
    assert theorem._turn(after, before) == pytest.approx(turned / (0.5 * 0.01 * math.log(3)))


def test_chances_are_summed_over_all_pairs():
    instance = Instance(Sphere(30).sample(7, torch.Generator().manual_seed(0)))
    measures = SphereIsNearlyOrthogonal().witness(instance).measures
    assert measures["exact chance of > 1/2, summed over pairs"] == pytest.approx(21 * cosine_tail(30, 0.5))
    limit = math.log(30) / math.sqrt(30)
    assert measures["exact chance of > ln(d)/√d, summed over pairs"] == pytest.approx(21 * cosine_tail(30, limit))
    unit = instance.data.X / instance.data.X.norm(dim=1, keepdim=True)
    off = (unit @ unit.T - torch.eye(7).double()).abs()
    assert measures["largest |cos|"] == pytest.approx(float(off.max()))


def test_the_bound_in_a_direction_is_that_of_every_neuron_alone():
    """A neuron is open at x, at x + δ, at both or at neither, as far as its ball lets it; ‖x + δ‖ = √5."""
    ball = WeightBall(lazy_instance(12, 40, 2.0, 4, 0, torch.Generator().manual_seed(0)), 2.0)
    X, V, start = ball.instance.data.X, 2 / math.sqrt(40), ball.start
    moved, r = displace_examples(X, 2.0), torch.roll(X, 2, dims=1)
    by_hand = []
    for x, there, direction in zip(X, moved, r, strict=True):
        total = 0.0
        for w, v in zip(start.W, start.v, strict=True):
            here, after, share = float(w @ x), float(w @ there), math.copysign(1, v) * float(w @ direction)
            opens_here, closes_here = here + V > 0, here - V <= 0
            opens_there, closes_there = after + math.sqrt(5) * V > 0, after - math.sqrt(5) * V <= 0
            cases = [0.0] if (opens_here and opens_there) or (closes_here and closes_there) else []
            cases += [share + V] if opens_here and closes_there else []
            cases += [V - share] if closes_here and opens_there else []
            total += max(cases)
        by_hand.append(total / math.sqrt(40))
    assert from_above(ball, moved, r).tolist() == pytest.approx(by_hand, rel=1e-12)


def first_feature(bias: float) -> TwoLayer:
    """x ↦ x_1 + bias."""
    W, v = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).double(), torch.tensor([1.0, -1.0]).double()
    return TwoLayer(W, torch.tensor([bias, -bias]).double(), v)


def test_perturbations_are_applied_to_the_network_and_to_the_robust_one():
    rows = torch.tensor([[1.0, 0.0], [2.0, 0.0], [-4.0, 0.0]]).double()
    moves = torch.tensor([[-1.5, 0.0], [-1.0, 0.0], [3.0, 4.0]]).double()
    y = torch.tensor([1.0, 1.0, -1.0]).double()
    witness, instance = Witness({"own": 7.0}, moves), Instance(Data(rows, y), first_feature(0.0))
    expected = {
        "own": 7.0,
        "longest perturbation": 5.0,
        "largest margin after the perturbation": 1.0,
        "smallest scale of it that flips all": 2.0,
        "longest perturbation at that scale": 10.0,
    }
    assert measure(witness, instance) == pytest.approx(expected)
    robust = measure(witness, instance, first_feature(0.4))  # margins -0.1, 1.4 and 0.6
    assert robust == pytest.approx(expected | {"share that it flips of the robust network": 1 / 3})
    others = Witness({}, moves, rows + 3.0, -y)
    assert measure(others, instance)["largest margin after the perturbation"] == pytest.approx(2.0)
    assert measure(Witness({"own": 7.0}), Instance(Data(rows, y))) == {"own": 7.0}
    with pytest.raises(InputError, match="needs a network"):
        measure(witness, Instance(Data(rows, y)))


def supposed(theorem: Theorem, instance: Instance) -> set[str]:
    return {each.name for each in theorem.hypotheses(instance)}


def turned(instance: Instance) -> Instance:
    """With a network that gets every example wrong."""
    network = instance.two_layer
    return Instance(instance.data, TwoLayer(network.W, network.b, -network.v))


def test_costs_are_asked_only_where_there_are_any():
    """Of right networks on data that the statement is about: both, not either."""
    cost, examples = "cost of ε and δ", NearlyUniversal()
    assert cost in supposed(examples, orthogonal_instance(299, 100))
    assert cost not in supposed(examples, orthogonal_instance(299, 102))
    assert cost not in supposed(examples, turned(orthogonal_instance(299, 100)))
    after, clusters = "margin after z, by ε and δ", NearlyNotRobust()
    assert after in supposed(clusters, known())
    assert after not in supposed(clusters, changed(dim=575))
    assert after not in supposed(clusters, turned(known()))
