"""Exact radii of deep networks: against all activation regions, and what the judge says in rational arithmetic."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch

from benchmarks.fuzz.deep import SHAPES, draw
from brittle.attacks import MinimumNorm
from brittle.certificates import Dual, Exact, Example, LinearRelaxation, RadiusInterval
from brittle.certificates.deep_exact import judge
from brittle.certificates.deep_exact.ball import first_intervals, margin_floors
from brittle.certificates.deep_exact.branch_and_bound import RadiusTree, make_tree, margin_at
from brittle.certificates.deep_exact.interior_point import climb, first_iterate, with_margin
from brittle.certificates.deep_exact.judge import Ellipse, examine, shadow, two_rays
from brittle.certificates.deep_exact.problem import SdpProblem
from brittle.certificates.layers import Layers
from brittle.data import Data
from brittle.networks import Convolution, Deep, Dense
from tests.certificates.rational import exact_margin
from tests.certificates.reference import brute_force_strict_radius


def _labelled(network, X):
    logits = network.logits(X)
    return Data(X, torch.where(logits > 0, 1.0, -1.0).double() if network.classes == 1 else logits.argmax(1))


def _random(seed, shape, steep=1.5):
    rng = np.random.default_rng(seed)
    weights = [torch.from_numpy(rng.normal(size=(b, a)) / a**0.5 * steep) for a, b in pairwise(shape)]
    biases = [torch.from_numpy(0.3 * rng.normal(size=b)) for b in shape[1:]]
    return Deep.dense(weights, biases), torch.from_numpy(rng.normal(size=(2, shape[0])))


def _enumerated(network, data, limit):
    weights, biases = ([each.numpy() for each in part] for part in (network.weights, network.biases))
    return [
        brute_force_strict_radius(weights, biases, x.numpy(), float(y), limit)
        for x, y in zip(data.X, data.y, strict=True)
    ]


def _planted(network, x, y, radius) -> RadiusTree:
    margins = Layers.of(network, "exact").around(x, radius, y)
    with np.errstate(all="ignore"):
        example = Example(network, 0, x, y, float(network.margins(x[None], y[None])))
        tree = make_tree(
            margins, example, RadiusInterval(0.0, np.inf, torch.zeros_like(x), radius), 1e-3, lambda: False
        )
    assert tree is not None
    return tree


def _dual_point(tree, steps):
    """A problem of the tree's first rival in the whole ball, and multipliers some iterations after the start."""
    root = tree.root
    shared, problem = (SdpProblem.of(root, root.branch, rival) for rival in (None, tree.rivals[0]))
    start = climb(shared, first_iterate(shared, root.ball.reach, 1.0), 4)
    start = with_margin(shared, problem, start, margin_at(root.ball, tree.rivals[0]))
    return problem, climb(problem, start, steps)


def test_the_radius_of_one_neuron_per_layer_is_the_one_found_by_hand():
    """z_1 = 2 + δ, z_2 = 3 - h_1, f = h_2 - ½: at 0 it is ½, and h_2 falls below ½ where h_1 passes 2½."""
    one = torch.ones(1, 1, dtype=torch.float64)
    network = Deep.dense([one, -one, one], [torch.tensor([b], dtype=torch.float64) for b in (2.0, 3.0, -0.5)])
    found = Exact(gap=1e-6).bound(network, Data(torch.zeros(1, 1, dtype=torch.float64), torch.ones(1).double()))
    assert found.exact[0]
    assert found.upper[0] == pytest.approx(0.5, rel=1e-6)


def test_a_dual_point_found_by_hand_proves_what_it_should():
    """The example of docs/certificates.md: f = 2h - ½, z = ½ + ε in [-.1, 1.1], μ = ⅛, λ = τ = 2½, ρ = 0."""
    rows, ends = np.array([[0.0, 2.0, -0.5], [1.0, 0.0, 0.5]]), (np.array([-0.1]), np.array([1.1]))
    problem = SdpProblem(rows, np.zeros(2), *ends, np.array([0]), np.array([], dtype=int))
    verdict = examine(problem, np.array([0.125, 0.0, 2.5, 0.0, 2.5]), 0.3)
    assert verdict.floor == pytest.approx(1 / 32, rel=1e-9)
    assert verdict.low[0] == pytest.approx(0.25 - 0.0275**0.5, rel=1e-4)  # the neuron is on at every flip up to .3
    assert verdict.high[0] == pytest.approx(0.25 + 0.0275**0.5, rel=1e-4)


@pytest.mark.parametrize("shape", [(2, 4, 4, 1), (3, 5, 4, 3), (4, 3, 4, 3, 1), (2, 3, 3, 3, 3, 3)])
def test_exact_agrees_with_all_activation_regions(shape):
    network, X = _random(sum(shape), shape)
    data = _labelled(network, X)
    found = Exact(gap=1e-4).bound(network, data, cap=2.0)
    for row, radius in enumerate(_enumerated(network, data, 2.0)):
        assert found.lower[row] <= radius * (1 + 1e-7)
        assert found.upper[row] >= radius * (1 - 1e-7)
        assert found.exact[row]


@pytest.mark.parametrize("shape", SHAPES)
def test_degenerate_networks_are_enclosed(shape):
    """Duplicates, zero weights, plateaus, nearly parallel rows: the enclosure holds, whether it closes or not."""
    network, data = draw(np.random.default_rng(SHAPES.index(shape)), shape, widest=4)
    found = Exact(gap=1e-3, seconds=0.5).bound(network, data, cap=1.5)
    for row, radius in enumerate(_enumerated(network, data, 1.5)):
        assert found.lower[row] <= radius * (1 + 1e-7)
        assert found.upper[row] >= radius * (1 - 1e-7)


def test_a_convolution_is_certified_like_its_matrix():
    rng = np.random.default_rng(3)
    kernel, image = torch.from_numpy(rng.normal(size=(1, 1, 2, 2))), (1, 3, 3)
    convolution = Convolution(kernel, torch.from_numpy(rng.normal(size=1)), image, stride=(1, 1))
    sizes = ((3, 4), (2, 3))
    dense = [Dense(*(torch.from_numpy(rng.normal(size=part) / 2) for part in (size, size[:1]))) for size in sizes]
    network = Deep((convolution, *dense))
    data = _labelled(network, torch.from_numpy(rng.normal(size=(1, 9))))
    found = Exact(gap=1e-3).bound(network, data)
    assert found.exact[0]
    assert found.upper[0] == pytest.approx(_enumerated(network, data, np.inf)[0], rel=2e-3)


@pytest.mark.parametrize("shape", [(6, 8, 8, 3), (6, 10, 10, 10, 10, 10, 1)])
@pytest.mark.parametrize("exact", [Exact(nodes=1), Exact(seconds=1e-6)])
def test_neither_quick_method_is_ever_better(exact, shape):
    network, X = _random(0, shape)
    data = _labelled(network, X)
    found = exact.bound(network, data, cap=2.0)
    for quick in (LinearRelaxation(), Dual()):
        assert (found.lower >= quick.bound(network, data, cap=2.0).lower * (1 - 1e-3)).all()


def test_when_time_is_up_the_enclosure_holds():
    network, X = _random(1, (3, 7, 7, 7, 1))
    data = _labelled(network, X)
    found = Exact(gap=1e-6, seconds=1e-3).bound(network, data, cap=3.0)
    assert (found.lower <= found.upper).all()


@pytest.mark.parametrize(("seed", "shape"), [(1, (4, 40, 1)), (2, (6, 16, 16, 3))])
def test_nodes_end_the_search_where_they_are_used_up(seed, shape):
    network, X = _random(seed, shape, steep=2 if len(shape) == 3 else 1.5)
    data = _labelled(network, X)
    whole = Exact(gap=1e-6).bound(network, data)
    most = int(whole.nodes.max()) // 2
    cut = [Exact(gap=1e-6, nodes=most).bound(network, data) for _ in range(2)]
    assert most > 3
    assert torch.equal(cut[0].lower, cut[1].lower)
    assert torch.equal(cut[0].nodes, cut[1].nodes)
    assert int(cut[0].nodes.max()) <= most + 1  # a split looks at two branches
    assert (cut[0].lower <= whole.upper).all()
    assert not cut[0].exact.all()


def _minimum(problem, y):
    """min over x of the Lagrangian in rational arithmetic, None if it has none."""
    S = _exact_lagrangian(problem, y)
    size = len(S) - 1
    for k in range(size):
        if S[k][k] <= 0:
            return None
        for i in range(k + 1, size + 1):
            share = S[i][k] / S[k][k]
            S[i] = [left - share * right for left, right in zip(S[i], S[k], strict=True)]
    return S[size][size] / 2


def _exact_lagrangian(problem, y):
    """S = S_0 + Σ y (abᵀ + baᵀ), constraint by constraint, of fractions."""
    n, p, size = problem.n, problem.p, problem.p + problem.n + 1
    unit = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    forms = [[Fraction(float(entry)) for entry in row] for row in problem.rows]
    low, high = ([Fraction(float(end)) for end in ends] for ends in (problem.low, problem.high))
    m, one = problem.multipliers(y), unit[-1]

    def minus(left, right, times=1):
        return [i - times * j for i, j in zip(left, right, strict=True)]

    pairs = [(m.mu, one, forms[0])]
    for i in range(n):
        h, z = unit[p + i], forms[1 + i]
        pairs.append((m.lam[i], h, minus(h, z)))
        pairs.append((m.rho[i], h, minus(z, one, high[i])))
        pairs.append((m.tau[i], minus(z, h), minus(z, one, low[i])))
    for i in range(problem.k):
        z = forms[1 + n + i]
        pairs.append((m.sigma[i], minus(z, one, low[n + i]), minus(z, one, high[n + i])))
    S = [[Fraction(int(i == j and i < p)) for j in range(size)] for i in range(size)]
    for times, a, b in pairs:
        times = Fraction(float(times))
        S = [[S[i][j] + times * (a[i] * b[j] + b[i] * a[j]) for j in range(size)] for i in range(size)]
    return S


@pytest.mark.parametrize("steps", [0, 6, 20])
def test_the_judge_stays_below_the_minimum_in_rational_arithmetic_and_close_to_it(steps):
    network, X = _random(2, (3, 4, 4, 3))
    data = _labelled(network, X)
    tree = _planted(network, X[0], data.y[0], 3.0)
    problem, iterate = _dual_point(tree, steps)
    floor, minimum = examine(problem, iterate.y, tree.root.ball.reach).floor, _minimum(problem, iterate.y)
    assert floor <= minimum
    assert floor >= minimum - Fraction(1e-9)


def test_the_judge_refuses_forged_points():
    network, X = _random(2, (3, 4, 4, 3))
    data = _labelled(network, X)
    tree = _planted(network, X[0], data.y[0], 3.0)
    reach = tree.root.ball.reach
    problem, iterate = _dual_point(tree, 10)
    honest, n = iterate.y, problem.n
    assert examine(problem, honest, reach).floor > -np.inf
    curved = honest.copy()
    curved[2 : 2 + n] = -10 - honest[2 + 2 * n : 2 + 3 * n].max() * 100  # λ so negative that L has no minimum
    forged = [curved, honest[:-1]]
    for place, value in ((0, -1e-3), (2 + n, -1e-9), (2 + 2 * n, np.nan), (3, np.inf), (0, 1e200)):
        forged.append(honest.copy())
        forged[-1][place] = value
    for y in forged:
        verdict = examine(problem, y, reach)
        assert verdict.floor == -np.inf
        assert (verdict.low == problem.low).all()
        assert (verdict.high == problem.high).all()
    assert _minimum(problem, curved) is None


def test_t_is_the_solvers_affair():
    network, X = _random(2, (3, 4, 4, 3))
    data = _labelled(network, X)
    tree = _planted(network, X[0], data.y[0], 3.0)
    problem, iterate = _dual_point(tree, 10)
    boasting = iterate.y.copy()
    boasting[1] = 1e6
    reach = tree.root.ball.reach
    assert examine(problem, boasting, reach).floor == examine(problem, iterate.y, reach).floor


def _own_inputs(network, root, x, delta):
    """The network's own z of the listed neurons at x + δ, in fractions and in the root's units."""
    ball, point = root.ball, [Fraction(a) + Fraction(b) for a, b in zip(x.tolist(), delta.tolist(), strict=True)]
    first, a = _affine(network.weights[0].numpy(), network.biases[0].numpy(), point), network.values(x[None])[0][0]
    units = np.round(np.log2(np.abs(ball.a / a.numpy())))
    z, found = [value * Fraction(2) ** int(unit) for value, unit in zip(first, units, strict=True)], []
    for W, b, places in zip(ball.weights, ball.biases, root.places, strict=True):
        found += [z[place] for place in places]
        z = _affine(W, b, [max(value, 0) for value in z])
    return found


def _affine(W, b, values):
    rows = [[Fraction(float(entry)) for entry in row] for row in W]
    return [
        sum((entry * value for entry, value in zip(row, values, strict=True)), Fraction(float(bias)))
        for row, bias in zip(rows, b, strict=True)
    ]


def test_the_networks_own_inputs_differ_from_the_forms_by_their_slips():
    """In fractions; some neurons are settled as they are at the point, so that rows are composed."""
    network, X = _random(4, (6, 4, 5, 4, 1))
    data = _labelled(network, X)
    tree = _planted(network, X[0], data.y[0], 2.0)
    root, rng = tree.root, np.random.default_rng(0)
    basis, unit = root.ball.span.basis, Fraction(2) ** -root.ball.exponent
    assert basis is not None
    largest = 0.0
    for _ in range(5):
        delta = rng.normal(size=6)
        delta *= 1.9 / np.linalg.norm(delta)
        own = _own_inputs(network, root, X[0], delta)
        signs = np.where(rng.random(len(own)) < 0.7, [1 if z > 0 else -1 for z in own], 0).astype(np.int8)
        problem = SdpProblem.of(root, replace(root.branch, signs=signs), tree.rivals[0])
        epsilon = _affine(basis.T, np.zeros(basis.shape[1]), [Fraction(step) * unit for step in delta.tolist()])
        xi = [*epsilon, *(max(own[place], 0) for place in problem.free), Fraction(1)]
        forms = _affine(problem.rows[1:], np.zeros(len(own)), xi)
        for form, slip, place in zip(forms, problem.slips[1:], [*problem.free, *problem.settled], strict=True):
            off = abs(form - own[place])
            assert off <= Fraction(float(slip))
            largest = max(largest, float(off))
    assert largest > 0


def test_every_flip_lies_in_the_intervals_that_the_judge_leaves():
    seen = narrowed = 0
    for seed in range(6):
        network, X = _random(seed, (12, 6, 6, 1))
        data = _labelled(network, X[:1])
        flip = MinimumNorm().run(network, data).perturbations[0].numpy()
        radius = float(np.linalg.norm(flip)) * 1.1
        noise = np.random.default_rng(seed).normal(size=(4000, 12))
        deltas = flip * 1.02 + 0.25 * radius * noise / np.linalg.norm(noise, axis=1, keepdims=True)
        flipped = (network.margins(X[0] + torch.from_numpy(deltas), data.y.expand(4000)) < 0).numpy()
        deltas = deltas[flipped & (np.linalg.norm(deltas, axis=1) < radius)]
        tree = _planted(network, X[0], data.y[0], radius)
        problem, iterate = _dual_point(tree, 20)
        verdict = examine(problem, iterate.y, tree.root.ball.reach)
        narrowed += int(((verdict.low > problem.low) | (verdict.high < problem.high)).sum())
        for delta in deltas:
            z = _inputs(tree, delta)
            assert (z >= verdict.low - 1e-12).all()
            assert (z <= verdict.high + 1e-12).all()
            seen += 1
    assert seen > 100
    assert narrowed > 20


def _inputs(tree, delta):
    """z of the listed neurons at δ, in the root's units."""
    ball = tree.root.ball
    epsilon = ball.span.reduce(delta / 2.0**ball.exponent)
    z, found = ball.first @ epsilon + ball.a, []
    for layer, places in enumerate(tree.root.places):
        found.append(z[places])
        z = ball.weights[layer] @ np.maximum(z, 0) + ball.biases[layer]
    return np.concatenate(found)


def test_the_two_rays_are_cut_where_a_dense_sample_of_them_leaves_the_ellipse():
    rng = np.random.default_rng(0)
    t = np.linspace(-6, 6, 24_001)
    for _ in range(40):
        root = rng.normal(size=(2, 2))
        G, (h, z), room = root @ root.T + 0.01 * np.eye(2), rng.normal(size=2), rng.uniform(0.1, 2)
        cut = Ellipse(*(np.array([value]) for value in (G[0, 0], G[0, 1], G[1, 1], h, z, 0.0)))
        low, high = two_rays(cut, room, np.array([-6.0]), np.array([6.0]))
        inside = []
        for graph in (np.stack([t, t])[:, t >= 0], np.stack([0 * t, t])[:, t <= 0]):
            away = graph - np.array([[h], [z]])
            inside.append(graph[1][(away * np.linalg.solve(G, away)).sum(0) <= room])
        on, off = inside
        if not len(on) and not len(off):
            assert low > high or high - low < 0.01
            continue
        lowest, highest = (off if len(off) else on).min(), (on if len(on) else off).max()
        assert low[0] <= lowest
        assert high[0] >= highest
        assert low[0] >= lowest - 1e-2
        assert high[0] <= highest + 1e-2


def test_first_intervals_and_floors_hold_on_samples():
    network, X = _random(6, (6, 10, 10, 3))
    data = _labelled(network, X)
    tree = _planted(network, X[0], data.y[0], 0.7)
    ball = tree.root.ball
    with np.errstate(all="ignore"):
        known = first_intervals(ball)
        floors = margin_floors(ball, known)
    rng = np.random.default_rng(0)
    for _ in range(200):
        epsilon = rng.normal(size=ball.first.shape[1])
        epsilon *= ball.reach * rng.random() ** 0.1 / np.linalg.norm(epsilon)
        z = ball.first @ epsilon + ball.a
        for layer, (W, b) in enumerate(zip(ball.weights, ball.biases, strict=True)):
            assert (z >= known.low[layer] - 1e-12).all()
            assert (z <= known.high[layer] + 1e-12).all()
            z = W @ np.maximum(z, 0) + b
        assert (z >= floors - 1e-12).all()


@pytest.mark.parametrize("by", [-300, -40, 40, 300])
@pytest.mark.parametrize("place", ["x", "first", "middle", "last", "biases"])
def test_far_scales_give_valid_bounds_or_a_reason(by, place):
    network, X = _random(7, (3, 4, 4, 1))
    weights, biases = list(network.weights), list(network.biases)
    scale = 2.0**by
    if place == "x":
        X, biases[0] = X * scale, biases[0] * scale
    elif place == "biases":
        biases = [b * scale for b in biases]
    else:
        layer = ("first", "middle", "last").index(place)
        weights[layer] = weights[layer] * scale
    network = Deep.dense(weights, biases)
    data = _labelled(network, X)
    found = Exact(gap=1e-3, seconds=2).bound(network, data)
    for row in range(len(X)):
        lower, upper = float(found.lower[row]), float(found.upper[row])
        assert lower <= upper
        assert lower > 0 or found.reason[row] or found.status[row].value == "error"
        for direction in np.random.default_rng(row).normal(size=(20, 3)):
            step = direction / np.linalg.norm(direction) * lower * (1 - 1e-9)
            moved = [Fraction(float(a)) + Fraction(float(b)) for a, b in zip(X[row], step, strict=True)]
            assert lower == 0 or exact_margin(network, moved, int(data.y[row])) >= 0


def _kinked(seed):
    """A small network and an example, at which many neurons have their kink."""
    rng = torch.Generator().manual_seed(seed)
    dim, *inner = (int(torch.randint(low, high, (1,), generator=rng)) for low, high in ((1, 4), (2, 6), (2, 6)))
    widths = [dim, *inner, 1]
    weights = [torch.randn(b, a, generator=rng, dtype=torch.float64) for a, b in pairwise(widths)]
    biases = []
    for wide in widths[1:]:
        b = torch.randn(wide, generator=rng, dtype=torch.float64) * float(torch.rand(1, generator=rng))
        biases.append(b * (torch.rand(wide, generator=rng) < 0.5))
    x = torch.randn(1, dim, generator=rng, dtype=torch.float64) * (torch.rand(1, dim, generator=rng) < 0.5)
    return Deep.dense(weights, biases), x


@pytest.mark.parametrize("seed", [16, 19, 22])
@pytest.mark.parametrize("capped", [True, False], ids=["a cap beyond the flip", "the default cap"])
def test_a_ball_far_below_the_example_leaves_no_false_radius(seed, capped):
    """With one coordinate more, which no neuron sees and which is 1; all others, and the radius, are 2⁻⁷⁰⁰ as large."""
    part, far, (near, x) = Exact(gap=1e-4, nodes=20), 2.0**-700, _kinked(seed)
    data = _labelled(near, x)
    upper = float(part.bound(near, data).upper[0])
    unseen = torch.cat([near.weights[0], torch.zeros(near.shape[1], 1, dtype=torch.float64)], 1)
    network = Deep.dense([unseen, *near.weights[1:]], [far * b for b in near.biases])
    X = torch.cat([far * x, torch.ones(1, 1, dtype=torch.float64)], 1)
    bounds = part.bound(network, Data(X, data.y), cap=1.5 * far * upper if capped else None)
    assert float(bounds.lower[0]) <= far * upper * (1 + 1e-9)


def test_a_flip_whose_square_is_lost_in_the_balls_unit_is_not_enough():
    network, X = _random(0, (2, 3, 3, 1))
    data = _labelled(network, X)
    tree = _planted(network, data.X[0], data.y[0], 5.0)
    short = RadiusInterval(0.0, 2.0**-700, torch.zeros(2), 5.0)
    assert tree.radius_of(0.0, short) == 0
    problem, iterate = _dual_point(tree, 2)
    assert not examine(problem, 0 * iterate.y, 0.0).empty  # multipliers 0 prove 0 ≤ ½‖ε‖², and no more


def test_ends_of_rays_are_moved_outwards_by_every_allowance(monkeypatch):
    """Where they can be seen, against the roots of the quadratic equation of each ray."""
    monkeypatch.setattr(judge, "INFLATION", share := 1e-2)
    monkeypatch.setattr(judge, "OUTWARD", out := 3e-2)
    rng = np.random.default_rng(0)
    for _ in range(30):
        A, centre, slip, room = rng.normal(size=(2, 3)), rng.normal(size=2), rng.uniform(0, 0.1), rng.uniform(2, 4)
        gram = A @ A.T
        parts = (gram[0, 0], gram[0, 1], gram[1, 1], *centre, slip)
        low, high = two_rays(Ellipse(*(np.array([part]) for part in parts)), room, np.array([-9.0]), np.array([9.0]))
        inverse = np.linalg.inv(gram + np.diag(3 * share * gram.diagonal()))
        root = np.sqrt(room) + slip * np.sqrt(inverse[1, 1])
        wide = root**2 * (1 + 2 * share) * (1 + out)
        more = out * (root * np.sqrt(gram[1, 1] * (1 + 3 * share)) + abs(centre[1]))
        ends = []
        for ray, least, most in ((np.array([0.0, 1.0]), -9.0, 0.0), (np.ones(2), 0.0, 9.0)):
            square, cross = ray @ inverse @ ray, ray @ inverse @ centre
            roots = np.roots([square, -2 * cross, centre @ inverse @ centre - wide])
            if np.isreal(roots).all():
                half = (roots.max() - roots.min()) / 2 * (1 + out) + more
                part = max(cross / square - half, least), min(cross / square + half, most)
                ends += part if part[0] <= part[1] else ()
        assert (low[0], high[0]) == pytest.approx((min(ends), max(ends)) if ends else (1.0, -1.0), rel=1e-9)


def test_shadows_are_rounded_outwards_by_hand(monkeypatch):
    monkeypatch.setattr(judge, "INFLATION", 1e-2)
    monkeypatch.setattr(judge, "OUTWARD", 0.125)
    assert shadow(np.array([4.0]), 9.0, np.array([-8.0])).tolist() == pytest.approx([6 * 1.03 + 1.0])
