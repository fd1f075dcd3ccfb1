"""frei2023's lemmas: each rests on the properties it names, and its sums are those of the definition."""

import math
from dataclasses import replace
from functools import cache

import pytest
import torch

from brittle.data import Data
from brittle.theorems import CheckOutcome, Instance, check_default, check_instance
from brittle.theorems.frei2023 import THEOREMS
from brittle.theorems.frei2023.assumption import ordinary, p2, p3, p4
from brittle.theorems.frei2023.groups import ClusterGroups
from brittle.theorems.frei2023.lemmas import (
    ClusterLemma,
    ClusterSumsAreSmall,
    LemmaD3,
    OutputsAreBounded,
    OwnSumsAreLarge,
)
from tests.theorems.breaking import failed, names
from tests.theorems.clusters import ASSUMPTION, KKT, known, solved

LEMMAS = [
    theorem for theorem in THEOREMS if isinstance(theorem, ClusterLemma) and theorem.id != "frei2023/4.2-approximate"
]


@pytest.mark.parametrize("theorem", LEMMAS, ids=lambda theorem: theorem.id)
def test_a_solved_point_is_confirmed(theorem):
    verdict = check_instance(theorem, known())
    assert verdict.verdict is CheckOutcome.CONFIRMED, verdict.advice


def test_a_default_instance_is_confirmed(rng):
    assert check_default(LemmaD3(test=100), rng).verdict is CheckOutcome.CONFIRMED


def with_first(change) -> Instance:
    """The known data with its first example changed, and a KKT point of its own."""
    data = known().data
    X = data.X.clone()
    X[0] = change(data.X[0], data)
    return solved(replace(data, X=X))


def along_mean(share: float, own: bool):
    """Adds a share of a mean: the example's own, or the other one."""

    def change(x, data):
        cluster = int(data.truth.cluster[0])
        return x + share * data.truth.means[cluster if own else 1 - cluster]

    return change


def longer_noise(x, data):
    mean = data.truth.means[data.truth.cluster[0]]
    return mean + 1.6 * (x - mean)


def a_cluster_gone() -> Instance:
    """Three clusters, one of which no example belongs to."""
    data = known().data
    means = torch.nn.functional.pad(data.truth.means, (0, 1))
    third = torch.zeros(1, means.shape[1], dtype=torch.float64)
    third[0, -1] = math.sqrt(800)
    truth = replace(
        data.truth,
        means=torch.cat([means * math.sqrt(800 / 570), third]),
        mean_labels=torch.tensor([1.0, -1, 1]).double(),
    )
    X, X_test = (torch.nn.functional.pad(each, (0, 1)) for each in (data.X, data.X_test))
    X = X + (truth.means - torch.cat([means, third]))[data.truth.cluster]
    X_test = X_test + (truth.means - torch.cat([means, third]))[data.truth.cluster_test]
    truth = replace(truth, dim=800, noise=0.5 / math.sqrt(800), coherence=0.0)
    return solved(Data(X, data.y, X_test, data.y_test, truth))


PROPERTIES = {
    "P1 largest ‖ξ_i‖": lambda: with_first(longer_noise),
    "P2 largest |<ξ_i, ξ_j>|": lambda: solved(known().data.take(torch.tensor([0, *range(81)]))),
    "P3 largest |<μ_q, ξ_i>|": lambda: with_first(along_mean(0.02, own=True)),
    "P4 largest |<x_i, x_j>| across clusters": lambda: with_first(along_mean(0.08, own=False)),
    "P5 smallest <x_i, x_j> within a cluster": lambda: with_first(along_mean(-0.1, own=True)),
    "P5 largest <x_i, x_j> within a cluster": lambda: with_first(along_mean(0.9, own=True)),
    "P6 examples of the smallest cluster": a_cluster_gone,
    "ordinary fresh examples (Lemma A.13)": lambda: strange_fresh_examples(),
}


def strange_fresh_examples() -> Instance:
    data = known().data
    return Instance(replace(data, X_test=data.X_test * 1.2), known().network)


@cache
def broken(name: str) -> Instance:
    return {**PROPERTIES, **KKT, **ASSUMPTION}[name]()


@pytest.mark.parametrize("name", [*PROPERTIES, *KKT])
def test_each_property_that_a_lemma_rests_on(name):
    concerned = [theorem for theorem in LEMMAS if name in names(theorem, known())]
    assert concerned
    for theorem in concerned:
        found = failed(theorem, broken(name))
        if {p2, p3, p4} <= set(theorem.properties):  # P4 and P5 follow from P2 and P3 and do not fail alone
            assert name in found, theorem.id
        else:
            assert found == [name], theorem.id


def test_no_hypothesis_of_a_lemma_is_left_out():
    every = set().union(*(names(theorem, known()) for theorem in LEMMAS))
    assert every == {*ASSUMPTION, *PROPERTIES, *KKT}


def test_cluster_sums_are_those_of_the_definition():
    instance, groups = known(), ClusterGroups(known().data)
    kkt, cluster = instance.kkt, instance.data.truth.cluster
    v = kkt.network.v
    sums = {
        (q, sign): sum(
            float(v[j] ** 2 * kkt.lam[i] * kkt.slopes[i, j])
            for i in range(81)
            for j in range(len(v))
            if cluster[i] == q and sign * v[j] > 0
        )
        for q in range(2)
        for sign in (1, -1)
    }
    largest = check_instance(ClusterSumsAreSmall(), instance).measured["largest sum"]
    smallest = check_instance(OwnSumsAreLarge(), instance).measured["smallest own sum"]
    assert largest == pytest.approx(max(sums.values()), rel=1e-12)
    assert smallest == pytest.approx(min(sums[q, int(groups.labels[q])] for q in range(2)), rel=1e-12)


def test_ordinary_examples_are_those_of_the_lemma():
    data, groups = known().data, ClusterGroups(known().data)
    held = replace(data.test, X=data.X_test * torch.linspace(0.9, 1.1, 200).double()[:, None])
    wanted = []
    for x, q in zip(held.X, held.truth.cluster, strict=True):
        noise = x - groups.centres[q]
        wanted.append(
            all(
                abs(float(noise @ groups.noises[i])) <= groups.constants.spread
                and abs(float(noise @ data.X[i])) <= groups.constants.spread
                and abs(float(x @ data.X[i]) - (570 if data.truth.cluster[i] == q else 0)) <= groups.constants.spread
                for i in range(81)
            )
        )
    assert 0 < sum(wanted) < 200
    assert ordinary(groups, held).tolist() == wanted


def test_the_bounded_output_is_the_largest_of_either_sign(monkeypatch):
    """Lemma D.2 where the worst examples are on the wrong side: those of the data, with their labels turned."""
    data, network = known().data, known().kkt.network
    monkeypatch.setattr("brittle.theorems.frei2023.lemmas.worst_in_clusters", lambda *_: (data.X, -data.y))
    found = OutputsAreBounded().witness(known()).measures["largest |N(x)|"]
    assert found == pytest.approx(max(abs(float(network.logits(x[None]))) for x in data.X))


@pytest.mark.parametrize("theorem", [ClusterSumsAreSmall(), OwnSumsAreLarge()])
def test_sums_are_promised_up_to_rounding_alone(theorem):
    (promise,) = theorem.bound(known())
    assert promise.tolerance <= 1e-9
