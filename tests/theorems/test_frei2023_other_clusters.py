"""frei2023 on clusters with noise of another law, with more noise, and with one that was left out."""

from dataclasses import dataclass, replace
from math import log, sqrt
from types import SimpleNamespace

import pytest
import torch

from brittle.data import Data, DataInfo
from brittle.networks import TorchLinearInit
from brittle.theorems import CheckOutcome, Instance, check_instance
from brittle.theorems.frei2023 import AnisotropicNoise, LeftOut, MoreNoise, SubGaussianNoise
from brittle.theorems.frei2023.other_clusters import NoisierConstants, OtherNoise
from tests.theorems.pinned import drawn

SMALL = {"dim": 1500, "noise": 0.04, "test": 20}


@dataclass(frozen=True)
class HeavyTails(OtherNoise, id=""):
    """Student's law with one degree of freedom: no moment exists."""

    claim = "none"

    def law(self, rows, rng):
        shape = (2, rows, self.dim)
        above, below = torch.randn(shape, generator=rng, dtype=torch.float64)
        return above / below


@pytest.mark.parametrize("law", [AnisotropicNoise, SubGaussianNoise])
def test_a_law_has_the_variance_of_the_papers(law):
    """E‖ξ‖² = d; E<ξ, e>² is at most 9/5."""
    noise = law(dim=200).law(4000, torch.Generator().manual_seed(0))
    assert float(noise.square().sum(1).mean()) == pytest.approx(200, rel=0.01)  # a standard error is 0.002 at most
    assert float(torch.linalg.eigvalsh(noise.T @ noise / 4000).max()) < 2.7  # 9/5 (1 + √(200/4000))² is 2.69
    assert float(noise.mean().abs()) < 0.01


def test_heavy_tails_are_refused():
    verdict = check_instance(HeavyTails(**SMALL), drawn(HeavyTails(**SMALL)))
    assert verdict.verdict is CheckOutcome.HYPOTHESES_FAIL
    assert {each.name for each in verdict.hypotheses if not each.holds} >= {"P1 largest ‖ξ_i‖"}


@pytest.mark.parametrize(
    "theorem", [SubGaussianNoise(**SMALL, kkt_tolerance=2.0), MoreNoise(kkt_tolerance=2.0, test=20)]
)
def test_another_network_is_refused_or_breaks_the_promise(theorem):
    instance = drawn(theorem)
    random = TorchLinearInit().draw(instance.data.columns, 10, torch.Generator().manual_seed(1))
    wrong = replace(instance, network=replace(random, v=-instance.two_layer.v.sum().sign() * random.v.abs()))
    assert check_instance(replace(theorem, kkt_tolerance=1e-6), wrong).verdict is CheckOutcome.HYPOTHESES_FAIL
    assert check_instance(theorem, wrong).verdict is not CheckOutcome.CONFIRMED


def test_noise_beyond_the_eighth_root_is_refused():
    theorem = MoreNoise(noise=32.0, examples=8, test=4)
    failed = [each.name for each in theorem.hypotheses(drawn(theorem)) if not each.holds]
    assert "what is left of the margin" in failed


def test_the_numbers_with_more_noise_are_those_derived():
    d, k, sigma = 10**12, 2, 3.0
    delta = 4 * sigma**2 * sqrt(d) * log(d)
    share = k * (delta + 1) / (d - delta + 1)
    lost = share / (1 - 2 * share)
    numbers = NoisierConstants(d, k, 0.0, 0.5, sigma, 40)
    assert numbers.margin == pytest.approx((1 - lost) * (d - delta + 1) / ((1 + 2 * 9) * d + delta + 1) - 2 * lost)
    assert numbers.spread == pytest.approx(delta)
    assert NoisierConstants(d, k, 0.0, 0.5, 0.5, 40).spread == pytest.approx(4 * 0.5 * sqrt(d) * log(d))


def test_where_every_cluster_was_seen_nothing_is_said():
    theorem = LeftOut(test=50)
    data = drawn(theorem).data
    fresh = data.test
    all_seen = replace(
        data,
        X=torch.cat([data.X, fresh.X]),
        y=torch.cat([data.y, fresh.y]),
        truth=replace(data.truth, cluster=torch.cat([data.truth.cluster, fresh.truth.cluster])),
    )
    verdict = check_instance(theorem, Instance(all_seen, drawn(theorem).network))
    assert verdict.verdict is CheckOutcome.HYPOTHESES_FAIL
    assert "clusters without an example" in {each.name for each in verdict.hypotheses if not each.holds}


def test_a_network_that_knows_the_cluster_breaks_the_promise():
    theorem = LeftOut(test=50, kkt_tolerance=2.0)
    instance = drawn(theorem)
    means = instance.data.truth.means
    positive = (instance.two_layer.v > 0).double()[:, None]
    knowing = replace(instance.two_layer, W=instance.two_layer.W + 3 * positive * means[0] / theorem.dim)
    found = check_instance(theorem, replace(instance, network=knowing))
    assert found.verdict is CheckOutcome.VIOLATED


def test_fresh_examples_of_the_kind_of_a_12_are_told_by_their_products(monkeypatch):
    """At least 91 - 1 with an example of the own cluster, at most 11 - 1 with one of the other."""
    monkeypatch.setattr(MoreNoise, "numbers", lambda self, instance: SimpleNamespace(within=91.0, across=11.0))
    X = 10 * torch.eye(2).double()
    X_test = torch.tensor(
        [[9.05, 0.95], [9.05, -0.95], [9.05, 1.05], [9.05, -1.05], [8.95, 0.0], [0.95, 9.05]]
    ).double()
    own = torch.tensor([0, 0, 0, 0, 0, 1])
    truth = DataInfo(means=X, cluster=torch.arange(2), cluster_test=own)
    y = torch.tensor([1.0, -1.0]).double()
    found = MoreNoise()._kind(Instance(Data(X, y, X_test.double(), y[own], truth)))
    assert found.tolist() == [True, True, False, False, False, True]
