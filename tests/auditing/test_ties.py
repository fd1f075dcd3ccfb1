"""A tie is no class: where the margin is 0 all around, examples keep their class no farther than to there."""

import pytest
import torch

import brittle as bt
from brittle.attacks import FREE
from brittle.auditing.budget import WorkBudget
from brittle.auditing.vulnerability import lower_margin, measure_ties, smallest
from brittle.data import Data, Subspace
from brittle.networks import Deep, TorchLinearInit, TwoLayer, nearly_orthogonal
from brittle.networks.affine import Dense
from brittle.training import Flow, Logistic, LogLoss


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def tensor(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def found(network, data):
    radii, flips = smallest(network, data, FREE, generator(), WorkBudget(50.0))
    return radii, measure_ties(network, data, radii, flips, generator(), WorkBudget(50.0))


def test_two_bumps_on_a_line_by_hand():
    """φ(x - 1) - φ(-x - 1) is 0 between -1 and 1: from 3 to a tie it is 2, to a strict flip 4."""
    bumps = TwoLayer(tensor([1.0], [-1.0]), tensor(-1.0, -1.0), tensor(1.0, -1.0))
    data = Data(tensor([3.0], [-2.0]), tensor(1.0, -1.0))
    strict, ties = found(bumps, data)
    assert strict.norms.tolist() == pytest.approx([4.0, 3.0], rel=1e-4)
    assert ties.norms.tolist() == pytest.approx([2.0, 1.0], rel=1e-4)


def test_the_same_with_a_logit_for_each_class():
    bumps = Deep((Dense(tensor([1.0], [-1.0]), tensor(-1.0, -1.0)), Dense(torch.eye(2).double(), tensor(0.0, 0.0))))
    data = Data(tensor([3.0], [-2.0]), torch.tensor([0, 1]))
    strict, ties = found(bumps, data)
    assert strict.norms.tolist() == pytest.approx([4.0, 3.0], rel=1e-4)
    assert ties.norms.tolist() == pytest.approx([2.0, 1.0], rel=1e-4)


def test_a_network_that_nothing_flips_may_still_lose_its_class():
    bump = TwoLayer(tensor([1.0]), tensor(-1.0), tensor(1.0))
    strict, ties = found(bump, Data(tensor([3.0]), tensor(1.0)))
    assert strict.norms.tolist() == [torch.inf]
    assert ties.norms.tolist() == pytest.approx([2.0], rel=1e-4)


@pytest.mark.parametrize("classes", [1, 3])
def test_the_margin_is_lowered_by_tau_for_one_label(classes):
    rng = generator()
    X = torch.randn(6, 3, generator=rng).double()
    first, last = (torch.randn(rows, 3, generator=rng).double() for rows in (3, classes))
    network = Deep((Dense(first, first[:, 0]), Dense(last, last[:, 0])))
    y = tensor(1.0, -1.0).repeat(3) if classes == 1 else torch.arange(6) % 3
    for label in torch.unique(y).tolist():
        own = y == label
        before, after = (each.margins(X[own], y[own]) for each in (network, lower_margin(network, label, 0.25)))
        assert torch.allclose(before - after, torch.full_like(before, 0.25))


@pytest.fixture(scope="module")
def subspace():
    data = Subspace(60, 45).sample(24, generator(1))
    start = TorchLinearInit().draw(60, 40, generator(1))
    return Flow(until=LogLoss(-3.0), loss=Logistic()).train(start, data).network, data


def test_ordinary_networks_have_no_plateau(subspace):
    strict, ties = found(*subspace)
    assert bool(strict.norms.isfinite().all())
    assert ties is None


def test_the_construction_keeps_classes_as_far_as_it_says_and_no_farther(subspace):
    """vardi2022 3.1: 1/‖w‖; a flip is much farther, and the verdict is not misled by it."""
    network, data = subspace
    construction = nearly_orthogonal(data.X, data.y)
    strict, ties = found(construction.network, data)
    assert ties.norms.tolist() == pytest.approx([construction.radius] * 24, rel=1e-4)
    assert strict.median > 2 * construction.radius
    audit = bt.audit(network, data, budget=20.0, examples=24, remedies="robust-construction")
    (treatment,) = audit.remedies
    assert treatment.radius_after == pytest.approx(construction.radius, rel=1e-4)
    assert treatment.strict_after > 2 * treatment.radius_after
    assert treatment.strict_before is None
    assert treatment.proved_after <= treatment.strict_after  # proofs are about strict flips
    assert treatment.share_after < 1
    assert ("robust-construction helps" in audit.verdict) == (treatment.factor >= 1.05)


def test_a_network_on_plateaus_is_said_to_be(subspace):
    _, data = subspace
    audit = bt.audit(nearly_orthogonal(data.X, data.y).network, data, budget=10.0, examples=12, remedies="none")
    ties = audit.vulnerability.tied
    assert ties.median < 0.6 * audit.vulnerability.free.median
    assert f"no class is ahead from {ties.median:.3g} on" in audit.verdict
    assert audit.limit.share < 1
    assert audit.to_json()["vulnerability"]["tied"]["median"] == ties.median
