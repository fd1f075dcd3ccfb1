"""Properties P1 to P6 of the training set, and what makes a fresh example an ordinary one (Lemma A.13)."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Generator, Tensor

from brittle.settings import Data
from brittle.theorems.base import Comparison, at_least, at_most
from brittle.theorems.draws import bartletts
from brittle.theorems.frei2023.sizes import Sizes


def p1(sizes: Sizes) -> Iterator[Comparison]:
    largest = float(torch.linalg.vector_norm(sizes.noises, dim=1).max())
    yield at_most("P1 largest ‖ξ_i‖", largest, sizes.noise * math.sqrt(2 * sizes.dim))


def p2(sizes: Sizes) -> Iterator[Comparison]:
    products = sizes.noises @ sizes.noises.T
    limit = sizes.noise**2 * math.sqrt(2 * sizes.dim) * math.log(sizes.dim)
    yield at_most("P2 largest |<ξ_i, ξ_j>|", float(products.fill_diagonal_(0).abs().max()), limit)


def p3(sizes: Sizes) -> Iterator[Comparison]:
    largest = float((sizes.noises @ sizes.means.T).abs().max())
    yield at_most("P3 largest |<μ_q, ξ_i>|", largest, sizes.noise * math.sqrt(sizes.dim) * math.log(sizes.dim))


def p4(sizes: Sizes) -> Iterator[Comparison]:
    across = _gram(sizes).abs()[~_same(sizes)]
    largest = float(across.max()) if len(across) else 0.0
    yield at_most("P4 largest |<x_i, x_j>| across clusters", largest, sizes.coherence + sizes.spread)


def p5(sizes: Sizes) -> Iterator[Comparison]:
    within, d, delta = _gram(sizes)[_same(sizes)], sizes.dim, sizes.spread
    yield at_least("P5 smallest <x_i, x_j> within a cluster", float(within.min()), d - delta)
    yield at_most("P5 largest <x_i, x_j> within a cluster", float(within.max()), 3 * d + delta)


def p6(sizes: Sizes) -> Iterator[Comparison]:
    counts = torch.bincount(sizes.cluster, minlength=sizes.clusters)
    yield at_least("P6 examples of the smallest cluster", int(counts.min()), 1)


PROPERTIES: tuple[Callable[[Sizes], Iterator[Comparison]], ...] = (p1, p2, p3, p4, p5, p6)


def count_strange_sets(draws: int, sizes: Sizes, rng: Generator) -> int:
    """How many of so many training sets with these means and sizes lack one of P1-P6; orthogonal means only."""
    n, d, k, sigma, delta = sizes.examples, sizes.dim, sizes.clusters, sizes.noise, sizes.spread
    log, strange = math.log(d), 0
    own = sizes.means.norm(dim=1).diag()  # the means in coordinates of their own
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
        good &= (noise[..., :k] @ own).abs().amax((1, 2)) <= sigma * math.sqrt(d) * log
        good &= torch.where(same, 0.0, gram).abs().amax((1, 2)) <= sizes.coherence + delta
        good &= torch.where(same, gram, float(d)).amin((1, 2)) >= d - delta
        good &= torch.where(same, gram, float(d)).amax((1, 2)) <= 3 * d + delta
        good &= torch.nn.functional.one_hot(cluster, k).sum(1).amin(1) >= 1
        strange += int((~good).sum())
    return strange


def ordinary(sizes: Sizes, held: Data) -> Tensor:
    """Which fresh examples x = μ + ξ have the four properties of Lemma A.13 against every training example, (n,)."""
    assert held.truth.cluster is not None
    noise = held.X - sizes.means[held.truth.cluster]
    against_noises = (noise @ sizes.noises.T).abs() <= sizes.spread
    against_examples = (noise @ sizes.data.X.T).abs() <= sizes.spread
    products = held.X @ sizes.data.X.T
    own = held.truth.cluster[:, None] == sizes.cluster
    near = torch.where(own, (products - sizes.dim).abs() <= sizes.spread, True)
    far = torch.where(own, True, products.abs() <= sizes.coherence + sizes.spread)
    return (against_noises & against_examples & near & far).all(1)


def _gram(sizes: Sizes) -> Tensor:
    return sizes.data.X @ sizes.data.X.T


def _same(sizes: Sizes) -> Tensor:
    return sizes.cluster[:, None] == sizes.cluster
