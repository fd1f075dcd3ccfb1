"""The nearest-neighbour rule against distances, and its radius against a conic solver and against search."""

import cvxpy as cp
import numpy as np
import pytest
import torch

from brittle.common.errors import InputError
from brittle.networks import NearestNeighbour


def draw(seed, n=12, dim=3, rows=6):
    rng = torch.Generator().manual_seed(seed)
    points = torch.randn(n, dim, generator=rng, dtype=torch.float64)
    signs = torch.tensor([1.0, -1.0]).repeat(n // 2).double()
    return NearestNeighbour(points, signs), torch.randn(rows, dim, generator=rng, dtype=torch.float64)


def test_the_nearest_point_decides():
    network, X = draw(0, rows=300)
    nearest = torch.cdist(X, network.points).argmin(1)
    assert torch.equal(network.predict(X), network.labels[nearest])
    numbers = torch.arange(12) % 3
    classes = NearestNeighbour(network.points, numbers)
    assert torch.equal(classes.predict(X), numbers[nearest])


def distance_by_cone(network, x, label):
    own, other = (network.points[network.labels == sign].numpy() for sign in (label, -label))
    best = np.inf
    for q in other:
        delta = cp.Variable(len(x))
        h = ((x.numpy() - q) ** 2).sum() - ((x.numpy() - own) ** 2).sum(1)
        cp.Problem(cp.Minimize(cp.norm(delta)), [2 * (q - own) @ delta >= h]).solve(solver="CLARABEL")
        best = min(best, float(np.linalg.norm(delta.value)))
    return best


@pytest.mark.parametrize("seed", range(3))
def test_radii_are_those_of_a_conic_solver(seed):
    network, X = draw(seed)
    y = network.predict(X)
    expected = [distance_by_cone(network, x, float(label)) for x, label in zip(X, y, strict=True)]
    assert network.radii(X, y).tolist() == pytest.approx(expected, abs=1e-5)


def test_nothing_flips_inside_the_radius_and_something_just_outside(rng):
    network, X = draw(5, n=10, dim=2, rows=8)
    y = network.predict(X)
    radii = network.radii(X, y)
    angles = torch.linspace(0, 2 * torch.pi, 4_001, dtype=torch.float64)
    circle = torch.stack([angles.cos(), angles.sin()], 1)
    for x, label, radius in zip(X, y, radii, strict=True):
        labels = torch.full((len(circle),), float(label)).double()
        assert (network.margins(x + radius * (1 - 1e-9) * circle, labels) >= 0).all()
        assert (network.margins(x + radius * 1.01 * circle, labels) < 0).any()


def test_the_radius_is_at_least_half_the_gap_and_zero_for_a_wrong_label():
    network, X = draw(1, n=20, dim=15)
    y = network.labels
    gap = torch.cdist(network.points, network.points).where(y[:, None] != y[None, :], torch.inf).amin(1)
    assert (network.radii(network.points, y) >= gap / 2 * (1 - 1e-9)).all()
    assert not network.radii(X, -network.predict(X)).any()


def test_equal_points_with_different_labels_have_no_radius():
    points = torch.tensor([[0.0, 0.0], [0.0, 0.0], [3.0, 0.0]])
    network = NearestNeighbour(points, torch.tensor([1.0, -1.0, 1.0]))
    assert network.radii(points, network.labels).tolist() == pytest.approx([0, 0, 1.5])


def test_classes_have_radii_too():
    network = NearestNeighbour(torch.tensor([[0.0], [2.0], [10.0]]), torch.tensor([0, 1, 2]))
    radii = network.radii(torch.tensor([[0.0], [5.0], [10.0]]), torch.tensor([0, 1, 2]))
    assert radii.tolist() == pytest.approx([1, 1, 4])


@pytest.mark.parametrize(
    ("points", "labels", "words"),
    [
        (torch.ones(3), torch.ones(3), r"shape \(3,\)"),
        (torch.ones(2, 2), torch.ones(3), "one label"),
        (torch.ones(2, 2), torch.ones(2), "both of them"),
        (torch.ones(2, 2), torch.tensor([0, 2]), "without gaps"),
        (torch.ones(2, 2), torch.tensor([0, 0]), "without gaps"),
    ],
)
def test_bad_points_are_refused(points, labels, words):
    with pytest.raises(InputError, match=words):
        NearestNeighbour(points, labels)
