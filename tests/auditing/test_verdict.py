"""Sentences say on how many examples they rest, compare the same examples, and conclude nothing from a part of them."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from brittle.auditing.causes import Evidence, _contradicted, _one_direction, _weakest, evidence
from brittle.auditing.geometry import NearestNeighbourLimit
from brittle.auditing.pieces import median, median_interval
from brittle.auditing.proofs import CertifiedExamples
from brittle.auditing.regime import TrainingRegime
from brittle.auditing.verdict import _how_far, describe_weak_bound, off_subspace_cost, weaknesses, write_verdict
from brittle.auditing.vulnerability import OneDirection, Radii, Vulnerability
from brittle.data import Data
from brittle.geometry import nearest_rivals
from brittle.networks import TwoLayer


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def radii(*norms: float, count: int | None = None) -> Radii:
    return Radii.of(tensor(*norms), len(norms) if count is None else count)


def weak(free: Radii, on: Radii | None = None, certified: CertifiedExamples | None = None) -> Vulnerability:
    return Vulnerability(torch.arange(5), False, 50, 10.0, free, free, None, on, None, (), certified, torch.zeros(5, 2))


def test_a_proof_of_some_examples_is_set_beside_their_flips():
    lower, status = tensor(0.5, 1.0, 3.0), ("proved", "proved", "exact")
    interval, flips = median_interval(lower), torch.zeros(3, 2)
    some = CertifiedExamples(
        torch.arange(3), lower, lower, status, "dual", 1.0, 1.0, interval, partial=False, flips=flips
    )
    subject = weak(radii(1, 2, 3, 9, 9), certified=some)
    assert _how_far(subject) == (
        "The median of 5 of 50 training examples flips at distance 3 (95 % interval 0 to ∞), 30.0% of its norm; of the "
        "3 that there was work to certify, half provably hold out to 1, where the attack needs 2; the radius of 1 is "
        "known exactly."
    )
    whole = replace(subject, free=radii(1, 2, 3), held_out=True, available=3)
    assert _how_far(whole) == (
        "The median of all 3 held-out examples flips at distance 2 (95 % interval 0 to ∞), 20.0% of its norm; half of "
        "them provably hold out to 1; the radius of 1 is known exactly."
    )
    assert some.counts == {"exact": 1, "proved": 2, "open": 0, "error": 0}
    assert some.open_rows.tolist() == [0, 1]


def test_nothing_is_concluded_from_a_part_of_the_examples():
    free, on = radii(1, 2, 3), radii(2, 4, 6)
    assert off_subspace_cost(weak(free, on)) == 2
    assert off_subspace_cost(weak(free, radii(2, 4, count=3))) is None
    assert off_subspace_cost(weak(radii(1, 2, count=3), on)) is None


def test_a_verdict_that_the_clock_cut_short_says_so():
    assert "not reproducible at this budget" in write_verdict(weak(radii(1, 2, 3)), None, (), [], cut=["certificates"])
    assert "reproducible" not in write_verdict(weak(radii(1, 2, 3)), None, (), [], cut=[])


def test_the_median_is_the_lower_middle():
    assert median(tensor(1, 2, 3, 4)) == 2


def tells(**measures) -> Evidence:
    nothing = {
        "doubtful": torch.arange(0),
        "compared": 100,
        "unsettled": 0.1,
        "allowed_gain": None,
        "weakest_margins": 0.5,
    }
    return Evidence(**(nothing | {"one_direction": None, "toward_rivals": None} | measures))


REGIME = TrainingRegime("lazy", "", 0.9, 0.1, 1.0, 0.5, 0.1, 1.0, 0.04, 0.01, None, None)


def allowed(share: float) -> NearestNeighbourLimit:
    return NearestNeighbourLimit(tensor(1), torch.zeros(1).long(), 1.0, 1.0, share, None)


def causes(
    evidence: Evidence, regime: TrainingRegime = REGIME, slow: float = 1.0, share: float = 0.5, **parts
) -> list[str]:
    subject = replace(weak(radii(1, 2, 3), **parts), gradient_step=radii(slow, 2 * slow, 3 * slow))
    half = OneDirection("gradients", 5.0, 2.2, tensor(0, 5), tensor(0, 1))
    shape = SimpleNamespace(rank=2, columns=5, codimension=3)
    reasons = SimpleNamespace(initial_share_of_weights_off=1.0)
    return weaknesses(shape, regime, replace(subject, universal=(half,)), reasons, evidence, allowed(share))


def test_every_cause_is_named_with_its_number_and_the_more_specific_first():
    everything = tells(
        doubtful=torch.arange(7), allowed_gain=1.8, weakest_margins=0.1, one_direction=2 / 2.2, toward_rivals=0.25
    )
    assert causes(everything, on=radii(2, 4, 6)) == [
        "Doubtful labels: 7% of the training examples (rows 0, 1, 2, 3, 4, 5, 6) have nearest neighbours that agree on "
        "another class. Without them the data would allow 1.80 times the median radius.",
        "Off-subspace weights: the data span 2 of 5 dimensions, and what the first layer does in the other 3 lowers "
        "the median radius from 4 to 2, a factor of 2.00. 100% of these weights are still their initial values.",
        "Training stopped early: a tenth of the training examples have less than 10% of the median margin, at an "
        "accuracy of 90.0%.",
        "Lazy training: a single gradient step of length 2 flips the median example, and training moved the first "
        "layer by 4.0% of its initial size only.",
        "One direction (from the gradients) flips half of the audited examples at size 2.2, 1.10 times the median "
        "radius, and every one at 5, 50% of the typical norm. Flips have a cosine of 0.25 with the way to the "
        "nearest other class.",
    ]


def test_no_cause_is_named_without_its_evidence():
    rich = replace(REGIME, name="rich")
    assert causes(tells(), rich) == []
    assert causes(tells(doubtful=torch.arange(4)), rich) == []  # as many as clean data have
    assert (
        causes(tells(doubtful=torch.arange(20), unsettled=0.5), rich) == []
    )  # labels that follow nothing are not doubtful
    assert causes(tells(one_direction=0.6), rich) == []
    assert causes(tells(), REGIME, slow=1.2) == []  # lazy, and one step is not as good as the shortest flip
    assert len(causes(tells())) == 1


def test_where_little_is_left_one_direction_is_no_cause():
    rich, aligned = replace(REGIME, name="rich"), tells(one_direction=0.9)
    assert len(causes(aligned, rich, share=0.7)) == 1
    assert causes(aligned, rich, share=0.85) == []
    subject = weak(radii(1, 2, 3), radii(1, 2, 3))
    assert "allow, half" in write_verdict(subject, allowed(0.85), (), [], cut=[])
    assert "Little is left to gain." in write_verdict(subject, allowed(0.85), (), [], cut=[])
    assert "Little is left" not in write_verdict(subject, allowed(0.7), (), [], cut=[])
    assert "110% of half the distance" in write_verdict(subject, allowed(1.1), (), [], cut=[])


def test_evidence_of_an_example_by_hand():
    """Two groups far apart on a line, with one label turned round, and a threshold between them."""
    X = torch.cat([torch.arange(10.0), 100 + torch.arange(10.0)])[:, None].double()
    y = torch.cat([-torch.ones(10), torch.ones(10)]).double()
    y[4] = 1
    data = Data(X, y)
    both = torch.tensor([[1.0], [-1.0]]).double()
    line = TwoLayer(both, torch.zeros(2).double(), both[:, 0], torch.tensor(-50.0).double())
    norms = (X[:, 0] - 50).abs()
    flips = (50 - X) * torch.where(torch.arange(20) == 4, 0.0, 1.0)[:, None].double()
    half = OneDirection("gradients", 50.0, 60.0, tensor(0, 1), tensor(0, 1))
    subject = replace(weak(Radii.of(torch.where(torch.arange(20) == 4, 0.0, norms), 20)), universal=(half,))
    subject = replace(subject, perturbations=flips)
    distances, rivals = nearest_rivals(X, y)
    bound = SimpleNamespace(rivals=rivals)
    found = evidence(line.margins(X, y), data, data, subject, bound, 20)
    assert (found.doubtful.tolist(), found.doubtful_share, found.unsettled) == ([4], 0.05, 0.05)
    clean = torch.cat([100 - torch.arange(10.0)[torch.arange(10) != 4], 91 + torch.arange(10.0)]).double()
    assert found.allowed_gain == pytest.approx(float(clean.median() / distances.median()))
    margins = torch.where(torch.arange(20) == 4, -1.0, 1.0) * norms
    assert found.weakest_margins == pytest.approx(float(margins.sort().values[2] / margins.median()))
    assert found.one_direction == pytest.approx(subject.free.median / 60)
    ways = (X[rivals] - X)[:, 0].sign() * flips[:, 0].sign()
    assert found.toward_rivals == pytest.approx(float(ways[ways != 0].mean()))
    alone = evidence(line.margins(X[:1], y[:1]), data.take(torch.arange(1)), data, subject, None, 20)
    assert (alone.doubtful_share, alone.allowed_gain, alone.toward_rivals) == (0, None, None)


def test_a_network_that_is_wrong_is_called_wrong():
    """No share of a norm, no proof of a radius of 0, no cause and no factor."""
    told = write_verdict(weak(radii(0, 0, 0, 2)), allowed(0.0), (), [], cut=[])
    assert told == "The network is wrong on 3 of the 4 training examples that were audited."


@pytest.mark.parametrize(("proved", "said"), [(0.1, True), (0.3, False), (0.0, True)])
def test_a_bound_that_is_far_below_the_attack_is_said_to_be_too_weak(proved, said):
    lower = tensor(proved, proved, proved)
    interval, flips = median_interval(lower), torch.zeros(3, 2)
    status = ("proved",) * 3
    some = CertifiedExamples(
        torch.arange(3), lower, lower, status, "dual", proved, 1.0, interval, partial=False, flips=flips
    )
    subject = weak(radii(2, 2, 2), certified=some)
    assert ("The bound is too weak for this network: it proves 0.05 " in describe_weak_bound(subject)) == (
        proved == 0.1
    )
    assert bool(describe_weak_bound(subject)) == said
    assert describe_weak_bound(weak(radii(2, 2, 2))) == ""


def test_the_weakest_margin_is_the_one_that_a_tenth_does_not_reach():
    margins = torch.arange(1.0, 22.0).double() / 100
    assert _weakest(margins) == pytest.approx(3 / 11)  # two of 21 are smaller
    assert _weakest(margins - 0.12) is None
    assert _weakest(margins - 0.11) is None
    assert _weakest(margins - 0.1) == pytest.approx(-7.0)


@pytest.mark.parametrize(
    ("median", "halves", "share"),
    [(2.0, (8.0, 4.0, 6.0), 0.5), (2.0, (), None), (2.0, (0.0,), None), (torch.inf, (4.0,), None)],
)
def test_one_direction_is_as_good_as_the_share_of_its_size(median, halves, share):
    subject = SimpleNamespace(universal=[SimpleNamespace(half=half) for half in halves])
    subject.free = SimpleNamespace(median=median)
    assert _one_direction(subject) == share


@pytest.mark.parametrize(("count", "odd", "unsettled"), [(4, [], 0.0), (5, [0], 0.2), (6, [0], 1 / 6)])
def test_a_label_is_doubted_where_four_neighbours_at_least_agree_on_another(count, odd, unsettled):
    """On a line, with the first label alone of its kind: of 4 examples none has 4 neighbours."""
    y = torch.ones(count).double()
    y[0] = -1
    found, share = _contradicted(Data(torch.arange(float(count))[:, None].double(), y))
    assert found.nonzero()[:, 0].tolist() == odd
    assert share == pytest.approx(unsettled)
