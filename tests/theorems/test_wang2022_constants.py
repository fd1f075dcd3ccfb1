"""Every constant of wang2022: the paper's formulas, written again by hand, beside what a theorem says."""

import math
from dataclasses import replace
from math import e, exp, log, sqrt

import pytest
import torch

from brittle.data import Data
from brittle.networks import TwoLayer
from brittle.theorems import Instance
from brittle.theorems import wang2022 as wang
from brittle.theorems.base import LikelyClaim, Theorem
from brittle.theorems.wang2022.attack import OneStep
from brittle.theorems.wang2022.change import ChangeSweep, bites_from, bound_uniformly, change_bound
from brittle.theorems.wang2022.sweep import OneStepSweep, RobustRadii, Rung, WorstStep
from tests.theorems.pinned import assert_as_in_the_paper, assert_pinned, drawn, least

BALL = {"dim": 150, "width": 300, "radius": 0.7, "gamma": 0.3, "examples": 1, "steps": 0}
NEAR = {"dim": 150, "width": 300, "radius": 0.7, "gamma": 0.3, "steps": 0, "size_constant": 0.9}
d, m, C0, g, R = 150, 300, 0.7, 0.3, 0.9 / sqrt(150)

B7_FIRST = sqrt(0.5 - sqrt(2 * log(4 / g) / m) - log(4 / g) / m) * sqrt(max(d - 5 * sqrt(d * log(8 / g)), 0))
B7_LAST = sqrt((C0 + sqrt(log(4 / g) / 2)) / sqrt(m)) * sqrt(d + 4 * sqrt(d * log(8 * m / g)))
K = C0 * sqrt(m) + sqrt(m * log(4 / g) / 2)
SOUND_LAST = sqrt(K / m) * (sqrt(d) + sqrt(2 * log(4 / g))) + K / sqrt(2 * math.pi * m)
B8_START = 2 * sqrt(log(4 / g)) * ((4 * R * sqrt(log(d))) ** 0.25 + sqrt(log(4 / g) / m))
B8_PRINTED = B8_START + C0 + 3 * B7_LAST + 5 * (C0 + sqrt(log(4 / g))) * sqrt(log(4 * m / g))
B8_SOUND = B8_START + C0 + 2 * (C0 + sqrt(log(4 / g) / 2)) * sqrt(2 * log(8 * m / g))
B9 = 9 * (0.9 * d**2 * log(m * d) ** 2 * sqrt(log(d) / d)) ** 0.25 + 15 * d * log(m * d) / sqrt(m) + 327 * C0 * d**0.25
T = log(4 / g) + d * log(5) + d * log(1 + 2 * R * sqrt(m * d))
NEAR_NET = 2 / sqrt(m * d) * (sqrt(d) + 2 * sqrt(d * log(2 * sqrt(m * d)))) + (1 + R + 1 / sqrt(m * d)) * C0 / sqrt(m)
K1 = C0 * sqrt(m) + sqrt(m * log(4 / g) / 2)
K2 = min(e**2 * m * (NEAR_NET + C0 / sqrt(m)) + log(4 / g) + d * log(1 + 2 * R * sqrt(m * d)), m)
CHOSEN = [sqrt(k / m) * (sqrt(d) + sqrt(k) + sqrt(2 * (k * log(e * m / k) + log(8 / g)))) for k in (K1, K2)]
UNIFORM = 4 * sqrt(T) * ((4 * R * sqrt(log(d))) ** 0.25 + sqrt(T / m)) + C0 + sum(CHOSEN)
UNSTABLE = C0 * sqrt(m) + sqrt(m * log(1 / g) / 2)


def in_ball(d: int) -> list[float]:
    """Unit x, known start, biases, size and signs of the output weights, two of the law of the start, distance."""
    return [1e-9, least(1), 0, 1e-9, 6, 6, 1 + 2 * sqrt(18 / d) + 36 / d, C0]


IN_BALL = in_ball(d)
UNIT, ABOVE_0 = 1e-9, least(1e-300)
LONG = [*IN_BALL, least(25 * log(8 / g)), least(log(8 * m / g)), 0.5]
FIXED = [*IN_BALL, R * sqrt(2 * log(d)), least(log(m / g) * log(1 / g))]
STEP = [least(max(58, 784**2.4)), least(2)]

# the statement at its sizes, what it supposes, what it promises: in its own order
TABLE: list[tuple[Theorem, list[float], list[float]]] = [
    (wang.BoundedOutput(**BALL), IN_BALL, [sqrt(2 * log(2 / g)) + 2 * log(2 / g) / sqrt(m) + C0]),
    (
        wang.BoundedOutputWide(**BALL),
        [*IN_BALL, least((2 / (2 - sqrt(2))) ** 2 * log(2 / g))],
        [2 * sqrt(log(2 / g)) + C0],
    ),
    (wang.FewUnstable(**BALL, size=0.2), [*IN_BALL, 0.5], [UNSTABLE, 1.2 * UNSTABLE]),
    (wang.PrintedLongGradient(**BALL), LONG, [least(B7_FIRST - C0 - B7_LAST)]),
    (wang.SoundLongGradient(**BALL), LONG, [least(B7_FIRST - C0 - SOUND_LAST)]),
    (wang.QuarterRoot(**BALL), [*LONG, least(sqrt(d) / 4)], [least(sqrt(d) / 4)]),
    (wang.PrintedFixedDirection(**NEAR), FIXED, [B8_PRINTED]),
    (wang.SoundFixedDirection(**NEAR), FIXED, [B8_SOUND]),
    (wang.GradientChange(**NEAR), [*IN_BALL, least(d**2.4), least(log(4 / g) ** 2)], [B9]),
    (wang.UniformChange(**NEAR), [*IN_BALL, least(d**2.4), least(log(4 / g) ** 2)], [UNIFORM]),
    (wang.RareCrossing(dim=300, size=0.1), [UNIT, 0.5, least(0)], [0.1 * sqrt(2 * log(300)) + 1 / 300]),
    (
        wang.RareCrossingNearby(dim=300, size=0.1, epsilon=1e-3, reach=0.02),
        [UNIT, 0.5, least(0), 1, ABOVE_0],
        [2e-3 * (sqrt(300) + 2 * sqrt(300 * log(2e3))) + (1 + 0.1 + 1e-3) * 0.02],
    ),
    (wang.PrintedCountingStep(), STEP, [1.0]),
    (wang.SoundCountingStep(), STEP, [-1.0]),
    (wang.SoundCountingStep(dim=4), [least(58), least(2)], [-1.0]),
    (wang.SubsetOfFlips(draws=1, gamma=0.02), [least(log(2 * 10_000 / 0.02))], [0.02]),
    (wang.PrintedUnstable(**BALL, draws=2), [0.5], [g]),
    (
        wang.PrintedQuarterRoot(dim=20, width=30, radius=C0, gamma=g, constant=3.0, draws=1),
        [*in_ball(20), least(3 * log(4 / g)), least(3 * log(8 * 30 / g) / 30)],
        [g],
    ),
    (wang.OneStepWithoutConstants(dim=30, width=50), [ABOVE_0, ABOVE_0, 1 - 1e-9], [-1.0, 0.0]),
    (wang.Cone(dim=20, width=30), [ABOVE_0, 0], [0, 1e-9]),
    (wang.Bernstein(t=2.5), [ABOVE_0, 1, 1], [exp(-2.5)]),
    (
        wang.Chernoff(t=9.0, count=60, mean=0.1),
        [1, least(6 * (1 + 1e-12))],
        [exp(-6.0) * (e * 6.0 / 9.0) ** 9],
    ),
    (wang.LipschitzOfGaussians(t=2.5, slope=1.5), [least(0), ABOVE_0], [2 * exp(-(2.5**2) / (2 * 1.5**2))]),
    (wang.PrintedMoments(), [least(1)], [1]),
    (wang.SoundMoments(), [least(2)], [1]),
    (wang.PrintedChiSquare(gamma=1e-4), [least(1), 1], [1e-4]),
    (wang.SoundChiSquare(gamma=1e-4), [least(1), 1, least(log(2e4))], [1e-4]),
    (wang.SmallChange(dims=(4, 5, 6), radius=C0), [*in_ball(6), least(6**2.4)], []),
]
IDS = [theorem.id for theorem, _, _ in TABLE]


@pytest.mark.parametrize(("theorem", "supposed", "promised"), TABLE, ids=IDS)
def test_what_is_supposed_and_promised_is_the_papers(theorem, supposed, promised):
    assert_as_in_the_paper(theorem, supposed, promised)


def test_every_statement_is_in_the_table():
    assert {*IDS, "wang2022/3.1", "wang2022/C3.2"} == {theorem.id for theorem in wang.THEOREMS}


def test_a_default_of_the_table_has_unit_examples():
    unit = {each.name: each.value for each in wang.BoundedOutput(**BALL).hypotheses(drawn(wang.BoundedOutput(**BALL)))}
    assert unit["deviation of ‖x‖ from 1"] == pytest.approx(0, abs=1e-12)


def equation_7() -> float:
    theorem = wang.SubsetOfFlips(dim=200, width=10_000, radius=20.0, gamma=0.02, draws=1)
    return theorem._drawn(torch.Generator().manual_seed(0)).limit


PRINTED, SOUND = wang.PrintedCountingStep(), wang.SoundCountingStep()
FORMULAS = {
    "eq. 7: limit": (equation_7, sqrt((20 + sqrt(log(50) / 2)) / 100) * sqrt(200 + 4 * sqrt(200 * log(1e6)))),
    "B.9 step as printed": (lambda: PRINTED.value(784, 9_000_000), 0.33 * 784 * log(784 * 9_000_000) / 3000),
    "B.9 step": (
        lambda: SOUND.value(784, 9_000_000),
        (-11 * 3000 + 44 * 3000 * log(e / 4) + 2 * 784 * log(10 * (9_000_000 * 784) ** (4 / 7))) / 3000,
    ),
    "B.9 at C0 = 2": (
        lambda: change_bound(100, log(10_000), 2.0, 3.0),
        9 * (3 * 100**2 * log(1e6) ** 2 * sqrt(log(100) / 100)) ** 0.25
        + 15 * 100 * log(1e6) / 100
        + 327 * 2 * 2 * 100**0.25,
    ),
    "C2": (lambda: wang.sweep.step_constant(0.7), 2.7),
    "B.2: p": (lambda: float(wang.Chernoff(count=60, mean=0.1).parameters.sum()), 6.0),
    "B.7: nothing where m is small": (lambda: wang.gradient.first_term(150, 3, 0.3), 0),
    "B.7: nothing where d is small": (lambda: wang.gradient.first_term(3, 300, 0.3), 0),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_is_the_papers(name):
    computed, by_hand = FORMULAS[name]
    assert computed() == pytest.approx(by_hand, rel=1e-9)


LIKELY = [
    (wang.BoundedOutput(**BALL | {"examples": 2}), 1 - 2 * g),
    (wang.FewUnstable(**BALL | {"gamma": 0.1, "examples": 2}), 1 - 4 * 0.1),
    (wang.SoundLongGradient(**BALL), 1 - g),
    (wang.PrintedUnstable(**BALL, draws=2), 1 - g),
]


@pytest.mark.parametrize(("theorem", "by_hand"), LIKELY, ids=[theorem.id for theorem, _ in LIKELY])
def test_the_probability_is_the_papers(theorem, by_hand):
    assert isinstance(theorem, LikelyClaim)
    assert theorem.probability(drawn(theorem)) == pytest.approx(by_hand, rel=1e-12)


def measured(theorem: Theorem, instance: Instance) -> dict[str, float]:
    return {each.name: each.value for each in theorem.hypotheses(instance)}


def test_what_is_measured_of_a_network_is_relative_to_the_ball():
    theorem = wang.BoundedOutput(**BALL)
    instance = drawn(theorem)
    network = instance.two_layer
    assert network.start is not None
    W = network.start.W
    found = measured(theorem, instance)
    name = "variance of the start, in standard errors from 1"
    assert found[name] == pytest.approx(abs(float((W**2).mean()) - 1) * sqrt(m * d / 2), rel=1e-9)
    step = torch.zeros_like(W)
    step[3] = 0.01 * W[3] / W[3].norm()
    wrong = TwoLayer(W + step, network.b - 0.5, network.v * 1.25, start=network.start)
    found = measured(theorem, replace(instance, network=wrong))
    assert found["distance from the start times √m"] == pytest.approx(0.01 * sqrt(m))
    assert found["deviation of the output weights from 1/√m"] == pytest.approx(0.25)
    assert found["largest bias"] == 0.5
    longer = replace(instance, data=replace(instance.data, X=instance.data.X * 1.5))
    assert measured(theorem, longer)["deviation of ‖x‖ from 1"] == pytest.approx(0.5)


def test_what_is_measured_of_the_constants_is_the_papers():
    spread = measured(wang.SoundLongGradient(**BALL), drawn(wang.SoundLongGradient(**BALL)))
    assert spread["√(2ln(4/γ)/m) + ln(4/γ)/m"] == pytest.approx(sqrt(2 * log(4 / g) / m) + log(4 / g) / m)
    quarter = measured(wang.QuarterRoot(**BALL), drawn(wang.QuarterRoot(**BALL)))
    assert quarter["bound of B.7-repaired beside √d/4"] == pytest.approx(B7_FIRST - C0 - SOUND_LAST)
    near = measured(wang.SoundFixedDirection(**NEAR), drawn(wang.SoundFixedDirection(**NEAR)))
    assert near["1/d beside R√(2 ln d)"] == pytest.approx(1 / d)
    moments = measured(wang.Bernstein(variance=4.0, scale=3.0), drawn(wang.Bernstein()))
    ratios = [math.prod(range(1, 2 * q, 2)) / (math.factorial(q) / 2 * 4 * 3 ** (q - 2)) for q in range(3, 60)]
    assert moments["Σ E z² over v"] == pytest.approx(3 / 4)
    assert moments["Σ E|z|^q over (q!/2) v c^(q-2)"] == pytest.approx(max(ratios))
    assert measured(wang.Chernoff(mean=0.3, t=50.0), drawn(wang.Chernoff()))["largest μ"] == pytest.approx(0.6)


def test_the_order_of_moments_is_asked_for_from_the_first_on():
    ratios = [math.prod(range(1, 2 * q, 2)) / (math.factorial(q) / 2 * 3 * 2 ** (q - 2)) for q in range(3, 60)]
    found = measured(wang.Bernstein(), drawn(wang.Bernstein()))["Σ E|z|^q over (q!/2) v c^(q-2)"]
    assert found == pytest.approx(max(ratios))
    late = measured(wang.Bernstein(scale=1.999), drawn(wang.Bernstein()))["Σ E|z|^q over (q!/2) v c^(q-2)"]
    ratios = [math.prod(range(1, 2 * q, 2)) / (math.factorial(q) / 2 * 3 * 1.999 ** (q - 2)) for q in range(3, 60)]
    assert late == pytest.approx(max(ratios))


def test_what_holds_anyway_is_the_sum_of_two_norms():
    change, direction = wang.GradientChange(**NEAR), wang.SoundFixedDirection(**NEAR)
    instance = drawn(change)
    network, x = instance.two_layer, instance.data.X
    anyway = 2 * (float(torch.linalg.svdvals(network.W)[0]) * float(network.v.norm()) + C0)
    assert change.bound(instance)[0].trivial == pytest.approx(anyway)
    on = (network.W @ x[0] > 0).double() * network.v
    here = float((on @ network.W).norm())
    assert here < direction.bound(instance)[0].trivial < 2.5 * here
    assert wang.RareCrossingNearby().bound(drawn(wang.RareCrossingNearby()))[0].trivial == 1
    assert wang.Bernstein().bound(drawn(wang.Bernstein()))[0].trivial == 1
    assert wang.SoundLongGradient(**BALL).bound(drawn(wang.SoundLongGradient(**BALL)))[0].trivial == 0


def solved_change(log_dim: float) -> float:
    return change_bound(exp(log_dim), 2.4 * log_dim, 1.0, 1.0) - exp(log_dim / 2) / 4


def test_b_9_begins_to_bite_where_its_bound_meets_a_quarter_of_the_root_of_d():
    first = log(wang.GradientChange().solve_for("dim").least)
    assert solved_change(first - 1e-5) > 0 > solved_change(first + 1e-5)
    assert first == pytest.approx(log(1.68e23), rel=1e-3)


def test_a_bound_bites_below_a_quarter_of_the_root_of_d():
    assert bites_from(lambda d, m: sqrt(d) / 3) == math.inf
    assert bites_from(lambda d, m: sqrt(d) / 5) == pytest.approx(e, rel=1e-5)
    assert bites_from(lambda d, m: m ** (1 / 2.4)) == math.inf
    assert bites_from(lambda d, m: m ** (0.25 / 2.4)) == pytest.approx(4**4, rel=1e-5)


def test_b_9_repaired_counts_what_lies_near_its_net():
    dim, width, radius, size, gamma = 400, 10**9, 0.5, 0.05, 0.1
    epsilon, reach = 1 / sqrt(width * dim), radius / sqrt(width)
    net = dim * log(1 + 2 * size / epsilon)
    near = 2 * epsilon * (20 + 2 * sqrt(dim * log(2 / epsilon))) + (1 + size + epsilon) * reach + reach
    counts = (radius * sqrt(width) + sqrt(width * log(40) / 2), e**2 * near * width + log(40) + net)
    rows = [sqrt(k / width) * (20 + sqrt(k) + sqrt(2 * (k * log(e * width / k) + log(80)))) for k in counts]
    t = log(40) + dim * log(5) + net
    start = 4 * sqrt(t) * ((4 * size * sqrt(log(dim))) ** 0.25 + sqrt(t / width))
    assert bound_uniformly(dim, width, radius, size, gamma) == pytest.approx(start + radius + sum(rows), rel=1e-12)


def test_the_widths_of_3_1_are_the_papers():
    theorem = wang.OneStepFlips(dim=10_000_000, gamma=0.01)
    solution = theorem.solve_for("width")
    assert [solution.least, solution.most] == pytest.approx([10_000_000**2.4, exp(10_000_000**0.24)], rel=1e-12)
    assert math.isnan(replace(theorem, dim=784).solve_for("width").least)
    assert math.isinf(replace(theorem, dim=10**12).solve_for("width").most)
    assert replace(theorem, dim=1, gamma=0.2).solve_for("width").least == math.ceil(log(5))
    root = wang.sweep.first_open_dim()
    assert 2.4 * log(root * (1 - 1e-6)) > (root * (1 - 1e-6)) ** 0.24
    assert 2.4 * log(root * (1 + 1e-6)) < (root * (1 + 1e-6)) ** 0.24


def test_the_exponents_of_3_1_c3_2_and_l4_4_are_the_papers():
    def steps(kind, *more):
        sizes = [torch.tensor([1.0 / dim]) for dim in (9, 16, 25)]
        return tuple(kind(each, 1 / each, torch.ones(1), *more) for each in sizes)

    rungs = (Rung(1.0, steps(OneStep), steps(WorstStep, torch.ones(1)), False),)
    instance = Instance(Data(torch.eye(25, dtype=torch.float64)[:1], torch.ones(1, dtype=torch.float64)))
    swept = replace(instance, facts=OneStepSweep((9, 16, 25), rungs))
    found = wang.OneStepFlips().scaling(swept)
    claimed = [each.claimed for each in found]
    assert claimed[:6] == [-0.5, -0.5, -1, -1, 0.5, 0.5]
    assert all(math.isnan(each) for each in claimed[6:])
    assert "C0/√d = 0.2" in found[0].measure
    radii = RobustRadii((9, 16, 25), ((1.0,), (0.8,), (0.5,)), ((1.0,), (0.8,), (0.5,)))
    assert [each.claimed for each in wang.NoRobustLazyNetwork().scaling(replace(instance, facts=radii))] == [-0.5, -0.5]
    changes = ChangeSweep((9, 16, 25), (1.0, 1.1, 1.2), (3.0, 4.0, 5.0))
    assert [each.claimed for each in wang.SmallChange().scaling(replace(instance, facts=changes))] == [0.5, 0.5]


@pytest.mark.parametrize("theorem", [wang.OneStepFlips(radius=C0), wang.NoRobustLazyNetwork(radius=C0)])
def test_the_sweeps_suppose_the_ball_and_a_width_of_d_to_the_2_4(theorem):
    instance = drawn(wang.BoundedOutput(**BALL))
    assert_pinned(theorem.hypotheses(instance), [*IN_BALL, least(d**2.4)])


def test_the_network_of_b_4_as_printed_lies_in_the_ball():
    theorem = wang.PrintedUnstable(**BALL)
    assert_pinned(theorem.hypotheses(drawn(wang.FewUnstable(**BALL))), [*IN_BALL, 0.5])


def chi_square_tail(x: float, degrees: int) -> float:
    """P(χ² > x) for an even number of degrees of freedom: e^(-x/2) Σ (x/2)^j/j!."""
    return exp(-x / 2) * sum((x / 2) ** j / math.factorial(j) for j in range(degrees // 2)) if x > 0 else 1.0


def exact_tails() -> list[tuple[Theorem, float]]:
    mean = sqrt(2) * math.gamma(5.5) / math.gamma(5.0)  # of the length of a Gaussian vector in R^10
    lengths = chi_square_tail((mean + 1.2 / 1.5) ** 2, 10) + 1 - chi_square_tail((mean - 1.2 / 1.5) ** 2, 10)
    reach = 4 * sqrt(100 * log(2 / 0.9))
    squares = chi_square_tail(100 + reach, 100) + 1 - chi_square_tail(100 - reach, 100)
    return [
        (wang.Bernstein(count=10, t=0.5, variance=4.0, scale=3.0), chi_square_tail(10 + sqrt(40) + 1.5, 10)),
        (wang.Chernoff(count=3, t=2.0, mean=0.1), 0.1 * 0.2),  # 0, 0.1 and 0.2
        (wang.Chernoff(count=3, t=0.5, mean=0.1), 1 - 0.9 * 0.8),
        (wang.LipschitzOfGaussians(count=10, t=1.2, slope=1.5), lengths),
        (wang.PrintedChiSquare(count=100, gamma=0.9), squares),
        (wang.PrintedMoments(order=6), 2.0),  # 0!!/(1!/2)
        (wang.SoundMoments(order=6), 1.0),
    ]


@pytest.mark.parametrize(("theorem", "exact"), exact_tails())
def test_exact_tails_are_those_of_closed_forms(theorem: Theorem, exact: float):
    (found,) = theorem.witness(drawn(theorem)).measures.values()
    assert found == pytest.approx(exact, rel=1e-9)
    (promise,) = theorem.bound(drawn(theorem))
    assert promise.tolerance <= 1e-9  # rounding: a tail may be as small as 1e-6


def test_no_exponent_is_fitted_to_radii_that_are_infinite():
    instance = drawn(wang.Cone(dim=20, width=30))
    radii = RobustRadii((9, 16, 25), ((1.0, 3.0), (0.8, math.inf), (0.5, 0.7)), ((1.0,), (0.8,), (0.5,)))
    (worst,) = wang.NoRobustLazyNetwork().scaling(replace(instance, facts=radii))
    assert worst.measure.endswith("worst")
    assert wang.NoRobustLazyNetwork().scaling(instance) == ()
