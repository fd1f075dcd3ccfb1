"""Near a KKT point: every inequality of the derivation holds on networks that are off by a known amount."""

import math
from dataclasses import replace

import pytest
import torch

from brittle.kkt import residual
from brittle.networks import TwoLayer
from brittle.theorems import CheckOutcome, Instance, check_default, check_instance
from brittle.theorems.frei2023 import statements
from brittle.theorems.frei2023.groups import ClusterGroups
from brittle.theorems.kkt_proof import Approximation
from brittle.theorems.vardi2022 import universal
from brittle.theorems.vardi2022.groups import (
    ExampleConstants,
    ExampleGroups,
    almost_orthogonal_instance,
    orthogonal_instance,
    robust_network,
)
from tests.theorems.clusters import known

EXACT = Approximation(0.0, 0.0, 0.0, norm=1.0, outer=1.0, total=1.0, reach=1.0)


def off(instance: Instance, by: float, seed: int) -> Instance:
    """The network with every neuron moved by a share of its length."""
    rng, network = torch.Generator().manual_seed(seed), instance.two_layer
    noise = torch.randn(network.W.shape, generator=rng, dtype=torch.float64)
    noise = noise / noise.norm(dim=1, keepdim=True) * network.W.norm(dim=1, keepdim=True)
    return Instance(instance.data, TwoLayer(network.W + by * noise, network.b, network.v))


@pytest.fixture(scope="module")
def examples() -> Instance:
    return almost_orthogonal_instance(60, 8, 1.0, torch.Generator().manual_seed(0), balance=0.25)


@pytest.mark.parametrize(
    "theorem", [universal.NearlyUniversal(), statements.NearlyNotRobust()], ids=lambda theorem: theorem.id
)
def test_a_network_trained_to_a_finite_loss_is_flipped(theorem):
    verdict = check_default(theorem, torch.Generator().manual_seed(0))
    assert verdict.verdict is CheckOutcome.CONFIRMED, verdict.advice
    assert verdict.bound[1].threshold < 0
    assert verdict.measured["ε"] > 1e-3


@pytest.mark.parametrize("seed", [1, 2, 3, 909])
def test_the_default_is_near_enough_whatever_is_drawn(seed):
    verdict = check_default(universal.NearlyUniversal(), torch.Generator().manual_seed(seed))
    assert verdict.verdict is CheckOutcome.CONFIRMED, verdict.advice
    assert verdict.measured["ε"] > 1e-3
    assert verdict.hypotheses[-1].value < 0.8


def test_at_a_kkt_point_the_bounds_are_those_of_the_paper():
    numbers = ExampleConstants(60, 8, 1.0, 0.25)
    share = 8 * 2 / 61
    assert EXACT.largest_sum(numbers) == pytest.approx(1 / (61 * (1 - 2 * share)))
    assert EXACT.beyond_margin(numbers) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("by", [0.0, 1e-3, 1e-2, 3e-2])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_inequality_holds_on_examples(examples, by, seed):
    instance = off(examples, by, seed)
    numbers, scaled = ExampleGroups(instance.data).constants, instance.two_layer
    scaled = scaled.scaled(instance.smallest_margin**-0.5)
    measured = residual(scaled, instance.data, margin_tolerance=math.inf, kink_tolerance=1e-3)
    errors = (measured.stationarity, measured.complementarity, 1e-3)
    norms = (math.sqrt(float(scaled.squared_norm)), float(scaled.v.norm()))
    each = Approximation(*errors, *norms, float(measured.multipliers.sum()), math.sqrt(61))
    slopes = (scaled.preactivations(instance.data.X) > 0).double()
    slopes[measured.kinks[:, 0], measured.kinks[:, 1]] = measured.slopes
    for sign in (+1, -1):
        sums = measured.multipliers * (slopes @ (scaled.v.square() * (sign * scaled.v > 0)))
        assert float(sums.max()) <= each.largest_sum(numbers) * (1 + 1e-9)
        assert float(sums.sum()) >= (1 - each.misfit) * numbers.mass
    q = scaled.margins(instance.data.X, instance.data.y)
    assert float(q.max()) <= 1 + each.beyond_margin(numbers) + 1e-9
    verdict = check_instance(universal.NearlyUniversal(), instance, beyond=True)
    assert all(promise.holds for promise in (*verdict.bound, *verdict.beyond))


@pytest.mark.parametrize("by", [0.0, 3e-3, 0.1])
def test_every_inequality_holds_on_clusters(by):
    verdict = check_instance(statements.NearlyNotRobust(), off(known(), by, 0), beyond=True)
    assert len(verdict.bound) + len(verdict.beyond) == 2
    assert all(promise.holds for promise in (*verdict.bound, *verdict.beyond))
    assert (verdict.verdict is CheckOutcome.CONFIRMED) == (by < 0.05)


def test_far_from_a_kkt_point_nothing_is_promised():
    early = check_default(replace(universal.NearlyUniversal(), until=-3.0), torch.Generator().manual_seed(0))
    assert early.failed == ["cost of ε and δ"]
    crowded = check_instance(universal.NearlyUniversal(), orthogonal_instance(299, 102))
    assert crowded.failed == ["examples"]


def test_a_robust_network_that_passed_for_a_kkt_point_would_refute_the_statement(monkeypatch):
    """z leaves it as it is: were its errors taken for zero, the promise would be broken."""
    data = orthogonal_instance(299, 100).data
    robust = Instance(data, robust_network(data))
    assert check_instance(universal.NearlyUniversal(), robust).failed == ["cost of ε and δ"]
    monkeypatch.setattr(universal, "_best", lambda instance: EXACT)
    assert check_instance(universal.NearlyUniversal(), robust).verdict is CheckOutcome.VIOLATED


def test_the_costs_grow_with_every_error():
    groups = ClusterGroups(known().data)
    base = replace(EXACT, norm=1.5, outer=1.0, reach=24.0)
    for change in ({"stationarity": 1e-3}, {"complementarity": 1e-2}, {"kink": 1e-3}):
        assert statements._after(replace(base, **change), groups) > statements._after(base, groups) + 1e-6
