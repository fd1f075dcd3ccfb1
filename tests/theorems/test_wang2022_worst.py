"""wang2022 over the whole ball: the worst networks found, beside brute force, and networks that lie outside."""

import itertools
import math
from dataclasses import replace

import pytest
import torch

from brittle.auditing.budget import WorkBudget
from brittle.auditing.found import applicable
from brittle.networks import TwoLayer
from brittle.theorems import CheckOutcome, Instance, check_instance
from brittle.theorems.wang2022 import (
    THEOREMS,
    BoundedOutput,
    FewUnstable,
    GradientChange,
    NoRobustLazyNetwork,
    OneStepFlips,
    PrintedLongGradient,
    SoundFixedDirection,
)
from brittle.theorems.wang2022.attack import one_step
from brittle.theorems.wang2022.ball import KNOWN_START, BallClaim, WeightBall, lazy_instance
from brittle.theorems.wang2022.change import find_largest_change, largest_change
from brittle.theorems.wang2022.change import gradient as change_gradient
from brittle.theorems.wang2022.sweep import FAILS, LazySweep, OneStepSweep, fails_at, radius_90
from brittle.theorems.wang2022.worst import WorstCase, hardest_for_all

BALL = {"dim": 60, "width": 400, "radius": 0.5}
IN_BALL = [theorem for theorem in THEOREMS if isinstance(theorem, BallClaim | LazySweep)]


def ball_of(dim: int, width: int, radius: float, examples: int = 1, seed: int = 0) -> WeightBall:
    return WeightBall(lazy_instance(dim, width, radius, examples, 0, torch.Generator().manual_seed(seed)), radius)


def gradient(network: TwoLayer, ball: WeightBall) -> torch.Tensor:
    X = ball.instance.data.X[:1]
    return network.logit_gradients(X, torch.ones(1).double())[0]


@pytest.mark.parametrize("radius", [0.3, 2.0, 12.0])
@pytest.mark.parametrize("kind", ["output", "gradient", "flip"])
def test_the_worst_networks_lie_in_the_ball_and_know_their_start(radius, kind):
    ball = ball_of(20, 300, radius)
    network = getattr(WorstCase(ball), kind)
    assert WeightBall(Instance(ball.instance.data, network), radius).moved <= radius * (1 + 1e-12)
    torch.testing.assert_close(network.start.W, ball.start.W)


@pytest.mark.parametrize("seed", range(4))
def test_the_largest_output_is_the_exact_one(seed):
    ball = ball_of(15, 80, 3.0, seed=seed)
    found = WorstCase(ball).output.logits(ball.instance.data.X).abs()
    torch.testing.assert_close(found, ball.largest_output(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("seed", range(4))
def test_the_shortest_gradient_beats_random_networks_and_every_choice_of_neurons(seed, rng):
    """Few free neurons: with each choice of who is on, the shift h is best along the rest; none may be much better."""
    ball = ball_of(8, 60, 0.4, seed=seed)
    worst = WorstCase(ball)
    found = float(gradient(worst.gradient, ball).norm())
    for _ in range(100):
        moves = torch.randn(ball.start.W.shape, generator=rng, dtype=torch.float64)
        network = replace(ball.start, W=ball.start.W + ball.reach * moves / moves.norm(dim=1, keepdim=True))
        assert found <= float(gradient(network, ball).norm()) + 1e-9
    rows, signs = worst._start.rows, ball.start.v[worst._free]
    choices = torch.tensor(list(itertools.product([0.0, 1.0], repeat=len(rows)))).double()
    sums = worst._fixed + (choices * signs) @ rows
    slack = worst._pull + ball.reach * float(signs.abs().sum())
    assert found >= float(sums.norm(dim=1).min()) - slack - 1e-9
    assert found <= float(gradient(ball.start, ball).norm()) - 0.9 * worst._pull


def test_the_worst_flip_is_longer_than_the_starts_and_is_really_needed():
    ball = ball_of(25, 2300, 2.0)
    worst = WorstCase(ball)
    size = worst.flip_size(worst.flip)
    assert size > 1.5 * worst.flip_size(replace(ball.start, start=None))
    x = ball.instance.data.X
    y = worst.flip.logits(x).sign()
    ray = -worst.flip.logit_gradients(x, y)
    ray = ray / ray.norm()
    before = torch.linspace(0, 0.999, 200).double()[:, None] * size
    assert bool((worst.flip.logits(x + before * ray) * y >= -1e-12).all())


def test_a_ball_as_large_as_the_root_of_d_turns_the_gradient_toward_x():
    """In such a ball one step flips only at ‖δ‖ ≈ ‖x‖."""
    ball = ball_of(49, 11386, 7.0)
    worst = WorstCase(ball).flip
    x, g = ball.instance.data.X[0], gradient(worst, ball)
    assert float((g @ x).abs() / g.norm()) > 0.97
    assert fails_at(worst, ball.instance, 7.0)
    assert float(gradient(WorstCase(ball).gradient, ball).norm()) < math.sqrt(49) / 4


def test_the_fixed_step_holds_in_a_small_ball_and_fails_when_its_constant_is_too_small(monkeypatch):
    instance = lazy_instance(49, 11386, 0.3, 5, 0, torch.Generator().manual_seed(0))
    assert not fails_at(instance.two_layer, instance, 0.3)
    monkeypatch.setattr("brittle.theorems.wang2022.sweep.step_constant", lambda radius: 0.01)
    assert fails_at(instance.two_layer, instance, 0.3)


def test_3_1_shows_typical_and_worst_side_by_side(rng):
    theorem = OneStepFlips(dims=(9, 16, 25), networks=1, examples=2, ratios=(0.1, 1.5), radius=0.5)
    verdict = check_instance(theorem, theorem.default(rng))
    assert verdict.verdict is CheckOutcome.SCALING_ONLY
    kinds = {each.measure.split(" at ")[0] for each in verdict.scaling}
    assert {"‖δ‖ typical", "‖δ‖ worst", "‖∇f‖ typical", "‖∇f‖ worst", "η typical", "η worst"} <= kinds
    assert verdict.measured["worst ‖δ‖"] >= verdict.measured["mean ‖δ‖"] / 5
    assert verdict.measured[FAILS] <= 1.5


def test_the_claim_fails_from_the_smallest_ratio_that_failed():
    sweep = OneStepSweep((4, 9, 16), ())
    assert sweep.fails_from == math.inf


def test_one_network_for_all_examples_holds_out_longer_than_the_start():
    instance = lazy_instance(25, 2300, 2.0, 8, 0, torch.Generator().manual_seed(1))
    ball = WeightBall(instance, 2.0)
    hard = hardest_for_all(ball)
    assert WeightBall(Instance(instance.data, hard), 2.0).moved <= 2.0 * (1 + 1e-12)
    assert radius_90(hard, instance) > 1.2 * radius_90(instance.two_layer, instance)


def test_c3_2_is_judged_network_by_network(rng):
    theorem = NoRobustLazyNetwork(dims=(9, 16, 25), networks=2, examples=5, radius=0.1)
    instance = theorem.default(rng)
    sizes = one_step(instance.two_layer, instance.data.X).size.sort().values
    assert radius_90(instance.two_layer, instance) == float(sizes[4])
    assert len(check_instance(theorem, instance).scaling) == 2
    assert check_instance(theorem, replace(instance, facts=None)).scaling == ()


@pytest.mark.parametrize("theorem", IN_BALL, ids=lambda theorem: theorem.id)
def test_an_unknown_start_is_refused(theorem):
    instance = lazy_instance(60, 400, 0.5, 2, 0, torch.Generator().manual_seed(0))
    alone = replace(instance, network=replace(instance.two_layer, start=None))
    verdict = check_instance(theorem, alone)
    assert verdict.verdict is CheckOutcome.HYPOTHESES_FAIL
    assert KNOWN_START in verdict.failed


def test_a_network_far_from_its_start_is_refused_with_and_without_it():
    instance = lazy_instance(60, 400, 0.5, 2, 0, torch.Generator().manual_seed(0))
    W = instance.two_layer.W.clone()
    W[:, 0] += 19 / math.sqrt(400)
    for start, failed in ((instance.two_layer.start, "distance from the start times √m"), (None, KNOWN_START)):
        network = replace(instance.two_layer, W=W, start=start)
        for theorem in (BoundedOutput(**BALL), FewUnstable(**BALL)):
            assert failed in check_instance(theorem, Instance(instance.data, network)).failed


def test_the_audit_gives_the_unknown_start_as_the_reason():
    instance = lazy_instance(60, 400, 0.5, 2, 0, torch.Generator().manual_seed(0))
    network = replace(instance.two_layer, start=None)
    rows = applicable(Instance(instance.data, network), WorkBudget(60))
    by_id = {row.id: row for row in rows}
    for identity in ("wang2022/B.5", "wang2022/B.7", "wang2022/3.1"):
        assert not by_id[identity].applies
        assert KNOWN_START in by_id[identity].obstacle


def test_the_long_gradient_of_b_7_is_judged_at_a_network_that_exists(rng):
    theorem = PrintedLongGradient(dim=200, width=2000, radius=0.5, gamma=0.5, examples=1)
    instance = theorem.default(rng)
    found = check_instance(theorem, instance).measured["smallest ‖∇f(x)‖ found in the ball"]
    ball = WeightBall(instance, 0.5)
    assert found == pytest.approx(float(gradient(WorstCase(ball).gradient, ball).norm()))


def test_the_largest_change_of_the_gradient_lies_in_the_ball_and_beats_the_start():
    ball = ball_of(25, 2300, 1.0)
    x = ball.instance.data.X[0]
    network, delta = largest_change(ball, 0, 0.2)
    assert WeightBall(Instance(ball.instance.data, network), 1.0).moved <= 1.0 * (1 + 1e-9)
    assert float(delta.norm()) <= 0.2 * (1 + 1e-12)
    g = gradient(ball.start, ball)
    at_start = (g - change_gradient(ball.start, x + 0.2 * g / g.norm())).norm()
    assert find_largest_change(ball, 0, 0.2) > 1.1 * float(at_start)


def test_b_9_can_fail(monkeypatch):
    """With a bound of 0.1 the change that is found breaks it."""
    theorem = GradientChange(dim=25, width=2300)
    monkeypatch.setattr("brittle.theorems.wang2022.change.change_bound", lambda *_: 0.1)
    verdict = check_instance(theorem, theorem.default(torch.Generator().manual_seed(0)))
    assert verdict.failed == []
    assert not verdict.bound[0].holds


def test_b_8_is_attained_below_its_bound_from_above_and_can_fail(monkeypatch):
    theorem = SoundFixedDirection(dim=300, width=1000, gamma=0.4)
    instance = theorem.default(torch.Generator().manual_seed(0))
    verdict = check_instance(theorem, instance)
    above, attained = verdict.bound[0].value, verdict.measured["largest that a W was found to have"]
    assert verdict.measured["largest of the network"] < attained <= above
    monkeypatch.setattr(SoundFixedDirection, "most", lambda self, ball: attained / 2)
    assert not check_instance(theorem, instance).bound[0].holds
