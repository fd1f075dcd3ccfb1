"""Every constant of melamed2023 and wang2022: the papers' formulas, written again by hand, beside `bound`."""

import math
from collections.abc import Callable
from math import e, exp, log, sqrt

import pytest
import torch

from brittle.theorems import melamed2023 as melamed
from brittle.theorems import wang2022 as wang
from brittle.theorems.base import LikelyClaim, Theorem

SIZES = {"dim": 2000, "codimension": 1200, "width": 4, "examples": 6}
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
UNSTABLE = C0 * sqrt(m) + sqrt(m * log(1 / g) / 2)

# id, the statement at its sizes, the thresholds of its promises in order
TABLE: list[tuple[Theorem, list[float]]] = [
    (melamed.LargeGradient(**SIZES), [sqrt(1 / 2)]),
    (melamed.LargeGradientFromStart(**SIZES), [sqrt(1 / 2)]),
    (melamed.ConstantGradient(**SIZES, codimension_share=0.3, active_share=0.2), [sqrt(0.3 * 0.2 / 2)]),
    (melamed.UniversalPerturbation(**SIZES), [-1.0, 0.0, 8 * sqrt(2)]),
    (
        melamed.SmallUniversalPerturbation(**SIZES, codimension_share=0.3, against_share=0.2),
        [0.0, 8 * sqrt(2) / (0.2 * sqrt(0.3))],
    ),
    (melamed.SmallGradient(**SIZES), [sqrt(2)]),
    (melamed.TinyStart(**SIZES), [1 / sqrt(2000)]),
    (melamed.Regularised(**SIZES, rate=0.02, decay=1.5, steps=30), [1e-9, sqrt(2) * (1 - 0.03) ** 30]),
    (melamed.StronglyRegularised(**SIZES), [1 / sqrt(2000)]),
    (melamed.ShortVector(dim=40), [0.5, exp(-40 / 16)]),
    (melamed.ShortSum(dim=40), [0.5, exp(-40 / 16)]),
    (melamed.LongVector(dim=40), [2.0, exp(-40 / 16)]),
    (melamed.LongSum(dim=40), [2.0, exp(-40 / 16)]),
    (melamed.ProductWithFixed(threshold=2.0, deviation=0.8), [1.0, 2 * exp(-4 / (2 * 0.64))]),
    (
        melamed.ProductOfGaussians(dim=40, threshold=2.0, deviation=0.8),
        [1.0, exp(-40 / 16) + 2 * exp(-4 / (2 * 0.64))],
    ),
    (wang.BoundedOutput(**BALL), [sqrt(2 * log(2 / g)) + 2 * log(2 / g) / sqrt(m) + C0]),
    (wang.BoundedOutputWide(**BALL), [2 * sqrt(log(2 / g)) + C0]),
    (wang.FewUnstable(**BALL, size=0.2), [UNSTABLE, 1.2 * UNSTABLE]),
    (wang.PrintedLongGradient(**BALL), [B7_FIRST - C0 - B7_LAST]),
    (wang.SoundLongGradient(**BALL), [B7_FIRST - C0 - SOUND_LAST]),
    (wang.QuarterRoot(**BALL), [sqrt(d) / 4]),
    (wang.PrintedFixedDirection(**NEAR), [B8_PRINTED]),
    (wang.SoundFixedDirection(**NEAR), [B8_SOUND]),
    (wang.GradientChange(**NEAR), [B9]),
    (wang.RareCrossing(dim=300, size=0.1), [0.1 * sqrt(2 * log(300)) + 1 / 300]),
    (
        wang.RareCrossingNearby(dim=300, size=0.1, epsilon=1e-3, reach=0.02),
        [2e-3 * (sqrt(300) + 2 * sqrt(300 * log(2e3))) + (1 + 0.1 + 1e-3) * 0.02],
    ),
    (wang.PrintedCountingStep(), [1.0]),
    (wang.SoundCountingStep(), [-1.0]),
    (wang.SubsetOfFlips(draws=1, gamma=0.02), [0.02]),
    (wang.PrintedUnstable(**BALL, draws=2), [g]),
    (wang.OneStepWithoutConstants(dim=30, width=50), [-1.0, 0.0]),
    (wang.Bernstein(t=2.5), [exp(-2.5)]),
    (wang.Chernoff(t=9.0, count=60, mean=0.1), [exp(-6.0) * (e * 6.0 / 9.0) ** 9]),
    (wang.LipschitzOfGaussians(t=2.5, slope=1.5), [2 * exp(-(2.5**2) / (2 * 1.5**2))]),
    (wang.SoundChiSquare(gamma=1e-4), [1e-4]),
]
HELD = {theorem.id for theorem, _ in TABLE}


@pytest.mark.parametrize(("theorem", "thresholds"), TABLE, ids=[theorem.id for theorem, _ in TABLE])
def test_the_bound_is_the_papers_formula(theorem, thresholds):
    instance = theorem.default(torch.Generator().manual_seed(0))
    assert [promise.threshold for promise in theorem.bound(instance)] == pytest.approx(thresholds, rel=1e-9)


# What the witness or the hypotheses compute by a formula of the paper.
FORMULAS: dict[str, tuple[Callable[[], float], float]] = {
    "5.1: least codimension": (
        lambda: melamed.universal.least_codimension(12_000, 20),
        32 * 19 * log(20**2 * 12_000),
    ),
    "5.1: probability": (
        lambda: melamed.universal.chance(12_000, 9500, 20),
        1 - 5 * (20 * exp(-9500 / 16) + 12_000**-0.5),
    ),
    "eq. 7: limit": (lambda: equation_7(), sqrt((20 + sqrt(log(50) / 2)) / 100) * sqrt(200 + 4 * sqrt(200 * log(1e6)))),
    "B.9 step as printed": (
        lambda: wang.PrintedCountingStep().value(784, 9_000_000),
        0.33 * 784 * log(784 * 9_000_000) / 3000,
    ),
    "B.9 step": (
        lambda: wang.SoundCountingStep().value(784, 9_000_000),
        (-11 * 3000 + 44 * 3000 * log(e / 4) + 2 * 784 * log(10 * (9_000_000 * 784) ** (4 / 7))) / 3000,
    ),
    "R3.1: largest margin": (
        lambda: melamed.margin_remark.largest_margin(0.5, -1.0, 100),
        log(exp(0.5) + (e - 1) * 0.5 * 100),
    ),
    "L4.1: least width": (lambda: wang.output.WIDE_ENOUGH, 11.656854249492381),
}


def equation_7() -> float:
    theorem = wang.SubsetOfFlips(dim=200, width=10_000, radius=20.0, gamma=0.02, draws=1)
    return theorem._drawn(torch.Generator().manual_seed(0)).limit


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_is_the_papers(name):
    computed, by_hand = FORMULAS[name]
    assert computed() == pytest.approx(by_hand, rel=1e-9)


# How likely the promise is at least, for the likely ones.
PROBABILITIES = [
    (melamed.LargeGradient(**SIZES | {"examples": 1}), lambda patterns: 1 - patterns * exp(-1200 / 16)),
    (melamed.Regularised(**SIZES | {"examples": 1}), lambda patterns: 1 - patterns * exp(-1200 / 16)),
    (wang.BoundedOutput(**BALL), lambda _: 1 - g),
    (wang.FewUnstable(**BALL), lambda _: 1 - 2 * g),
    (wang.SoundLongGradient(**BALL), lambda _: 1 - g),
]


@pytest.mark.parametrize(("theorem", "by_hand"), PROBABILITIES, ids=[theorem.id for theorem, _ in PROBABILITIES])
def test_the_probability_is_the_papers(theorem, by_hand):
    instance = theorem.default(torch.Generator().manual_seed(0))
    assert isinstance(theorem, LikelyClaim)
    patterns = 1
    if theorem.paper == "melamed2023":
        patterns = melamed.instances.OffSubspace(instance).patterns
    assert theorem.probability(instance) == pytest.approx(by_hand(patterns), rel=1e-12)


IDENTITIES = {  # promises of exact equality, of nothing, or of what was derived above
    *("melamed2023/A.1", "melamed2023/A.1(2)", "melamed2023/A.1-L2", "melamed2023/A.1-law", "melamed2023/A.2"),
    *("melamed2023/R3.1", "melamed2023/R3.1-printed", "melamed2023/affine", "wang2022/cone"),
    *("wang2022/3.1", "wang2022/C3.2", "wang2022/L4.4", "wang2022/eq1", "wang2022/eq1-printed"),
    *("wang2022/eq2-printed", "wang2022/L4.2-printed"),
}


def test_every_statement_of_both_papers_is_in_the_table_or_has_no_constant():
    assert {*HELD, *IDENTITIES} == {theorem.id for theorem in (*melamed.THEOREMS, *wang.THEOREMS)}


def test_alpha_of_5_1_is_the_papers():
    theorem = melamed.UniversalPerturbation(**SIZES)
    instance = theorem.default(torch.Generator().manual_seed(0))
    off = melamed.instances.OffSubspace(instance)
    witness, k = theorem.witness(instance), melamed.universal.against(off)
    assert witness.perturbations is not None
    x0 = int((k > 0).nonzero()[0])
    output = float(instance.two_layer.logits(off.points[x0][None]))
    alpha = 8 * sqrt(4) * 2000 * abs(output) / (int(k[x0]) * 1200)
    z = math.copysign(alpha, output) * (off.weights[off.network.v < 0].sum(0) - off.weights[off.network.v > 0].sum(0))
    torch.testing.assert_close(witness.perturbations[0], z)
