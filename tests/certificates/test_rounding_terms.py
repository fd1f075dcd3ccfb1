"""What the judges subtract for slips and for rounding, term by term.

Real rounding is far below these terms, so that no comparison of bounds would miss a wrong one. Here γ is set to 0 and
the slips are moved to where they do most harm, or the slips are 0 and γ is a number that can be seen.
"""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from brittle.certificates import dual_bound, lipschitz, relaxation
from brittle.certificates.deep_exact import ball, judge, leaf
from brittle.certificates.deep_exact.problem import SdpMultipliers, SdpProblem
from brittle.certificates.dual_bound import DualPoint, Kind
from brittle.certificates.margins import LocalModel
from brittle.certificates.relaxation import Floors
from brittle.certificates.rounding import factor

P, N, K = 3, 3, 2  # coordinates, free neurons, settled ones
FAMILIES = ("mu", "lam", "rho", "tau", "sigma")
SHARE = 1e-3


@pytest.fixture
def no_rounding(monkeypatch):
    monkeypatch.setattr(judge, "gamma", lambda count: 0.0)


@pytest.fixture
def visible_rounding(monkeypatch):
    for module in (judge, leaf, dual_bound):
        monkeypatch.setattr(module, "gamma", lambda count: SHARE)


def problem_of(seed):
    rng = np.random.default_rng(seed)
    rows, slips = rng.normal(size=(1 + N + K, P + N + 1)), rng.uniform(0.5, 1, size=1 + N + K) * 1e-4
    low = np.concatenate([-rng.uniform(0.5, 2, size=N), -rng.uniform(2, 3, size=K)])
    high = np.concatenate([rng.uniform(0.5, 2, size=N), -rng.uniform(0.5, 1, size=K)])
    return SdpProblem(rows, slips, low, high, np.arange(N), np.arange(N, N + K))


def multipliers(seed, *families):
    """Of these families alone; λ has any sign."""
    rng = np.random.default_rng(seed)
    full = SdpMultipliers(
        rng.uniform(0.5, 2),
        0.0,
        rng.uniform(0.5, 2, size=N) * rng.choice([-1, 1], size=N),
        *rng.uniform(0.5, 2, size=(2, N)),
        rng.uniform(0.5, 2, size=K),
    )
    return full._replace(**{name: 0 * getattr(full, name) for name in set(FAMILIES) - set(families)})


def point(seed):
    """x and forms on the side where all parts of a constraint's slope have one sign."""
    rng = np.random.default_rng(seed)
    x, forms = rng.normal(size=P + N), rng.uniform(0.5, 2, size=1 + N + K)
    x[P:] = -np.abs(x[P:])
    return x, forms


def lagrangian(problem, m, x, forms):
    """From its definition."""
    low, high, k_low, k_high = problem.ends
    f, z, k, h = forms[0], forms[1 : 1 + N], forms[1 + N :], x[P:]
    free = m.lam * h * (h - z) + m.rho * h * (z - high) + m.tau * (z - h) * (z - low)
    return 0.5 * x[:P] @ x[:P] + m.mu * f + free.sum() + (m.sigma * (k - k_low) * (k - k_high)).sum()


def gradient(problem, m, x, forms):
    """Of the Lagrangian in x, by the chain rule through the forms."""
    low, high, k_low, k_high = problem.ends
    z, k, h = forms[1 : 1 + N], forms[1 + N :], x[P:]
    by_z = -m.lam * h + m.rho * h + m.tau * ((z - low) + (z - h))
    by_k = m.sigma * ((k - k_low) + (k - k_high))
    by_h = m.lam * ((h - z) + h) + m.rho * (z - high) - m.tau * (z - low)
    return np.concatenate([[m.mu], by_z, by_k]) @ problem.rows[:, :-1] + np.concatenate([x[:P], by_h])


def corners(slips):
    return (np.array(signs) * slips for signs in product([-1, 1], repeat=len(slips)))


@pytest.mark.parametrize("families", [*((name,) for name in FAMILIES), FAMILIES])
def test_the_value_pays_for_the_worst_that_slips_can_do(families, no_rounding):
    for seed in range(5):
        problem, m, (x, forms) = problem_of(seed), multipliers(seed, *families), point(seed)
        claimed = judge._value(problem, m, x, forms, problem.slips)
        here = lagrangian(problem, m, x, forms)
        worst = min(lagrangian(problem, m, x, forms + moved) for moved in corners(problem.slips))
        assert claimed <= worst + 1e-12
        assert here - claimed <= (1.01 if len(families) == 1 else 1.5) * (here - worst)  # not all families at once


def expanded(problem, m, x, forms):
    """The absolute values of all monomials of the Lagrangian, added up."""
    low, high, k_low, k_high = map(np.abs, problem.ends)
    lam, h, (f, z, k) = np.abs(m.lam), np.abs(x[P:]), np.split(np.abs(forms), [1, 1 + N])
    free = lam * h * h + lam * h * z + m.rho * h * z + m.rho * h * high
    free = free + m.tau * (z * z + z * low + h * z + h * low)
    settled = m.sigma * (k * k + k * k_low + k * k_high + k_low * k_high)
    return 0.5 * x[:P] @ x[:P] + m.mu * float(f[0]) + free.sum() + settled.sum()


@pytest.mark.parametrize("families", [*((name,) for name in FAMILIES), FAMILIES])
def test_the_value_pays_for_the_rounding_of_every_monomial(families, visible_rounding):
    for seed in range(5):
        problem, m, (x, forms) = problem_of(seed), multipliers(seed, *families), point(seed)
        claimed = judge._value(problem, m, x, forms, 0 * forms)
        paid = (lagrangian(problem, m, x, forms) - claimed) / SHARE
        assert paid == pytest.approx(expanded(problem, m, x, forms), rel=1e-9)


def definite(problem, scale):
    sizes = np.linalg.norm(problem.rows[:, :-1] * scale, axis=1)
    return judge._Definite(None, scale, sizes)


@pytest.mark.parametrize("family", FAMILIES[1:])
def test_the_gradient_pays_for_the_worst_that_one_slip_can_do(family, no_rounding):
    """z of the first free neuron is -h of its own, so that the two parts of τ's slope point the same way."""
    for seed in range(5):
        problem, m, (x, forms) = problem_of(seed), multipliers(seed, family), point(seed)
        problem.rows[1] = -np.eye(1, P + N + 1, P)
        scale = np.exp2(np.random.default_rng(seed).integers(-3, 3, size=P + N))
        place = 1 + N if family == "sigma" else 1
        slips = np.where(np.arange(1 + N + K) == place, 1e-3, 0.0)
        found, claimed = judge._gradient(problem, m, x, forms, slips, definite(problem, scale))
        np.testing.assert_allclose(found, scale * gradient(problem, m, x, forms), rtol=1e-12)
        moved = scale * gradient(problem, m, x, forms + slips) - found
        assert np.linalg.norm(moved) == pytest.approx(claimed, rel=1e-9)


def test_the_gradient_pays_for_all_slips_together(no_rounding):
    for seed in range(5):
        problem, m, (x, forms) = problem_of(seed), multipliers(seed, *FAMILIES), point(seed)
        proof = definite(problem, np.ones(P + N))
        found, claimed = judge._gradient(problem, m, x, forms, problem.slips, proof)
        for moved in corners(problem.slips):
            assert np.linalg.norm(gradient(problem, m, x, forms + moved) - found) <= claimed


@pytest.mark.parametrize("families", [*((name,) for name in FAMILIES), FAMILIES])
def test_the_gradient_pays_for_the_rounding_of_every_monomial(families, visible_rounding):
    for seed in range(5):
        problem, m, (x, forms) = problem_of(seed), multipliers(seed, *families), point(seed)
        proof = definite(problem, np.exp2(np.random.default_rng(seed).integers(-3, 3, size=P + N)))
        _, claimed = judge._gradient(problem, m, x, forms, 0 * forms, proof)
        low, high, k_low, k_high = map(np.abs, problem.ends)
        lam, h, (_, z, k) = np.abs(m.lam), np.abs(x[P:]), np.split(np.abs(forms), [1, 1 + N])
        by_z = np.concatenate(
            [[m.mu], lam * h + m.rho * h + m.tau * (z + z + h + low), m.sigma * (k + k + k_low + k_high)]
        )
        by_h = lam * (h + h + z) + m.rho * (z + high) + m.tau * (z + low)
        total = by_z @ proof.sizes + by_h @ proof.scale[P:] + np.linalg.norm(proof.scale[:P] * x[:P])
        assert claimed == pytest.approx(SHARE * total * (1 + SHARE), rel=1e-9)


def test_the_forms_pay_for_the_rounding_of_every_term(visible_rounding):
    problem, (x, _) = problem_of(0), point(0)
    forms, slips = judge._forms(problem, x)
    sizes = [sum(abs(a * b) for a, b in zip(row, [*x, 1.0], strict=True)) for row in problem.rows]
    np.testing.assert_allclose(forms, problem.rows @ np.append(x, 1.0), rtol=1e-12)
    np.testing.assert_allclose(slips, SHARE * np.array(sizes), rtol=1e-9)


def test_the_shift_of_the_factor_exceeds_the_rounding_of_every_term(monkeypatch):
    """A product u·v of two forms in L has the Hessian uvᵀ + vuᵀ, of norm at most 2‖u‖‖v‖ in the scaling."""
    share = 1e-6
    monkeypatch.setattr(judge, "gamma", lambda count: share)
    for seed in range(5):
        problem, y = curved(seed)
        m = problem.multipliers(y)
        proof = judge._definite(problem, y, m)
        assert proof is not None
        L, scale = np.tril(proof.L.L), proof.scale
        Q = problem.lagrangian(y)[:-1, :-1] * np.outer(scale, scale)
        own, free, settled = scale[P:], proof.sizes[1 : 1 + N], proof.sizes[1 + N :]
        pairs = [m.lam * own * own, m.lam * own * free, m.rho * own * free]
        pairs += [m.tau * free * free, m.tau * own * free, m.sigma * settled * settled]
        terms = 2 * sum(each.sum() for each in pairs) + (scale[:P] ** 2).sum()
        shift = judge.LEAST + 2 * share * (terms + np.trace(Q) + P + N)
        np.testing.assert_allclose(Q - L @ L.T, shift * np.eye(P + N), atol=1e-12, rtol=1e-6)
        sizes = np.linalg.norm(problem.rows[:, :-1] * scale, axis=1)
        np.testing.assert_allclose(proof.sizes, sizes * (1 + share), rtol=1e-12)


def curved(seed):
    """A problem, and multipliers with which L is convex."""
    problem, m = problem_of(seed), multipliers(seed, *FAMILIES)
    problem.rows[:, P : P + N] *= 0.1
    return problem, np.concatenate([[m.mu, 0.0], np.abs(m.lam) / 20, m.rho / 100, m.tau / 20, m.sigma])


def by_how_much(problem, m, f, z, k, slips):
    """L less ½‖ε‖² where the network has these margin and inputs, and the forms are off by the slips."""
    x = np.concatenate([np.zeros(P), np.maximum(z, 0)])
    return lagrangian(problem, m, x, np.concatenate([[f], z, k]) + slips)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_price_is_what_slips_can_add_at_a_flip(family, no_rounding):
    for seed in range(5):
        problem, m = problem_of(seed), multipliers(seed, family)
        low, high, k_low, k_high = problem.ends
        cases = product((low, 0 * low, high), (k_low, k_high), corners(problem.slips))
        most = max(by_how_much(problem, m, 0.0, z, k, moved) for z, k, moved in cases)
        price = judge._price(problem, m)
        assert most <= price + 1e-12
        assert price <= (1.8 if family == "tau" else 1.01) * most  # τ's price adds what two cases can do


def test_prices_and_floors_are_rounded_to_the_safe_side(visible_rounding, monkeypatch):
    problem, y = curved(0)
    price = judge._price(problem, problem.multipliers(y))
    with monkeypatch.context() as exact:
        exact.setattr(judge, "gamma", lambda count: 0.0)
        assert price == pytest.approx(judge._price(problem, problem.multipliers(y)) * (1 + SHARE), rel=1e-12)
    fixed = judge._Point(np.zeros(P + N), np.zeros(1 + N + K), np.zeros(1 + N + K), 5.0, 1e-5)
    monkeypatch.setattr(judge, "_minimiser", lambda *given: fixed)
    monkeypatch.setattr(judge, "_definite", lambda *given: definite(problem, np.ones(P + N)))
    lost = fixed.residual**2 / (2 * judge.LEAST) * (1 + SHARE)
    floor = judge.examine(problem, y, 0.0).floor
    assert floor == pytest.approx(5.0 - lost - price, rel=1e-12)
    assert floor <= 5.0 - lost - price


@pytest.mark.parametrize("residual", [0.0, 1e-5])
def test_intervals_of_settled_neurons_are_the_ellipsoids_shadows(residual):
    problem, y = curved(1)
    proof = judge._definite(problem, y, problem.multipliers(y))
    assert proof is not None
    found = judge._minimiser(problem, problem.multipliers(y), proof)._replace(residual=residual)
    wide = SdpProblem(problem.rows, problem.slips, problem.low - 1e3, problem.high + 1e3, problem.free, problem.settled)
    low, high = judge._intervals(wide, proof, found, floor=0.5, reach=2.0)
    rows = problem.rows[1 + N :, :-1]
    spread = np.sqrt(np.einsum("ij,ji->i", rows, np.linalg.solve(problem.lagrangian(y)[:-1, :-1], rows.T)))
    half = (np.sqrt(2.0**2 - 2 * 0.5) + residual / np.sqrt(judge.LEAST)) * spread + problem.slips[1 + N :]
    centre = found.forms[1 + N :]
    for end in (centre - low[N:], high[N:] - centre):
        assert (end >= half).all()
        np.testing.assert_allclose(end, half, rtol=1e-5)


def test_a_leafs_inequalities_and_its_lift_are_rounded_to_the_safe_side(visible_rounding):
    rng = np.random.default_rng(0)
    rows, slips = rng.normal(size=(3, 4)), rng.uniform(0.1, 0.2, size=3)
    low, high = np.array([-1.0, -2.0]), np.array([2.0, 1.0])
    problem = SdpProblem(rows, slips, low, high, np.zeros(0, dtype=np.intp), np.arange(2))
    A, h = leaf.inequalities(problem)
    for epsilon in rng.normal(size=(50, 3)):
        forms = rows[:, :-1] @ epsilon + rows[:, -1]
        ends = np.concatenate([slips[:1] - forms[:1], forms[1:] - low + slips[1:], high - forms[1:] + slips[1:]])
        sizes = np.abs(np.concatenate([rows[:1, -1], rows[1:, -1], rows[1:, -1]]))
        sizes = sizes + np.concatenate([[0.0], np.abs(low), np.abs(high)]) + np.concatenate([slips, slips[1:]])
        np.testing.assert_allclose(A @ epsilon - h, ends + SHARE * sizes, rtol=1e-9)
    nu = rng.exponential(size=5)
    length, lift = leaf._judged(A, h, nu)
    assert lift == pytest.approx(h @ nu - SHARE * np.abs(h) @ nu, rel=1e-12)
    longest = np.linalg.norm(nu @ A) + SHARE * np.linalg.norm(nu @ np.abs(A))
    assert length == pytest.approx(longest * (1 + SHARE), rel=1e-12)
    half_space = replace(problem, rows=rows[:1], slips=slips[:1], low=low[:0], high=high[:0], settled=np.arange(0))
    half_space.rows[0, -1] = 3.0  # the margin is 3 at the example
    A, h = leaf.inequalities(half_space)
    length, lift = leaf._judged(A, h, leaf.multipliers(A, h))
    assert 0 < leaf.leaf_floor(half_space) <= 0.5 * (lift / length) ** 2 * (1 - SHARE) * (1 + 1e-12)


def model_of(seed, neurons=6, dim=3):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(neurons, dim))
    c = rng.normal(size=neurons)
    return LocalModel(
        W=W, a=rng.normal(size=neurons), c=c, q=rng.normal(size=dim), beta=2.0, sizes=np.linalg.norm(W, axis=1),
        slips=rng.uniform(1, 2, size=neurons) * 1e-3, error=0.01, stretch=1.0, ball=1.0, pure=False,
    )  # fmt: skip


def kinds_of(model, seed):
    rng = np.random.default_rng(seed)
    concave = rng.choice([Kind.CONCAVE, Kind.ACTIVE, Kind.INACTIVE], size=len(model.c))
    return np.where(model.c >= 0, Kind.CONVEX, concave).astype(np.int8)


def test_linear_terms_pay_for_slips_and_rounding(visible_rounding):
    for seed in range(8):
        model = model_of(seed)
        rng, kinds = np.random.default_rng(seed), kinds_of(model, seed)
        dual = DualPoint(1.0, rng.normal(size=6), rng.uniform(0.1, 1, size=6), kinds)
        g, N = dual_bound.feasible_slopes(model, dual), kinds == Kind.CONCAVE
        total, slip = dual_bound._linear_terms(model, dual, g)
        c, kappa = model.c[N], dual.curvatures[N]
        bent = np.minimum(-(g[N] ** 2) / (2 * kappa), c * model.a[N] - (g[N] - c) ** 2 / (2 * kappa))
        known = (kinds == Kind.ACTIVE) | (kinds == Kind.INACTIVE)  # their inputs are the network's own
        worst = np.where(known, -np.abs(g) * model.slips, 0.0).sum()
        plain = model.beta + (g * model.a)[~N].sum() + bent.sum()
        assert total == pytest.approx(plain - model.error + worst, rel=1e-9)
        sizes = (np.abs(g[N]) + np.abs(c)) ** 2 / (2 * kappa)
        monomials = model.beta + model.error - worst + np.abs(g * model.a)[~N].sum() + np.abs(c * model.a[N]).sum()
        assert slip == pytest.approx(SHARE * (monomials + 2 * sizes.sum()), rel=1e-9)


@pytest.mark.parametrize("share", [0.0, 1e-12, 1e-7])
def test_the_quadratic_form_is_a_ceiling_and_pays_for_its_rounding(share, monkeypatch):
    monkeypatch.setattr(dual_bound, "gamma", lambda count: share)
    for seed in range(8):
        model = model_of(seed)
        kinds, rng = dual_bound.initial_kinds(model), np.random.default_rng(seed)
        mu, slopes = 0.5, rng.normal(size=6)
        N = kinds == Kind.CONCAVE
        top = np.linalg.eigvalsh(model.W[N].T @ model.W[N])[-1]
        dual = DualPoint(mu, slopes, np.full(6, 0.8 / (mu * top)), kinds)
        g = dual_bound.feasible_slopes(model, dual)
        p, kappa = model.q + g @ model.W, mu * dual.curvatures[N]
        x = np.linalg.solve(np.eye(3) - (model.W[N].T * kappa) @ model.W[N], p)
        u, length = model.W[N] @ x, np.linalg.norm(x)
        load = np.linalg.norm(model.q) + np.abs(g) @ model.sizes
        sums = 2 * load * length + length**2 + kappa @ (u**2 + 2 * np.abs(u) * model.sizes[N] * length)
        off = load + length + 2 * (kappa * np.abs(u)) @ model.sizes[N]
        paid = share * sums + (share * off) ** 2 / dual_bound.LEAST
        excess = dual_bound._quadratic_form(model, dual, g) - p @ x
        assert paid - 1e-11 <= excess <= 2.5 * paid + 1e-11


def test_lipschitz_constants_pay_for_the_sums_that_they_are(monkeypatch):
    """However many terms they have: here every γ is visible."""
    model = model_of(0)
    plain = lipschitz._slope(model), lipschitz._slope_of_sums(model), lipschitz._quotient(model, 1.0)
    monkeypatch.setattr(lipschitz, "gamma", lambda count: SHARE * (count > len(model.c)))
    size = abs(model.beta) + np.abs(model.a) @ np.abs(model.c)
    assert lipschitz._slope(model) >= plain[0] * (1 + SHARE) * (1 - 1e-9)
    assert lipschitz._slope_of_sums(model) >= plain[1] * (1 + SHARE) * (1 - 1e-9)
    assert lipschitz._quotient(model, 1.0) <= plain[2] - SHARE * size * (1 - 1e-9)


LOST = 1e-2  # of sums below the normal floats, where it can be seen


def double(*values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.fixture
def visible_floors(monkeypatch):
    for module in (relaxation, relaxation):
        monkeypatch.setattr(module, "gamma", lambda count: SHARE)
        monkeypatch.setattr(module, "LOST", LOST)
    monkeypatch.setattr(relaxation, "UNDERFLOW", LOST)
    monkeypatch.setattr(relaxation, "SQUARES", LOST)
    monkeypatch.setattr(relaxation, "ROUNDOFF", SHARE)


def test_lines_around_relus_and_their_slips_by_hand(visible_floors):
    """Neurons that are on, off and free; the chord of the free one is 2/3 z + 4/3, and its lower line z/4."""
    low, high, slope = double(1.0, -3.0, -2.0), double(2.0, -1.0, 4.0), double(0.25, 0.25, 0.25)
    before = Floors(double([1.0, 1.0, 1.0], [-1.0, -2.0, -3.0]), double(0.5, -0.5), double(0.1, 0.2))
    after = before.through_relu(low, high, slope)
    rise = 4 / 3 + SHARE * (2 + 4) + LOST
    torch.testing.assert_close(after.rows, double([1.0, 0.0, 0.25], [-1.0, 0.0, -2.0]))
    torch.testing.assert_close(after.offsets, double(0.5, -0.5 - 3 * rise))
    slips = double(0.1 + SHARE * (2 + 4 + rise + 0.5), 0.2 + SHARE * (2 + 3 * (4 + rise) + 0.5))
    torch.testing.assert_close(after.slip, slips)


def test_a_layer_adds_the_sizes_of_all_its_terms_to_the_slip(visible_floors):
    W, b, size = double([1.0, -2.0], [3.0, 0.5]), double(-4.0, 1.0), double(2.0, 1.0)
    before = Floors(double([1.0, -1.0]), double(-0.5), double(0.1))
    after = before.through_layer(W, W.abs(), b, size)
    torch.testing.assert_close(after.rows, double([-2.0, -2.5]))
    torch.testing.assert_close(after.offsets, double(-5.5))
    lost = LOST * (1 + 3)
    weight = (2 + 2 + 4 + lost) + (6 + 0.5 + 1 + lost) + 0.5 + lost
    torch.testing.assert_close(after.slip, double(0.1 + SHARE * weight))


def around(x, weights, biases, radius):
    margins = SimpleNamespace(x=x, weights=weights, biases=biases, absolute=[each.abs() for each in weights])
    return relaxation._Ball(margins, radius)


def test_the_reach_in_a_ball_is_the_length_of_a_row_and_all_slips(visible_floors):
    ball, up = around(double(-1.0, 2.0), [], [], 2.0), 1 + 8 * SHARE
    rows = double([3.0, -4.0], [0.0, 1.0])
    found = ball._reach(rows, rows.abs(), double(-5.0, 0.0), double(0.1, 0.2))
    sums = 3 * (1 + LOST) + 4 * (2 + LOST) + 5 + LOST, 2 + LOST + LOST
    reaches = [
        (length + LOST) * 2 * (1 + SHARE) + (slip + SHARE * total) * up
        for length, slip, total in zip((5, 1), (0.1, 0.2), sums, strict=True)
    ]
    torch.testing.assert_close(found, double(*reaches) * up)


def test_floors_are_put_in_backwards_with_the_sizes_of_every_layer(visible_floors):
    """h ≤ high of the layer before, and 0 where that is off; |x| + radius in the first."""
    rng = torch.Generator().manual_seed(0)
    shapes = [(3, 2), (4, 3), (2, 4)]
    weights = [torch.randn(*shape, generator=rng, dtype=torch.float64) for shape in shapes]
    biases = [torch.randn(shape[0], generator=rng, dtype=torch.float64) for shape in shapes]
    x, radius = double(1.0, -2.0), 0.5
    (W, V, last), (b, d, c) = weights, biases
    first = around(x, weights, biases, radius).entered()
    reach = first._reach(W, W.abs(), b, torch.zeros(3).double())
    torch.testing.assert_close(first.low[0], W @ x + b - reach)
    torch.testing.assert_close(first.high[0], W @ x + b + reach)
    low, high = (double(-1.0, -3.0, -2.0), double(1.0, 2.0, -0.5)), (double(2.0, -1.0, 4.0), double(2.0, 3.0, -0.1))
    low, high = (low[0], torch.cat([low[1], double(0.5)])), (high[0], torch.cat([high[1], double(1.0)]))
    slopes = double(0.2, 0.3, 0.4), double(0.5, 0.6, 0.7, 0.8)
    ball = first._replace(low=low, high=high, slopes=slopes)
    now = Floors(last, c, torch.zeros(2).double()).through_relu(low[1], high[1], slopes[1])
    now = now.through_layer(V, V.abs(), d, double(2.0, 0.0, 4.0)).through_relu(low[0], high[0], slopes[0])
    now = now.through_layer(W, W.abs(), b, double(1.5, 2.5))
    floors = now.offsets + now.rows @ x - ball._reach(now.rows, now.rows.abs(), now.offsets, now.slip)
    torch.testing.assert_close(ball.floor(slopes), floors)
    deeper = first._replace(low=low[:1], high=high[:1], slopes=slopes[:1])
    above, below = deeper._backward(V, d, slopes[:1]), deeper._backward(-V, -d, slopes[:1])
    torch.testing.assert_close(deeper._deeper()[0], above)
    torch.testing.assert_close(deeper._deeper()[1], -below)


def test_multipliers_of_a_leaf_whose_products_overflow_prove_nothing():
    A, h = np.array([[1e308, 1.0], [-1e308, 1.0]]), np.ones(2)
    with np.errstate(all="ignore"):
        assert leaf._judged(A, h, np.full(2, 10.0)) == (1.0, -np.inf)
        assert leaf._judged(A, 1e308 * h, np.full(2, 10.0)) == (1.0, -np.inf)
    assert leaf._judged(A / 1e308, h, np.ones(2))[1] == pytest.approx(2.0)


def test_a_neuron_is_settled_in_a_ball_only_if_rounding_cannot_turn_it_on(monkeypatch):
    """z = -1.5 - 2γ, -3 and 5 at the example, in a ball of radius 1.5 = ¾·2."""
    monkeypatch.setattr(ball, "gamma", lambda count: SHARE)
    W, b = double([1.0, 0.0], [0.0, 1.0], [0.0, 2.0]), double(-2.5 - 2 * SHARE, -5.0, 1.0)
    one = torch.ones(1, 3).double()
    margins = SimpleNamespace(weights=(W, one), biases=(b, one[0, :1]), x=double(1.0, 2.0), exponent=0)
    found = ball.AttackBall.of(margins, 1.5)
    assert found.first.any(1).tolist() == [True, False, True]
    np.testing.assert_allclose(found.a, [-1.5 - 2 * SHARE, -3.0, 5.0])
    np.testing.assert_allclose(found.range_1, np.array([1.5, 1.5, 3.0]) * (1 + SHARE))
    np.testing.assert_allclose(found.slips, SHARE * np.array([3.5 + 2 * SHARE, 7.0, 5.0]), atol=1e-13)
    np.testing.assert_allclose(found.first @ found.first.T, [[4, 0, 0], [0, 0, 0], [0, 0, 16]], atol=1e-12)
    assert (found.radius, found.exponent) == (0.75, 1)
    units = [np.array([1, 2, 3]), np.array([5])]
    scaled = found.in_units(units)
    np.testing.assert_allclose(scaled.first, found.first / [[2.0], [4.0], [8.0]])
    for part in "a", "slips", "range_1":
        np.testing.assert_allclose(getattr(scaled, part), getattr(found, part) / [2.0, 4.0, 8.0], atol=1e-300)
    np.testing.assert_allclose(scaled.weights[0], [[2 / 32, 4 / 32, 8 / 32]])
    np.testing.assert_allclose(scaled.biases[0], [1 / 32])


def test_the_quadratic_form_pays_for_every_sum_where_it_can_be_seen(visible_rounding, monkeypatch):
    monkeypatch.setattr(dual_bound, "definite", lambda A, trace, count: factor(A))  # so that x is A⁻¹p
    for seed in range(4):
        model, rng = model_of(seed), np.random.default_rng(seed)
        kinds = dual_bound.initial_kinds(model)
        N = kinds == Kind.CONCAVE
        top = np.linalg.eigvalsh(model.W[N].T @ model.W[N])[-1]
        dual = DualPoint(0.5, rng.normal(size=6), np.full(6, 0.8 / (0.5 * top)), kinds)
        g, kappa, sizes = dual_bound.feasible_slopes(model, dual), 0.5 * dual.curvatures[N], model.sizes[N]
        p = model.q + g @ model.W
        x = np.linalg.solve(np.eye(3) - (model.W[N].T * kappa) @ model.W[N], p)
        long, load = np.linalg.norm(x), np.linalg.norm(model.q) + np.abs(g) @ model.sizes
        bent = np.abs(model.W[N] @ x) + SHARE * sizes * long
        curve, own, slip = kappa @ bent**2 * (1 + SHARE), long**2 * (1 - SHARE), SHARE * load * long
        off = SHARE * (load + long + 2 * (kappa * bent) @ sizes)
        form = 2 * (p @ x + slip) - own + curve + off**2 / dual_bound.LEAST
        form += SHARE * (2 * abs(p @ x) + 2 * slip + own + curve)
        assert dual_bound._quadratic_form(model, dual, g) == pytest.approx(form, rel=1e-9)


def test_the_proven_value_pays_for_its_terms_by_hand(visible_rounding, monkeypatch):
    """½·(-2) - ⅛·3 = -1.375."""
    monkeypatch.setattr(dual_bound, "_linear_terms", lambda *_: (-2.0, 0.1))
    monkeypatch.setattr(dual_bound, "_quadratic_form", lambda *_: 3.0)
    model = model_of(0)
    dual = DualPoint(0.5, np.zeros(6), np.ones(6), dual_bound.initial_kinds(model))
    assert dual_bound.proven_value(model, dual) == pytest.approx(-1.375 - 0.05 - SHARE * 1.375, rel=1e-12)


def test_a_slope_is_the_smaller_of_two_sums_by_hand(monkeypatch):
    """‖W‖‖c‖ = 5 against Σ‖w‖|c| = 7, and then 4·5 against 2·4 = 8; ‖q‖ = 2."""
    monkeypatch.setattr(lipschitz, "gamma", lambda count: SHARE)
    model = replace(model_of(0, neurons=3), W=np.eye(3), sizes=np.ones(3), q=np.array([0.0, 2.0, 0.0]))
    apart = replace(model, c=np.array([3.0, 0.0, -4.0]))
    assert lipschitz._slope(apart) == pytest.approx((2 + 5 * (1 + SHARE)) * (1 + SHARE), rel=1e-6)
    assert lipschitz._slope_of_sums(apart) == pytest.approx((2 + 7 * (1 + SHARE)) * (1 + SHARE), rel=1e-12)
    alone = replace(apart, W=np.diag([2.0, 4.0, 0.0]), sizes=np.array([2.0, 4.0, 0.0]), c=np.array([-4.0, 0.0, 3.0]))
    assert lipschitz._slope(alone) == pytest.approx((2 + 8 * (1 + SHARE)) * (1 + SHARE), rel=1e-12)


def test_multipliers_that_may_be_used_by_hand():
    """t is not read; λ has any sign; all others are at least 0, and none is too large."""
    problem = problem_of(0)
    signed = problem.signed
    good = np.where(signed, judge.LARGEST, -judge.LARGEST)
    good[1] = 1.0
    assert judge._admissible(problem, good)
    assert not judge._admissible(problem, good[:-1])
    assert not judge._admissible(problem, np.append(good, 0.0))
    for place in range(len(good)):
        for bad in np.inf, np.nan, 2 * judge.LARGEST, *([-1e-300] if signed[place] else [-np.inf]):
            wrong = np.where(np.arange(len(good)) == place, bad, good)
            assert judge._admissible(problem, wrong) is (place == 1 and not signed[1])
