"""Every constant of vardi2022 and frei2023, written again by hand from the papers, beside what a theorem promises."""

import math
from functools import cache
from math import e, log, sqrt

import pytest
import torch

from brittle.settings import AlmostOrthogonal, Clusters
from brittle.theorems import THEOREMS, Instance, LikelyClaim, ScalingClaim
from brittle.theorems.frei2023.instances import robust_network as cluster_network
from brittle.theorems.vardi2022.instances import robust_network, shares


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
    "2.1": [0, 1, 0.2, 1],
    "3.1": [1, (1 - p / d) / 2 * sqrt(d), (1 - p / d) / 2 * sqrt(d)],
    "L3.1": [1 / 2, log(d) / sqrt(d)],
    "4.1": [length, -q],
    "C4.1": [length, -q],
    "transfer": [length, -q],
    "4.1-norms": [(eta1 + eta2) * sqrt(m * d + m**2 * p), -q],
    "5.1": [2 * sqrt(2), -1, 1, sqrt(d) / 2],
    "C.1": [1],
    "C.2": [mass, mass],
    "C.3": [-1],
    "C.4": [1],
    "C.5": [d / 3],
    "C.6": [0],
    "C.7": [-1],
    "C.8": [-1],
    "C.9": [(eta1 + eta2) * sqrt(m * d + m**2 * p), length],
    "5.2-2": [(eta1 + eta2) * (d - m * p)],
    "5.2-3": [2],
    "width-2": [1, 2],
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
chain = (2 * (P + Delta + 1) + 3 * (3 * D + Delta + 1) * (1 - 2 * Share) / ((1 - 3 * Share) * C * k)) / (
    D - Delta - cut
)
Length = chain * sqrt(k * D + k * cut)

FREI = {
    "2.1": [0, 1, 0.2, 1],
    "A2.2": [(D - 19) / 21, D, 6 * D / 7 - 1 / 10],
    "L2.1": [2 * D ** (1 - log(D) / 2), (9 * D - 1) / 10],
    "P1-P6": [
        sigma * sqrt(2 * D),
        sigma**2 * sqrt(2 * D) * log(D),
        sigma * sqrt(D) * log(D),
        P + Delta,
        D - Delta,
        3 * D + Delta,
        1,
    ],
    "3.1": [1e-6, 4 * n * rare],
    "4.1": [1, sqrt(D) / 4],
    "4.2": [Length, -Q, 4 * n * rare],
    "limit": [36 / 7, 1, -Q],
    "A.1": [sigma * sqrt(2 * D)],
    "A.2": [sigma * log(D)],
    "A.3": [sqrt(2 * D) * log(D) * sigma**2],
    "A.4": [sigma * sqrt(D) * log(D)],
    "A.5": [4 * sigma * sqrt(D) * log(D) + P],
    "A.6": [4 * sigma * sqrt(D) * log(D)],
    "A.7": [D - 2 * sigma * sqrt(D) * log(D), 3 * D + 2 * sigma * sqrt(D) * log(D)],
    "A.8": [1],
    "A.10": [1 / ((1 - 2 * Share) * (D - Delta + 1))],
    "A.11": [own],
    "A.12": [(1 - Share / (1 - 2 * Share)) * (D - Delta + 1) / (3 * D + Delta + 1) - 2 * Share / (1 - 2 * Share)],
    "A.13": [1 - 4 * n * rare],
    "D.1": [1 - 4 * n * rare],
    "D.2": [(D + Delta + 1) / ((1 - 2 * Share) * (D - Delta + 1)) + Share / (1 - 2 * Share), 3 / 2],
    "D.3": [-1],
    "D.4": [1],
    "D.5": [6 * D / 7 - 1 / 10],
    "D.6": [0],
    "D.7": [-1],
    "D.8": [-1],
    "D.9": [(Eta1 + Eta2) * sqrt(k * D + k**2 * P), Length],
    "1-NN": [sqrt((D - P) / 2) - 2 * sigma * sqrt(2 * D), 1],
    "linear": [
        (9 * D - 1) / (10 * D),
        (D + k * P + k * sigma * sqrt(D) * log(D)) / D,
        sqrt(k * D - k**2 * P) / D,
        (D + k * P + k * sigma * sqrt(D) * log(D)) / sqrt(k * D - k**2 * P),
    ],
    "rate": [room * C * k * own / sqrt(k * D + k**2 * P)],
}

PAPERS = {"vardi2022": (vardi, VARDI), "frei2023": (frei, FREI)}
ROWS = [(f"{paper}/{number}", promises) for paper, (_, rows) in PAPERS.items() for number, promises in rows.items()]

FAILS = {
    "vardi2022/L3.1": m**2 * d * (0.75 ** ((d - 3) / 2) + d ** (-log(d) / 4)),
    "frei2023/L2.1": tests * 2 * D ** (1 - log(D) / 2),
    "frei2023/4.1": tests * 2 * D ** (1 - log(D) / 2),
    "frei2023/P1-P6": 3 * n**2 * rare + n**2 * e ** (-D / 16) + D ** (1 - log(D)),
    "frei2023/3.1": 3 * n**2 * rare + n**2 * e ** (-D / 16) + D ** (1 - log(D)),
    "frei2023/4.2": 3 * n**2 * rare + n**2 * e ** (-D / 16) + D ** (1 - log(D)) + tests * 4 * n * rare,
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
    assert [promise.threshold for promise in bound] == pytest.approx(promises, rel=1e-9, abs=1e-12)
    assert all(promise.tolerance <= 1e-3 for promise in bound)


@pytest.mark.parametrize("identity", FAILS)
def test_a_probability_is_the_papers(identity):
    theorem = THEOREMS[identity]
    assert isinstance(theorem, LikelyClaim)
    assert 1 - theorem.probability(at(identity)) == pytest.approx(FAILS[identity], rel=1e-6, abs=1e-15)


def test_none_is_left_out():
    explicit = {
        identity
        for identity, theorem in THEOREMS.items()
        if theorem.paper in PAPERS and not isinstance(theorem, ScalingClaim) and "approximate" not in identity
    }
    assert explicit == {identity for identity, _ in ROWS}
    likely = {identity for identity in explicit if isinstance(THEOREMS[identity], LikelyClaim)}
    assert likely == set(FAILS)


NUMBERS = {"dip": P + 2 * Delta + 1, "room": room, "opening": Eta1, "crossing": Eta2, "mass": C * k * own}


@pytest.mark.parametrize("name", NUMBERS)
def test_what_inputs_are_measured_in_is_the_papers(name):
    from brittle.theorems.frei2023.groups import ClusterGroups
    from brittle.theorems.vardi2022.groups import ExampleGroups

    assert getattr(ClusterGroups(frei().data).constants, name) == pytest.approx(NUMBERS[name], rel=1e-9)
    here = {"dip": p + 1, "room": d - m * p, "opening": eta1, "crossing": eta2, "mass": mass}
    assert getattr(ExampleGroups(vardi().data).constants, name) == pytest.approx(here[name], rel=1e-9)
    assert math.isfinite(here[name])
