"""frei2023: statements are confirmed, every hypothesis is needed by name, probabilities allow for the exact ones."""

import math
from dataclasses import dataclass, replace
from functools import cache

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, chi2, norm

from brittle.common.errors import InputError
from brittle.data import Clusters, Data
from brittle.networks import TwoLayer
from brittle.theorems import CheckOutcome, Instance, Theorem, check_default, check_instance, check_many
from brittle.theorems.comparison import COMPARATOR_FLIPPED, LARGEST_MARGIN, LONGEST, SMALLEST_NORM, promise_at_most
from brittle.theorems.frei2023.assumption import PROPERTIES as CHECKS
from brittle.theorems.frei2023.assumption import Assumption, LinearlySeparable, OrdinaryTrainingSet, count_strange_sets
from brittle.theorems.frei2023.concentration import (
    NoClusterIsLeftOut,
    NoiseIsShort,
    NoiseLeansLittle,
    NoiseLeansLittleOnMeans,
    NoisesAreNearlyOrthogonal,
)
from brittle.theorems.frei2023.examples import NoNoise, PerturbationScales, QuarterPower, Regimes
from brittle.theorems.frei2023.groups import (
    ClusterConstants,
    ClusterGroups,
    cluster_data,
    fresh,
    largest_clusters,
    robust_network,
)
from brittle.theorems.frei2023.lemmas import FreshOnesAreOrdinary
from brittle.theorems.frei2023.message import Message
from brittle.theorems.frei2023.remarks import NearestNeighbourIsRobust, flipping_step, neighbour_radii
from brittle.theorems.frei2023.statements import (
    Generalises,
    NotRobust,
    RobustClusterNetworkExists,
    judge_share,
    largest_wrong_share,
)
from brittle.theorems.helpers import RADIUS
from tests.theorems.breaking import failed, names
from tests.theorems.clusters import ASSUMPTION, NOISE, few, known, solved, unbalanced

SMALL = NotRobust(dim=570, clusters=2, noise=NOISE)
ON_DATA: list[Theorem] = [
    Assumption(),
    LinearlySeparable(),
    OrdinaryTrainingSet(),
    Generalises(),
    RobustClusterNetworkExists(),
    SMALL,
]


@pytest.mark.parametrize("theorem", ON_DATA, ids=lambda theorem: theorem.id)
def test_a_solved_point_is_confirmed(theorem):
    verdict = check_instance(theorem, known())
    assert verdict.verdict is CheckOutcome.CONFIRMED, verdict.advice


@pytest.mark.parametrize("theorem", [*ON_DATA[:3], ON_DATA[4], FreshOnesAreOrdinary()], ids=lambda theorem: theorem.id)
def test_defaults_without_a_network_are_confirmed(theorem, rng):
    assert check_default(theorem, rng).verdict is CheckOutcome.CONFIRMED


def test_the_default_of_generalisation_is_confirmed(rng):
    assert check_default(Generalises(test=100), rng).verdict is CheckOutcome.CONFIRMED


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
    constants = ClusterConstants(dim, clusters, coherence, balance, noise)
    over = dim - dim / 21 - (dim + 1) / 10
    rounded = 0.2 * (dim + 1) / clusters / over + 2.4 * (3 * dim + dim / 21 + 1) / (0.7 * over * balance * clusters)
    assert constants.longest <= rounded * math.sqrt(clusters * dim + clusters * (dim + 1) / 10) * (1 + 1e-12)
    assert constants.longest <= 13.2 * math.sqrt(dim / clusters) / balance


def test_a_doctored_bound_is_violated():
    @dataclass(frozen=True)
    class Doctored(NotRobust):
        def bound(self, instance):
            return [promise_at_most(LONGEST, 1.0, certain=True)]

    verdict = check_instance(Doctored(), known())
    assert verdict.verdict is CheckOutcome.VIOLATED
    assert LONGEST in verdict.advice


def test_an_unlikely_failure_is_no_violation():
    @dataclass(frozen=True)
    class Doctored(NotRobust):
        def bound(self, instance):
            return [promise_at_most(LARGEST_MARGIN, -1e9)]

    assert check_instance(Doctored(), known()).verdict is CheckOutcome.INCONCLUSIVE


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


@given(st.floats(1, 1e9), st.floats(1e-12, 1))
def test_the_condition_on_the_failure_follows_from_another(dim, failure):
    """So it cannot fail alone: n ≥ 1 and n ≤ √δ/3 d^{ln(d)/4} give 1/δ ≤ d^{ln(d)-1}/3."""
    log = math.log(dim)
    if math.sqrt(failure) / 3 * math.exp(log**2 / 4) >= 1:
        assert 1 / failure <= math.exp(log**2 - log) / 3


def test_enough_examples_for_the_properties():
    assert failed(OrdinaryTrainingSet(), few()) == ["examples"]


@given(st.integers(25, 2000), st.integers(2, 40))
def test_the_stated_probability_allows_for_the_exact_tails(dim, clusters):
    """Proposition A.1 by its union bound with exact χ² and normal tails, n = k ln²d."""
    n = math.ceil(clusters * math.log(dim) ** 2)
    long, far = chi2.sf(2 * dim, dim), 2 * norm.sf(math.log(dim))
    empty = clusters * (1 - 1 / clusters) ** n
    exact = n * long + n * (n - 1) / 2 * (long + far) + n * clusters * far + empty
    stated = ClusterConstants(dim, clusters, 0.0, 0.5, examples=n).unlikely
    if clusters <= dim:
        assert exact <= stated


def test_the_properties_over_many_draws(rng):
    trials = check_many(OrdinaryTrainingSet(dim=570, noise=NOISE, cosine=1e-3), 100, rng)
    assert (trials.failures, trials.skipped) == (0, 0)
    assert trials.verdict is CheckOutcome.CONFIRMED
    assert 0 < trials.promised_failure_rate < 1e-4


def test_many_training_sets_at_once_fail_as_often_as_one_by_one(rng):
    """In R^20, where the properties fail often enough to be compared."""
    setting = Clusters(20, 2, noise=0.4, cosine=0.1)
    sets = [ClusterGroups(setting.sample(18, rng)) for _ in range(600)]
    one_by_one = sum(not all(each.holds for check in CHECKS for each in check(groups)) for groups in sets) / 600
    at_once = count_strange_sets(6000, sets[0], rng) / 6000
    assert 0.02 < at_once < 0.5
    assert abs(one_by_one - at_once) < 4 * math.sqrt(at_once * (1 - at_once) / 600)


@pytest.mark.parametrize("theorem", [LinearlySeparable(), RobustClusterNetworkExists(), FreshOnesAreOrdinary()])
def test_fresh_examples_over_many_draws(theorem, rng):
    trials = check_many(theorem, 1000, rng)
    assert trials.verdict is CheckOutcome.CONFIRMED
    assert (trials.failures, trials.skipped) == (0, 0)
    outside = check_many(replace(theorem, dim=570), 10, rng)
    assert (outside.verdict, outside.skipped) == (CheckOutcome.HYPOTHESES_FAIL, 10)


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
    bare = ClusterGroups(replace(data, truth=replace(data.truth, mean_labels=None, noise=None)))
    assert bare.labels.tolist() == ClusterGroups(data).labels.tolist()
    assert bare.noise == pytest.approx(NOISE, rel=0.05)


def test_the_regimes_and_the_quarter_power(rng):
    for theorem in (Regimes(), QuarterPower(dims=(1e9, 1e10, 1e11))):
        verdict = check_default(theorem, rng)
        assert verdict.verdict is CheckOutcome.SCALING_ONLY
        assert all(abs(each.fitted - each.claimed) < 0.03 for each in verdict.scaling)


def test_the_perturbation_scales_as_claimed(rng):
    theorem = PerturbationScales(clusters=(2, 3, 4), dims=(600, 700, 800), scaled_noise=0.5, test=20)
    verdict = check_default(theorem, rng)
    assert verdict.verdict is CheckOutcome.SCALING_ONLY
    by_clusters, _, by_dim = verdict.scaling
    assert by_clusters.fitted == pytest.approx(-0.5, abs=0.02)
    assert by_dim.fitted == pytest.approx(0.5, abs=0.02)
    assert check_instance(theorem, known()).scaling == ()


def test_without_noise_it_is_the_other_paper(rng):
    theorem = NoNoise(dim=120, clusters=6)
    assert check_default(theorem, rng).verdict is CheckOutcome.CONFIRMED
    assert failed(theorem, known()) == ["largest ‖x - μ‖"]
    instance = theorem.default(rng)
    network = instance.two_layer
    wrong = Instance(instance.data, TwoLayer(network.W * 1.5, network.b * 1.5, network.v / 1.5))
    assert failed(theorem, wrong) == ["distance from a KKT point"]


def test_errors_that_are_counted_refute_and_a_certificate_confirms():
    """0 errors of 1000 do not show 10^-6; the certified tail does, and 30 errors of 1000 refute it in any case."""
    assert judge_share(0, 1000, at_most=1e-9, allowed=1e-6) == 1e-9
    assert math.isnan(judge_share(0, 1000, at_most=0.5, allowed=1e-6))
    for at_most in (1.0, 1e-9, 0.0):
        assert judge_share(30, 1000, at_most, allowed=1e-6) == pytest.approx(beta.ppf(0.005, 30, 971))


def with_labels_flipped(data: Data) -> Data:
    return replace(data, y_test=-data.test.y)


def with_examples_negated(data: Data) -> Data:
    return replace(data, X_test=-data.test.X)


def with_clusters_of_the_other_label(data: Data) -> Data:
    truth = replace(data.truth, mean_labels=-data.truth.mean_labels)
    return replace(with_labels_flipped(data), truth=truth)


def with_some_labels_flipped(data: Data) -> Data:
    """Five of two hundred."""
    return replace(data, y_test=torch.cat([-data.test.y[:5], data.test.y[5:]]))


WRONG = [with_labels_flipped, with_examples_negated, with_clusters_of_the_other_label, with_some_labels_flipped]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("theorem", [Generalises(), SMALL], ids=lambda theorem: theorem.id)
def test_fresh_examples_that_are_wrong_refute_whatever_the_certificate_says(theorem, wrong):
    verdict = check_instance(theorem, replace(known(), data=wrong(known().data)))
    assert verdict.failed == []
    assert verdict.verdict is CheckOutcome.VIOLATED
    shares = [each for each in verdict.bound if "share" in each.name or "error" in each.name]
    assert shares
    assert not any(each.holds for each in shares)


@pytest.mark.parametrize("theorem", [Generalises(), SMALL], ids=lambda theorem: theorem.id)
def test_without_the_properties_of_the_training_set_wrong_fresh_examples_refute_nothing(theorem):
    """The statements hold with a probability over the training set, which P1-P6 make certain."""
    data = known().data
    X, mean = data.X.clone(), data.truth.means[data.truth.cluster[0]]
    X[0] = mean + 1.6 * (X[0] - mean)
    verdict = check_instance(theorem, solved(with_labels_flipped(replace(data, X=X))))
    assert verdict.verdict is CheckOutcome.INCONCLUSIVE
    assert "use trials" in verdict.advice


@pytest.mark.parametrize("noise", [0.2, 0.5])
def test_the_certified_share_is_above_the_true_one(noise, rng):
    """One neuron for each sign of one coordinate: the error is a normal tail."""
    signs = torch.tensor([1.0, -1]).double()
    network = TwoLayer(torch.tensor([[1.0, 0], [-1.0, 0]]).double(), torch.zeros(2).double(), signs)
    centres, labels = torch.tensor([[1.0, 0], [-1, 0]]).double(), torch.tensor([1.0, -1]).double()
    most = largest_wrong_share(network, centres, labels, noise)
    assert norm.sf(1 / noise) <= most <= 4 * norm.sf(1 / noise)
    assert largest_wrong_share(network, centres, -labels, noise) == 1


@cache
def message() -> Instance:
    return Message(clusters=340, test=100).default(torch.Generator().manual_seed(5))


def test_the_papers_message_on_one_instance():
    """It generalises, a robust network exists, and one z shorter than √d flips every example; the noise is as long."""
    instance = message()
    for theorem in (Generalises(), RobustClusterNetworkExists(), NotRobust(), Message()):
        verdict = check_instance(theorem, instance)
        assert verdict.verdict is CheckOutcome.CONFIRMED, verdict.advice
    root = math.sqrt(instance.data.dim)
    assert verdict.measured[LONGEST] < verdict.measured["length of the noise, σ√d"] == root
    assert verdict.measured[RADIUS] > root / 4 > 3 * verdict.measured[SMALLEST_NORM]
    assert verdict.measured["test error, counted"] == 0
    assert verdict.measured["share that does not flip, counted"] == 0
    assert verdict.measured[COMPARATOR_FLIPPED] == 0


def test_the_message_needs_clusters_of_some_hundred():
    """At c = 1/2 the theorem's z is 18√(d/k) long, if not more."""
    for clusters, broken in ((324, ["bound on ‖z‖ of Lemma D.9, over √d"]), (328, [])):
        theorem = Message(clusters=clusters, test=1)
        hypotheses = theorem.hypotheses(theorem.default(torch.Generator().manual_seed(0)))
        assert [each.name for each in hypotheses if not each.holds] == broken


def test_fresh_examples_that_are_wrong_refute_the_message():
    wrong = replace(message(), data=with_labels_flipped(message().data))
    verdict = check_instance(Message(), wrong)
    assert verdict.verdict is CheckOutcome.VIOLATED
    assert "test error, against ε" in [each.name for each in verdict.bound if not each.holds]


NOISES = [NoiseIsShort(), NoiseLeansLittle(), NoisesAreNearlyOrthogonal(), NoiseLeansLittleOnMeans()]


@pytest.mark.parametrize("theorem", NOISES, ids=lambda theorem: theorem.id)
def test_noise_beyond_its_limit_is_counted(theorem, rng):
    """In R^4 the events are common; the drawn ones exceed their limits as often as exact tails say."""
    small = replace(theorem, dim=4)
    counted = check_many(small, 4000, rng)
    exact = {
        "frei2023/A.1": chi2.sf(8, 4),
        "frei2023/A.2": 2 * norm.sf(math.log(4)),
        "frei2023/A.4": 2 * norm.sf(math.log(4)),
    }.get(theorem.id)
    assert counted.failures > 0
    if exact is not None:
        assert abs(counted.failure_rate - exact) < 4 * math.sqrt(exact / 4000)
    else:
        assert counted.failure_rate <= counted.promised_failure_rate
    doubled = replace_noise(known(), 4.0)
    assert check_instance(theorem, doubled, beyond=True).bound[0].holds is False


def replace_noise(instance: Instance, factor: float) -> Instance:
    """The same means with longer noise, of which the data do not tell."""
    data = instance.data
    centres = data.truth.means[data.truth.cluster]
    return Instance(replace(data, X=centres + factor * (data.X - centres)), instance.network)


def test_a_cluster_that_is_left_out_is_seen(rng):
    data = known().data
    lonely = data.take(data.truth.cluster == 0)
    repeated = lonely.take(torch.arange(len(lonely)).repeat(3))
    verdict = check_instance(NoClusterIsLeftOut(), Instance(repeated))
    assert not verdict.bound[0].holds


def test_the_nearest_neighbour_radius_is_below_every_flip(rng):
    """Along random rays no label changes within it; towards the nearest rival it is reached."""
    instance = known()
    radii = neighbour_radii(instance)
    unseen, data = fresh(instance), instance.data
    for x, y, radius in zip(unseen.X[:5], unseen.y[:5], radii[:5], strict=True):
        rivals = data.X[data.y != y]
        towards = rivals[torch.cdist(x[None], rivals)[0].argmin()] - x
        rays = torch.cat([torch.randn(50, len(x), generator=rng).double(), towards[None]])
        moved = x + 0.999 * radius * rays / rays.norm(dim=1, keepdim=True)
        assert bool((data.y[torch.cdist(moved, data.X).argmin(1)] == y).all())
        beyond = x + 1.2 * radius * towards / towards.norm()
        assert data.y[torch.cdist(beyond[None], data.X).argmin()] != y


def test_one_wrong_label_breaks_the_nearest_neighbour_rule():
    y = known().data.y.clone()
    y[0] = -y[0]
    instance = Instance(replace(known().data, y=y), known().network)
    verdict = check_instance(NearestNeighbourIsRobust(), instance, beyond=True)
    assert "distance from a KKT point" in verdict.failed
    assert not verdict.beyond[0].holds


def test_with_two_clusters_nothing_is_promised_of_the_nearest_neighbour():
    """They flip at √(d/2), which is the radius of the rule: no derivation can promise that it is less."""
    verdict = check_instance(NearestNeighbourIsRobust(), known(), beyond=True)
    assert verdict.failed == ["step that flips by the proof"]
    assert verdict.measured["that step over that radius"] > 1


@given(st.integers(3, 40), st.floats(0.1, 0.5))
def test_the_step_that_flips_tends_to_what_the_clusters_ratio_says(clusters, balance):
    """√(kd)/(ck+1) for σ -> 0, d -> ∞ and orthogonal means."""
    far = ClusterConstants(10**15, clusters, 0.0, balance, noise=0.0)
    assert flipping_step(far) == pytest.approx(math.sqrt(clusters * 1e15) / (balance * clusters + 1), rel=1e-9)


def test_a_robust_network_needs_a_longer_step_than_is_promised_of_kkt_points(rng):
    theorem = NearestNeighbourIsRobust()
    data = cluster_data(theorem.dim, theorem.clusters, theorem.noise, rng, test=20)
    verdict = check_instance(theorem, Instance(data, robust_network(data)), beyond=True)
    assert verdict.failed == ["distance from a KKT point"]
    assert [each.holds for each in verdict.beyond] == [True, False]


@pytest.mark.parametrize(("square", "strange"), [(2.04, 0), (2.25, 5)])
def test_examples_longer_than_p5_admits_make_a_training_set_strange(square, strange):
    """‖x‖² is (1 + σ²) d beside 3d + 4σ√d ln d, which is 3.08 d here; the other properties hold at either noise."""
    data = Clusters(10**6, 2, math.sqrt(square)).sample(20, torch.Generator().manual_seed(0), in_span=True)
    assert count_strange_sets(5, ClusterGroups(data), torch.Generator().manual_seed(1)) == strange


@pytest.mark.parametrize(("lean", "strange"), [(18, 0), (-18, 0), (24, 1), (-24, 1)])
def test_one_pair_of_noises_beyond_p2_makes_a_training_set_strange(monkeypatch, lean, strange):
    """<ξ_0, ξ_1> = σ²·1000·lean beside σ²√(2d) ln d, which is σ²·19538; all other noises are orthogonal."""
    data = Clusters(10**6, 2, 0.5).sample(20, torch.Generator().manual_seed(0), in_span=True)
    rest = 1000 * torch.eye(20, dtype=torch.float64)[None]
    rest[0, 1, 0] = lean
    monkeypatch.setattr("brittle.theorems.frei2023.assumption.bartletts", lambda *_: [rest])
    assert count_strange_sets(1, ClusterGroups(data), torch.Generator().manual_seed(1)) == strange
