"""Shortest flips against a conic solver, all directions of the plane, and local search."""

import itertools

import cvxpy
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from brittle.attacks import MinimumNorm, Restriction, first_flip, pixels
from brittle.attacks.minimum_norm import project_in_box
from brittle.data import Data
from brittle.networks import TorchLinearInit, TwoLayer, orthogonal_kkt

DOUBLE = torch.float64
HUNDREDTHS = st.integers(-300, 300).map(lambda number: number / 100)


def drawn(dim, width, examples, seed=0, depth=1, outputs=1):
    rng = torch.Generator().manual_seed(seed)
    if depth == 1 and outputs == 1:
        network = TorchLinearInit().draw(dim, width, rng)
    else:
        network = TorchLinearInit().draw_deep(dim, [width] * depth, rng, outputs=outputs)
    X = torch.randn(examples, dim, generator=rng, dtype=DOUBLE)
    logits = network.logits(X)
    return network, Data(X, logits.sign() if outputs == 1 else logits.argmax(1))


def test_a_convex_margin_is_solved_to_the_end():
    """All y v_j ≥ 0 and a negative output bias: min ‖δ‖ s.t. f ≤ 0 is convex, and there is no other local optimum."""
    rng = torch.Generator().manual_seed(1)
    W, b = torch.randn(25, 6, generator=rng, dtype=DOUBLE), torch.rand(25, generator=rng, dtype=DOUBLE)
    v = torch.rand(25, generator=rng, dtype=DOUBLE)
    X = torch.randn(15, 6, generator=rng, dtype=DOUBLE)
    level = float((X @ W.T + b).relu().matmul(v).min()) * 0.8
    network = TwoLayer(W, b, v, torch.tensor(-level, dtype=DOUBLE))
    result = MinimumNorm(starts=1).run(network, Data(X, torch.ones(15, dtype=DOUBLE)))
    kinks = 0
    for row in range(15):
        delta = cvxpy.Variable(6)
        inputs = W.numpy() @ (X[row].numpy() + delta) + b.numpy()
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(delta)), [v.numpy() @ cvxpy.pos(inputs) <= level])
        problem.solve(solver=cvxpy.CLARABEL)
        kinks += int((np.abs(inputs.value) < 1e-5).sum())
        if problem.status == "optimal":
            assert float(result.norms[row]) == pytest.approx(problem.value, rel=1e-6)
            assert result.stationary[row]
            assert float(result.bound[row]) <= problem.value * (1 + 1e-6)
    assert kinks > 5


def test_few_directions_of_the_plane_are_shorter():
    """Flips in the plane are known from a fan of rays; the search must find nearly all of the shortest."""
    angles = torch.linspace(0, 2 * torch.pi, 2001, dtype=DOUBLE)
    fan = torch.stack([angles.cos(), angles.sin()], 1)
    longer = missed = total = 0
    for seed in range(12):
        network, data = drawn(2, 12, 5, seed)
        result = MinimumNorm(starts=8).run(network, data)
        for x, y, norm, success in zip(data.X, data.y, result.norms, result.success, strict=True):
            least = first_flip(network, x.expand(2001, 2), y.expand(2001), fan).min()
            total += bool(least.isfinite())
            missed += bool(least.isfinite() and not success)
            longer += bool(success and norm > least * (1 + 1e-9))
            assert not success or least <= norm * (1 + 1e-3)
    assert total > 50
    assert missed + longer <= 0.1 * total


@pytest.mark.parametrize(("depth", "outputs"), [(1, 1), (2, 1), (1, 3), (3, 1)])
def test_a_stationary_flip_cannot_be_shortened_nearby(depth, outputs):
    """Random steps on the sphere just inside the bound: within the region none of them may flip."""
    network, data = drawn(5, 10, 12, seed=2, depth=depth, outputs=outputs)
    result = MinimumNorm().run(network, data)
    chosen = (result.stationary & (result.norms > 0)).nonzero()[:, 0]
    assert len(chosen) >= 6
    rng, tried = torch.Generator().manual_seed(0), 0
    for row, size in itertools.product(chosen.tolist(), (1e-8, 1e-6, 1e-4)):
        noise = torch.randn(500, 5, generator=rng, dtype=DOUBLE) * size
        near = result.perturbations[row] + noise
        near = near / near.norm(dim=1, keepdim=True) * (result.bound[row] * (1 - 1e-9))
        same = _pattern(network, data.X[row] + near, data.y[row])
        same = (same == _pattern(network, (data.X[row] + result.perturbations[row])[None], data.y[row])).all(1)
        margins = network.margins(data.X[row] + near, data.y[row].expand(500))
        assert (margins[same] > -1e-13).all()
        tried += int(same.sum())
    assert tried > 1000


def _pattern(network, X, y):
    """Which neurons are active: the concave ones of a two-layer network, all of a deep one."""
    if isinstance(network, TwoLayer):
        return network.preactivations(X)[:, y * network.v < 0] > 0
    return torch.cat([z > 0 for z in network.values(X)[:-1]], 1)


def test_the_bound_of_a_deep_region_is_that_of_a_solver():
    network, data = drawn(4, 8, 8, seed=3, depth=2)
    result = MinimumNorm().run(network, data)
    for row in range(len(data)):
        if not result.success[row] or not result.stationary[row]:
            continue
        x, delta = data.X[row], result.perturbations[row]
        gradient = network.margin_gradients((x + delta)[None], data.y[row : row + 1])[0]

        def margin(step, x=x, row=row):
            point = torch.from_numpy(step)[None] + x
            return -float(network.margins(point, data.y[row : row + 1]))

        start = (delta - 1e-3 * gradient).numpy()
        local = minimize(lambda d: d @ d, start, constraints={"type": "ineq", "fun": margin}, method="SLSQP")
        if local.success and margin(local.x) >= -1e-9 and np.linalg.norm(local.x - delta.numpy()) < 1e-2:
            assert np.linalg.norm(local.x) >= float(result.bound[row]) * (1 - 1e-5)


def test_the_closed_form_kkt_point_with_its_plateaus():
    """Kinks at every example and f = 0 on whole regions; the distance √(d/n) is known."""
    X = 20**0.5 * torch.eye(20, dtype=DOUBLE)
    data = Data(X, torch.cat([torch.ones(10), -torch.ones(10)]).double())
    point = orthogonal_kkt(data.X, data.y)
    result = MinimumNorm().run(point.network, data)
    assert result.success.all()
    torch.testing.assert_close(result.norms, torch.full((20,), point.radius, dtype=DOUBLE))


def test_more_starts_are_never_much_worse_and_the_flag_tells_the_truth():
    network, data = drawn(10, 40, 30, seed=4)
    few, many = MinimumNorm(starts=1).run(network, data), MinimumNorm(starts=12).run(network, data)
    assert many.mean_norm <= few.mean_norm * (1 + 1e-9)
    for result in (few, many):
        gap = result.norms - result.bound
        assert (gap[result.stationary] <= 2e-9 * result.norms[result.stationary] + 1e-12).all()
        assert (result.bound <= result.norms * (1 + 1e-12)).all()


def test_within_a_subspace_it_is_the_shortest_there():
    """The same as attacking the network in the subspace's own coordinates."""
    network, data = drawn(9, 25, 10, seed=5)
    basis = torch.linalg.qr(torch.randn(9, 4, generator=torch.Generator().manual_seed(1), dtype=DOUBLE))[0]
    inside = MinimumNorm(subspace=Restriction(basis), starts=1).run(network, data)
    for row in range(len(data)):
        small = TwoLayer(network.W @ basis, network.W @ data.X[row] + network.b, network.v, network.c)
        alone = MinimumNorm(starts=1).run(small, Data(torch.zeros(1, 4, dtype=DOUBLE), data.y[row : row + 1]))
        assert bool(alone.success) == bool(inside.success[row])
        if alone.success:
            assert float(alone.norms) == pytest.approx(float(inside.norms[row]), rel=1e-6)


def test_pixels_outside_the_mask_stay_as_they_are():
    network, data = drawn(9, 25, 10, seed=6)
    mask = torch.tensor([1, 0, 1, 0, 0, 1, 1, 0, 0])
    result = MinimumNorm(subspace=pixels(mask)).run(network, data)
    assert result.success.any()
    assert (result.perturbations[:, mask == 0] == 0).all()


def linear_in_a_box(seed):
    """One linear piece (all neurons active, terms of a hundred that cancel) and examples of the box [-1, 1]^5."""
    rng = torch.Generator().manual_seed(seed)
    W, v = torch.randn(6, 5, generator=rng, dtype=DOUBLE), torch.randn(6, generator=rng, dtype=DOUBLE)
    network = TwoLayer(W, torch.full((6,), 100.0, dtype=DOUBLE), v, -100 * v.sum())
    X = 2 * torch.rand(8, 5, generator=rng, dtype=DOUBLE) - 1
    return network, Data(X, network.logits(X).sign())


def test_in_a_box_it_is_no_longer_than_a_solver_says():
    """min ‖δ‖ s.t. g·δ ≤ -f in a box has one answer."""
    network, data = linear_in_a_box(7)
    result = MinimumNorm().run(network, data, bounds=(-1.0, 1.0))
    gradient = (network.W.T @ network.v).numpy()
    for row in range(8):
        delta = cvxpy.Variable(5)
        y, x = float(data.y[row]), data.X[row].numpy()
        limits = [y * (gradient @ (x + delta)) <= 0, x + delta <= 1, x + delta >= -1]
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(delta)), limits)
        problem.solve(solver=cvxpy.CLARABEL)
        assert result.success[row]
        assert float(result.norms[row]) == pytest.approx(problem.value, rel=1e-5)  # the solver's own accuracy


def test_in_a_box_every_flip_is_a_measured_step_past_the_boundary():
    """A corner of the box flips every example; the attack stays inside the box and the flip survives other batches."""
    for seed in range(40):
        network, data = linear_in_a_box(seed)
        corners = -(data.y[:, None] * (network.v @ network.W)).sign()
        assert (network.margins(corners, data.y) < -1e-6).all()
        result = MinimumNorm().run(network, data, bounds=(-1.0, 1.0))
        moved = data.X + result.perturbations
        assert result.success.all()
        assert moved.abs().max() <= 1
        alone = [float(network.margins(x[None], y[None])) for x, y in zip(moved, data.y, strict=True)]
        assert max(alone) < 0


@pytest.mark.parametrize(("depth", "outputs"), [(1, 1), (2, 1), (1, 3), (3, 4)])
def test_in_a_box_it_flips_whatever_random_points_flip(depth, outputs):
    bounds, flippable = (-1.0, 1.0), 0
    for seed in range(5):
        network, data = drawn(4, 12, 8, seed, depth, outputs)
        data = Data(data.X.clamp(*bounds), data.y)
        rng = torch.Generator().manual_seed(seed)
        points = 2 * torch.rand(4000, 4, generator=rng, dtype=DOUBLE) - 1
        points = torch.cat([points, points.sign()])
        result = MinimumNorm().run(network, data, bounds=bounds, rng=rng)
        for row, y in enumerate(data.y):
            flips = bool((network.margins(points, y.expand(len(points))) < -1e-9).any())
            flippable += flips
            assert result.success[row] or not flips
    assert flippable > 5


@settings(max_examples=100, deadline=None, derandomize=True)
@given(numbers=st.lists(st.tuples(HUNDREDTHS, HUNDREDTHS, HUNDREDTHS), min_size=1, max_size=6))
def test_the_projection_in_a_box_is_that_of_a_bisection(numbers):
    """clip(-λ g) with g·clip(-λ g) = along: λ by bisection, an independent way to the same point."""
    g, low, high = (torch.tensor(column, dtype=DOUBLE)[None] for column in zip(*numbers, strict=True))
    low, high = -low.abs(), high.abs()
    reach = float((g * torch.where(g > 0, low, high)).sum())
    for along in (0.3 * reach, 0.9 * reach):
        small, large = 0.0, 1e9
        for _ in range(200):
            middle = (small + large) / 2
            value = float((g * (-middle * g).clamp(low, high)).sum())
            small, large = (small, middle) if value <= along else (middle, large)
        goal = project_in_box(g, torch.tensor([[along]], dtype=DOUBLE), low, high)
        assert ((goal >= low) & (goal <= high)).all()
        assert float((g * goal).sum()) == pytest.approx(along, rel=1e-9, abs=1e-12)
        torch.testing.assert_close(goal, (-large * g).clamp(low, high), rtol=1e-6, atol=1e-9)
