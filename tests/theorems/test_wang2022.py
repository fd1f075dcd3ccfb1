"""wang2022 on small instances, with one hypothesis broken at a time, and against brute force."""

import itertools
import math
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest
import torch
from scipy import stats

from brittle.data import Data
from brittle.networks import TwoLayer
from brittle.theorems import CheckOutcome, Instance, Theorem, check_default, check_instance, check_many
from brittle.theorems.wang2022 import (
    THEOREMS,
    Bernstein,
    BoundedOutput,
    BoundedOutputWide,
    Chernoff,
    Cone,
    FewUnstable,
    GradientChange,
    LipschitzOfGaussians,
    NoRobustLazyNetwork,
    OneStepFlips,
    OneStepWithoutConstants,
    PrintedChiSquare,
    PrintedCountingStep,
    PrintedFixedDirection,
    PrintedLongGradient,
    PrintedMoments,
    PrintedQuarterRoot,
    PrintedUnstable,
    QuarterRoot,
    RareCrossing,
    RareCrossingNearby,
    SmallChange,
    SoundChiSquare,
    SoundCountingStep,
    SoundFixedDirection,
    SoundLongGradient,
    SoundMoments,
    SubsetOfFlips,
    UniformChange,
)
from brittle.theorems.wang2022.attack import one_step, segment_change
from brittle.theorems.wang2022.ball import WeightBall, bound_output, lazy_instance
from brittle.theorems.wang2022.change import find_largest_change, from_above
from brittle.theorems.wang2022.gradient import (
    _shortest,
    compute_printed_last_term,
    draw_shortest_gradient,
    find_shortest_gradient,
    shortest_gradient,
    sound_last_term,
)
from brittle.theorems.wang2022.neurons import AT_MOVED, AT_X, CHANGES, displace_examples
from brittle.theorems.wang2022.sweep import first_open_dim

BALL = {"dim": 60, "width": 400, "radius": 0.5}
LONG = {"dim": 200, "width": 2000, "radius": 0.5, "gamma": 0.5, "examples": 1}
SWEEP = {"dims": (16, 25, 36), "networks": 2, "examples": 5, "radius": 0.6}
SMALL = [
    (OneStepFlips(**SWEEP, ratios=(0.1,)), CheckOutcome.SCALING_ONLY),
    (OneStepWithoutConstants(dim=1000, width=500, examples=3), CheckOutcome.CONFIRMED),
    (NoRobustLazyNetwork(**SWEEP), CheckOutcome.SCALING_ONLY),
    (Cone(dim=30, width=100), CheckOutcome.CONFIRMED),
    (BoundedOutputWide(**BALL), CheckOutcome.CONFIRMED),
    (QuarterRoot(), CheckOutcome.CONFIRMED),
    (PrintedQuarterRoot(), CheckOutcome.VIOLATED),
    (Bernstein(), CheckOutcome.CONFIRMED),
    (SoundMoments(), CheckOutcome.CONFIRMED),
    (PrintedMoments(), CheckOutcome.VIOLATED),
    (SoundChiSquare(), CheckOutcome.CONFIRMED),
    (PrintedChiSquare(), CheckOutcome.VIOLATED),
    (Chernoff(), CheckOutcome.CONFIRMED),
    (LipschitzOfGaussians(), CheckOutcome.CONFIRMED),
    (FewUnstable(**BALL), CheckOutcome.CONFIRMED),
    (PrintedUnstable(**BALL, size=0.13), CheckOutcome.VIOLATED),
    (BoundedOutput(**BALL), CheckOutcome.CONFIRMED),
    (RareCrossing(), CheckOutcome.CONFIRMED),
    (RareCrossingNearby(), CheckOutcome.CONFIRMED),
    (PrintedLongGradient(**LONG), CheckOutcome.CONFIRMED),
    (SoundLongGradient(**LONG), CheckOutcome.CONFIRMED),
    (SubsetOfFlips(draws=3), CheckOutcome.VIOLATED),
    (PrintedFixedDirection(dim=300, width=1000, gamma=0.4), CheckOutcome.INCONCLUSIVE),
    (SoundFixedDirection(dim=300, width=1000, gamma=0.4), CheckOutcome.CONFIRMED),
    (GradientChange(dim=25, width=2300), CheckOutcome.INCONCLUSIVE),
    (UniformChange(dim=25, width=2300), CheckOutcome.INCONCLUSIVE),
    (SmallChange(dims=(9, 16, 25)), CheckOutcome.SCALING_ONLY),
    (PrintedCountingStep(), CheckOutcome.VIOLATED),
    (SoundCountingStep(), CheckOutcome.CONFIRMED),
]


@cache
def default_of(theorem: Theorem) -> Instance:
    return theorem.default(torch.Generator().manual_seed(0))


def test_every_theorem_has_a_small_instance():
    assert {type(theorem) for theorem, _ in SMALL} == {type(theorem) for theorem in THEOREMS}


@pytest.mark.parametrize(("theorem", "outcome"), SMALL, ids=[theorem.id for theorem, _ in SMALL])
def test_the_verdict_is_the_known_one(theorem, outcome):
    verdict = check_instance(theorem, default_of(theorem))
    assert verdict.failed == []
    assert verdict.verdict is outcome, verdict.advice
    if theorem.flaw:
        assert "as printed it is" in verdict.advice
        assert theorem.repaired in verdict.advice


def with_network(instance: Instance, **changes) -> Instance:
    return replace(instance, network=replace(instance.two_layer, **changes))


def longer(instance: Instance) -> Instance:
    return replace(instance, data=Data(1.01 * instance.data.X, instance.data.y))


def biased(instance: Instance) -> Instance:
    return with_network(instance, b=instance.two_layer.b + 1e-9)


def uneven(instance: Instance) -> Instance:
    return with_network(instance, v=1.001 * instance.two_layer.v)


def broad(instance: Instance) -> Instance:
    network = instance.two_layer
    start = network if network.start is None else network.start
    shift = 1.2 * start.W
    return with_network(instance, W=network.W - start.W + shift, start=replace(start, W=shift, start=None))


def all_positive(instance: Instance) -> Instance:
    return with_network(instance, v=instance.two_layer.v.abs())


def with_equal_rows(instance: Instance) -> Instance:
    """Every neuron starts at the same vector, of the length that they have in the mean."""
    network = instance.two_layer
    start = network if network.start is None else network.start
    row = start.W[:1] * math.sqrt(start.dim) / start.W[:1].norm()
    equal = row.expand_as(start.W).clone()
    return with_network(instance, W=network.W - start.W + equal, start=replace(start, W=equal, start=None))


def away(instance: Instance) -> Instance:
    W = instance.two_layer.W.clone()
    W[0, 0] += 20.0 / math.sqrt(len(W))
    return with_network(instance, W=W)


def same(instance: Instance) -> Instance:
    return instance


ON_BALL = [
    (longer, "deviation of ‖x‖ from 1"),
    (biased, "largest bias"),
    (uneven, "deviation of the output weights from 1/√m"),
    (broad, "variance of the start, in standard errors from 1"),
    (all_positive, "sum of the output weights' signs, in standard deviations"),
    (with_equal_rows, "‖Σ w_s(0)‖² over md"),
    (away, "distance from the start times √m"),
]
IN_BALL = [
    FewUnstable(**BALL),
    BoundedOutput(**BALL),
    PrintedLongGradient(**LONG),
    SoundLongGradient(**LONG),
    PrintedFixedDirection(dim=300, width=1000, gamma=0.4),
    SoundFixedDirection(dim=300, width=1000, gamma=0.4),
    GradientChange(dim=25, width=2300),
    UniformChange(dim=25, width=2300),
    OneStepFlips(**SWEEP, ratios=(0.1,)),
    NoRobustLazyNetwork(**SWEEP),
]
BREAKS = [
    *((theorem, *row) for theorem in IN_BALL for row in ON_BALL),
    (FewUnstable(**BALL, size=0.6), same, "size of δ"),
    (PrintedUnstable(**BALL, size=0.6), same, "size of δ"),
    (RareCrossing(size=0.6), same, "size of δ"),
    (RareCrossing(), longer, "deviation of ‖x‖ from 1"),
    (RareCrossingNearby(), longer, "deviation of ‖x‖ from 1"),
    (RareCrossingNearby(epsilon=2.0), same, "ε"),
    (RareCrossingNearby(size=0.6), same, "size of δ"),
    (PrintedLongGradient(**LONG | {"dim": 60}), same, "dimension beside 25 ln(8/γ)"),
    (SoundLongGradient(**LONG | {"dim": 60}), same, "dimension beside 25 ln(8/γ)"),
    (PrintedLongGradient(**LONG | {"width": 20}), same, "√(2ln(4/γ)/m) + ln(4/γ)/m"),
    (SoundFixedDirection(dim=300, width=1000, gamma=0.4, size_constant=1e-3), same, "1/d beside R√(2 ln d)"),
    (SoundFixedDirection(dim=20, width=1000, gamma=0.01), same, "dimension beside ln(m/γ)ln(1/γ)"),
    (GradientChange(dim=25, width=2000), same, "width beside d^2.4"),
    (GradientChange(dim=16, width=800), same, "dimension beside ln²(4/γ)"),
    (SubsetOfFlips(dim=10, draws=1), same, "dimension beside ln(2m/γ)"),
    (PrintedCountingStep(width=1000), same, "width beside max(58, d^2.4)"),
    (SoundCountingStep(dim=1, width=58), same, "dimension"),
    (Cone(dim=30, width=100), biased, "largest bias"),
    (BoundedOutputWide(**BALL | {"width": 40}), same, "width beside 11.66 ln(2/γ)"),
    (QuarterRoot(width=300), same, "bound of B.7-repaired beside √d/4"),
    (PrintedQuarterRoot(draws=1, constant=400.0), same, "width beside C ln(4/γ)"),
    (Bernstein(scale=1.0), same, "Σ E|z|^q over (q!/2) v c^(q-2)"),
    (Bernstein(variance=2.9), same, "Σ E z² over v"),
    (Chernoff(t=4.9), same, "t beside p"),
    (LipschitzOfGaussians(t=-1.0), same, "t"),
    (SoundChiSquare(count=14), same, "m beside ln(2/γ)"),
    (SoundMoments(order=1), same, "order"),
    (Cone(dim=30, width=100, scale=-1.0), same, "scale r"),
    (OneStepWithoutConstants(dim=5, width=8), lambda instance: bent(), "ρ on the segment"),
]


def bent() -> Instance:
    """f(x) = 2φ(x1) - φ(x1 - ½) + ... bends back before it reaches zero: the gradient changes by more than itself."""
    W = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).double()
    network = TwoLayer(W, torch.tensor([0.0, 0.5]).double(), torch.tensor([1.0, 3.0]).double())
    return Instance(Data(torch.tensor([[1.0, 0.0]]).double(), torch.ones(1).double()), network)


@pytest.mark.parametrize(("theorem", "breaking", "name"), BREAKS)
def test_breaking_one_hypothesis_names_exactly_that_one(theorem, breaking, name):
    verdict = check_instance(theorem, breaking(default_of(theorem)))
    assert verdict.verdict is CheckOutcome.HYPOTHESES_FAIL
    assert verdict.failed == [name]


def test_a_flat_output_has_no_step(rng):
    network = TwoLayer(torch.eye(2).double(), torch.zeros(2).double(), torch.ones(2).double())
    verdict = check_instance(
        OneStepWithoutConstants(), Instance(Data(-torch.ones(1, 2).double(), torch.ones(1).double()), network)
    )
    assert set(verdict.failed) == {"smallest |f(x)|", "smallest ‖∇f(x)‖", "ρ on the segment"}


@pytest.fixture
def ball(rng) -> WeightBall:
    return WeightBall(lazy_instance(12, 40, 2.0, 4, 0, rng), 2.0)


def somewhere(ball: WeightBall, rng: torch.Generator) -> TwoLayer:
    """A random network on the surface of the ball."""
    moves = torch.randn(ball.start.W.shape, generator=rng, dtype=torch.float64)
    return replace(ball.start, W=ball.start.W + ball.reach * moves / moves.norm(dim=1, keepdim=True))


def test_no_network_of_the_ball_exceeds_the_largest_output_and_one_attains_it(ball, rng):
    X, most = ball.instance.data.X, ball.largest_output()
    for _ in range(50):
        assert bool((somewhere(ball, rng).logits(X).abs() <= most + 1e-12).all())
    extremes = []
    for sign in (1, -1):
        pushed = [ball.start.W + sign * ball.reach * ball.start.v.sign()[:, None] * x for x in X]
        outputs = [replace(ball.start, W=W).logits(x[None])[0] for W, x in zip(pushed, X, strict=True)]
        extremes.append(torch.stack(outputs).abs())
    torch.testing.assert_close(torch.maximum(*extremes), most)


def test_only_unstable_neurons_change_sign(ball, rng):
    X, unstable = ball.instance.data.X, ball.unstable()
    seen = torch.zeros_like(unstable)
    for _ in range(200):
        seen |= (somewhere(ball, rng).preactivations(X) > 0) != (ball.inputs > 0)
    assert not bool((seen & ~unstable).any())
    pushed = torch.stack(
        [(ball.start.W - ball.reach * z.sign()[:, None] * x) @ x for x, z in zip(X, ball.inputs, strict=True)]
    )
    inner = ball.inputs.abs() < 0.99 * ball.reach
    assert bool((((pushed > 0) != (ball.inputs > 0)) | ~inner).all())


def test_the_change_in_a_direction_is_bounded_from_above(ball, rng):
    X = ball.instance.data.X
    moved, r = displace_examples(X, 0.4), torch.roll(X, 2, dims=1)
    most = from_above(ball, moved, r)
    ones = torch.ones(len(X)).double()
    for _ in range(200):
        network = somewhere(ball, rng)
        change = (r * (network.logit_gradients(X, ones) - network.logit_gradients(moved, ones))).sum(1)
        assert bool((change <= most + 1e-12).all())


def test_a_displacement_has_its_size_and_is_tangent(ball):
    X = ball.instance.data.X
    delta = displace_examples(X, 0.3) - X
    torch.testing.assert_close(delta.norm(dim=1), torch.full((4,), 0.3).double())
    assert float((delta * X).sum(1).abs().max()) < 1e-12


def test_the_search_for_a_short_gradient_lies_between_the_best_subset_and_the_start(rng):
    for _ in range(20):
        fixed = torch.randn(5, generator=rng, dtype=torch.float64)
        movable = torch.randn(7, 5, generator=rng, dtype=torch.float64)
        chosen = torch.rand(7, generator=rng) < 0.5
        subsets = torch.tensor(list(itertools.product([0.0, 1.0], repeat=7))).double()
        best = float((fixed + subsets @ movable).norm(dim=1).min())
        found = _shortest(fixed, movable, chosen, 0.0)
        assert best - 1e-12 <= found <= float((fixed + chosen.double() @ movable).norm()) + 1e-12


def test_the_shortest_gradient_is_no_longer_than_the_start_allows(ball):
    X = ball.instance.data.X
    start = ball.start.logit_gradients(X, torch.ones(len(X)).double())
    across = start - (start * X).sum(1, keepdim=True) * X
    for row in range(len(X)):
        assert shortest_gradient(ball, row) <= float(across[row].norm()) + 1e-12


def test_drawn_gradients_follow_the_law_of_explicit_ones(rng):
    """Without a ball to move in, both are √(k/m)·χ."""
    drawn = [draw_shortest_gradient(30, 50, 0.0, rng) for _ in range(300)]
    explicit = [shortest_gradient(WeightBall(lazy_instance(30, 50, 0.0, 1, 0, rng), 0.0), 0) for _ in range(300)]
    assert stats.ks_2samp(drawn, explicit).pvalue > 1e-3


def test_the_sound_term_covers_every_subset(rng):
    """With few neurons all subsets can be tried: the union bound holds, and a fixed subset obeys the printed term."""
    dim, width, radius, gamma = 20, 40, 1.5, 0.2
    limit, exceeded = sound_last_term(dim, width, radius, gamma), 0
    for _ in range(100):
        k = int((torch.randn(width, generator=rng).abs() <= radius / math.sqrt(width)).sum())
        G = torch.randn(k, dim - 1, generator=rng, dtype=torch.float64) / math.sqrt(width)
        subsets = torch.tensor(list(itertools.product([0.0, 1.0], repeat=min(k, 14)))).double()
        exceeded += float((subsets @ G[: subsets.shape[1]]).norm(dim=1).max()) > limit
    assert exceeded <= 100 * gamma / 2


def test_the_numbers_of_the_specification():
    assert bound_output(10_000, 1.0, 0.01) == pytest.approx(4.36, abs=5e-3)
    assert PrintedLongGradient().least(784, 10_000) == pytest.approx(7.21, abs=5e-3)
    assert PrintedLongGradient(radius=10.0, gamma=0.1).least(784, 100_000) == pytest.approx(-1.1, abs=0.05)
    assert sound_last_term(784, 10_000, 1.0, 0.01) > compute_printed_last_term(784, 10_000, 1.0, 0.01)


def test_a_negative_bound_on_a_norm_is_vacuous(rng):
    verdict = check_default(PrintedLongGradient(dim=200, width=400, radius=5.0, examples=1), rng)
    assert verdict.verdict is CheckOutcome.INCONCLUSIVE
    assert "vacuous" in verdict.advice


def test_failures_of_b4_are_binomial(rng):
    theorem = FewUnstable(width=200, radius=2.0, gamma=0.5)
    limit = math.floor(2.0 / math.sqrt(200) * 200 + math.sqrt(200 * math.log(2) / 2))
    share = math.erf(2.0 / math.sqrt(200) / math.sqrt(2))
    trials = check_many(theorem, 20_000, rng)
    assert stats.binomtest(trials.failures, 20_000, float(stats.binom.sf(limit, 200, share))).pvalue > 1e-3


@pytest.mark.parametrize("theorem", [RareCrossing(size=0.3), RareCrossingNearby(size=0.3, epsilon=3e-3, reach=0.1)])
def test_sign_changes_happen_as_often_as_computed(theorem, rng):
    exact = check_instance(theorem, default_of(theorem)).measured[CHANGES]
    trials = check_many(theorem, 50_000, rng)
    assert stats.binomtest(trials.failures, 50_000, exact).pvalue > 1e-3


def test_a_crossed_neuron_really_changes_sign_near_its_edge(rng):
    """Inside the edge a pair (w, δ') that changes the sign is built; outside none exists."""
    theorem = RareCrossingNearby(dim=6, size=0.3, epsilon=0.05, reach=0.1)
    p = torch.zeros(6).double()
    p[0] = 1 - theorem.size
    for _ in range(100):
        w = torch.randn(6, generator=rng, dtype=torch.float64)
        inside = bool(w[0].abs() <= theorem._edge(float(w[1:].norm())))
        toward = w - theorem.reach * w[0].sign() * p / p.norm()  # the nearest that w·p comes to zero
        crosses = bool((toward @ p) * w[0] <= 0) or bool((toward @ p).abs() <= theorem.epsilon * toward.norm())
        assert inside or not crosses


@pytest.mark.parametrize(
    "theorem",
    [BoundedOutput(**BALL), PrintedLongGradient(**LONG), SoundLongGradient(**LONG), FewUnstable(**BALL)],
    ids=lambda theorem: theorem.id,
)
def test_lemmas_hold_over_many_draws(theorem, rng):
    trials = check_many(theorem, 200, rng)
    assert trials.verdict is CheckOutcome.CONFIRMED
    assert trials.promised_failure_rate == theorem.gamma


def test_trials_are_reproducible():
    runs = [check_many(RareCrossing(), 500, torch.Generator().manual_seed(3)).failures for _ in range(2)]
    assert runs[0] == runs[1]


def test_the_change_on_the_segment_is_that_of_a_fine_walk(rng):
    instance = lazy_instance(20, 60, 1.0, 6, 0, rng)
    network, ones = instance.two_layer, torch.ones(1).double()
    for x in instance.data.X:
        rho = segment_change(network, x)
        if not rho < 1:
            continue
        output, g = network.logits(x[None]), network.logit_gradients(x[None], ones)[0]
        delta = -2 * output * g / ((1 - rho) * g.square().sum())
        walk = x + torch.linspace(0, 1, 20_001).double()[:, None] * delta
        seen = (network.logit_gradients(walk, torch.ones(20_001).double()) - g).norm(dim=1).max() / g.norm()
        assert float(seen) == pytest.approx(rho, abs=1e-9)


def test_one_step_crosses_exactly_at_its_size(rng):
    instance = lazy_instance(30, 200, 1.0, 5, 0, rng)
    network, X = instance.two_layer, instance.data.X
    size = one_step(network, X).size
    output = network.logits(X)
    gradient = network.logit_gradients(X, output.sign())
    rays = -gradient / gradient.norm(dim=1, keepdim=True)
    before = network.logits(X + 0.999 * size[:, None] * rays) * output.sign()
    after = network.logits(X + 1.001 * size[:, None] * rays) * output.sign()
    assert bool((before > 0).all())
    assert bool((after < 0).all())


def test_exponents_come_with_errors_and_the_confounder():
    theorem = OneStepFlips(**SWEEP, ratios=(0.1,))
    verdict = check_instance(theorem, default_of(theorem))
    by_name = {each.measure: each for each in verdict.scaling}
    assert by_name["‖∇f‖ typical at C0/√d = 0.1"].claimed == 0.5
    assert by_name["‖∇f‖ typical at C0/√d = 0.1"].fitted == pytest.approx(0.5, abs=0.25)
    assert by_name["|f| typical at C0/√d = 0.1"].confounder
    assert all(each.standard_error >= 0 and len(each.points) == 3 for each in verdict.scaling)
    assert "confounder" in verdict.advice


def test_one_network_alone_has_no_exponent():
    theorem = OneStepFlips(**SWEEP, ratios=(0.1,))
    verdict = check_instance(theorem, replace(default_of(theorem), facts=None))
    assert verdict.verdict is CheckOutcome.SCALING_ONLY
    assert verdict.scaling == ()
    assert "no exponent" in verdict.advice


@pytest.mark.parametrize("dim", [2, 5, 100, 784, 10**6])
def test_no_width_satisfies_the_range_with_constants_of_one(dim):
    assert math.isnan(OneStepFlips(dim=dim).solve_for("width").least)


def test_the_range_of_widths_opens_at_three_million():
    edge = first_open_dim()
    assert 2.4 * math.log(edge) == pytest.approx(edge**0.24, rel=1e-6)
    solution = OneStepFlips(dim=math.ceil(edge) + 10).solve_for("width")
    assert solution.least <= solution.most


def test_b9_begins_to_bite_beyond_any_computer():
    solution = GradientChange().solve_for("dim")
    assert 1e20 < solution.least < 1e26


@pytest.mark.parametrize("dim", [784, 10**5, 7 * 10**5])
def test_the_counting_step_fails_as_printed_and_holds_when_nothing_is_dropped(dim):
    width, instance = math.ceil(dim**2.4), default_of(SoundCountingStep())
    instance = replace(instance, data=replace(instance.data, truth=replace(instance.data.truth, dim=dim)))
    assert check_instance(PrintedCountingStep(width=width), instance).verdict is CheckOutcome.VIOLATED
    assert check_instance(SoundCountingStep(width=width), instance).verdict is CheckOutcome.CONFIRMED


def test_the_search_for_a_short_gradient_starts_where_it_is_told_and_stops_where_no_flip_helps():
    fixed, movable = torch.tensor([3.0, 0.0]).double(), torch.tensor([[-2.0, 0.0], [0.0, 0.5]]).double()
    inside = torch.tensor([True, False])
    assert _shortest(fixed, movable, inside, 0.0) == 1
    assert _shortest(fixed, movable, inside, 0.25) == 0.75
    assert _shortest(fixed, movable, inside, 2.0) == 0
    assert _shortest(fixed, movable, ~inside, 0.0) == 1  # both are flipped, one after the other
    assert _shortest(fixed, movable[:0], inside[:0], 0.5) == 2.5


def test_a_network_alone_is_one_start_beside_a_quarter_of_the_root():
    theorem = PrintedQuarterRoot(dim=16, width=30, radius=0.5, draws=1)
    instance = lazy_instance(16, 30, 0.5, 1, 0, torch.Generator().manual_seed(0))
    measures = theorem.witness(instance).measures
    assert measures["√d/4"] == 1
    assert measures["smallest ‖∇f(x)‖ found in the ball"] == pytest.approx(
        find_shortest_gradient(WeightBall(instance, 0.5))
    )


@pytest.mark.parametrize(("change", "rho"), [(0.8, 0.8), (0.9, math.inf)])
def test_a_change_above_seven_eighths_is_not_bounded(change, rho):
    """On the line f = relu(x + 1000) - 1000 at 1, whose slope changes ½ away by `change`, and 21 away again."""
    W = torch.tensor([[1.0], [-1.0], [-1.0]]).double()
    b, v = torch.tensor([1000.0, 0.5, -20.0]).double(), torch.tensor([1.0, change, 0.05]).double()
    network = TwoLayer(W, b, v, torch.tensor(-1000.0).double())
    assert segment_change(network, torch.ones(1).double()) == pytest.approx(rho)


def test_neurons_near_a_displaced_point_are_counted_one_by_one(rng):
    theorem = FewUnstable(dim=10, width=400, radius=5.0, size=0.5)
    instance = lazy_instance(10, 400, 5.0, 3, 0, rng)
    W, X = instance.two_layer.start.W, instance.data.X
    moved = displace_examples(X, 0.5)
    counts = [sum(abs(float(w @ x)) <= 5 / 20 * float(x.norm()) for w in W) for x in (*X, *moved)]
    found = theorem.witness(instance).measures
    assert found[AT_X] == max(counts[:3])
    assert found[AT_MOVED] == max(counts[3:])
    assert float(moved.norm(dim=1).min()) > 1.1


def test_one_step_is_as_long_as_its_largest_change_of_the_gradient_asks_for(rng):
    instance = lazy_instance(20, 400, 1.0, 20, 0, rng)
    network, ones = instance.two_layer, torch.ones(1).double()
    bounded = [segment_change(network, x) < 1 for x in instance.data.X]
    instance = replace(instance, data=instance.data.take(torch.tensor(bounded).nonzero()[:, 0]))
    rhos = [segment_change(network, x) for x in instance.data.X]
    assert 0 < min(rhos) < max(rhos) < 1
    outputs = network.logits(instance.data.X)
    lengths = [float(network.logit_gradients(x[None], ones).norm()) for x in instance.data.X]
    etas = [2 * abs(float(f)) / ((1 - rho) * g**2) for f, rho, g in zip(outputs, rhos, lengths, strict=True)]
    witness = OneStepWithoutConstants().witness(instance)
    assert witness.measures["largest ρ"] == max(rhos)
    assert witness.measures["largest |η|"] == pytest.approx(max(etas))
    norms = [eta * g for eta, g in zip(etas, lengths, strict=True)]
    assert witness.perturbations.norm(dim=1).tolist() == pytest.approx(norms)


def test_failures_of_b_4_and_b_6_are_counted_draw_by_draw():
    """Every failure once: many neurons near the boundary, and a neuron whose sign a fixed δ changes."""

    def again():
        return torch.Generator().manual_seed(2)

    few = FewUnstable(width=50, radius=2.0, gamma=0.9)
    most = 2 / math.sqrt(50) * 50 + math.sqrt(50 * math.log(1 / 0.9) / 2)
    near = (torch.randn(40, 50, generator=again(), dtype=torch.float64).abs() <= 2 / math.sqrt(50)).sum(1)
    many, drawn = sum(count > most for count in near.tolist()), few.failures(40, again())
    assert (drawn.failures, drawn.skipped, drawn.promised_failure_rate) == (many, 0, 0.9)
    crossing = RareCrossing(dim=50, size=0.4)
    turned = 0
    for first, second in torch.randn(300, 2, generator=again(), dtype=torch.float64).tolist():
        turned += (first > 0) != (math.sqrt(1 - 0.4**2) * first + 0.4 * second > 0)
    drawn = crossing.failures(300, again())
    assert many > 0
    assert (drawn.failures, drawn.skipped) == (turned, 0)
    assert drawn.promised_failure_rate == pytest.approx(0.4 * math.sqrt(2 * math.log(50)) + 1 / 50)


def test_the_change_of_b_9_is_looked_for_at_its_size(monkeypatch, rng):
    sizes = []
    monkeypatch.setattr(
        "brittle.theorems.wang2022.change.find_largest_change", lambda *given: sizes.append(given[-1]) or 3.0
    )
    measures = SmallChange(size_constant=0.5).witness(lazy_instance(16, 30, 0.5, 1, 0, rng)).measures
    assert sizes == [0.5 / 4]
    assert sorted(measures.values()) == [3 / 4, 3]


def test_half_of_the_unstable_neurons_of_a_drawn_start_are_active(monkeypatch):
    chosen = []
    monkeypatch.setattr("brittle.theorems.wang2022.gradient._shortest", lambda *given: chosen.append(given[2]) or 0.0)
    draw_shortest_gradient(3, 10_000, 30.0, torch.Generator().manual_seed(0))
    unstable = 10_000 * math.erf(0.3 / math.sqrt(2))
    assert len(chosen[0]) == pytest.approx(unstable, abs=200)
    assert int(chosen[0].sum()) == pytest.approx(unstable / 2, abs=200)


def test_failures_of_b_5_are_counted_over_the_corners_of_the_ball(monkeypatch):
    """Three neurons: the output is largest where each input is as far up or down as it may be. 900 draws at once."""
    monkeypatch.setattr("brittle.theorems.wang2022.ball.DRAWS_AT_ONCE", 3 * 900)
    theorem, V, failures = BoundedOutput(width=3, radius=3.0, gamma=0.99), 3 / math.sqrt(3), 0
    rng, counted = torch.Generator().manual_seed(5), theorem.failures(2000, torch.Generator().manual_seed(5))
    limit = math.sqrt(2 * math.log(2 / 0.99)) + 2 * math.log(2 / 0.99) / math.sqrt(3) + 3
    for rows in (900, 900, 200):
        z = torch.randn(rows, 3, generator=rng, dtype=torch.float64)
        signs = torch.where(torch.rand(rows, 3, generator=rng) < 0.5, 1.0, -1.0)
        corners = torch.tensor(list(itertools.product((-V, V), repeat=3))).double()
        outputs = ((z + corners[:, None]).relu() * signs).sum(2) / math.sqrt(3)
        failures += int((outputs.abs().amax(0) > limit).sum())
    assert 0 < failures < 2000
    assert (counted.failures, counted.skipped) == (failures, 0)


def test_the_gradient_of_the_network_is_measured_where_it_is_shortest(rng):
    instance = lazy_instance(10, 30, 0.1, 3, 0, rng)
    ones = torch.ones(1).double()
    lengths = [float(instance.two_layer.logit_gradients(x[None], ones).norm()) for x in instance.data.X]
    measures = SoundLongGradient(dim=10, width=30, radius=0.1, examples=3).witness(instance).measures
    assert measures["smallest ‖∇f(x)‖ of the network"] == pytest.approx(min(lengths), rel=1e-12)


def test_a_change_that_is_found_is_that_of_the_gradients_at_both_ends(monkeypatch):
    """f = relu(x) + 2 relu(y) + 2 relu(y): from (1, -1) to (-1, 3) the first neuron stops and the others begin."""
    W = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]).double()
    network = TwoLayer(W, torch.zeros(3).double(), torch.tensor([1.0, 2.0, 2.0]).double())
    start, delta = torch.tensor([1.0, -1.0]).double(), torch.tensor([-2.0, 4.0]).double()
    monkeypatch.setattr("brittle.theorems.wang2022.change.largest_change", lambda *_: (network, delta))
    subject = SimpleNamespace(instance=SimpleNamespace(data=SimpleNamespace(X=start[None])))
    assert find_largest_change(subject, 0, 1.0) == pytest.approx(math.sqrt(1 + 16))
