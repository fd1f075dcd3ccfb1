"""Checks of vardi2022 that a wrong object fails: other networks, another z, weights that are no KKT point."""

from dataclasses import dataclass, replace

import pytest
import torch

from brittle.data import Data
from brittle.networks import TwoLayer
from brittle.theorems import CheckOutcome, Instance, check_instance
from brittle.theorems.comparison import LARGEST_MARGIN, Witness
from brittle.theorems.frei2023.lemmas import worst_in_clusters
from brittle.theorems.frei2023.statements import NotRobust
from brittle.theorems.kkt_proof import OtherPoints
from brittle.theorems.kkt_proof.steps import LARGEST_ELSEWHERE
from brittle.theorems.vardi2022.groups import (
    ExampleGroups,
    almost_orthogonal_instance,
    orthogonal_instance,
    robust_network,
)
from brittle.theorems.vardi2022.lemmas import OtherNeuronsPull, OwnNeuronsFall
from brittle.theorems.vardi2022.remarks import PerturbationTransfers, UnequalNorms, WidthTwoSuffices
from brittle.theorems.vardi2022.universal import UniversalPerturbation
from tests.theorems.clusters import known


@pytest.fixture(scope="module")
def examples() -> Instance:
    """Twelve examples of which three are labelled -1, p = 4, at two KKT points."""
    return almost_orthogonal_instance(400, 12, 4.0, torch.Generator().manual_seed(1), balance=0.25, starts=2)


def test_the_robust_network_is_refused_and_keeps_its_labels():
    data = orthogonal_instance(299, 100).data
    verdict = check_instance(UniversalPerturbation(), Instance(data, robust_network(data)), beyond=True)
    assert verdict.failed == ["distance from a KKT point"]
    assert [each.name for each in verdict.beyond if not each.holds] == [LARGEST_MARGIN]


def test_every_other_point_must_be_a_kkt_point(examples):
    data, network = examples.data, examples.two_layer
    other = robust_network(data)
    instance = Instance(data, network, OtherPoints((other,)))
    assert check_instance(UniversalPerturbation(), instance).failed == ["distance of the others from a KKT point"]


def test_a_tenth_of_z_is_too_short_everywhere(examples):
    @dataclass(frozen=True)
    class Short(UniversalPerturbation):
        def witness(self, instance: Instance) -> Witness:
            witness = super().witness(instance)
            moves = 0.01 * witness.perturbations
            margins = [float(p.margins(instance.data.X + moves, instance.data.y).max()) for p in points(instance)]
            return replace(witness, perturbations=moves, measures={LARGEST_ELSEWHERE: max(margins)})

    verdict = check_instance(Short(), examples)
    assert verdict.verdict is CheckOutcome.VIOLATED
    assert {each.name for each in verdict.bound if not each.holds} == {LARGEST_MARGIN, LARGEST_ELSEWHERE}


def points(instance: Instance) -> tuple[TwoLayer, ...]:
    facts = instance.known(OtherPoints)
    assert facts is not None
    return facts.networks


def test_one_point_alone_shows_no_transfer(examples):
    alone = Instance(examples.data, examples.network, OtherPoints((examples.two_layer,)))
    assert check_instance(PerturbationTransfers(), alone).failed == ["KKT points that differ"]


@pytest.mark.parametrize("lemma", [OwnNeuronsFall(), OtherNeuronsPull()], ids=lambda lemma: lemma.id)
def test_a_component_of_the_proof_fails_with_a_z_that_is_too_short(lemma, examples, monkeypatch):
    assert check_instance(lemma, examples).verdict is CheckOutcome.CONFIRMED
    z = ExampleGroups(examples.data).perturbation
    monkeypatch.setattr(ExampleGroups, "perturbation", property(lambda self: 0.05 * z))
    assert check_instance(lemma, examples).verdict is CheckOutcome.VIOLATED


def test_norms_that_differ_too_much_leave_no_room(examples):
    data = examples.data
    uneven = Data(data.X * torch.linspace(0.1, 1, 12).double()[:, None], data.y, truth=replace(data.truth, radius=None))
    assert "examples" in check_instance(UnequalNorms(), Instance(uneven, examples.network)).failed


def test_dependent_examples_are_beyond_width_two():
    """x, -x and x again with the wrong label: no linear function has margin 1."""
    X = torch.tensor([[2.0, 0, 0, 0], [-2.0, 0, 0, 0], [0, 2.0, 0, 0]]).double()
    verdict = check_instance(WidthTwoSuffices(), Instance(Data(X, torch.tensor([1.0, 1, -1]).double())), beyond=True)
    assert verdict.verdict is CheckOutcome.HYPOTHESES_FAIL
    assert not verdict.beyond[0].holds


def test_the_worst_point_is_worse_than_every_fresh_one():
    from brittle.theorems.frei2023.groups import ClusterGroups

    instance, groups = known(), ClusterGroups(known().data)
    network = instance.kkt.network
    fresh = network.margins(instance.data.X_test, instance.data.y_test)
    low = network.margins(*worst_in_clusters(network, groups, +1))
    high = network.margins(*worst_in_clusters(network, groups, -1))
    assert float(low.min()) < float(fresh.min()) - 0.05
    assert float(high.max()) > float(fresh.max()) + 0.02
    X, _ = worst_in_clusters(network, groups, +1)
    products, delta = X @ instance.data.X.T, groups.constants.spread
    own = torch.arange(2)[:, None] == groups.cluster
    assert float((products - 570)[own].abs().max()) <= delta * (1 + 1e-6)
    assert float(products[~own].abs().max()) <= delta * (1 + 1e-6)


def test_a_network_that_z_does_not_flip_is_refused():
    from brittle.theorems.frei2023.groups import robust_network as cluster_network

    robust = Instance(known().data, cluster_network(known().data))
    assert check_instance(NotRobust(dim=570, clusters=2), robust).failed == ["distance from a KKT point"]
