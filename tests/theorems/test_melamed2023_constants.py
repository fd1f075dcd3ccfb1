"""Every constant of melamed2023: the paper's formulas, written again by hand, beside what a theorem says."""

import math
from dataclasses import replace
from math import e, exp, log, sqrt

import pytest
import torch

from brittle.data import Data
from brittle.networks import TwoLayer
from brittle.theorems import Instance
from brittle.theorems import melamed2023 as melamed
from brittle.theorems.base import LikelyClaim, Theorem
from brittle.theorems.melamed2023.instances import OffSubspace, SubspaceTraining, about_data
from tests.theorems.pinned import assert_as_in_the_paper, assert_pinned, drawn, least

SIZES = {"dim": 2000, "codimension": 1200, "width": 4, "examples": 6}
SMALL = {"dim": 12, "codimension": 8, "width": 6, "examples": 5, "steps": 3}

# the statement at its sizes, what it supposes, what it promises: in its own order
ON_P = [least(1), 1e-9, 1e-9]  # codimension, distance from the origin, share off P
NETWORK = [0, 1e-9, 6]  # biases, output weights, variance in standard errors
FIXED = [*ON_P, *NETWORK, 1e-9]  # and no movement off P
TRAINED = [least(1), least(1)]  # start and steps are known
DECAYED = [*ON_P, *TRAINED, least(1e-12), 1 - 1e-12, *NETWORK]
CODIMENSION = least(32 * 3 * log(4**2 * 2000))

TABLE: list[tuple[Theorem, list[float], list[float]]] = [
    (melamed.LargeGradient(**SIZES), FIXED, [least(sqrt(1 / 2))]),
    (melamed.LargeGradientFromStart(**SIZES), FIXED, [least(sqrt(1 / 2))]),
    (
        melamed.ConstantGradient(**SIZES, codimension_share=0.3, active_share=0.2),
        [*FIXED, least(0.3), least(0.2)],
        [least(sqrt(0.3 * 0.2 / 2))],
    ),
    (melamed.SubspacePerturbation(**SIZES), [*FIXED, CODIMENSION, least(1)], [-1.0, 0.0, 8 * sqrt(2)]),
    (
        melamed.SmallUniversalPerturbation(**SIZES, codimension_share=0.3, against_share=0.2),
        [*FIXED, CODIMENSION, least(1), least(0.3)],
        [0.0, 8 * sqrt(2) / (0.2 * sqrt(0.3))],
    ),
    (melamed.SmallGradient(**SIZES), FIXED, [sqrt(2)]),
    (melamed.TinyStart(**SIZES), [1 / (sqrt(2) * 2000), *FIXED], [1 / sqrt(2000)]),
    (melamed.Regularised(**SIZES, rate=0.02, decay=1.5, steps=30), DECAYED, [1e-9, sqrt(2) * (1 - 0.03) ** 30]),
    (melamed.StronglyRegularised(**SIZES), [1 / sqrt(2 * 2000), *DECAYED], [1 / sqrt(2000)]),
    (melamed.ShortVector(dim=40), [10], [least(0.5), exp(-40 / 16)]),
    (melamed.ShortSum(dim=40), [10], [least(0.5), exp(-40 / 16)]),
    (melamed.LongVector(dim=40), [10], [2.0, exp(-40 / 16)]),
    (melamed.LongSum(dim=40), [10], [2.0, exp(-40 / 16)]),
    (
        melamed.ProductWithFixed(threshold=2.0, deviation=0.8),
        [least(2), least(1e-300), least(1e-300), 10],
        [1.0, 2 * exp(-4 / (2 * 0.64))],
    ),
    (
        melamed.ProductOfGaussians(dim=40, threshold=2.0, deviation=0.8),
        [least(2), least(1e-300), least(1e-300), 10],
        [1.0, exp(-40 / 16) + 2 * exp(-4 / (2 * 0.64))],
    ),
    # identities, up to rounding
    (melamed.RotationInvariance(**SMALL), [1e-9], [1e-8, 1e-8]),
    (melamed.RotationWithDecay(**SMALL), [1e-9], [1e-8, 1e-8]),
    (melamed.RotatedPerturbation(**SMALL), [1e-9], [1e-8, 1e-8, 1e-8]),
    (melamed.LawOfTheStart(), [least(1), 1e-9, 1e-9, least(1)], [least(1e-3), least(1e-3)]),
    (melamed.FrozenOffSubspace(**SMALL), [*ON_P, *TRAINED, 0], [1e-9]),
    (melamed.AffinePlane(), [least(1e-9)], [least(1e-6)]),
    (melamed.PrintedSlope(), [least(2)], [1e-9]),
]
IDS = [theorem.id for theorem, _, _ in TABLE]


@pytest.mark.parametrize(("theorem", "supposed", "promised"), TABLE, ids=IDS)
def test_what_is_supposed_and_promised_is_the_papers(theorem, supposed, promised):
    assert_as_in_the_paper(theorem, supposed, promised)


def test_a_linear_subspace_is_measured_at_distance_0_from_the_origin():
    instance = drawn(melamed.LargeGradient(**SIZES))
    assert instance.data.truth.offset is None
    for found in (about_data(OffSubspace(instance)), melamed.AffinePlane().hypotheses(instance)):
        assert {each.name: each.value for each in found}["distance of the data's plane from the origin"] == 0


def stalled() -> tuple[melamed.StalledMargin, Instance]:
    """Six examples of norms up to 3, a network of output weights 2, -1 that began with margins of .1."""
    X = torch.eye(6, dtype=torch.float64) * torch.tensor([1.0, 1.0, 1.0, 1.0, 2.0, 3.0]).double()[:, None]
    y = torch.tensor([1.0, 1.0, 1.0, -1.0, -1.0, -1.0]).double()
    v, none = torch.tensor([2.0, -1.0]).double(), torch.zeros(2).double()
    W = torch.stack([(y > 0).double(), (y < 0).double()])
    start = TwoLayer(0.1 * W, none, v)
    trained = replace(TwoLayer(W, none, v), start=start)
    return melamed.StalledMargin(), Instance(Data(X, y), trained, SubspaceTraining(0.1, 0.01, 0.0, 50))


def test_remark_3_1_bounds_the_margin_by_its_recursion():
    theorem, instance = stalled()
    a, T = 0.01 * 6 * 9 * 5, 50
    assert_pinned(theorem.bound(instance), [log(exp(max(0.1, a)) + (e - 1) * a * T)])
    assert_pinned(theorem.hypotheses(instance), [*TRAINED, 0, least(0), 0, least(0)])
    found = {each.name: each.value for each in theorem.hypotheses(instance)}
    assert found["movement of biases and output weights"] == 0
    moved = replace(instance.two_layer, v=instance.two_layer.v + 0.25)
    found = {each.name: each.value for each in theorem.hypotheses(replace(instance, network=moved))}
    assert found["movement of biases and output weights"] == 0.25


MARGIN, ACTIVE = melamed.margin_remark.largest_margin, melamed.SmallUniversalPerturbation(against_share=0.2)
FORMULAS = {
    "5.1: least codimension": (
        lambda: melamed.universal.least_codimension(12_000, 20),
        32 * 19 * log(20**2 * 12_000),
    ),
    "5.1: probability": (lambda: melamed.universal.chance(1000, 30, 20), 1 - 5 * (20 * exp(-30 / 16) + 1000**-0.5)),
    "R3.1: largest margin, a large step": (lambda: MARGIN(0.5, -1.0, 100), log(exp(0.5) + (e - 1) * 0.5 * 100)),
    "R3.1: largest margin, a large start": (lambda: MARGIN(0.5, 2.0, 7), log(exp(2) + (e - 1) * 0.5 * 7)),
    "C5.1: active neurons": (lambda: ACTIVE.least_against(40), 8),
    "C5.1: active neurons, one at least": (lambda: ACTIVE.least_against(2), 1),
    "5.1: active neurons": (lambda: melamed.SubspacePerturbation().least_against(40), 1),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_is_the_papers(name):
    computed, by_hand = FORMULAS[name]
    assert computed() == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "unknown", "first", "last"),
    [
        ({"dim": 12_000, "width": 20}, "codimension", math.ceil(32 * 19 * log(400 * 12_000)), 11_999),
        ({"dim": 300, "width": 1}, "codimension", 1, 299),
        ({"dim": 300, "width": 9}, "codimension", math.nan, math.nan),
        ({"dim": 12_000, "codimension": 9500}, "width", 1, 20),
        ({"dim": 12_000, "codimension": 1}, "width", 1, 1),
    ],
)
def test_5_1_is_solved_for_at_its_edges(changes, unknown, first, last):
    solution = replace(melamed.SubspacePerturbation(), **changes).solve_for(unknown)
    assert [solution.least, solution.most] == pytest.approx([first, last], nan_ok=True)


def test_the_widest_network_of_5_1_is_the_last_that_fits():
    width = int(melamed.SubspacePerturbation(dim=12_000, codimension=9500).solve_for("width").most)
    assert 32 * (width - 1) * log(width**2 * 12_000) <= 9500 < 32 * width * log((width + 1) ** 2 * 12_000)


LIKELY = [  # at a codimension where e^(-ℓ/16) counts
    melamed.LargeGradient(dim=100, codimension=40, width=3, examples=2),
    melamed.Regularised(dim=100, codimension=40, width=3, examples=2),
]


@pytest.mark.parametrize("theorem", LIKELY, ids=lambda theorem: theorem.id)
def test_the_probability_is_the_papers_for_every_set_of_active_neurons(theorem):
    instance = drawn(theorem)
    patterns = len({tuple(row) for row in OffSubspace(instance).active.tolist()})
    assert theorem.probability(instance) == pytest.approx(1 - patterns * exp(-40 / 16), rel=1e-12)


def test_the_probability_of_5_1_and_of_the_appendix_is_the_papers():
    theorem = melamed.SubspacePerturbation(dim=3000, codimension=40, width=4, examples=3)
    assert theorem.probability(drawn(theorem)) == pytest.approx(1 - 5 * (4 * exp(-40 / 16) + 3000**-0.5), rel=1e-12)
    lemma = melamed.ShortVector(dim=40)
    assert isinstance(lemma, LikelyClaim)
    assert lemma.probability(drawn(lemma)) == pytest.approx(1 - exp(-40 / 16), rel=1e-12)


def test_what_is_measured_of_a_network_is_in_standard_errors():
    theorem = melamed.LargeGradient(**SIZES)
    instance = drawn(theorem)
    off = OffSubspace(instance)
    found = {each.name: each.value for each in theorem.hypotheses(instance)}
    count = 4 * 1200  # weights off P
    variance = float((off.weights**2).sum()) / count * 2000
    name = "variance of the weights off the subspace, in standard errors from its own"
    assert found[name] == pytest.approx(abs(variance - 1) * sqrt(count / 2), rel=1e-9)
    network = instance.two_layer
    wrong = replace(network, v=network.v * 1.25, b=network.b - 0.5)
    found = {each.name: each.value for each in theorem.hypotheses(replace(instance, network=wrong))}
    assert found["deviation of the output weights from 1/√m"] == pytest.approx(0.25)
    assert found["largest bias"] == 0.5


def test_what_is_measured_of_the_data_is_their_distance_from_p():
    theorem = melamed.FrozenOffSubspace(**SMALL)
    instance = drawn(theorem)
    basis = OffSubspace(instance).basis
    aside = torch.linalg.svd(basis.T, full_matrices=True).Vh[-1]  # a unit vector off P
    offset = 3 * aside + 2 * basis[:, 0]
    X = instance.data.X + offset
    moved = replace(instance.data, X=X, truth=replace(instance.data.truth, offset=offset))
    found = {each.name: each.value for each in theorem.hypotheses(replace(instance, data=moved))}
    assert found["distance of the data's plane from the origin"] == pytest.approx(3)
    assert found["share of the data off the subspace"] == pytest.approx(0, abs=1e-12)
    lifted = instance.data.X + 0.1 * aside
    tilted = replace(instance, data=replace(instance.data, X=lifted))
    found = {each.name: each.value for each in theorem.hypotheses(tilted)}
    share = 0.1 * sqrt(len(lifted)) / float(lifted.norm())
    assert found["share of the data off the subspace"] == pytest.approx(share)
    assert found["training steps that are known"] == 3


def test_movement_is_measured_beside_the_start():
    theorem = melamed.LargeGradient(**SIZES)
    instance = drawn(theorem)
    network = instance.two_layer
    longer = replace(network, W=network.W * 1.5)
    found = {each.name: each.value for each in theorem.hypotheses(replace(instance, network=longer))}
    assert found["movement of the weights off the subspace"] == pytest.approx(0.5)
    assert melamed.instances.movement(OffSubspace(replace(instance, network=longer)), 3.0) == pytest.approx(0.5)


def test_shares_of_corollary_4_1_are_measured():
    theorem = melamed.ConstantGradient(**SIZES)
    found = {each.name: each.value for each in theorem.hypotheses(drawn(theorem))}
    assert found["codimension over dimension"] == pytest.approx(1200 / 2000)
    shares = [sum(row) / 4 for row in OffSubspace(drawn(theorem)).active.tolist()]
    assert found["smallest share of active neurons"] == pytest.approx(min(shares))


def test_kurtosis_is_measured_in_standard_errors():
    X = torch.tensor([[1.0, -1.0, 2.0, 0.5, -3.0]], dtype=torch.float64)
    second = (1 + 1 + 4 + 0.25 + 9) / 5
    fourth = (1 + 1 + 16 + 0.0625 + 81) / 5
    assert melamed.concentration.kurtosis(X) == pytest.approx(abs(fourth / second**2 - 3) * sqrt(5 / 24))


def test_the_betas_are_the_papers():
    off = OffSubspace(drawn(melamed.LargeGradient(**SIZES)))
    assert melamed.LargeGradient(**SIZES).stated_beta(off) == pytest.approx(1 / sqrt(2000))
    assert off.beta == pytest.approx(1 / sqrt(2000))
    assert OffSubspace(Instance(off.instance.data, off.instance.network)).beta == pytest.approx(1 / sqrt(2000))
    assert melamed.TinyStart(**SIZES).recipe.beta == pytest.approx(1 / (sqrt(2) * 2000))
    assert SubspaceTraining(1.0, 0.02, 1.5, 30).shrinkage == pytest.approx((1 - 0.03) ** 30)


def test_every_statement_is_in_the_table():
    assert {*IDS, "melamed2023/R3.1"} == {theorem.id for theorem in melamed.THEOREMS}


def test_alpha_of_5_1_is_the_papers():
    theorem = melamed.SubspacePerturbation(**SIZES)
    instance = drawn(theorem)
    off = OffSubspace(instance)
    witness, k = theorem.witness(instance), melamed.universal.against(off)
    assert witness.perturbations is not None
    x0 = int((k > 0).nonzero()[0])
    output = float(instance.two_layer.logits(off.points[x0][None]))
    alpha = 8 * sqrt(4) * 2000 * abs(output) / (int(k[x0]) * 1200)
    z = math.copysign(alpha, output) * (off.weights[off.network.v < 0].sum(0) - off.weights[off.network.v > 0].sum(0))
    torch.testing.assert_close(witness.perturbations[0], z)


def test_a_training_that_is_not_known_has_no_steps():
    theorem = melamed.FrozenOffSubspace(**SMALL)
    unknown = replace(drawn(theorem), facts=None)
    found = {each.name: each.value for each in theorem.hypotheses(unknown)}
    assert found["training steps that are known"] == 0


def test_the_tiny_start_is_allowed_its_rounding_alone():
    first = next(iter(melamed.TinyStart(**SIZES).hypotheses(drawn(melamed.TinyStart(**SIZES)))))
    assert first.tolerance == 1e-12


def test_lengths_of_5_1_are_measured_beside_the_scale_of_the_paper():
    theorem = melamed.SubspacePerturbation(**SIZES)
    instance = drawn(theorem)
    off, witness = OffSubspace(instance), theorem.witness(instance)
    against = melamed.universal.against(off)
    spoken = against >= 1
    outputs, z = instance.two_layer.logits(off.points[spoken]), witness.perturbations
    sizes = [float(each.norm()) / abs(float(f)) for each, f in zip(z, outputs, strict=True)]
    scaled = [s / (4 / int(k) * sqrt(2000 / 1200)) for s, k in zip(sizes, against[spoken], strict=True)]
    assert witness.measures[melamed.universal.LENGTH] == pytest.approx(max(scaled))
    assert witness.measures[melamed.universal.PLAIN_LENGTH] == pytest.approx(max(sizes))


@pytest.mark.parametrize(
    ("turned", "apart"), [([2.0, 4.0, math.inf], 0.0), ([3.0, 3.0, math.inf], 0.5), ([2.0, math.inf, math.inf], 1.0)]
)
def test_flips_of_the_turned_network_are_compared_relative_to_the_others(monkeypatch, turned, apart):
    theorem = melamed.RotatedPerturbation(**SMALL)
    found = iter([torch.tensor([2.0, 4.0, math.inf]), torch.tensor(turned)])
    monkeypatch.setattr("brittle.theorems.melamed2023.invariance.first_flip", lambda *_: next(found))
    measures = theorem.witness(drawn(theorem)).measures
    assert measures[melamed.invariance.SAME_FLIP] == apart


def test_rotated_weights_are_compared_relative_to_their_length(monkeypatch):
    theorem = melamed.RotationInvariance(**SMALL)
    instance = drawn(theorem)
    R, network = theorem.rotation(instance), instance.two_layer
    assert abs(float(network.W.norm()) - 1) > 0.1
    trained = iter([network, replace(network, W=1.5 * network.W @ R.T)])
    monkeypatch.setattr(melamed.RotationInvariance, "train", lambda *_: next(trained))
    assert theorem.witness(instance).measures[melamed.invariance.ROTATED] == pytest.approx(0.5)


def test_gradients_off_the_subspace_are_sums_over_active_neurons(monkeypatch):
    """In the plane, of data on the first axis: neurons 0 and 2 are active, 1·2 and 3·(-1) are added."""
    theorem = melamed.LawOfTheStart()
    monkeypatch.setattr(melamed.LawOfTheStart, "train", lambda self, start, data: start)
    W = torch.tensor([[1.0, 2.0], [-1.0, 3.0], [1.0, -1.0]]).double()
    network = TwoLayer(W, torch.zeros(3).double(), torch.tensor([1.0, 2.0, 3.0]).double())
    data, eye = Data(torch.tensor([[1.0, 0.0]]).double(), torch.ones(1).double()), torch.eye(2).double()
    weights, lengths = theorem._off(data, (network,), eye, eye[:, :1])
    assert weights.abs().tolist() == [2, 3, 1]
    assert lengths.tolist() == [1]


def test_the_training_of_r_3_1_is_told_as_it_was_run():
    instance = melamed.StalledMargin(width=3, examples=5, power=1.5, pace=2.0)._trained(
        4, torch.Generator().manual_seed(0)
    )
    assert instance.facts == SubspaceTraining(beta=1 / 2, rate=2 / (5 * 4), decay=0.0, steps=8)
