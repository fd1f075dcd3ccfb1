"""The driver: every verdict can be reached, and nothing is taken from a theorem's own word."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from brittle.common.errors import InputError
from brittle.data import Clusters, Data, Sphere, Subspace
from brittle.networks import TwoLayer
from brittle.theorems import (
    THEOREMS,
    CheckOutcome,
    LikelyClaim,
    ScalingClaim,
    Theorem,
    check,
    check_default,
    check_many,
    find,
)
from brittle.theorems.check import check_data, measure
from brittle.theorems.comparison import (
    LARGEST_MARGIN,
    LONGEST,
    Comparison,
    Promise,
    Scaling,
    Witness,
    at_least,
    at_most,
    fit_scaling,
    promise_at_least,
    promise_at_most,
)
from brittle.theorems.helpers import clopper_pearson
from brittle.theorems.instance import Facts, Instance, KnownFacts
from brittle.theorems.melamed2023 import LargeGradient
from brittle.theorems.trials import judge_trials

DATA = Data(torch.eye(2, dtype=torch.float64), torch.tensor([1.0, -1.0], dtype=torch.float64))


@dataclass(frozen=True)
class Toy(LikelyClaim):
    """value ≤ 1, supposing that size ≤ 10 and that weight ≥ 0."""

    id = "toy2024/1"
    claim = "the value is at most 1"
    applies_to = "anything"

    value: float = 0.5
    size: float = 1.0
    weight: float = 1.0
    chance: float = 1.0
    certain: bool = False
    trivial: float = math.nan

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield at_most("size", self.size, 10)
        yield at_least("weight", self.weight, 0)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most("value", 1.0, certain=self.certain, trivial=self.trivial)]

    def witness(self, instance: Instance) -> Witness:
        return Witness({"value": self.value})

    def probability(self, instance: Instance) -> float:
        return self.chance

    def default(self, rng: torch.Generator) -> Instance:
        return Instance(DATA)


@dataclass(frozen=True)
class Growth(ScalingClaim):
    id = "toy2024/2"
    claim = "the value grows as d²"
    applies_to = "anything"

    size: float = 1.0

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield at_most("size", self.size, 10)

    def witness(self, instance: Instance) -> Witness:
        return Witness({"value": 0.5})

    def default(self, rng: torch.Generator) -> Instance:
        return Instance(DATA)

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        return (fit_scaling("value", "d", 2.0, [1, 2, 4], [3, 12, 48]),)


@dataclass(frozen=True)
class Flawed(Toy):
    id = "toy2024/3"
    flaw = "false: it lacks a factor 2"
    repaired = "toy2024/1"


@dataclass(frozen=True)
class Coin(Toy):
    """Fails with the probability `value`."""

    def witness(self, instance: Instance) -> Witness:
        return Witness({"value": 2.0 * (float(instance.data.X[0, 0]) < self.value)})

    def default(self, rng: torch.Generator) -> Instance:
        return Instance(Data(torch.rand(1, 1, generator=rng, dtype=torch.float64), torch.ones(1).double()))


def verdict_of(theorem: Theorem):
    return check_default(theorem, torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("theorem", "outcome"),
    [
        (Toy(), CheckOutcome.CONFIRMED),
        (Toy(value=1.0), CheckOutcome.CONFIRMED),
        (Toy(value=1.1), CheckOutcome.VIOLATED),
        (Toy(value=1.1, chance=0.9), CheckOutcome.INCONCLUSIVE),
        (Toy(value=1.1, chance=0.9, certain=True), CheckOutcome.VIOLATED),
        (Toy(chance=0.0), CheckOutcome.INCONCLUSIVE),
        (Toy(chance=-3.0), CheckOutcome.INCONCLUSIVE),
        (Toy(value=math.nan), CheckOutcome.INCONCLUSIVE),
        (Toy(trivial=0.9), CheckOutcome.INCONCLUSIVE),
        (Toy(trivial=1.1), CheckOutcome.CONFIRMED),
        (Toy(size=11.0), CheckOutcome.HYPOTHESES_FAIL),
        (Toy(size=11.0, value=5.0), CheckOutcome.HYPOTHESES_FAIL),
        (Growth(), CheckOutcome.SCALING_ONLY),
        (Growth(size=11.0), CheckOutcome.HYPOTHESES_FAIL),
        (Flawed(value=3.0), CheckOutcome.VIOLATED),
    ],
)
def test_every_verdict_is_reached(theorem, outcome):
    assert verdict_of(theorem).verdict is outcome


@pytest.mark.parametrize("theorem", [Toy(), Toy(value=1.1), Toy(size=11.0), Growth()])
def test_the_advice_of_a_verdict_contains_that_of_its_outcome(theorem):
    verdict = verdict_of(theorem)
    assert verdict.verdict.advice in verdict.advice


@dataclass(frozen=True)
class Weight(Facts):
    """`weight`, which nobody can measure."""

    weight: float


@dataclass(frozen=True)
class Weighed(Theorem, id="toy2024/4"):
    """Asks its instance for a weight of at least 0."""

    claim = "there is a weight"
    applies_to = "anything"

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        facts = instance.known(Weight)
        yield at_least("weight", math.nan if facts is None else facts.weight, 0)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least("examples", 1)]

    def witness(self, instance: Instance) -> Witness:
        return Witness({"examples": len(instance.data)})

    def default(self, rng: torch.Generator) -> Instance:
        return Instance(DATA, facts=Weight(1.0))


def test_facts_reach_the_theorem_that_asks_for_their_kind():
    assert verdict_of(Weighed()).verdict is CheckOutcome.CONFIRMED
    assert check(Weighed(), DATA, facts=Weight(2.0)).verdict is CheckOutcome.CONFIRMED
    for other in (Weight(-1.0), Facts(), None):
        assert check(Weighed(), DATA, facts=other).failed == ["weight"]


def test_a_failing_hypothesis_is_named_with_its_slack():
    verdict = verdict_of(Toy(weight=-2.5))
    assert verdict.failed == ["weight"]
    assert "weight = -2.5" in verdict.advice
    assert "-2.5" in verdict.advice
    assert verdict.hypotheses[1].slack == -2.5
    assert verdict.bound == ()


@dataclass(frozen=True)
class Senseless(Toy):
    """Divides by what a hypothesis says is not zero."""

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most("value", 1 / (self.size - 11))]


@pytest.mark.parametrize(("value", "says"), [(0.5, "holds nevertheless"), (5.0, "does not hold: value = 5")])
def test_beyond_its_hypotheses_a_conclusion_is_evaluated_and_not_judged(value, says):
    verdict = check(Toy(size=11.0, value=value), DATA, beyond=True)
    assert verdict.verdict is CheckOutcome.HYPOTHESES_FAIL
    assert f"outside the theorem, its conclusion {says}" in verdict.advice
    assert [each.value for each in verdict.beyond] == [value]
    assert verdict.bound == ()
    assert check(Toy(size=11.0, value=value), DATA).beyond == ()
    assert check(Toy(value=value), DATA, beyond=True).beyond == ()


def test_a_formula_that_makes_no_sense_beyond_its_hypotheses_says_so():
    verdict = check(Senseless(size=11.0), DATA, beyond=True)
    assert verdict.verdict is CheckOutcome.HYPOTHESES_FAIL
    assert "division by zero" in verdict.unmeasurable
    assert verdict.unmeasurable in verdict.advice


def test_a_real_theorem_with_a_doctored_bound_is_violated(monkeypatch):
    monkeypatch.setattr(LargeGradient, "bound", lambda self, instance: [promise_at_least("smallest ‖Π∇N‖", 10.0)])
    verdict = verdict_of(LargeGradient())
    assert verdict.verdict is CheckOutcome.VIOLATED
    assert "counterexample" in verdict.advice


def test_a_flawed_statement_says_so_and_names_what_stands():
    advice = verdict_of(Flawed(value=3.0)).advice
    assert "as printed it is false: it lacks a factor 2" in advice
    assert "toy2024/1" in advice


def test_the_driver_applies_perturbations_itself():
    network = TwoLayer(torch.eye(2).double(), torch.zeros(2).double(), torch.tensor([1.0, -1.0]).double())
    Z = torch.tensor([[-3.0, 4.0], [0.0, 0.0]]).double()
    measured = measure(Witness({LONGEST: 0.0, LARGEST_MARGIN: -9.0}, Z), Instance(DATA, network))
    assert measured[LONGEST] == 5.0
    assert measured[LARGEST_MARGIN] == 1.0  # x_1 - z goes to -4, x_2 stays at 1


def test_json_has_the_promised_keys():
    content = verdict_of(Toy(size=11.0)).to_json()
    assert {"id", "verdict", "hypotheses", "bound", "measured", "advice"} <= set(content)
    assert content["verdict"] == "hypotheses_fail"
    assert {"name", "value", "threshold", "slack"} <= set(content["hypotheses"][0])


@given(st.integers(0, 40), st.integers(1, 40))
def test_clopper_pearson_is_the_exact_interval(failures, more):
    trials = failures + more
    exact = stats.binomtest(failures, trials).proportion_ci(0.99, method="exact")
    assert clopper_pearson(failures, trials) == pytest.approx((exact.low, exact.high), abs=1e-12)


@pytest.mark.parametrize(
    ("counts", "promised", "outcome"),
    [
        ((100, 100, 0), 0.1, CheckOutcome.HYPOTHESES_FAIL),
        ((100, 0, 5), 0.1, CheckOutcome.CONFIRMED),
        ((100, 0, 12), 0.1, CheckOutcome.INCONCLUSIVE),
        ((100, 0, 40), 0.1, CheckOutcome.VIOLATED),
        ((100, 0, 40), 1.2, CheckOutcome.INCONCLUSIVE),
    ],
)
def test_trials_are_judged_by_their_interval(counts, promised, outcome):
    trials, skipped, failures = counts
    assert judge_trials("toy", trials, skipped, failures, promised, 0.0).verdict is outcome


def test_trials_count_failures_and_repeat_for_a_seed():
    runs = [check_many(Coin(value=0.3, chance=0.5), 200, torch.Generator().manual_seed(5)) for _ in range(2)]
    assert runs[0].failures == runs[1].failures
    assert stats.binomtest(runs[0].failures, 200, 0.3).pvalue > 1e-3
    assert runs[0].verdict is CheckOutcome.CONFIRMED
    assert (
        check_many(Coin(value=0.3, chance=0.95), 200, torch.Generator().manual_seed(5)).verdict is CheckOutcome.VIOLATED
    )


@given(st.floats(-3, 3), st.integers(0, 1000))
def test_exponents_agree_with_an_independent_fit(slope, seed):
    rng = np.random.default_rng(seed)
    sizes = np.array([10.0, 20.0, 50.0, 100.0, 300.0])
    values = 2 * sizes**slope * np.exp(0.1 * rng.standard_normal(5))
    scaling = fit_scaling("value", "d", 1.0, list(sizes), list(values))
    reference = stats.linregress(np.log(sizes), np.log(values))
    assert scaling.fitted == pytest.approx(reference.slope, abs=1e-9)
    assert scaling.standard_error == pytest.approx(reference.stderr, abs=1e-9)


@pytest.mark.parametrize("sizes", [[1.0, 2.0], [3.0, 3.0, 3.0], [1.0, 2.0, -1.0]])
def test_exponents_refuse_what_has_none(sizes):
    with pytest.raises(InputError, match="value"):
        fit_scaling("value", "d", 1.0, sizes, [1.0] * len(sizes))


def test_ids_are_paths_and_repaired_statements_exist():
    for identity, theorem in THEOREMS.items():
        assert identity == theorem.id
        assert theorem.paper in ("vardi2022", "frei2023", "melamed2023", "wang2022")
        assert not theorem.repaired or theorem.repaired in THEOREMS


def test_find_helps():
    assert find("MELAMED2023/5.1").id == "melamed2023/5.1"
    with pytest.raises(InputError, match=r"melamed2023/5\.1"):
        find("melamed2023/51")
    with pytest.raises(InputError, match=r"vardi2022/5\.1 or melamed2023/5\.1"):
        find("5.1")
    with pytest.raises(InputError, match="lists them all"):
        find("?")


def test_check_takes_an_id():
    assert check("wang2022/eq1", DATA).verdict is CheckOutcome.CONFIRMED
    assert check("wang2022/eq1-printed", DATA).verdict is CheckOutcome.VIOLATED


def test_solving_for_something_unknown_names_what_is_known():
    with pytest.raises(InputError, match="codimension"):
        find("melamed2023/5.1").solve_for("colour")
    with pytest.raises(InputError, match="nothing"):
        find("melamed2023/4.1").solve_for("dim")


ABOUT_NETWORKS_ALONE = {"vardi2022/2.1", "vardi2022/C4.1", "frei2023/2.1", "melamed2023/R3.1", "wang2022/3.1-proof"}
ABOUT_NETWORKS_ALONE |= {"wang2022/cone"}


def test_data_alone_are_compared_with_what_each_statement_supposes_of_data():
    rng = torch.Generator().manual_seed(0)
    sets = {
        "vardi2022": Sphere(50).sample(20, rng),
        "frei2023": Clusters(50).sample(20, rng, test=5),
        "melamed2023": Subspace(50, 20).sample(20, rng),
        "wang2022": Sphere(50, radius=1.0).sample(20, rng),
    }
    silent = {
        identity for identity, theorem in THEOREMS.items() if not check_data(theorem, sets[theorem.paper]).hypotheses
    }
    assert silent == ABOUT_NETWORKS_ALONE


@pytest.mark.parametrize("tolerance", [0.0, 1e-9])
def test_an_infinite_threshold_is_one(tolerance):
    assert at_most("n", 5, math.inf, tolerance).holds
    assert not at_least("n", 5, math.inf).holds
    assert not at_most("n", math.nan, math.inf, tolerance).holds


@dataclass(frozen=True)
class Promising(Toy):
    """Promises whatever it is told to."""

    promises: tuple[Promise, ...] = ()

    def bound(self, instance: Instance) -> list[Promise]:
        return list(self.promises)


@pytest.mark.parametrize(
    ("promises", "says"),
    [
        ((), "nothing is promised here"),
        ((promise_at_most("value", math.nan),), "the limit of value is no number here"),
        ((promise_at_most("value", math.inf),), "vacuous"),
        ((promise_at_least("value", -math.inf),), "vacuous"),
    ],
)
def test_a_promise_that_cannot_be_broken_or_kept_decides_nothing(promises, says):
    verdict = check(Promising(promises=promises), DATA)
    assert verdict.verdict is CheckOutcome.INCONCLUSIVE
    assert says in verdict.advice


def test_a_promise_about_something_that_is_not_measured_is_named():
    with pytest.raises(InputError, match="the bound is about 'length', and the witness measures 'value'"):
        check(Promising(promises=(promise_at_most("length", 1.0),)), DATA)


CHANCES = [
    (theorem, name)
    for theorem in THEOREMS.values()
    for name in ("error", "failure", "gamma")
    if name in {each.name for each in fields(theorem)}
]


@pytest.mark.parametrize(("theorem", "name"), CHANCES, ids=lambda each: getattr(each, "id", each))
@pytest.mark.parametrize("value", [-0.1, 0.0, 1.0, 3.0, math.nan])
def test_a_probability_outside_0_and_1_is_refused(theorem, name, value):
    with pytest.raises(InputError, match=f"{name} is .*must lie between 0 and 1"):
        replace(theorem, **{name: value})


@pytest.mark.parametrize(
    ("identity", "seed"),
    [("melamed2023/C4.1", 6), ("melamed2023/A.1(2)", 9), ("vardi2022/transfer", 7), ("frei2023/1-NN", 8)],
)
def test_a_default_instance_meets_its_hypotheses_at_seeds_where_it_once_did_not(identity, seed):
    verdict = check_default(find(identity), torch.Generator().manual_seed(seed))
    assert verdict.verdict is CheckOutcome.CONFIRMED, verdict.advice


@dataclass(frozen=True)
class Rates(Facts):
    steps: int
    rate: float


@dataclass(frozen=True)
class Moves(Facts):
    steps: int
    moves: tuple[float, ...]


def test_told_numbers_become_the_facts_that_a_theorem_asks_for():
    told = KnownFacts({"rate": 2.0})
    facts = Instance(DATA, None, told).known(Rates)
    assert facts == Rates(steps=0, rate=2.0)
    assert (type(facts.steps), type(facts.rate)) == (int, float)
    assert (told.kinds, told.missing) == ({Rates}, ["steps"])
    assert math.isnan(KnownFacts({"steps": 3.0}).of(Rates).rate)
    with pytest.raises(InputError, match=r"the fact steps is 2.5; it must be a whole number"):
        KnownFacts({"steps": 2.5}).of(Rates)
    with pytest.raises(InputError, match=r"there is no fact 'speed'; this theorem asks for steps, rate"):
        KnownFacts({"speed": 1.0}).of(Rates)


def test_facts_that_are_more_than_numbers_cannot_be_told():
    told = KnownFacts({"steps": 3.0})
    assert told.of(Moves) is None
    assert (told.kinds, told.missing) == (set(), [])


def test_the_seconds_of_a_default_instance_are_those_since_it_was_begun(rng):
    begun = time.process_time()
    verdict = check_default(Toy(), rng)
    assert 0 <= verdict.seconds <= time.process_time() - begun


def test_intervals_end_where_nothing_or_everything_failed():
    low, high = clopper_pearson(0, 7)
    assert (low, high) == (0.0, pytest.approx(1 - clopper_pearson(7, 7)[0]))
    assert clopper_pearson(7, 7)[1] == 1.0
