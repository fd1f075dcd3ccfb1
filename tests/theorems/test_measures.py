"""What is measured beside a promise, computed again by hand: no network makes these numbers wrong by being unusual."""

import math

import pytest
import torch

from brittle.settings import Sphere
from brittle.theorems import Instance
from brittle.theorems.kkt_proof.approximate import approximations
from brittle.theorems.vardi2022.convergence import FlowFindsKKT, Moment
from brittle.theorems.vardi2022.existence import SphereIsNearlyOrthogonal, cosine_tail
from tests.theorems.clusters import known


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
    before, after = Moment(-1.0, 2.0, east, 0.1), Moment(-9.0, 6.0, north, 0.3)
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
