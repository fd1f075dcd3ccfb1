"""frei2023: statements are confirmed, every hypothesis is needed by name, probabilities allow for the exact ones."""

import math
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, norm

from brittle.common.errors import InputError
from brittle.networks import TwoLayer
from brittle.settings import Clusters, Data
from brittle.theorems import Instance, Outcome, Theorem, check_default, check_instance, check_many
from brittle.theorems.base import LARGEST_MARGIN, LONGEST, SMALLEST_NORM, promise_at_most
from brittle.theorems.frei2023 import THEOREMS
from brittle.theorems.frei2023.assumption import Assumption, LinearlySeparable, OrdinaryTrainingSet
from brittle.theorems.frei2023.examples import NoNoise, PerturbationScales, QuarterPower, Regimes
from brittle.theorems.frei2023.instances import cluster_data
from brittle.theorems.frei2023.lemmas import (
    ClusterSumsAreSmall,
    FreshOnesAreOrdinary,
    InputsNotVeryNegative,
    Lemma,
    OwnSumsAreLarge,
)
from brittle.theorems.frei2023.properties import PROPERTIES as CHECKS
from brittle.theorems.frei2023.properties import count_strange_sets, ordinary
from brittle.theorems.frei2023.sizes import Sizes, largest_clusters
from brittle.theorems.frei2023.statements import Generalises, NotRobust, RobustClusterNetworkExists, longest
from brittle.theorems.solved import kkt_network
from tests.theorems.breaking import failed, names

LEMMAS = [theorem for theorem in THEOREMS if isinstance(theorem, Lemma)]
NOISE = 1 / math.sqrt(570)
SMALL = NotRobust(dim=570, clusters=2, noise=NOISE)
ON_DATA: list[Theorem] = [
    Assumption(),
    LinearlySeparable(),
    OrdinaryTrainingSet(),
    Generalises(),
    RobustClusterNetworkExists(),
    SMALL,
    *LEMMAS,
]


@cache
def known() -> Instance:
    """d = 570, k = 2, σ = 1/√d, n = 81: as small as Assumption 2.2 permits at that noise."""
    rng = torch.Generator().manual_seed(3)
    data = cluster_data(570, 2, NOISE, rng, test=200)
    return Instance(data, kkt_network(data, rng))


def solved(data: Data) -> Instance:
    return Instance(data, kkt_network(data, torch.Generator().manual_seed(4)))


@pytest.mark.parametrize("theorem", ON_DATA, ids=lambda theorem: theorem.id)
def test_a_solved_point_is_confirmed(theorem):
    verdict = check_instance(theorem, known())
    assert verdict.verdict is Outcome.CONFIRMED, verdict.advice


@pytest.mark.parametrize("theorem", [*ON_DATA[:3], ON_DATA[4], FreshOnesAreOrdinary()], ids=lambda theorem: theorem.id)
def test_defaults_without_a_network_are_confirmed(theorem, rng):
    assert check_default(theorem, rng).verdict is Outcome.CONFIRMED


@pytest.mark.parametrize("theorem", [Generalises(test=100), InputsNotVeryNegative(test=100)], ids=lambda each: each.id)
def test_defaults_with_a_solved_network_are_confirmed(theorem, rng):
    assert check_default(theorem, rng).verdict is Outcome.CONFIRMED


def test_the_perturbation_and_its_bound():
    """By hand: d = 570, Δ = 4 ln d, c' = 2(Δ+1)/(d-Δ+1)."""
    verdict = check_instance(SMALL, known())
    delta = 4 * math.log(570)
    share = 2 * (delta + 1) / (570 - delta + 1)
    room = 570 - delta - 2 * delta
    eta = (2 * delta + 1) / room + 3 * (3 * 570 + delta + 1) * (1 - 2 * share) / (room * (1 - 3 * share) * 0.5 * 2)
    assert verdict.measured[LONGEST] == pytest.approx(eta * math.sqrt(2 * 570), rel=1e-9)
    assert verdict.bound[0].threshold == pytest.approx(428.4, abs=0.1)
    assert verdict.measured[SMALLEST_NORM] == pytest.approx(math.sqrt(570 / 2), rel=0.02)


@given(st.integers(2, 60), st.floats(0, 1), st.floats(0, 10), st.integers(600, 10**9), st.floats(0.1, 0.5))
def test_the_bound_is_never_above_its_rounded_form(clusters, noise, coherence, dim, balance):
    """Lemma D.9 with c' = 1/10 and Δ = d/21 throughout."""
    if clusters > largest_clusters(dim, noise, coherence):
        return
    delta = 4 * noise * math.sqrt(dim) * math.log(dim)
    share = clusters * (coherence + delta + 1) / (dim - delta + 1)
    sizes = SimpleNamespace(dim=dim, clusters=clusters, balance=balance, spread=delta, share=share)
    over = dim - dim / 21 - (dim + 1) / 10
    rounded = 0.2 * (dim + 1) / clusters / over + 2.4 * (3 * dim + dim / 21 + 1) / (0.7 * over * balance * clusters)
    assert longest(sizes) <= rounded * math.sqrt(clusters * dim + clusters * (dim + 1) / 10) * (1 + 1e-12)
    assert longest(sizes) <= 13.2 * math.sqrt(dim / clusters) / balance


def test_a_doctored_bound_is_violated():
    @dataclass(frozen=True)
    class Doctored(NotRobust):
        def bound(self, instance):
            return [promise_at_most(LONGEST, 1.0, certain=True)]

    verdict = check_instance(Doctored(), known())
    assert verdict.verdict is Outcome.VIOLATED
    assert LONGEST in verdict.advice


def test_an_unlikely_failure_is_no_violation():
    @dataclass(frozen=True)
    class Doctored(NotRobust):
        def bound(self, instance):
            return [promise_at_most(LARGEST_MARGIN, -1e9)]

    assert check_instance(Doctored(), known()).verdict is Outcome.INCONCLUSIVE


def changed(**truth: object) -> Instance:
    """The known instance with another truth about it; the network stays a KKT point."""
    data = known().data
    return Instance(replace(data, truth=replace(data.truth, **truth)), known().network)


def noisy(noise: float) -> Instance:
    """Noise above 1 at a dimension that is large enough for Assumption 2.2."""
    return solved(Clusters(4_000_000, noise=noise).sample(20, torch.Generator().manual_seed(5), in_span=True, test=5))


def crowded() -> Instance:
    return solved(cluster_data(570, 3, NOISE, torch.Generator().manual_seed(6), test=50))


def unbalanced() -> Instance:
    network = known().two_layer
    return Instance(known().data, TwoLayer(network.W * 1.5, network.b * 1.5, network.v / 1.5))


@cache
def few() -> Instance:
    return solved(known().data.take(torch.arange(80)))


ASSUMPTION = {
    "relative deviation of ‖μ‖ from √d": lambda: changed(dim=575),
    "noise σ": lambda: noisy(1.1),
    "clusters of the rarer label": lambda: changed(mean_labels=torch.ones(2).double()),
    "clusters": crowded,
}
KKT = {"distance from a KKT point": unbalanced}


@pytest.mark.parametrize("name", ASSUMPTION)
def test_each_part_of_the_assumption(name):
    instance = ASSUMPTION[name]()
    for theorem in (Assumption(), LinearlySeparable(), RobustClusterNetworkExists()):
        assert failed(theorem, instance) == [name]


TRAINING = {
    "examples": (few, {}),
    "examples, for the norms": (lambda: small_dimension(), {"failure": 0.9, "error": 0.01}),
    "examples, for the inner products": (known, {"failure": 1e-5}),
    "examples, for the error": (known, {"error": 1e-7}),
    "distance from a KKT point": (unbalanced, {}),
}


@cache
def small_dimension() -> Instance:
    data = cluster_data(100, 2, 1e-3, torch.Generator().manual_seed(7), test=20)
    return solved(data)


@pytest.mark.parametrize("name", TRAINING)
@pytest.mark.parametrize("theorem", [Generalises(), SMALL], ids=lambda theorem: theorem.id)
def test_each_hypothesis_on_the_training_set(theorem, name):
    make, settings = TRAINING[name]
    assert failed(replace(theorem, **{"error": 1e-6, "failure": 1e-3, **settings}), make()) == [name]
    assert names(theorem, known()) == {*ASSUMPTION, *TRAINING, "1/δ"}


@given(st.floats(8, 1e9), st.floats(1e-12, 1))
def test_the_condition_on_the_failure_follows_from_another(dim, failure):
    """So it cannot fail alone: n ≥ 1 and n ≤ √δ/3 d^{ln(d)/4} give 1/δ ≤ d^{ln(d)-1}/3."""
    log = math.log(dim)
    if math.sqrt(failure) / 3 * math.exp(log**2 / 4) >= 1:
        assert 1 / failure <= math.exp(log**2 - log) / 3


def test_enough_examples_for_the_properties():
    assert failed(OrdinaryTrainingSet(), few()) == ["examples"]


def with_first(change) -> Instance:
    """The known data with its first example changed, and a KKT point of its own."""
    data = known().data
    X = data.X.clone()
    X[0] = change(data.X[0], data)
    return solved(replace(data, X=X))


def along_mean(share: float, own: bool):
    """Adds a share of a mean: the example's own, or the other one."""

    def change(x, data):
        cluster = int(data.truth.cluster[0])
        return x + share * data.truth.means[cluster if own else 1 - cluster]

    return change


def longer_noise(x, data):
    mean = data.truth.means[data.truth.cluster[0]]
    return mean + 1.6 * (x - mean)


def a_cluster_gone() -> Instance:
    """Three clusters, one of which no example belongs to."""
    data = known().data
    means = torch.nn.functional.pad(data.truth.means, (0, 1))
    third = torch.zeros(1, means.shape[1], dtype=torch.float64)
    third[0, -1] = math.sqrt(800)
    truth = replace(
        data.truth,
        means=torch.cat([means * math.sqrt(800 / 570), third]),
        mean_labels=torch.tensor([1.0, -1, 1]).double(),
    )
    X, X_test = (torch.nn.functional.pad(each, (0, 1)) for each in (data.X, data.X_test))
    X = X + (truth.means - torch.cat([means, third]))[data.truth.cluster]
    X_test = X_test + (truth.means - torch.cat([means, third]))[data.truth.cluster_test]
    truth = replace(truth, dim=800, noise=0.5 / math.sqrt(800), coherence=0.0)
    return solved(Data(X, data.y, X_test, data.y_test, truth))


PROPERTIES = {
    "P1 largest ‖ξ_i‖": lambda: with_first(longer_noise),
    "P2 largest |<ξ_i, ξ_j>|": lambda: solved(known().data.take(torch.tensor([0, *range(81)]))),
    "P3 largest |<μ_q, ξ_i>|": lambda: with_first(along_mean(0.02, own=True)),
    "P4 largest |<x_i, x_j>| across clusters": lambda: with_first(along_mean(0.08, own=False)),
    "P5 smallest <x_i, x_j> within a cluster": lambda: with_first(along_mean(-0.1, own=True)),
    "P5 largest <x_i, x_j> within a cluster": lambda: with_first(along_mean(0.9, own=True)),
    "P6 examples of the smallest cluster": a_cluster_gone,
    "ordinary fresh examples (Lemma A.13)": lambda: strange_fresh_examples(),
}


def strange_fresh_examples() -> Instance:
    data = known().data
    return Instance(replace(data, X_test=data.X_test * 1.2), known().network)


@cache
def broken(name: str) -> Instance:
    return {**PROPERTIES, **KKT, **ASSUMPTION}[name]()


@pytest.mark.parametrize("name", [*PROPERTIES, *KKT])
def test_each_property_that_a_lemma_rests_on(name):
    concerned = [theorem for theorem in LEMMAS if name in names(theorem, known())]
    assert concerned
    for theorem in concerned:
        assert failed(theorem, broken(name)) == [name], theorem.id


def test_no_hypothesis_of_a_lemma_is_left_out():
    every = set().union(*(names(theorem, known()) for theorem in LEMMAS))
    assert every == {*ASSUMPTION, *PROPERTIES, *KKT}


def test_cluster_sums_are_those_of_the_definition():
    instance, sizes = known(), Sizes(known().data)
    kkt, cluster = instance.kkt, instance.data.truth.cluster
    v = kkt.network.v
    sums = {
        (q, sign): sum(
            float(v[j] ** 2 * kkt.lam[i] * kkt.slopes[i, j])
            for i in range(81)
            for j in range(len(v))
            if cluster[i] == q and sign * v[j] > 0
        )
        for q in range(2)
        for sign in (1, -1)
    }
    largest = check_instance(ClusterSumsAreSmall(), instance).measured["largest sum"]
    smallest = check_instance(OwnSumsAreLarge(), instance).measured["smallest own sum"]
    assert largest == pytest.approx(max(sums.values()), rel=1e-12)
    assert smallest == pytest.approx(min(sums[q, int(sizes.labels[q])] for q in range(2)), rel=1e-12)


def test_ordinary_examples_are_those_of_the_lemma():
    data, sizes = known().data, Sizes(known().data)
    held = replace(data.test, X=data.X_test * torch.linspace(0.9, 1.1, 200).double()[:, None])
    wanted = []
    for x, q in zip(held.X, held.truth.cluster, strict=True):
        noise = x - sizes.means[q]
        wanted.append(
            all(
                abs(float(noise @ sizes.noises[i])) <= sizes.spread
                and abs(float(noise @ data.X[i])) <= sizes.spread
                and abs(float(x @ data.X[i]) - (570 if data.truth.cluster[i] == q else 0)) <= sizes.spread
                for i in range(81)
            )
        )
    assert 0 < sum(wanted) < 200
    assert ordinary(sizes, held).tolist() == wanted


@given(st.integers(25, 2000), st.integers(2, 40))
def test_the_stated_probability_allows_for_the_exact_tails(dim, clusters):
    """Proposition A.1 by its union bound with exact χ² and normal tails, n = k ln²d."""
    n = math.ceil(clusters * math.log(dim) ** 2)
    long, far = chi2.sf(2 * dim, dim), 2 * norm.sf(math.log(dim))
    empty = clusters * (1 - 1 / clusters) ** n
    exact = n * long + n * (n - 1) / 2 * (long + far) + n * clusters * far + empty
    rare = math.exp(-(math.log(dim) ** 2) / 2)
    stated = 3 * n**2 * rare + n**2 * math.exp(-dim / 16) + dim ** (1 - math.log(dim))
    if clusters <= dim:
        assert exact <= stated


def test_the_properties_over_many_draws(rng):
    trials = check_many(OrdinaryTrainingSet(), 100, rng)
    assert (trials.failures, trials.skipped) == (0, 0)
    assert trials.verdict is Outcome.CONFIRMED
    assert 0 < trials.promised_failure_rate < 1e-4


def test_many_training_sets_at_once_fail_as_often_as_one_by_one(rng):
    """In R^20, where the properties fail often enough to be compared."""
    setting = Clusters(20, 2, noise=0.4)
    sets = [Sizes(setting.sample(18, rng)) for _ in range(600)]
    one_by_one = sum(not all(each.holds for check in CHECKS for each in check(sizes)) for sizes in sets) / 600
    at_once = count_strange_sets(6000, sets[0], rng) / 6000
    assert 0.02 < at_once < 0.5
    assert abs(one_by_one - at_once) < 4 * math.sqrt(at_once * (1 - at_once) / 600)


@pytest.mark.parametrize("theorem", [LinearlySeparable(), RobustClusterNetworkExists(), FreshOnesAreOrdinary()])
def test_fresh_examples_over_many_draws(theorem, rng):
    trials = check_many(theorem, 1000, rng)
    assert trials.verdict is Outcome.CONFIRMED
    assert (trials.failures, trials.skipped) == (0, 0)
    outside = check_many(replace(theorem, noise=1.0), 10, rng)
    assert (outside.verdict, outside.skipped) == (Outcome.HYPOTHESES_FAIL, 10)


@pytest.mark.parametrize(
    "theorem",
    [
        Assumption(noise=0.2, clusters=3),
        Assumption(noise=1.0, clusters=2),
        Assumption(noise=0.01, clusters=7, coherence=2.5),
        Assumption(noise=0.3, clusters=2, random_means=True),
    ],
)
def test_the_smallest_dimension_is_the_first_that_fits(theorem):
    least = int(theorem.solve_for("dim").least)
    near = range(max(2, least - 500), least + 500)

    def fits(dim):
        p = math.sqrt(dim) * math.log(dim) if theorem.random_means else theorem.coherence
        delta = 4 * theorem.noise * math.sqrt(dim) * math.log(dim)
        return theorem.clusters * (p + delta + 1) <= (dim - delta + 1) / 10

    assert next(dim for dim in near if fits(dim)) == least
    assert replace(theorem, dim=least).solve_for("clusters").most == theorem.clusters
    assert math.isnan(replace(theorem, dim=20).solve_for("clusters").most)


def test_data_without_clusters_are_refused():
    data = Data(torch.eye(4).double(), torch.tensor([1.0, 1, -1, -1]))
    with pytest.raises(InputError, match="must come with their means"):
        check_instance(Assumption(), Instance(data))
    known_only = known().data
    truth = replace(known_only.truth, cluster_test=None)
    with pytest.raises(InputError, match="X_test"):
        check_instance(LinearlySeparable(), Instance(Data(known_only.X, known_only.y, truth=truth)))


def test_labels_and_noise_are_read_off_the_data_where_they_are_not_given():
    data = known().data
    bare = Sizes(replace(data, truth=replace(data.truth, mean_labels=None, noise=None)))
    assert bare.labels.tolist() == Sizes(data).labels.tolist()
    assert bare.noise == pytest.approx(NOISE, rel=0.05)


def test_the_regimes_and_the_quarter_power(rng):
    for theorem in (Regimes(), QuarterPower(dims=(1e9, 1e10, 1e11))):
        verdict = check_default(theorem, rng)
        assert verdict.verdict is Outcome.SCALING_ONLY
        assert all(abs(each.fitted - each.claimed) < 0.03 for each in verdict.scaling)


def test_the_perturbation_scales_as_claimed(rng):
    theorem = PerturbationScales(clusters=(2, 3, 4), dims=(600, 700, 800), scaled_noise=0.5, test=20)
    verdict = check_default(theorem, rng)
    assert verdict.verdict is Outcome.SCALING_ONLY
    by_clusters, _, by_dim = verdict.scaling
    assert by_clusters.fitted == pytest.approx(-0.5, abs=0.02)
    assert by_dim.fitted == pytest.approx(0.5, abs=0.02)
    assert check_instance(theorem, known()).scaling == ()


def test_without_noise_it_is_the_other_paper(rng):
    theorem = NoNoise(dim=120, clusters=6)
    assert check_default(theorem, rng).verdict is Outcome.CONFIRMED
    assert failed(theorem, known()) == ["largest ‖x - μ‖"]
    instance = theorem.default(rng)
    network = instance.two_layer
    wrong = Instance(instance.data, TwoLayer(network.W * 1.5, network.b * 1.5, network.v / 1.5))
    assert failed(theorem, wrong) == ["distance from a KKT point"]
