"""Checks of melamed2023 that once could not fail, on objects that are wrong."""

import math
from dataclasses import replace
from functools import cache

import pytest
import torch

from benchmarks.power import WRONG, WrongLaw, refused
from brittle.data import Data, Line7
from brittle.networks import Kaiming
from brittle.theorems import CheckOutcome, Instance, Theorem, check, check_default, check_instance
from brittle.theorems.comparison import Witness
from brittle.theorems.melamed2023 import (
    FrozenOffSubspace,
    LawOfTheStart,
    Regularised,
    SmallUniversalPerturbation,
    StalledMargin,
    StronglyRegularised,
    SubspacePerturbation,
)
from brittle.theorems.melamed2023.instances import OffSubspace, SubspaceTraining
from brittle.theorems.melamed2023.margin_remark import MARGIN, largest_margin
from brittle.theorems.melamed2023.universal import LENGTH, PLAIN_LENGTH, against
from brittle.theorems.melamed2023.universal import MARGIN as AFTER
from brittle.training import Logistic, Steps
from brittle.training.descent import GradientDescent

SMALL = {"dim": 2000, "codimension": 1200, "width": 4, "examples": 6}
DECAYED = [Regularised(**SMALL), StronglyRegularised(**SMALL)]


@cache
def default_of(theorem: Theorem) -> Instance:
    return theorem.default(torch.Generator().manual_seed(0))


def scaled_by_hand(instance: Instance, factor: float) -> Instance:
    network = instance.two_layer
    return replace(instance, network=replace(network, W=factor * network.W))


def without_start(instance: Instance) -> Instance:
    return replace(instance, network=replace(instance.two_layer, start=None))


def trained_otherwise(instance: Instance, **changes) -> Instance:
    training = instance.known(SubspaceTraining)
    assert training is not None
    return replace(instance, facts=replace(training, **changes))


@pytest.mark.parametrize("factor", [0.5, 1.001, 2.0])
def test_weights_scaled_by_hand_violate_6_2(factor):
    theorem = Regularised(**SMALL)
    verdict = check_instance(theorem, scaled_by_hand(default_of(theorem), factor))
    assert verdict.failed == []
    assert verdict.verdict is CheckOutcome.VIOLATED


def test_a_gradient_that_is_too_long_violates_c6_2():
    theorem = StronglyRegularised(**SMALL)
    verdict = check_instance(theorem, scaled_by_hand(default_of(theorem), 100.0))
    assert [comparison.holds for comparison in verdict.bound] == [False]


@pytest.mark.parametrize("theorem", DECAYED, ids=lambda theorem: theorem.id)
def test_without_decay_6_2_says_nothing(theorem):
    verdict = check_instance(theorem, trained_otherwise(default_of(theorem), decay=0.0))
    assert "ηλ" in verdict.failed


@pytest.mark.parametrize(
    "theorem", [*DECAYED, FrozenOffSubspace(), StalledMargin(dims=(8, 16))], ids=lambda theorem: theorem.id
)
def test_an_unknown_training_or_start_is_refused(theorem):
    instance = default_of(theorem)
    assert "training steps that are known" in check(theorem, instance.data, instance.network).failed
    assert "starts that are known" in check_instance(theorem, without_start(instance)).failed


def test_a_wrong_number_of_steps_violates_6_2():
    theorem = Regularised(**SMALL)
    assert check_instance(theorem, trained_otherwise(default_of(theorem), steps=199)).verdict is CheckOutcome.VIOLATED


def test_a_network_that_moved_off_the_subspace_violates_a_2():
    theorem = FrozenOffSubspace()
    instance = default_of(theorem)
    complement = instance.data.truth.complement
    assert complement is not None
    W = instance.two_layer.W + 0.63 * complement[:, 0]
    verdict = check_instance(theorem, replace(instance, network=replace(instance.two_layer, W=W)))
    assert verdict.verdict is CheckOutcome.VIOLATED


def test_a_2_says_nothing_about_training_with_decay():
    theorem = FrozenOffSubspace()
    assert check_instance(theorem, trained_otherwise(default_of(theorem), decay=0.1)).failed == ["decay λ"]


def test_frozen_weights_on_the_papers_line(rng):
    data, start = Line7().sample(), replace(Kaiming().draw(2, 30, rng), start=None)
    descent = GradientDescent(Steps(50), Logistic("sum"), rate=0.05, layers="first", biases=False)
    network = descent.train(replace(start, start=start), data).network
    assert (
        check(FrozenOffSubspace(), data, network, SubspaceTraining(2**-0.5, 0.05, 0.0, 50)).verdict
        is CheckOutcome.CONFIRMED
    )


def test_a_margin_that_no_training_reaches_violates_r3_1():
    theorem = StalledMargin(dims=(8, 16))
    instance = default_of(theorem)
    assert check_instance(theorem, instance).verdict is CheckOutcome.CONFIRMED
    assert check_instance(theorem, scaled_by_hand(instance, 10.0)).verdict is CheckOutcome.VIOLATED
    assert check_instance(theorem, trained_otherwise(instance, rate=1e-5)).verdict is CheckOutcome.VIOLATED


def test_r3_1_needs_frozen_output_weights_and_right_labels():
    theorem = StalledMargin(dims=(8, 16))
    instance = default_of(theorem)
    louder = replace(instance, network=replace(instance.two_layer, v=2 * instance.two_layer.v))
    assert check_instance(theorem, louder).failed == ["movement of biases and output weights"]
    wrong = replace(instance, data=replace(instance.data, y=-instance.data.y))
    assert check_instance(theorem, wrong).failed == ["smallest margin"]


@pytest.mark.parametrize("pace", [0.05, 0.7, 3.0, 12.0])
def test_the_margin_never_outruns_its_recursion(pace):
    """The worst case itself: every step adds all that it may, a/(1+e^γ)."""
    margin = -1.0
    for steps in range(1, 2000):
        margin += pace / (1 + math.exp(margin))
        assert margin <= largest_margin(pace, -1.0, steps) + 1e-12


def test_the_margins_of_a_sweep_are_shown_beside_log_square_d():
    verdict = check_instance(theorem := StalledMargin(dims=(8, 16)), default_of(theorem))
    assert verdict.measured["margin over log² d at d = 16"] == pytest.approx(
        verdict.measured[MARGIN] / math.log(16) ** 2
    )


def test_5_1_is_judged_at_training_examples_too(rng):
    theorem = SubspacePerturbation(**SMALL | {"examples": 40})
    instance = theorem.default(rng)
    off = OffSubspace(instance)
    spoken = theorem.speaks_of(off)
    assert bool(spoken[:40].any())
    witness = theorem.witness(instance)
    assert witness.examples is not None
    torch.testing.assert_close(witness.examples, off.points[against(off) > 0])
    measured = check_instance(theorem, instance).measured
    assert measured["share of the training examples with k = 0"] == float((~spoken[:40]).double().mean())
    assert measured["k at the smallest margin"] >= 1
    assert measured["flip along z there, over ‖x0‖"] <= measured["‖z‖/‖x0‖ there"]


@pytest.mark.parametrize("theorem", [SubspacePerturbation(**SMALL), SmallUniversalPerturbation(**SMALL)])
@pytest.mark.parametrize("factor", [0.02, 50.0])
def test_a_perturbation_that_is_too_short_or_too_long_breaks_5_1(theorem, factor, monkeypatch):
    """As if the 8 in α were another constant."""
    witness, instance = theorem.witness(default_of(theorem)), default_of(theorem)
    assert witness.perturbations is not None
    X, y, Z = witness.examples, witness.labels, factor * witness.perturbations
    output = instance.two_layer.logits(X)
    lengths = {name: factor * witness.measures[name] for name in (LENGTH, PLAIN_LENGTH)}
    after = float((instance.two_layer.logits(X + Z) / output).max())
    other = Witness({**lengths, AFTER: after}, Z, X, y)
    monkeypatch.setattr(type(theorem), "witness", lambda self, instance: other)
    verdict = check_instance(theorem, instance)
    assert verdict.failed == []
    assert any(not comparison.holds for comparison in verdict.bound)


def test_defaults_of_the_corrected_statements_are_confirmed(rng):
    for theorem in (StalledMargin(dims=(8, 16)), FrozenOffSubspace(), Regularised(**SMALL)):
        assert check_default(theorem, rng).verdict is CheckOutcome.CONFIRMED


@pytest.mark.parametrize("name", WRONG)
def test_starts_of_a_law_that_a_rotation_changes_are_refused(name):
    assert refused(WrongLaw(entries=WRONG[name]), range(1)) == 1


def test_starts_of_the_papers_law_are_not_refused():
    """Also of another variance: the law of N(0, β² I) is the same after a rotation."""
    assert refused(Kaiming(), range(100, 103)) == 0
    assert refused(Kaiming(beta=2.0), range(100, 102)) == 0


def test_the_law_of_the_start_needs_directions_off_the_subspace():
    data = Data(torch.eye(3).double(), torch.tensor([1.0, -1, 1]).double())
    verdict = check_instance(LawOfTheStart(), Instance(data, Kaiming().draw(3, 4, torch.Generator().manual_seed(0))))
    assert verdict.failed == ["codimension", "coordinates off the subspace"]
