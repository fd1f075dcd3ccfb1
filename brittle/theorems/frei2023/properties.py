"""Properties P1 to P6 of the training set, and what makes a fresh example an ordinary one (Lemma A.13)."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Generator, Tensor

from brittle.geometry import largest_product
from brittle.settings import Data
from brittle.theorems.comparison import Comparison, at_least, at_most
from brittle.theorems.draws import bartletts
from brittle.theorems.frei2023.groups import ClusterGroups


def p1(groups: ClusterGroups) -> Iterator[Comparison]:
    """‖ξ_i‖ ≤ σ√(2d)."""
    largest = float(torch.linalg.vector_norm(groups.noises, dim=1).max())
    yield at_most("P1 largest ‖ξ_i‖", largest, groups.noise * math.sqrt(2 * groups.dim))


def p2(groups: ClusterGroups) -> Iterator[Comparison]:
    """|<ξ_i, ξ_j>| ≤ σ²√(2d) ln d for i ≠ j."""
    limit = groups.noise**2 * math.sqrt(2 * groups.dim) * math.log(groups.dim)
    yield at_most("P2 largest |<ξ_i, ξ_j>|", largest_product(groups.noises), limit)


def p3(groups: ClusterGroups) -> Iterator[Comparison]:
    """|<μ_q, ξ_i>| ≤ σ√d ln d."""
    largest = float((groups.noises @ groups.centres.T).abs().max())
    yield at_most("P3 largest |<μ_q, ξ_i>|", largest, groups.noise * math.sqrt(groups.dim) * math.log(groups.dim))


def p4(groups: ClusterGroups) -> Iterator[Comparison]:
    """|<x_i, x_j>| ≤ p + Δ across clusters."""
    across = _gram(groups).abs()[~_same(groups)]
    largest = float(across.max()) if len(across) else 0.0
    yield at_most("P4 largest |<x_i, x_j>| across clusters", largest, groups.coherence + groups.constants.spread)


def p5(groups: ClusterGroups) -> Iterator[Comparison]:
    """d - Δ ≤ <x_i, x_j> ≤ 3d + Δ within a cluster, i = j included."""
    within, d, delta = _gram(groups)[_same(groups)], groups.dim, groups.constants.spread
    yield at_least("P5 smallest <x_i, x_j> within a cluster", float(within.min()), d - delta)
    yield at_most("P5 largest <x_i, x_j> within a cluster", float(within.max()), 3 * d + delta)


def p6(groups: ClusterGroups) -> Iterator[Comparison]:
    """No cluster is empty."""
    counts = torch.bincount(groups.cluster, minlength=len(groups))
    yield at_least("P6 examples of the smallest cluster", int(counts.min()), 1)


Property = Callable[[ClusterGroups], Iterator[Comparison]]
PROPERTIES: tuple[Property, ...] = (p1, p2, p3, p4, p5, p6)


def is_ordinary(groups: ClusterGroups) -> bool:
    """Whether the training set has P1-P6: all that Theorems 3.1 and 4.2 use of its law."""
    return all(each.holds for check in PROPERTIES for each in check(groups))


def count_strange_sets(draws: int, groups: ClusterGroups, rng: Generator) -> int:
    """How many of so many training sets with these means and sizes lack one of P1-P6."""
    n, d, k, sigma, delta = len(groups.data), groups.dim, len(groups), groups.noise, groups.constants.spread
    log, strange = math.log(d), 0
    own = torch.linalg.cholesky(groups.centres @ groups.centres.T)  # the means in coordinates of their own
    for rest in bartletts(draws, n, d - k, rng):
        inside = torch.randn(len(rest), n, k, generator=rng, dtype=torch.float64)
        cluster = torch.randint(k, (len(rest), n), generator=rng)
        noise = sigma * torch.cat([inside, rest], 2)
        X = noise.clone()
        X[..., :k] += own[cluster]
        products, gram = noise @ noise.mT, X @ X.mT
        same = cluster[:, :, None] == cluster[:, None, :]
        squares = products.diagonal(dim1=1, dim2=2)
        off = products - torch.diag_embed(squares)
        good = squares.amax(1) <= 2 * sigma**2 * d
        good &= off.abs().amax((1, 2)) <= sigma**2 * math.sqrt(2 * d) * log
        good &= (noise[..., :k] @ own.mT).abs().amax((1, 2)) <= sigma * math.sqrt(d) * log
        good &= torch.where(same, 0.0, gram).abs().amax((1, 2)) <= groups.coherence + delta
        good &= torch.where(same, gram, float(d)).amin((1, 2)) >= d - delta
        good &= torch.where(same, gram, float(d)).amax((1, 2)) <= 3 * d + delta
        good &= torch.nn.functional.one_hot(cluster, k).sum(1).amin(1) >= 1
        strange += int((~good).sum())
    return strange


def ordinary(groups: ClusterGroups, unseen: Data) -> Tensor:
    """Which fresh examples x = μ + ξ have the four properties of Lemma A.13 against every training example, (n,)."""
    assert unseen.truth.cluster is not None
    delta = groups.constants.spread
    noise = unseen.X - groups.centres[unseen.truth.cluster]
    against_noises = (noise @ groups.noises.T).abs() <= delta
    against_examples = (noise @ groups.data.X.T).abs() <= delta
    products = unseen.X @ groups.data.X.T
    own = unseen.truth.cluster[:, None] == groups.cluster
    near = torch.where(own, (products - groups.dim).abs() <= delta, True)
    far = torch.where(own, True, products.abs() <= groups.coherence + delta)
    return (against_noises & against_examples & near & far).all(1)


def _gram(groups: ClusterGroups) -> Tensor:
    return groups.data.X @ groups.data.X.T


def _same(groups: ClusterGroups) -> Tensor:
    return groups.cluster[:, None] == groups.cluster
