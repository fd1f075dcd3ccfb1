"""Clusters as classes of their own, and the largest of several logits as layers of ReLUs."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import brittle as bt
from brittle.attacks import MinimumNorm
from brittle.auditing.budget import WorkBudget
from brittle.auditing.cluster_labels import ClusterLabels, _looking, clusters_of
from brittle.auditing.remedy import RemedyContext
from brittle.common.errors import InputError
from brittle.data import Clusters, Data, Sphere
from brittle.networks import Deep, TorchLinearInit, best_of
from brittle.networks.affine import Dense
from brittle.training import Flow, Logistic, LogLoss


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def drawn(rows, columns, rng):
    return Dense(torch.randn(rows, columns, generator=rng).double(), torch.randn(rows, generator=rng).double())


@given(st.integers(0, 2**31), st.lists(st.integers(1, 6), min_size=2, max_size=4))
def test_the_largest_of_every_group(seed, sizes):
    rng, outputs = generator(seed), sum(sizes)
    network, X = Deep((drawn(5, 3, rng), drawn(outputs, 5, rng))), torch.randn(20, 3, generator=rng).double()
    order = torch.randperm(outputs, generator=rng)
    groups = [part.tolist() for part in order.split(sizes)]
    largest = torch.stack([network.logits(X)[:, group].max(1).values for group in groups], 1)
    assert torch.allclose(best_of(network, groups).logits(X), largest)
    if len(groups) == 2:
        assert torch.allclose(
            best_of(network, groups, one_logit=True).logits(X).reshape(20), largest[:, 1] - largest[:, 0]
        )


def test_groups_that_are_none():
    network = Deep((drawn(5, 3, generator()), drawn(3, 5, generator())))
    with pytest.raises(InputError, match=r"the groups have \[3\] logits"):
        best_of(network, [[0, 1, 2]])
    with pytest.raises(InputError, match="there are 3 groups; one logit tells two apart"):
        best_of(network, [[0], [1], [2]], one_logit=True)


@pytest.fixture(scope="module")
def clusters():
    data = Clusters(60, 4, 0.3).sample(48, generator())
    start = TorchLinearInit().draw(60, 40, generator(1))
    return Flow(until=LogLoss(-3.0), loss=Logistic()).train(start, data).network, data


def test_the_clusters_are_those_of_the_data_or_found(clusters):
    """k-means, which does not know the truth, finds the same partition."""
    _, data = clusters
    known, members = clusters_of(data)
    found, others = clusters_of(Data(data.X, data.y))
    assert sorted(map(len, members)) == sorted(map(len, others))
    assert torch.equal(known[:, None] == known, found[:, None] == found)
    for place, label in enumerate((-1.0, 1.0)):
        assert bool((data.y[torch.isin(known, torch.tensor(members[place]))] == label).all())


def test_a_network_that_tells_clusters_apart_is_farther_from_flipping(clusters):
    network, data = clusters
    treated = ClusterLabels().apply(RemedyContext(network, data, None, 1.0), generator(), WorkBudget(60.0))
    few = data.take(torch.arange(12))
    before, after = (float(MinimumNorm().run(each, few).norms.median()) for each in (network, treated))
    assert after > 1.2 * before
    assert treated.accuracy(data.X, data.y) == 1


def test_data_without_clusters(clusters):
    data = Sphere(20).sample(20, generator())
    with pytest.raises(InputError, match="no class falls apart into clusters"):
        clusters_of(data)
    with pytest.raises(InputError, match=r"all 48 examples have the label 1: there is no other class"):
        clusters_of(Data(clusters[1].X, torch.ones(48).double()))
    several = Data(clusters[1].X, torch.arange(48) % 2 * 2)
    with pytest.raises(InputError, match=r"the examples are of the classes \[0, 2\]"):
        clusters_of(several)


def test_the_audit_tries_it(clusters):
    network, data = clusters
    found = bt.audit(network, data, budget=3.0, examples=6, remedies="cluster-labels")
    (treatment,) = found.remedies
    assert treatment.applied
    assert "cluster-labels helps most" in found.verdict


@pytest.mark.parametrize(("examples", "classes", "columns", "counted"), [(30, 3, 7, 30), (2500, 2, 20, 1000)])
def test_looking_for_clusters_costs_a_spectrum_and_k_means_for_every_class(examples, classes, columns, counted):
    """300 steps with 12 groups in 30 directions, of at most a thousand examples; 0.02 s for every number of groups."""
    data = Data(torch.ones(examples, columns).double(), torch.arange(examples) % classes)
    decomposed = 1e-3 + 1.5e-9 * max(counted, columns) * min(counted, columns) ** 2
    each = decomposed + 300 * 2 * counted * 12 * 30 / 2e10 + 0.02 * 12
    assert _looking(data) == pytest.approx(classes * each, rel=1e-12)
