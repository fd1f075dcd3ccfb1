"""frei2023 by the averages of the clusters: the law of what is drawn, and how near a KKT point is."""

import math
from dataclasses import replace

import pytest
import torch
from scipy.stats import ks_2samp

from brittle.common.errors import InputError
from brittle.data import Clusters, Data
from brittle.kkt import residual
from brittle.networks import TwoLayer
from brittle.theorems import Instance
from brittle.theorems.frei2023.averages import (
    AveragedSet,
    about_averages,
    conditions,
    deviations,
    make_averaged_instance,
    two_sums,
)
from brittle.theorems.frei2023.message import Message
from tests.theorems.breaking import failed

DIM, CLUSTERS, NOISE, EXAMPLES, DRAWS = 9, 2, 0.8, 5, 400


def by_averages(data: Data, lower: float = 0.0) -> Instance:
    """Examples that are given, behind the averages of their clusters; the biases may be lowered."""
    cluster, labels = data.truth.cluster, data.truth.mean_labels
    averages = torch.stack([data.X[cluster == q].mean(0) for q in range(len(labels))])
    network, sums = two_sums(averages, labels)
    network = replace(network, b=network.b - lower)
    training = AveragedSet(cluster, network.preactivations(data.X), sums / torch.bincount(cluster))
    truth = replace(data.truth, cluster=torch.arange(len(labels)))
    return Instance(replace(data, X=averages, y=labels, truth=truth), network, training)


def drawn_directly(rng: torch.Generator) -> Instance | None:
    """Every vector of R^d, and then the averages; none where a cluster is empty."""
    data = Clusters(DIM, CLUSTERS, NOISE, random_means=True).sample(EXAMPLES, rng, test=1)
    return by_averages(data) if len(torch.unique(data.truth.cluster)) == CLUSTERS else None


def drawn_by_averages(rng: torch.Generator) -> Instance | None:
    instance = make_averaged_instance(DIM, CLUSTERS, NOISE, EXAMPLES, 1, rng)
    return instance if len(torch.unique(instance.facts.cluster)) == CLUSTERS else None


def numbers(instance: Instance) -> list[float]:
    """Whatever the theorems see: inputs of examples, products of averages and means, outputs on a fresh example."""
    training, data = instance.facts, instance.data
    x, means = data.X_test[0], data.truth.means
    return [
        *training.Z[0].tolist(),
        float(training.Z[0] @ training.Z[1]),
        float(training.Z.square().sum()),
        float(data.X[0] @ data.X[1]),
        float(data.X[0].square().sum()),
        float(data.X[1] @ means[0]),
        float(means[0] @ means[1]),
        *instance.two_layer.preactivations(x[None])[0].tolist(),
        float(x @ data.X[0]),
        float(x @ means[1]),
    ]


def many(draw, seed: int) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    drawn = [draw(rng) for _ in range(DRAWS)]
    return torch.tensor([numbers(each) for each in drawn if each is not None])


def test_what_is_drawn_by_averages_has_the_law_of_what_is_drawn_directly():
    direct, averaged = many(drawn_directly, 0), many(drawn_by_averages, 1)
    for one, other in zip(direct.T, averaged.T, strict=True):
        assert ks_2samp(one.numpy(), other.numpy()).pvalue > 1e-3


def test_deviations_have_the_covariance_of_the_weights_and_no_average():
    W = torch.tensor([[3.0, 0, 0, 4], [1.0, 1, 0, 0]]).double()
    cluster = torch.arange(2).repeat_interleave(torch.tensor([20_000, 4]))
    found = deviations(W, cluster, torch.tensor([20_000, 4]), torch.Generator().manual_seed(0))
    for q in range(2):
        assert float(found[cluster == q].sum(0).abs().max()) < 1e-9
    covariance = found[cluster == 0].T @ found[cluster == 0] / 20_000
    assert torch.allclose(covariance, W @ W.T, rtol=0.05, atol=0.3)


def test_the_stationarity_is_that_of_the_gradients():
    """Some network, not a KKT point, whose inputs have the signs of the slopes: by automatic differentiation."""
    data = Clusters(600, 4, 0.01).sample(40, torch.Generator().manual_seed(2))
    averaged = by_averages(data, lower=0.1)
    network, training = averaged.two_layer, averaged.facts
    assert ((training.Z > 0) == (data.y[:, None] == network.v.sign())).all()
    theta = [each.clone().requires_grad_() for each in (network.W, network.b, network.v)]
    margins = data.y * ((data.X @ theta[0].T + theta[1]).relu() @ theta[2])
    pulls = torch.autograd.grad(margins @ training.multipliers[training.cluster], theta)
    left = sum((each.detach() - pull).square().sum() for each, pull in zip(theta, pulls, strict=True))
    size = sum(each.detach().square().sum() for each in theta)
    found, q = conditions(averaged, training), margins.detach()
    assert found.stationarity == pytest.approx(math.sqrt(float(left / size)), rel=1e-9)
    assert found.stationarity > 1e-3
    assert found.excess == pytest.approx(float(q.max() / q.min()) - 1, rel=1e-9)
    assert found.kink == 0


def test_the_sums_of_averages_are_a_kkt_point_by_the_solvers_measure_too():
    data = Clusters(10**14, 4, 0.1).sample(40, torch.Generator().manual_seed(2), in_span=True)
    instance = by_averages(data)
    found, measured = conditions(instance, instance.facts), residual(instance.two_layer, data)
    assert 1e-12 < max(found.stationarity, found.excess, found.kink) < 1e-6
    assert measured.stationarity < 1e-6
    assert measured.on_margin.all()
    nearer = by_averages(Clusters(10**6, 4, 0.1).sample(40, torch.Generator().manual_seed(2), in_span=True))
    assert conditions(nearer, nearer.facts).excess > 1e-4


def small(**changes) -> Instance:
    return Message(**{"clusters": 330, "test": 2, **changes}).default(torch.Generator().manual_seed(0))


def test_other_networks_are_no_kkt_points():
    instance = small()
    network, training = instance.two_layer, instance.facts
    unbalanced = TwoLayer(network.W * 1.5, network.b * 1.5, network.v / 1.5)
    wrong = replace(training, Z=training.Z * 1.5)
    assert failed(Message(), Instance(instance.data, unbalanced, wrong)) == ["distance from a KKT point"]
    uneven = replace(training, Z=training.Z * torch.linspace(1, 1.00001, len(training.Z)).double()[:, None])
    names = ["distance from a KKT point", "margin beyond the smallest of an example with a multiplier"]
    assert failed(Message(), Instance(instance.data, network, uneven)) == names
    opened = training.Z.clone()
    opened[training.cluster == 0, 1] = 1e-4 * training.Z[0].max()
    assert "input on the other side of its slope, over ‖w_j‖√d" in failed(
        Message(), Instance(instance.data, network, replace(training, Z=opened))
    )
    lonely = replace(training, cluster=training.cluster.clamp(min=1))
    assert "examples of the smallest cluster" in failed(Message(), Instance(instance.data, network, lonely))


def test_at_smaller_dimensions_the_sums_of_averages_are_no_kkt_point():
    found = failed(Message(), small(dim=10**15))
    assert found == ["margin beyond the smallest of an example with a multiplier"]


def test_too_many_clusters_are_refused():
    with pytest.raises(InputError, match="clusters is 400; at most half of dim = 500"):
        Message(dim=500).default(torch.Generator().manual_seed(0))


def test_half_as_many_clusters_as_dimensions_can_be_averaged(rng):
    assert make_averaged_instance(8, 4, NOISE, EXAMPLES, 1, rng).data.truth.means.shape == (4, 8)
    with pytest.raises(InputError, match="clusters is 5; at most half of dim = 9 can be averaged"):
        make_averaged_instance(9, 5, NOISE, EXAMPLES, 1, rng)


def test_a_multiplier_below_0_and_an_empty_cluster_are_measured():
    instance = make_averaged_instance(DIM, CLUSTERS, NOISE, EXAMPLES, 1, torch.Generator().manual_seed(3))
    training = replace(instance.facts, multipliers=torch.tensor([0.5, -0.25]).double())
    found = {each.name: each.value for each in about_averages(instance, training, 1.0)}
    assert found["smallest multiplier"] == -0.25
    assert found["examples of the smallest cluster"] == min(training.cluster.bincount(minlength=2).tolist())
