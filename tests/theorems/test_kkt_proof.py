"""The proof that two papers share: its numbers are the papers' own, and no wrong number passes its checks."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks.slack import Constant, noticed_from
from brittle.data import Data
from brittle.networks import TwoLayer
from brittle.theorems import CheckOutcome, Instance, Theorem, check_instance
from brittle.theorems.frei2023 import lemmas as frei
from brittle.theorems.frei2023.groups import ClusterConstants, ClusterGroups
from brittle.theorems.frei2023.groups import robust_network as robust_cluster_network
from brittle.theorems.frei2023.statements import NOT_FLIPPED, NotRobust, _stays_at_most
from brittle.theorems.kkt_proof import Groups, ProofConstants
from brittle.theorems.vardi2022 import lemmas as vardi
from brittle.theorems.vardi2022.groups import (
    ExampleConstants,
    ExampleGroups,
    orthogonal_instance,
    robust_network,
    sphere_instance,
)
from brittle.theorems.vardi2022.universal import UniversalPerturbation
from tests.theorems.clusters import known


@pytest.fixture(scope="module")
def sphere() -> Instance:
    """vardi2022's default: 17 points of the sphere of R^100,000 at a solved KKT point."""
    return sphere_instance(100_000, 17, torch.Generator().manual_seed(0))


@given(st.integers(1, 10**9), st.integers(2, 500), st.floats(0, 100), st.floats(0.01, 0.5))
def test_the_numbers_of_vardi2022_are_those_of_its_appendix(d, m, p, c):
    numbers = ExampleConstants(d, m, p, c)
    assume(m <= (d + 1) / (3 * (p + 1)))
    share = m * (p + 1) / (d + 1)
    assert numbers.limit == pytest.approx((d + 1) / (3 * (p + 1)))
    assert numbers.mass == pytest.approx(m * c / ((c * share + 1) * (d + 1)))
    assert numbers.opening == pytest.approx((p + 1) / (d - m * p))
    assert numbers.crossing == pytest.approx(2 * (c * share + 1) * (d + 1) / (m * c * (d - m * p)))
    assert numbers.length_at_most(numbers.dip) <= 18 * math.sqrt(2) * math.sqrt(d / m) / c * (1 + 1e-12)
    assert numbers.longest == pytest.approx(18 * math.sqrt(2) * math.sqrt(d / m) / c)


@given(st.integers(100, 10**9), st.integers(2, 50), st.floats(0, 10), st.floats(0.01, 0.5), st.floats(0, 1))
def test_the_numbers_of_frei2023_are_those_of_its_appendix(d, k, p, c, sigma):
    numbers, delta = ClusterConstants(d, k, p, c, noise=sigma), 4 * sigma * math.sqrt(d) * math.log(d)
    assume(k * (p + delta + 1) <= (d - delta + 1) / 10)
    share = k * (p + delta + 1) / (d - delta + 1)
    room = d - delta - k * p - k * delta
    assert numbers.limit == pytest.approx((d - delta + 1) / (10 * (p + delta + 1)))
    assert numbers.cluster_mass == pytest.approx(1 / ((1 - 2 * share) * (d - delta + 1)))
    assert numbers.own_mass == pytest.approx((1 - share / (1 - 2 * share)) / (3 * d + delta + 1))
    assert numbers.opening == pytest.approx((2 * delta + p + 1) / room)
    crossing = 3 * (3 * d + delta + 1) * (1 - 2 * share) / (room * (1 - 3 * share) * c * k)
    assert numbers.crossing == pytest.approx(crossing)
    first = 2 * share * (d - delta + 1) / k / (d - delta - share * (d - delta + 1))
    second = crossing * room / (d - delta - share * (d - delta + 1))
    assert numbers.longest == pytest.approx((first + second) * math.sqrt(k * d + k * share * (d - delta + 1)))


@pytest.mark.parametrize("groups", [lambda data: ExampleGroups(data), lambda data: ClusterGroups(data)])
def test_the_perturbation_is_made_of_the_centres(groups):
    chosen: Groups = groups(known().data)
    u = sum(float(y) * centre for y, centre in zip(chosen.labels, chosen.centres, strict=True))
    z = (chosen.constants.opening + chosen.constants.crossing) * u
    assert torch.allclose(chosen.perturbation, z)
    assert chosen.length == pytest.approx(float(z.norm()))
    assert torch.allclose(chosen.against(torch.tensor([1.0, -1.0]).double()), torch.stack([-z, z]))


MUTANTS = [
    (vardi.AllOnTheMargin(), ExampleConstants, "before", 0.9),
    (vardi.MultiplierSums(), ExampleConstants, "mass", 1.3),
    (vardi.LemmaC3(), ProofConstants, "dip", 0.05),
    (vardi.LemmaC4(), ProofConstants, "room", 1.3),
    (vardi.LemmaC5(), ProofConstants, "room", 0.3),
    (vardi.LemmaC6(), ProofConstants, "opening", 0.0),
    (UniversalPerturbation(), ExampleConstants, "mass", 100.0),
    (UniversalPerturbation(), ExampleConstants, "longest", 0.05),
    (frei.ClusterSumsAreSmall(), ClusterConstants, "cluster_mass", 0.7),
    (frei.OwnSumsAreLarge(), ClusterConstants, "own_mass", 4.0),
    (frei.LemmaD3(), ProofConstants, "dip", 0.05),
    (frei.LemmaD4(), ProofConstants, "room", 1.2),
    (frei.LemmaD5(), ProofConstants, "room", 0.9),
    (frei.LemmaD6(), ProofConstants, "opening", 0.0),
    (NotRobust(), ClusterConstants, "longest", 0.9),
]


@pytest.mark.parametrize(
    ("theorem", "holder", "name", "factor"), MUTANTS, ids=[f"{row[0].id}-{row[2]}" for row in MUTANTS]
)
def test_a_wrong_constant_is_a_violation(
    theorem: Theorem, holder: type, name: str, factor: float, sphere: Instance, monkeypatch
):
    instance = sphere if theorem.paper == "vardi2022" else known()
    assert check_instance(theorem, instance).verdict is CheckOutcome.CONFIRMED
    constant = holder.__dict__[name]
    mutant = property(lambda self: factor * constant.__get__(self)) if isinstance(constant, property) else None
    monkeypatch.setattr(holder, name, factor * constant if mutant is None else mutant)
    verdict = check_instance(theorem, instance)
    assert verdict.verdict is CheckOutcome.VIOLATED, verdict.advice


SLACK = 1e-7


@pytest.mark.parametrize("lemma", [vardi.LemmaC3(), vardi.LemmaC4(), vardi.LemmaC6()])
def test_a_residual_explains_no_more_than_itself(lemma):
    """By hand at the closed form, where every neuron has one load and p = 0: ε‖θ‖ times the length it acts on."""
    instance = orthogonal_instance(299, 100)
    kkt, u = instance.kkt, ExampleGroups(instance.data).direction
    measured = []
    for epsilon in (0.0, SLACK):
        doctored = Instance(instance.data, instance.network)
        object.__setattr__(doctored, "kkt", replace(kkt, stationarity=epsilon))
        measured.append(lemma.smallest(doctored))
    lever, theta = math.sqrt(299 + 1), math.sqrt(float(kkt.network.squared_norm))
    explained = {
        "vardi2022/C.3": lever,
        "vardi2022/C.4": float(u.norm()) / 299,
        "vardi2022/C.6": lever + float(u.norm()) / 299,
    }[lemma.id]
    assert measured[1] - measured[0] == pytest.approx(SLACK * theta * explained / float(kkt.loads.max()), rel=1e-6)


def without_structure(data: Data, seed: int = 0) -> Instance:
    """Random neurons with outputs that fit the labels: no KKT point."""
    W = torch.randn(200, data.columns, generator=torch.Generator().manual_seed(seed)).double()
    outputs = torch.linalg.lstsq((data.X @ W.T).relu(), data.y).solution
    return Instance(data, TwoLayer(W, torch.zeros(200).double(), outputs))


STEPS = [*(vardi.MultiplierSums(), vardi.LemmaC3(), vardi.LemmaC4(), vardi.LemmaC6())]


@pytest.mark.parametrize("lemma", STEPS, ids=lambda lemma: lemma.id)
def test_a_step_of_the_proof_fails_where_a_network_is_no_kkt_point(lemma, sphere):
    """Its residual, however large, does not excuse it."""
    verdict = check_instance(lemma, without_structure(sphere.data), beyond=True)
    assert verdict.failed == ["distance from a KKT point"]
    assert not all(each.holds for each in verdict.beyond)


def test_a_neuron_of_the_wrong_sign_fails_its_step(sphere):
    network = sphere.two_layer
    weakest = int((network.v.abs() + 1e9 * (network.W.norm(dim=1) < 1e-6)).argmin())
    v = torch.where(torch.arange(network.width) == weakest, -network.v, network.v)
    wrong = Instance(sphere.data, TwoLayer(network.W, network.b, v))
    verdict = check_instance(vardi.LemmaC4(), wrong, beyond=True)
    assert verdict.failed == ["distance from a KKT point"]
    assert not verdict.beyond[0].holds


ROBUST = [
    *(vardi.LemmaC3(), vardi.LemmaC6(), vardi.LemmaC7(), vardi.LemmaC8()),
    *(frei.LemmaD3(), frei.LemmaD6(), frei.ClusterSumsAreSmall(), frei.OwnSumsAreLarge()),
]


@pytest.mark.parametrize("lemma", ROBUST, ids=lambda lemma: lemma.id)
def test_a_step_of_the_proof_fails_at_the_robust_network(lemma, sphere):
    data, robust = (
        (sphere.data, robust_network) if lemma.paper == "vardi2022" else (known().data, robust_cluster_network)
    )
    verdict = check_instance(lemma, Instance(data, robust(data)), beyond=True)
    assert verdict.failed == ["distance from a KKT point"]
    assert not all(each.holds for each in verdict.beyond)


def test_the_room_of_a_constant_is_found_and_the_constant_put_back():
    right = ClusterConstants(570, 2, 0.0, 0.5, 0.04).cluster_mass
    constant = Constant("frei2023/A.10", ClusterConstants, "cluster_mass", grows=False)
    largest = check_instance(frei.ClusterSumsAreSmall(), known()).bound[0]
    factor = noticed_from(constant, frei.ClusterSumsAreSmall(), known())
    assert factor == pytest.approx(largest.value / largest.threshold, rel=0.02)
    assert ClusterConstants(570, 2, 0.0, 0.5, 0.04).cluster_mass == right


def test_too_short_a_perturbation_flips_no_fresh_example(monkeypatch):
    mass = ClusterConstants.mass.fget
    monkeypatch.setattr(ClusterConstants, "mass", property(lambda self: 100 * mass(self)))
    verdict = check_instance(NotRobust(), known())
    assert verdict.verdict is CheckOutcome.VIOLATED
    assert NOT_FLIPPED in verdict.advice
    assert _stays_at_most(known()) >= verdict.measured["share that does not flip, counted"] == 1


def single_precision(instance: Instance) -> Instance:
    """The same network, its weights rounded to float32."""
    rounded = instance.two_layer.to(torch.float32)
    return Instance(instance.data, TwoLayer(rounded.W.double(), rounded.b.double(), rounded.v.double()))


def rounded_data(instance: Instance) -> Instance:
    data = instance.data
    return Instance(replace(data, X=data.X.float().double()), instance.network)


@pytest.mark.parametrize("lemma", [vardi.LemmaC3(), vardi.LemmaC4(), vardi.LemmaC6()])
@pytest.mark.parametrize("rounded", [single_precision, rounded_data])
def test_a_lemma_that_is_an_equality_survives_single_precision(lemma, rounded):
    instance = rounded(orthogonal_instance(299, 100))
    verdict = check_instance(lemma, instance)
    assert verdict.verdict is CheckOutcome.CONFIRMED, verdict.advice


@pytest.mark.parametrize("by", [1e-4, 1e-7])
def test_what_rounding_does_not_explain_is_refused_or_violated(by):
    """Every neuron is turned away from u: too far for a KKT point, or further than its residual explains."""
    instance = orthogonal_instance(299, 100)
    network, u = instance.two_layer, ExampleGroups(instance.data).direction
    along = network.v.sign()[:, None] * (u / u.norm())
    away = TwoLayer(network.W - by * network.W.norm(dim=1, keepdim=True) * along, network.b, network.v)
    verdict = check_instance(vardi.LemmaC4(), Instance(instance.data, away))
    assert verdict.verdict is (CheckOutcome.HYPOTHESES_FAIL if by > 1e-6 else CheckOutcome.CONFIRMED)
    exact = replace(Instance(instance.data, away).kkt, stationarity=0.0)
    doctored = Instance(instance.data, away)
    object.__setattr__(doctored, "kkt", exact)
    assert check_instance(vardi.LemmaC4(), doctored).verdict is CheckOutcome.VIOLATED
