"""Public functions and parts refuse arguments of the wrong kind in one line of brittle's own."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch

import brittle as bt
from brittle.common.errors import InputError
from brittle.common.kinds import require_kind

WRONG_NUMBERS = {
    "a text": "7",
    "a list": [1.0, 2.0],
    "NaN": math.nan,
    "negative": -1.0,
    "a tensor": torch.ones(2),
    "an array": np.ones((2, 2)),
    "True": True,
    "a dictionary": {},
}
WRONG_THINGS = {
    "a text": "7",
    "None": None,
    "a number": 3,
    "a list": [1.0, 2.0],
    "NaN": math.nan,
    "a dictionary": {},
    "a tensor": torch.ones(3),
    "a class": int,
}
RNG = torch.Generator()
DATA = bt.data.Orthogonal(4).sample(4)
NETWORK = bt.networks.orthogonal_kkt(DATA.X, DATA.y).network
THEOREM = bt.theorems.find("melamed2023/5.1")
FLOW = bt.training.Flow(until=bt.training.Loss(0.1))
FITTED = FLOW.train(NETWORK, DATA)

OF_A_NUMBER = {
    "Accuracy.value": lambda wrong: bt.training.Accuracy(wrong),
    "Adversarial.batch": lambda wrong: bt.training.Adversarial(batch=wrong),
    "Descent.rate": lambda wrong: bt.training.GradientDescent(rate=wrong),
    "Exact.gap": lambda wrong: bt.certificates.Exact(gap=wrong),
    "Exact.seconds": lambda wrong: bt.certificates.Exact(seconds=wrong),
    "Loss.value": lambda wrong: bt.training.Loss(wrong),
    "LogLoss.value": lambda wrong: bt.training.LogLoss(wrong),
    "MinimumNorm.limit": lambda wrong: bt.attacks.MinimumNorm(limit=wrong),
    "PGD.budget": lambda wrong: bt.attacks.PGD(budget=wrong),
    "PGD.steps": lambda wrong: bt.attacks.PGD(budget=0.1, steps=wrong),
    "Ray.limit": lambda wrong: bt.attacks.Ray(limit=wrong),
    "Sphere.dim": lambda wrong: bt.data.Sphere(dim=wrong),
    "Steps.value": lambda wrong: bt.training.Steps(wrong),
    "Time.value": lambda wrong: bt.training.Time(wrong),
    "audit.budget": lambda wrong: bt.audit(NETWORK, DATA, budget=wrong),
    "audit.examples": lambda wrong: bt.audit(NETWORK, DATA, examples=wrong),
    "bound.cap": lambda wrong: bt.certificates.Dual().bound(NETWORK, DATA, cap=wrong),
    "check_many.trials": lambda wrong: bt.theorems.check_many(THEOREM, wrong, RNG),
    "deep_residual.kink_tolerance": lambda wrong: bt.kkt.deep_residual(NETWORK, DATA, kink_tolerance=wrong),
    "deep_residual.margin_tolerance": lambda wrong: bt.kkt.deep_residual(NETWORK, DATA, margin_tolerance=wrong),
    "downsample.side": lambda wrong: bt.data.downsample(DATA, wrong),
    "largest.gap": lambda wrong: bt.kkt.largest(DATA, gap=wrong),
    "largest.seconds": lambda wrong: bt.kkt.largest(DATA, seconds=wrong),
    "nearly_orthogonal.coherence": lambda wrong: bt.networks.nearly_orthogonal(DATA.X, DATA.y, wrong),
    "principal.components": lambda wrong: bt.data.principal(DATA, wrong),
    "residual.kink_tolerance": lambda wrong: bt.kkt.residual(NETWORK, DATA, kink_tolerance=wrong),
    "residual.margin_tolerance": lambda wrong: bt.kkt.residual(NETWORK, DATA, margin_tolerance=wrong),
    "sample.examples": lambda wrong: bt.data.Sphere(5).sample(wrong, RNG),
    "solve.pricing": lambda wrong: bt.kkt.solve(NETWORK, DATA, pricing=wrong),
    "solve.tolerance": lambda wrong: bt.kkt.solve(NETWORK, DATA, tolerance=wrong),
}
OF_A_THING = {
    "Flow.until": lambda wrong: bt.training.Flow(until=wrong),
    "Descent.until": lambda wrong: bt.training.GradientDescent(until=(bt.training.Loss(0.1), wrong)),
    "Dual.refined": lambda wrong: bt.certificates.Dual(refined=wrong),
    "along_flow.data": lambda wrong: bt.kkt.along_flow(NETWORK, wrong, [-1.0]),
    "along_flow.network": lambda wrong: bt.kkt.along_flow(wrong, DATA, [-1.0]),
    "audit.model": lambda wrong: bt.audit(wrong, DATA, budget=1),
    "audit.X": lambda wrong: bt.audit(NETWORK, wrong, budget=1),
    "audit.rng": lambda wrong: bt.audit(NETWORK, DATA, budget=1, rng=wrong),
    "bound.data": lambda wrong: bt.certificates.Dual().bound(NETWORK, wrong),
    "bound.network": lambda wrong: bt.certificates.Dual().bound(wrong, DATA),
    "check.data": lambda wrong: bt.theorems.check(THEOREM, wrong, NETWORK),
    "check.theorem": lambda wrong: bt.theorems.check(wrong, DATA, NETWORK),
    "check_data.data": lambda wrong: bt.theorems.check_data(THEOREM, wrong),
    "check_default.rng": lambda wrong: bt.theorems.check_default(THEOREM, wrong),
    "check_default.theorem": lambda wrong: bt.theorems.check_default(wrong, RNG),
    "compress.data": lambda wrong: bt.kkt.compress(NETWORK, wrong),
    "compress.network": lambda wrong: bt.kkt.compress(wrong, DATA),
    "deep_residual.data": lambda wrong: bt.kkt.deep_residual(NETWORK, wrong),
    "deep_residual.network": lambda wrong: bt.kkt.deep_residual(wrong, DATA),
    "draw_sandwich.found": lambda wrong: bt.report.draw_sandwich(wrong, "never.png"),
    "experiments.find": lambda wrong: bt.experiments.find(wrong),
    "find": lambda wrong: bt.theorems.find(wrong),
    "first_flip.directions": lambda wrong: bt.attacks.first_flip(NETWORK, DATA.X, DATA.y, wrong),
    "first_flip.network": lambda wrong: bt.attacks.first_flip(wrong, DATA.X, DATA.y, DATA.X),
    "gap.data": lambda wrong: bt.kkt.gap(NETWORK, wrong),
    "gap.network": lambda wrong: bt.kkt.gap(wrong, DATA),
    "largest.data": lambda wrong: bt.kkt.largest(wrong),
    "linear_model.means": lambda wrong: bt.networks.linear_model(wrong, DATA.y),
    "load_data": lambda wrong: bt.data.load_data(wrong),
    "load_network": lambda wrong: bt.networks.load_network(wrong),
    "moment.training": lambda wrong: bt.kkt.moment(wrong, DATA),
    "orthogonal_kkt.X": lambda wrong: bt.networks.orthogonal_kkt(wrong, DATA.y),
    "orthogonal_kkt.y": lambda wrong: bt.networks.orthogonal_kkt(DATA.X, wrong),
    "parse_stop": lambda wrong: bt.training.parse_stop(wrong),
    "residual.data": lambda wrong: bt.kkt.residual(NETWORK, wrong),
    "residual.network": lambda wrong: bt.kkt.residual(wrong, DATA),
    "run.data": lambda wrong: bt.attacks.MinimumNorm().run(NETWORK, wrong),
    "run.network": lambda wrong: bt.attacks.MinimumNorm().run(wrong, DATA),
    "save_data": lambda wrong: bt.data.save_data(wrong, "never.npz"),
    "save_network": lambda wrong: bt.networks.save_network(wrong, "never.npz"),
    "shortened.flips": lambda wrong: bt.attacks.shorten_perturbations(NETWORK, DATA, wrong),
    "solve.data": lambda wrong: bt.kkt.solve(NETWORK, wrong),
    "solve.network": lambda wrong: bt.kkt.solve(wrong, DATA),
    "summary": lambda wrong: bt.data.summary(wrong),
    "train.data": lambda wrong: FLOW.train(NETWORK, wrong),
    "train.network": lambda wrong: FLOW.train(wrong, DATA),
    "transfer.direction": lambda wrong: bt.attacks.transfer(wrong, [NETWORK], DATA),
    "two_classes.classes": lambda wrong: bt.data.two_classes(DATA, wrong),
    "unit_norm": lambda wrong: bt.data.unit_norm(wrong),
}
FINE = {("LogLoss.value", "negative"), ("audit.rng", "None")}
FINE |= {(f"{name}.kink_tolerance", "negative") for name in ("residual", "deep_residual")}  # no neuron is at its kink


def is_refused(call, wrong) -> None:
    with pytest.raises(InputError) as refusal:
        call(wrong)
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize("kind", WRONG_NUMBERS)
@pytest.mark.parametrize("argument", OF_A_NUMBER)
def test_a_number_of_the_wrong_kind(argument, kind):
    if (argument, kind) not in FINE:
        is_refused(OF_A_NUMBER[argument], WRONG_NUMBERS[kind])


@pytest.mark.parametrize("kind", WRONG_THINGS)
@pytest.mark.parametrize("argument", OF_A_THING)
def test_a_thing_of_the_wrong_kind(argument, kind):
    if (argument, kind) not in FINE:
        is_refused(OF_A_THING[argument], WRONG_THINGS[kind])


@pytest.mark.parametrize(
    ("hint", "right", "words"),
    [
        (float, [1, 0.5, math.inf, np.float32(1), torch.tensor(2.0)], "a number"),
        (int, [1, np.int64(2)], "a whole number"),
        (bool, [True, np.bool_(False)], "True or False"),
        (str | None, ["a", None], "a text or None"),
        (tuple[float, float], [(0.0, 1.0), [0, 1]], "a tuple of 2 values"),
        (
            bt.training.Stop | tuple[bt.training.Stop, ...],
            [FLOW.until, (FLOW.until,)],
            "a Stop or a tuple of such values",
        ),
        (Sequence[float], [[1.0], (2.0,)], "a Sequence"),
    ],
)
def test_a_kind_in_words(hint, right, words):
    for value in right:
        require_kind("it", value, hint)
    with pytest.raises(InputError, match=rf"^it is <object object at .*>; it must be {words}$"):
        require_kind("it", object(), hint)


def test_what_a_message_says():
    with pytest.raises(InputError, match=r"^until is 'loss=0.1'; it must be a Stop or a tuple of such values$"):
        bt.training.Flow(until="loss=0.1")
    with pytest.raises(InputError, match=r"^network is a Tensor of shape \(3,\); it must be a TwoLayer$"):
        bt.kkt.residual(torch.ones(3), DATA)
    with pytest.raises(InputError, match=r"^data is None; it must be a Data$"):
        bt.kkt.solve(NETWORK, None)
