"""Radius against accuracy along κ, what was expected of a remedy, and a point of the curve that a person chose."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import brittle as bt
from brittle.attacks import MinimumNorm
from brittle.auditing.costs import Costs
from brittle.auditing.curve import curve
from brittle.auditing.pieces import tenth
from brittle.auditing.remedies import RemoveOffSubspace
from brittle.auditing.remedy import Diagnostics
from brittle.auditing.trained_on import RadiusTraining
from brittle.common.errors import InputError
from brittle.data import Clusters, Subspace
from brittle.networks import TorchLinearInit
from brittle.training import Flow, Logistic, LogLoss, MaximumRadius, Steps


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def clusters():
    data = Clusters(12, 4, 0.6).sample(40, generator(), test=30)
    start = TorchLinearInit().draw(12, 20, generator(1))
    return Flow(until=LogLoss(-3.0), loss=Logistic()).train(start, data).network, data


@pytest.fixture(scope="module")
def treated(clusters):
    network, data = clusters
    found = bt.audit(network, data, budget=30.0, examples=12, test=True, remedies=RadiusTraining(steps=80))
    return found.remedies[0]


def test_the_curve_goes_from_before_over_kappa_to_after(treated):
    curve = treated.curve
    assert [point.role for point in curve.points] == ["before", *["way"] * 8, "after"]
    assert (curve.points[0].accuracy, curve.points[-1].accuracy) == (treated.accuracy_before, treated.accuracy_after)
    assert curve.examples == 12
    assert (curve.points[0].radius, curve.points[-1].radius) == (treated.radius_before, treated.radius_after)
    assert (curve.points[0].tenth, curve.points[-1].tenth) == (treated.tenth_before, treated.tenth_after)
    kappas = [point.kappa for point in curve.points[1:-1]]
    assert kappas == sorted(kappas)
    assert kappas[-1] == pytest.approx(1.0)
    assert curve.kappa == curve.points[-1].kappa
    assert curve.kappa in kappas
    assert curve.points[-2].radius > 1.1 * curve.points[0].radius


def test_it_is_in_the_json(treated):
    plain = json.loads(json.dumps(treated.to_json()))["curve"]
    assert list(plain) == ["examples", "kappa", "points"]
    assert list(plain["points"][0]) == ["role", "kappa", "accuracy", "radius", "tenth"]
    assert plain["points"][0]["kappa"] is None


def test_the_way_of_a_training_has_its_networks(clusters):
    network, data = clusters
    way = MaximumRadius(until=Steps(40)).train(network, data, generator()).way
    assert len(way) == 8
    assert sum(point.kept for point in way) == 1
    for point in way:
        assert point.accuracy == point.network.accuracy(data.X, data.y)
        assert point.held_out == point.network.accuracy(data.X_test, data.y_test)
    assert "network" not in way[0].to_json()
    assert Flow(until=Steps(2)).train(network, data).way == ()


def test_a_point_that_was_chosen_is_the_one_that_is_kept(clusters):
    """The run is the same until κ is at its end; then it goes back to the point that is nearest."""
    network, data = clusters
    regime = MaximumRadius(until=Steps(60), lost_accuracy=1.0)
    free = regime.train(network, data, generator())
    assert [point.kept for point in free.way].index(True) == 7
    wanted = free.way[3]
    chosen = replace(regime, kappa=round(wanted.kappa, 2)).train(network, data, generator())
    assert [point.kept for point in chosen.way].index(True) == 3
    assert [point.kappa for point in chosen.way] == [point.kappa for point in free.way]
    longer, shorter = (float(MinimumNorm().run(each.network, data).norms.median()) for each in (free, chosen))
    assert shorter < longer
    with pytest.raises(InputError, match=r"kappa is 1\.5; it must be at most the target, 1, where κ ends"):
        replace(regime, kappa=1.5).train(network, data, generator())


def test_what_may_be_lost_is_for_the_person_to_say(clusters):
    """The bar of the accuracy goes with the remedy, and the verdict on it names the bar."""
    network, data = clusters
    patient = bt.audit(network, data, budget=8.0, examples=6, remedies=RadiusTraining(steps=60, lost_accuracy=0.2))
    assert patient.remedies[0].tolerance == 0.2
    with pytest.raises(InputError, match="lost_accuracy is 2"):
        RadiusTraining(lost_accuracy=2.0)


def test_a_forecast_is_held_against_what_was_found(treated):
    low, high = RadiusTraining().expected(Diagnostics(treated.share_before, None))
    forecast = treated.forecast
    assert (forecast.low, forecast.high, forecast.found) == (low, high, treated.factor)
    assert forecast.right == (low <= treated.factor <= high)
    assert forecast.to_json()["right"] == forecast.right
    assert treated.share_after > treated.share_before


def test_projection_is_forecast_by_the_radius_on_the_subspace():
    """N(Px) has on all of space the radius that N has on the subspace."""
    data = Subspace(30, 20).sample(16, generator(3))
    start = TorchLinearInit(scale=0.5).draw(30, 40, generator(1))
    network = Flow(until=LogLoss(-3.0), loss=Logistic()).train(start, data).network
    found = bt.audit(network, data, budget=20.0, examples=16, remedies=[RemoveOffSubspace(), RadiusTraining(steps=60)])
    projection, trained = found.remedies
    assert projection.forecast.right
    assert projection.factor > 1.1
    assert projection.factor == pytest.approx(found.vulnerability.on.median / found.vulnerability.free.median, rel=0.01)
    assert (projection.projected, trained.projected) == (False, True)


def test_nine_tenths_reach_the_tenth():
    assert tenth(torch.arange(1.0, 11.0)) == 1
    assert tenth(torch.arange(1.0, 21.0)) == 2
    assert tenth(torch.tensor([5.0])) == 5


def test_a_fifth_of_the_work_that_is_left_pays_for_the_way(clusters):
    network, data = clusters
    granted, costs = [], []
    budget = SimpleNamespace(left=50.0, grant=lambda work: granted.append(work) or affords)
    affords = SimpleNamespace(steps=lambda work: costs.append(work) or 5)
    way = [SimpleNamespace(kept=True, kappa=0.5, network=network)] * 3
    assert curve(SimpleNamespace(way=way, network=network), None, data, data, generator(), budget) is None  # 5 of 6
    assert granted == [pytest.approx(10.0)]
    assert costs == [pytest.approx(3 * Costs.of(network).attack())]
