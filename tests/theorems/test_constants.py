"""Every constant of vardi2022 and frei2023, written again by hand from the papers, beside what a theorem promises."""

import math
from dataclasses import replace
from functools import cache
from math import e, log, sqrt

import pytest
import torch

from brittle.common.errors import InputError
from brittle.data import AlmostOrthogonal, Clusters
from brittle.theorems import THEOREMS, Instance, LikelyClaim, ScalingClaim
from brittle.theorems.frei2023 import assumption, statements
from brittle.theorems.frei2023.concentration import NoiseLemma
from brittle.theorems.frei2023.examples import QuarterPower, SolvedSweeps
from brittle.theorems.frei2023.groups import ClusterConstants, ClusterGroups
from brittle.theorems.frei2023.groups import robust_network as cluster_network
from brittle.theorems.kkt_proof import Approximation, OtherPoints
from brittle.theorems.vardi2022 import universal
from brittle.theorems.vardi2022.groups import ExampleGroups, robust_network, shares
from brittle.theorems.vardi2022.remarks import NormConstants, linear_network
from brittle.theorems.vardi2022.universal import Lengths, TwoSweeps
from tests.theorems.pinned import assert_pinned, least


@cache
def vardi() -> Instance:
    """d = 2000, m = 10, three labels -1; p is read off the examples."""
    rng = torch.Generator().manual_seed(0)
    data = AlmostOrthogonal(2000, 9.0).sample(10, rng, in_span=True)
    data = type(data)(data.X, shares(10, 0.3), truth=data.truth)
    return Instance(data, robust_network(data).scaled(1.5))


@cache
def frei() -> Instance:
    """d = 10^7, k = 4 random means, one of them labelled -1, σ = 1/100, n = 12, seven fresh examples."""
    setting = Clusters(10**7, 4, 0.01, balance=0.25, random_means=True)
    data = setting.sample(12, torch.Generator().manual_seed(0), test=7, in_span=True)
    return Instance(data, cluster_network(data).scaled(1.5))


def largest_product(X: torch.Tensor) -> float:
    return max(abs(float(X[i] @ X[j])) for i in range(len(X)) for j in range(i))


# vardi2022
d, m, c = 2000, 10, 0.3
p = largest_product(vardi().data.X)
q = float((vardi().data.y * vardi().two_layer.logits(vardi().data.X)).min())
share = m * (p + 1) / (d + 1)
eta1 = (p + 1) / (d - m * p)
eta2 = 2 * (c * share + 1) * (d + 1) / (m * c * (d - m * p))
length = 18 * sqrt(2) * sqrt(d / m) / c
mass = m * c / ((c * share + 1) * (d + 1))

VARDI = {
    "2.1": [0, 1, least(0.2), 1],
    "3.1": [least(1), least((1 - p / d) / 2 * sqrt(d)), least((1 - p / d) / 2 * sqrt(d))],
    "L3.1": [1 / 2, log(d) / sqrt(d)],
    "4.1": [length, -q],
    "C4.1": [length, -q],
    "transfer": [length, -q],
    "4.1-norms": [(eta1 + eta2) * sqrt(m * d + m**2 * p), -q],
    "5.1": [2 * sqrt(2), -1, 1, least(sqrt(d) / 2)],
    "C.1": [1],
    "C.2": [least(mass), least(mass)],
    "C.3": [least(-1)],
    "C.4": [least(1)],
    "C.5": [least(d / 3)],
    "C.6": [least(0)],
    "C.7": [-1],
    "C.8": [-1],
    "C.9": [(eta1 + eta2) * sqrt(m * d + m**2 * p), length],
    "5.2-2": [least((eta1 + eta2) * (d - m * p))],
    "5.2-3": [least(2)],
    "width-2": [least(1), 2],
}

# frei2023
D, k, n, tests, sigma, C = 10**7, 4, 12, 7, 0.01, 1 / 4
P = largest_product(frei().data.truth.means)
Q = float((frei().data.y * frei().two_layer.logits(frei().data.X)).min())
Delta = 4 * sigma * sqrt(D) * log(D)
Share = k * (P + Delta + 1) / (D - Delta + 1)
room = D - Delta - k * P - k * Delta
Eta1 = (2 * Delta + P + 1) / room
Eta2 = 3 * (3 * D + Delta + 1) * (1 - 2 * Share) / (room * (1 - 3 * Share) * C * k)
rare = D ** (-log(D) / 2)
own = (1 - Share / (1 - 2 * Share)) / (3 * D + Delta + 1)
cut = Share * (D - Delta + 1)
NORMS = (1 + 2 * sigma**2) * D + Delta + 1
chain = (2 * (P + Delta + 1) + 3 * (3 * D + Delta + 1) * (1 - 2 * Share) / ((1 - 3 * Share) * C * k)) / (
    D - Delta - cut
)
Length = chain * sqrt(k * D + k * cut)
most = (D + Delta + 1) / ((1 - 2 * Share) * (D - Delta + 1)) + Share / (1 - 2 * Share)
rise = C * k * (1 - Share / (1 - 2 * Share)) / NORMS
flips = (most + (2 * Delta + P + 1) * rise) / (most * room / (D + Delta + 1) + room * rise) * sqrt(k * D + k**2 * P)
nearest = sqrt((D - P) / 2) - 2 * sigma * sqrt(2 * D)
P1, P2, P3 = sigma * sqrt(2 * D), sigma**2 * sqrt(2 * D) * log(D), sigma * sqrt(D) * log(D)
P4, P5, P6 = P + Delta, (least(D - Delta), 3 * D + Delta), least(1)

FREI = {
    "2.1": [0, 1, least(0.2), 1],
    "A2.2": [(D - 19) / 21, D, least(6 * D / 7 - 1 / 10)],
    "L2.1": [2 * D ** (1 - log(D) / 2), least((9 * D - 1) / 10)],
    "P1-P6": [P1, P2, P3, P4, *P5, P6],
    "3.1": [1e-6, 4 * n * rare],
    "4.1": [least(1), least(sqrt(D) / 4)],
    "4.2": [Length, -Q, 4 * n * rare],
    "message": [1e-6, 4 * n * rare, least(1), least(sqrt(D) / 4), Length, -Q, 4 * n * rare, 1],
    "limit": [36 / 7, least(1), -Q],
    "A.1": [sigma * sqrt(2 * D)],
    "A.2": [sigma * log(D)],
    "A.3": [sqrt(2 * D) * log(D) * sigma**2],
    "A.4": [sigma * sqrt(D) * log(D)],
    "A.5": [4 * sigma * sqrt(D) * log(D) + P],
    "A.6": [4 * sigma * sqrt(D) * log(D)],
    "A.7": [least(D - 2 * sigma * sqrt(D) * log(D)), 3 * D + 2 * sigma * sqrt(D) * log(D)],
    "A.8": [least(1)],
    "A.10": [1 / ((1 - 2 * Share) * (D - Delta + 1))],
    "A.11": [least(own)],
    "A.12": [least(own * (D - Delta + 1) - 2 * Share / (1 - 2 * Share))],
    "A.13": [least(1 - 4 * n * rare)],
    "D.1": [least(1 - 4 * n * rare)],
    "D.2": [(D + Delta + 1) / ((1 - 2 * Share) * (D - Delta + 1)) + Share / (1 - 2 * Share), 3 / 2],
    "D.3": [least(-1)],
    "D.4": [least(1)],
    "D.5": [least(6 * D / 7 - 1 / 10)],
    "D.6": [least(0)],
    "D.7": [-1],
    "D.8": [-1],
    "D.9": [(Eta1 + Eta2) * sqrt(k * D + k**2 * P), Length],
    "1-NN": [least(nearest), flips],
    "linear": [
        least((9 * D - 1) / (10 * D)),
        (D + k * P + k * sigma * sqrt(D) * log(D)) / D,
        least(sqrt(k * D - k**2 * P) / D),
        (D + k * P + k * sigma * sqrt(D) * log(D)) / sqrt(k * D - k**2 * P),
    ],
    "rate": [least(room * C * k * own / sqrt(k * D + k**2 * P))],
    "anisotropic": [least(own * (D - Delta + 1) - 2 * Share / (1 - 2 * Share)), -1],
    "sub-Gaussian": [least(own * (D - Delta + 1) - 2 * Share / (1 - 2 * Share)), -1],
    "more-noise": [least(own * (3 * D + Delta + 1) / NORMS * (D - Delta + 1) - 2 * Share / (1 - 2 * Share))],
    "tight": [Share / (1 - 2 * Share)],
}


def alike(numbers: str, thresholds: list[float]) -> dict[str, list[float]]:
    return {number: thresholds for number in numbers.split()}  # noqa: C420


# what is supposed, in the same order as the statements do
SPHERE, ON_MARGIN, ABOVE_0 = 1e-6, 1e-6, least(math.ulp(0.0))  # the first two are what rounding may take
GEOMETRY = [SPHERE, least(1), (d + 1) / (3 * (p + 1))]
KKT = [*GEOMETRY, ON_MARGIN]

VARDI_SUPPOSES = {
    "2.1": [1],
    "3.1": [SPHERE, 1 - 1e-12],
    "L3.1": [least(6), SPHERE],
    "4.1-approximate": [*GEOMETRY, ABOVE_0, 1],
    "5.1": [SPHERE, SPHERE, least(d), 0, 1e-9],
    "transfer": [*KKT, least(2)],
    "4.1-norms": [least(1), (d + 1) / (3 * (p + 1)), ON_MARGIN],
    **alike("Ex1 C.5 C.9 width-2", GEOMETRY),
    **alike("4.1 C4.1 C.1 C.2 C.3 C.4 C.6 C.7 C.8 5.2-2 5.2-3", KKT),
}

NOISELESS = [SPHERE, 1, least(1), (D - Delta + 1) / (10 * (P + Delta + 1))]
ASSUMPTION = [SPHERE, ABOVE_0, *NOISELESS[1:]]
ENOUGH, ONE = least(k * log(D) ** 2), least(1)
PROBABLE = [  # ε = 1e-6, δ = 1e-3; e^(d/32) is beyond what a double holds: infinite
    D ** (log(D) - 1) / 3,
    math.inf,
    sqrt(1e-3) / 3 * D ** (log(D) / 4),
    1e-6 / 4 * D ** (log(D) / 2),
]
CHAIN = [*ASSUMPTION, P2, P3, P4, *P5, P6, ONE]

FREI_SUPPOSES = {
    "2.1": [1 / n],
    "P1-P6": [*ASSUMPTION, ENOUGH],
    **alike("3.1 4.2", [*ASSUMPTION, ENOUGH, *PROBABLE, ON_MARGIN]),
    "message": [*ASSUMPTION, ENOUGH, *PROBABLE, ON_MARGIN, 1],
    "4.2-approximate": [*CHAIN, ABOVE_0, -math.ulp(0.0)],
    "limit": [*NOISELESS, 1e-9 * sqrt(D), ON_MARGIN],
    **alike("A.1 A.2 A.3 A.4", [ABOVE_0]),
    **alike("A.5 A.6", [*ASSUMPTION, P2, P3]),
    **alike("A.7 A.13 D.1", [*ASSUMPTION, P1, P3]),
    "A.8": [D, ENOUGH],
    **alike("A.10 D.2", [*ASSUMPTION, P4, *P5, ON_MARGIN]),
    **alike("A.11 A.12", [*ASSUMPTION, P4, *P5, P6, ON_MARGIN]),
    **alike("D.3 D.6", [*ASSUMPTION, P2, P3, ONE, ON_MARGIN]),
    "D.4": [*ASSUMPTION, P3, ON_MARGIN],
    **alike("D.7 D.8 rate", [*CHAIN, ON_MARGIN]),
    "1-NN": [*ASSUMPTION, P1, P2, P3, P4, *P5, P6, P1, 0, nearest, ON_MARGIN],
    "linear": [*ASSUMPTION, P3],
    **alike("anisotropic sub-Gaussian", [*ASSUMPTION, P1, P2, P3, P4, *P5, P6, ONE, ON_MARGIN]),
    "more-noise": [SPHERE, ONE, 1 / 3, ABOVE_0, P6, P4, least(D - Delta), NORMS - 1, ONE, ON_MARGIN],
    "tight": [*ASSUMPTION, P4, *P5, ONE, ONE, ON_MARGIN],
    **alike("A2.2 L2.1 4.1 4.2-scaling Ex1 Ex2 D.5 D.9", ASSUMPTION),
}

PAPERS = {"vardi2022": (vardi, VARDI), "frei2023": (frei, FREI)}
ROWS = [(f"{paper}/{number}", promises) for paper, (_, rows) in PAPERS.items() for number, promises in rows.items()]
SUPPOSED = {"vardi2022": VARDI_SUPPOSES, "frei2023": FREI_SUPPOSES}
SUPPOSITIONS = [(f"{paper}/{number}", each) for paper, rows in SUPPOSED.items() for number, each in rows.items()]

FAILS = {
    "vardi2022/L3.1": m**2 * d * (0.75 ** ((d - 3) / 2) + d ** (-log(d) / 4)),
    "frei2023/L2.1": tests * 2 * D ** (1 - log(D) / 2),
    "frei2023/4.1": tests * 2 * D ** (1 - log(D) / 2),
    "frei2023/P1-P6": 3 * n**2 * rare + n**2 * e ** (-D / 16) + D ** (1 - log(D)),
    "frei2023/3.1": 3 * n**2 * rare + n**2 * e ** (-D / 16) + D ** (1 - log(D)),
    "frei2023/4.2": 3 * n**2 * rare + n**2 * e ** (-D / 16) + D ** (1 - log(D)) + tests * 4 * n * rare,
    "frei2023/message": 3 * n**2 * rare
    + n**2 * e ** (-D / 16)
    + D ** (1 - log(D))
    + tests * 4 * n * rare
    + tests * 2 * D ** (1 - log(D) / 2),
    "frei2023/A.1": n * e ** (-D / 16),
    "frei2023/A.2": n * 2 * rare,
    "frei2023/A.3": n * (n - 1) / 2 * (e ** (-D / 16) + 2 * rare),
    "frei2023/A.4": n * k * 2 * rare,
    "frei2023/A.8": D ** (1 - log(D)),
    "frei2023/A.13": tests * 4 * n * rare,
    "frei2023/D.1": tests * 4 * n * rare,
}


def at(identity: str) -> Instance:
    return PAPERS[identity.split("/")[0]][0]()


@pytest.mark.parametrize(("identity", "promises"), ROWS)
def test_a_promise_is_the_papers(identity, promises):
    bound = THEOREMS[identity].bound(at(identity))
    assert_pinned(bound, promises)
    assert all(promise.tolerance <= 1e-3 for promise in bound)


@pytest.mark.parametrize("identity", FAILS)
def test_a_probability_is_the_papers(identity):
    theorem = THEOREMS[identity]
    assert isinstance(theorem, LikelyClaim)
    assert 1 - theorem.probability(at(identity)) == pytest.approx(FAILS[identity], rel=1e-6, abs=1e-15)


@pytest.mark.parametrize(("identity", "suppositions"), SUPPOSITIONS)
def test_a_supposition_is_the_papers(identity, suppositions):
    found = list(THEOREMS[identity].hypotheses(at(identity)))
    assert_pinned(found, suppositions)
    assert not any(each.tolerance for each in found)


def test_none_is_left_out():
    explicit = {
        identity
        for identity, theorem in THEOREMS.items()
        if theorem.paper in PAPERS and not isinstance(theorem, ScalingClaim) and "approximate" not in identity
    }
    assert explicit == {identity for identity, _ in ROWS}
    assert {identity for identity, _ in SUPPOSITIONS} == {i for i, each in THEOREMS.items() if each.paper in PAPERS}
    likely = {identity for identity in explicit if isinstance(THEOREMS[identity], LikelyClaim)}
    assert likely == set(FAILS)


NUMBERS = {"dip": P + 2 * Delta + 1, "room": room, "opening": Eta1, "crossing": Eta2, "mass": C * k * own}


@pytest.mark.parametrize("name", NUMBERS)
def test_what_inputs_are_measured_in_is_the_papers(name):
    assert getattr(ClusterGroups(frei().data).constants, name) == pytest.approx(NUMBERS[name], rel=1e-9)
    here = {"dip": p + 1, "room": d - m * p, "opening": eta1, "crossing": eta2, "mass": mass}
    assert getattr(ExampleGroups(vardi().data).constants, name) == pytest.approx(here[name], rel=1e-9)
    assert math.isfinite(here[name])


def margins(instance: Instance) -> list[float]:
    return [float(y * f) for y, f in zip(instance.data.y, instance.two_layer.logits(instance.data.X), strict=True)]


def noises(X: torch.Tensor, cluster: torch.Tensor | None) -> torch.Tensor:
    means = frei().data.truth.means
    assert means is not None
    assert cluster is not None
    return torch.stack([x - means[int(q)] for x, q in zip(X, cluster, strict=True)])


def products(cluster_pairs: bool) -> list[float]:
    """<x_i, x_j> of pairs within a cluster, or across."""
    X, cluster = frei().data.X, frei().data.truth.cluster
    assert cluster is not None
    return [float(X[i] @ X[j]) for i in range(n) for j in range(n) if (cluster[i] == cluster[j]) == cluster_pairs]


XI, FRESH = noises(frei().data.X, frei().data.truth.cluster), noises(frei().data.test.X, frei().data.test.truth.cluster)
MEANS = frei().data.truth.means

MEASURED = {
    ("vardi2022/2.1", "sum of the losses"): sum(e ** (-each) for each in margins(vardi())),
    ("vardi2022/3.1", "largest |<x_i, x_j>|/d"): p / d,
    ("vardi2022/4.1", "examples of the rarer label"): 3,
    ("vardi2022/5.1", "largest |<x_i, x_j>|/d"): p / d,
    ("vardi2022/5.1", "examples of one label more than of the other"): 4,
    ("vardi2022/4.1-norms", "examples of the rarer label"): 3,
    ("frei2023/2.1", "mean of the losses"): sum(e ** (-each) for each in margins(frei())) / n,
    ("frei2023/A2.2", "clusters of the rarer label"): 1,
    ("frei2023/3.1", "1/δ"): 1000,
    ("frei2023/limit", "largest ‖x - μ‖"): max(sqrt(float(xi @ xi)) for xi in XI),
    ("frei2023/A.7", "P1 largest ‖ξ_i‖"): max(sqrt(float(xi @ xi)) for xi in XI),
    ("frei2023/A.5", "P2 largest |<ξ_i, ξ_j>|"): largest_product(XI),
    ("frei2023/A.5", "P3 largest |<μ_q, ξ_i>|"): float((XI @ MEANS.T).abs().max()),
    ("frei2023/A.10", "P4 largest |<x_i, x_j>| across clusters"): max(map(abs, products(False))),
    ("frei2023/A.10", "P5 smallest <x_i, x_j> within a cluster"): min(products(True)),
    ("frei2023/A.10", "P5 largest <x_i, x_j> within a cluster"): max(products(True)),
    ("frei2023/1-NN", "largest ‖ξ‖ of a fresh example"): max(sqrt(float(xi @ xi)) for xi in FRESH),
    ("frei2023/linear", "largest |<μ_q, ξ>| of a fresh example"): float((FRESH @ MEANS.T).abs().max()),
}


@pytest.mark.parametrize(("identity", "name"), MEASURED)
def test_what_is_measured_of_a_supposition_is_the_papers(identity, name):
    found = {each.name: each.value for each in THEOREMS[identity].hypotheses(at(identity))}
    assert found[name] == pytest.approx(MEASURED[identity, name], rel=1e-8)


@pytest.mark.parametrize("stretch", [1.0, 1.01])
def test_a_measured_radius_is_compared_with_the_root_of_d(stretch):
    stretched = replace(vardi().data, X=vardi().data.X * stretch)
    first = next(iter(THEOREMS["vardi2022/C.5"].hypotheses(Instance(stretched))))
    assert first.value == pytest.approx(stretch - 1, abs=1e-12)


def test_a_measured_spread_of_norms_is_relative_to_their_mean():
    lengths = torch.tensor([1.3] + [1.0] * (m - 1), dtype=torch.float64)[:, None]
    uneven = Instance(replace(vardi().data, X=vardi().data.X * lengths))
    spread = list(THEOREMS["vardi2022/L3.1"].hypotheses(uneven))[1]
    assert spread.value == pytest.approx(1.3 / (1 + 0.3 / m) - 1)


def test_rounding_of_the_measured_norms_is_paid_for():
    stretched = Instance(replace(vardi().data, X=vardi().data.X * 1.01))
    gap = 1 - p * 1.01**2 / d
    existence, perturbation = (THEOREMS[f"vardi2022/{number}"].bound(stretched) for number in ("3.1", "C.9"))
    assert [each.tolerance for each in existence] == pytest.approx([1e-9 + 4 * 0.01 / gap] * 3, rel=1e-9)
    assert [each.tolerance for each in perturbation] == pytest.approx([0.01] * 2, rel=1e-6)


def test_with_measured_norms_that_differ_the_bound_is_the_proofs():
    X = vardi().data.X * torch.linspace(0.9, 1.1, m, dtype=torch.float64)[:, None]
    unequal = Instance(replace(vardi().data, X=X), vardi().network)
    a, b, P = 0.81 * d, 1.21 * d, largest_product(X)
    first = (P + 1) / (a - m * P)
    second = 2 * (c * m * (P + 1) / (b + 1) + 1) * (b + 1) / (m * c * (a - m * P))
    theorem = THEOREMS["vardi2022/4.1-norms"]
    assert_pinned(theorem.bound(unequal), [(first + second) * sqrt(m * b + m**2 * P), -min(margins(unequal))])
    assert list(theorem.hypotheses(unequal))[1].threshold == pytest.approx((a + 1) / (3 * (P + 1)))
    numbers = NormConstants(a, m, P, c, b)
    assert numbers.least_room == pytest.approx(a / 3)


def test_at_other_measured_points_the_same_is_supposed_and_promised():
    several = Instance(vardi().data, vardi().network, OtherPoints((vardi().two_layer,)))
    assert_pinned(THEOREMS["vardi2022/4.1"].bound(several), [length, -q, -1])
    assert_pinned(THEOREMS["vardi2022/4.1"].hypotheses(several), [*KKT, ON_MARGIN])


def test_the_measured_logistic_loss_is_compared_with_the_logarithm_of_2():
    for identity, limit in {"vardi2022/2.1": log(2), "frei2023/2.1": 1 / n}.items():
        theorem = replace(THEOREMS[identity], logistic=True)
        (loss,) = theorem.hypotheses(at(identity))
        assert loss.threshold == pytest.approx(limit, rel=1e-12)
        total = sum(log(1 + e ** (-each)) for each in margins(at(identity)))
        assert loss.value == pytest.approx(total if identity[0] == "v" else total / log(2) / n, rel=1e-9)


@pytest.mark.parametrize("identity", ["vardi2022/2.1", "frei2023/2.1"])
def test_a_loss_beyond_every_double_is_measured_as_infinite(identity):
    """Every margin is -1000 or less: the loss is not below 1, and that is all that is asked."""
    wrong = replace(at(identity).data, y=-at(identity).data.y)
    (loss,) = THEOREMS[identity].hypotheses(Instance(wrong, at(identity).two_layer.scaled(1e3)))
    assert loss.value == math.inf
    assert not loss.holds


def test_the_examples_that_3_1_admits_for_their_norms_are_the_papers_where_a_double_holds_them():
    small = Clusters(60, 2, 0.1).sample(6, torch.Generator().manual_seed(0), test=3)
    found = {each.name: each.threshold for each in THEOREMS["frei2023/3.1"].about_data(Instance(small))}
    assert found["examples, for the norms"] == pytest.approx(sqrt(1e-3 / 3) * e ** (60 / 32), rel=1e-12)
    assert found["1/δ"] == pytest.approx(60 ** (log(60) - 1) / 3, rel=1e-12)


def test_how_likely_lemma_3_1_of_vardi2022_is_where_that_is_not_tiny():
    for dim, examples in ((200, 2), (400, 3)):
        data = AlmostOrthogonal(dim, 9.0).sample(examples, torch.Generator().manual_seed(0))
        fails = examples**2 * dim * (0.75 ** ((dim - 3) / 2) + dim ** (-log(dim) / 4))
        lemma = THEOREMS["vardi2022/L3.1"]
        assert isinstance(lemma, LikelyClaim)
        assert lemma.probability(Instance(data)) == pytest.approx(1 - fails, rel=1e-12)


def test_one_cluster_has_no_products_across_measured_as_0():
    data = Clusters(60, 2, 0.1).sample(12, torch.Generator().manual_seed(0))
    one = data.truth.cluster == 0
    truth = replace(data.truth, cluster=data.truth.cluster[one])
    (across,) = assumption.p4(ClusterGroups(replace(data, X=data.X[one], y=data.y[one], truth=truth)))
    assert across.value == 0


def test_more_noise_than_the_paper_has_is_not_solved_for():
    with pytest.raises(InputError, match="noise"):
        replace(THEOREMS["frei2023/A2.2"], noise=1.5).solve_for("clusters")


SOLVED = [
    (replace(THEOREMS["vardi2022/4.1"], dim=4, coherence=0.0), "examples", math.nan, math.nan),
    (replace(THEOREMS["vardi2022/4.1"], dim=5, coherence=0.0), "examples", 2, 2),
    (replace(THEOREMS["vardi2022/4.1"], dim=1000, coherence=9.0), "examples", 2, 1001 // 30),
    (replace(THEOREMS["vardi2022/4.1"], dim=100, coherence=20.0), "examples", math.nan, math.nan),
    (replace(THEOREMS["vardi2022/4.1"], dim=59, coherence=9.0), "examples", 2, 2),
    (replace(THEOREMS["vardi2022/4.1"], examples=7, coherence=2.5), "dim", 73, math.inf),
    (replace(THEOREMS["frei2023/A2.2"], dim=1000, noise=0.0, coherence=4.0), "clusters", 2, 1001 // 50),
    (replace(THEOREMS["frei2023/A2.2"], dim=98, noise=0.0, coherence=4.0), "clusters", math.nan, math.nan),
    (replace(THEOREMS["frei2023/A2.2"], dim=99, noise=0.0, coherence=4.0), "clusters", 2, 2),
    (replace(THEOREMS["frei2023/A2.2"], clusters=7, noise=0.0, coherence=2.0), "dim", 209, math.inf),
    (replace(THEOREMS["frei2023/A2.2"], clusters=2, noise=1.0, coherence=0.0), "dim", 1_415_388, math.inf),
    (replace(THEOREMS["frei2023/A2.2"], clusters=2, noise=1.0, random_means=True), "dim", 2_324_214, math.inf),
]


@pytest.mark.parametrize(("theorem", "unknown", "first", "last"), SOLVED)
def test_what_is_solved_for_is_measured_right_at_its_edges(theorem, unknown, first, last):
    solution = theorem.solve_for(unknown)
    assert [solution.least, solution.most] == pytest.approx([first, last], nan_ok=True)


def admitted(dim: float, noise: float, coherence: float) -> float:
    delta = 4 * noise * sqrt(dim) * log(dim)
    return (dim - delta + 1) / (10 * (coherence + delta + 1))


def test_frei2023_examples_1_and_2_claim_the_papers_exponents():
    theorem = THEOREMS["frei2023/Ex1"]
    assert isinstance(theorem, ScalingClaim)
    random, orthogonal, coherent = theorem.scaling(frei())
    assert [random.claimed, orthogonal.claimed, coherent.claimed] == [1 / 2, 1, 1]
    for size, value in random.points:
        assert value == pytest.approx(admitted(size, 1, sqrt(size) * log(size)) * log(size))
    for size, value in orthogonal.points:
        assert value == pytest.approx(admitted(size, 1 / sqrt(size), 0) * log(size))
    for size, value in coherent.points:
        delta = 4 * sqrt(size) * log(size)
        assert 2 * (value + delta + 1) == pytest.approx((size - delta + 1) / 10, rel=1e-12)
    quarter = QuarterPower(dims=(1e9, 2e9, 4e9))
    (fit,) = quarter.scaling(quarter.default(torch.Generator().manual_seed(0)))
    assert fit.claimed == 1 / 4


def test_frei2023_4_2_claims_the_papers_exponents():
    sizes = [(10**6, 2), (10**6, 3), (10**6, 4), (2 * 10**6, 2), (4 * 10**6, 2)]
    settings = [Clusters(dim, clusters, 1e-3, random_means=True) for dim, clusters in sizes]
    drawn = [setting.sample(8, torch.Generator().manual_seed(0), test=4, in_span=True) for setting in settings]
    two, three, four, wide, wider = (Instance(data, linear_network(data)) for data in drawn)
    theorem = THEOREMS["frei2023/4.2-scaling"]
    assert isinstance(theorem, ScalingClaim)
    exponents = theorem.scaling(replace(four, facts=SolvedSweeps((two, three, four), (two, wide, wider))))
    assert [(each.variable, each.claimed) for each in exponents] == [("k", -1 / 2), ("k", -1 / 2), ("d", 1 / 2)]


def test_vardi2022_example_1_claims_the_papers_exponents():
    theorem = Lengths(dims=(10**4, 2 * 10**4, 4 * 10**4), orthogonal_dims=(30, 60, 90))
    instance = theorem.default(torch.Generator().manual_seed(0))
    orthogonal, sphere = theorem.scaling(instance)
    assert [orthogonal.claimed, sphere.claimed] == [0, 1 / 4]
    sweeps = instance.known(TwoSweeps)
    assert sweeps is not None
    for (size, value), data in zip(sphere.points, sweeps.spheres, strict=True):
        assert value == pytest.approx(ExampleGroups(data).length / log(len(data)) ** (1 / 4))
        assert size == data.dim


THETA, OUTER, TOTAL, REACH = 3.0, 2.0, 0.5, 7.0


@pytest.mark.parametrize("kink", [0.001, 40.0])  # the second makes the neurons of the other sign decide
def test_the_approximate_numbers_are_those_derived(kink):
    near = Approximation(0.01, 0.02, kink, THETA, OUTER, TOTAL, REACH)
    E, K, slack = 0.01 * THETA * OUTER * REACH, kink * REACH * THETA**2 / 2, 0.02 * TOTAL * OUTER**2
    assert [near.misfit, near.kinks, near.slack] == pytest.approx([E, K, slack])

    def alpha(within: float, share: float) -> float:
        own = within * (1 - 2 * share)
        mine = (1 + E + sqrt((1 + E) ** 2 + 4 * own * slack)) / (2 * own)
        return max(mine, (E + K) / (within * (1 - share)))

    examples, clusters = ExampleGroups(vardi().data), ClusterGroups(frei().data)
    largest = alpha(d + 1, share)
    assert near.largest_sum(examples.constants) == pytest.approx(largest, rel=1e-10)
    spare = 1 - share * (d + 1) * largest - E
    beyond = (sqrt(spare**2 + 4 * (d + 1) * slack) - spare) / 2
    assert near.beyond_margin(examples.constants) == pytest.approx(beyond, rel=1e-10)
    u = float((vardi().data.y @ vardi().data.X).norm())
    cost = beyond + E * (3 + (eta1 + eta2) * u / REACH) + K
    assert universal._cost(near, examples) == pytest.approx(cost, rel=1e-10)
    largest = alpha(D - Delta + 1, Share)
    across = Share * (D - Delta + 1) * largest
    kept = (1 - E - across) / (1 - Share / (1 - 2 * Share))
    before = (D + Delta + 1) * largest + across + E
    u = float((frei().data.truth.mean_labels @ MEANS).norm())
    after = before + E * (2 + (Eta1 + Eta2) * u / REACH) + K - 3 * kept
    assert statements._after(near, clusters) == pytest.approx(after, rel=1e-10)


def test_an_approximate_promise_is_the_cost_in_units_of_the_margin():
    theorem = universal.NearlyUniversal()
    assert_pinned(theorem.bound(vardi()), [length, (theorem.cost(vardi()) - 1) * q])
    assert theorem.best(vardi()).reach == pytest.approx(sqrt(d + 1))
    other = statements.NearlyNotRobust()
    assert_pinned(other.bound(frei()), [Length, other.after(frei()) * Q])
    squares = [float(x @ x) for x in (*frei().data.X, *frei().data.test.X)]
    assert statements._best(frei()).reach == pytest.approx(sqrt(max(squares) + 1))
    assert (theorem.cost(vardi()), other.after(frei())) == pytest.approx(
        (list(theorem.hypotheses(vardi()))[-1].value, list(other.hypotheses(frei()))[-1].value)
    )


def test_frei2023_probabilities_are_the_papers_where_they_are_not_tiny():
    small, once = 20, e ** (-(log(20) ** 2) / 2)
    rates = {"A.1": e ** (-small / 16), "A.2": 2 * once, "A.3": e ** (-small / 16) + 2 * once, "A.4": 2 * once}
    for number, rate in rates.items():
        lemma = THEOREMS[f"frei2023/{number}"]
        assert isinstance(lemma, NoiseLemma)
        assert lemma.rate(small) == pytest.approx(rate, rel=1e-12)
    numbers = ClusterConstants(small, 2, 0.0, 0.5, 0.1, 6)
    unlikely = 3 * 36 * once + 36 * e ** (-small / 16) + small ** (1 - log(small))
    found = [numbers.unlikely, numbers.strange, numbers.misplaced]
    assert found == pytest.approx([unlikely, 4 * 6 * once, 2 * small * once], rel=1e-12)
    clusters = Instance(Clusters(small).sample(6, torch.Generator().manual_seed(0), test=3))
    left_out, rest = THEOREMS["frei2023/A.8"], THEOREMS["frei2023/4.2"]
    assert isinstance(left_out, LikelyClaim)
    assert isinstance(rest, LikelyClaim)
    assert left_out.probability(clusters) == pytest.approx(1 - small ** (1 - log(small)), rel=1e-12)
    assert rest.probability(clusters) == pytest.approx(1 - unlikely - 3 * 24 * once, rel=1e-12)


def test_an_approximate_statement_is_evaluated_at_every_positive_margin():
    small = Instance(vardi().data, vardi().two_layer.scaled(0.1))
    assert 0 < small.smallest_margin < 1
    assert_pinned(universal.NearlyUniversal().hypotheses(small), [*GEOMETRY, ABOVE_0, 1])
    few = Instance(frei().data, frei().two_layer.scaled(0.1))
    assert_pinned(statements.NearlyNotRobust().hypotheses(few), [*CHAIN, ABOVE_0, -math.ulp(0.0)])
