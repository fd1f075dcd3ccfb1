"""melamed2023 on its default instances, with one hypothesis broken at a time, and against exact laws."""

import math
from dataclasses import replace
from functools import cache

import pytest
import torch
from scipy import special, stats

from brittle.common.errors import InputError
from brittle.data import Data, DataInfo, Grid25, Subspace
from brittle.networks import Kaiming, TwoLayer
from brittle.theorems import CheckOutcome, Instance, Theorem, check, check_default, check_instance, check_many
from brittle.theorems.melamed2023 import (
    THEOREMS,
    AffinePlane,
    ConstantGradient,
    FrozenOffSubspace,
    LargeGradient,
    LongSum,
    LongVector,
    PrintedSlope,
    ProductOfGaussians,
    ProductWithFixed,
    Regularised,
    RotationInvariance,
    ShortSum,
    ShortVector,
    SmallGradient,
    SmallUniversalPerturbation,
    StronglyRegularised,
    SubspacePerturbation,
    TinyStart,
)
from brittle.theorems.melamed2023.concentration import EXACT
from brittle.theorems.melamed2023.instances import OffSubspace, SubspaceRecipe, SubspaceTraining
from brittle.theorems.melamed2023.invariance import Rotation
from brittle.theorems.melamed2023.universal import LENGTH, against, least_codimension

CONCENTRATION = [ShortVector(), ShortSum(), LongVector(), LongSum(), ProductWithFixed(), ProductOfGaussians()]
SMALL = {"dim": 2000, "codimension": 1200, "width": 4, "examples": 6}
WIDER = SMALL | {"width": 40}


@cache
def default_of(theorem: Theorem) -> Instance:
    return theorem.default(torch.Generator().manual_seed(0))


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda theorem: theorem.id)
def test_the_default_instance_is_confirmed(theorem, rng):
    verdict = check_default(theorem, rng)
    assert verdict.failed == []
    assert verdict.verdict is (CheckOutcome.VIOLATED if theorem.flaw else CheckOutcome.CONFIRMED), verdict.advice


def with_network(instance: Instance, **changes) -> Instance:
    network = instance.two_layer
    return replace(instance, network=replace(network, **{name: change(network) for name, change in changes.items()}))


def with_truth(instance: Instance, **changes) -> Instance:
    return replace(instance, data=replace(instance.data, truth=replace(instance.data.truth, **changes)))


def lifted(instance: Instance) -> Instance:
    """The data on a plane that misses the origin."""
    data, offset = instance.data, torch.zeros(instance.data.columns, dtype=torch.float64)
    offset[-1] = 1.0
    moved = replace(data, X=data.X + offset, X_test=None if data.X_test is None else data.X_test + offset)
    return with_truth(replace(instance, data=moved), offset=offset)


def tilted(instance: Instance) -> Instance:
    X = instance.data.X.clone()
    X[0, -1] += 1e-3
    return replace(instance, data=replace(instance.data, X=X))


def everywhere(instance: Instance) -> Instance:
    return with_truth(instance, codimension=0)


def biased(instance: Instance) -> Instance:
    return with_network(instance, b=lambda network: network.b + 1e-6)


def uneven(instance: Instance) -> Instance:
    return with_network(instance, v=lambda network: network.v * 1.001)


def wide(instance: Instance) -> Instance:
    """Weights off the subspace twice as long as their law allows, in the start too."""

    def longer(network: TwoLayer) -> torch.Tensor:
        W = network.W.clone()
        W[:, -network.width :] *= 2
        return W

    start = instance.two_layer.start
    return with_network(
        instance, W=longer, start=lambda _: None if start is None else replace(start, W=longer(start), start=None)
    )


def moved(instance: Instance) -> Instance:
    start = instance.two_layer.start
    assert start is not None
    W = start.W.clone()
    W[0, -1] += 1e-3
    return with_network(instance, start=lambda _: replace(start, W=W, start=None))


ON_DATA = [
    (lifted, "distance of the data's plane from the origin"),
    (tilted, "share of the data off the subspace"),
]
ON_NETWORK = [
    (biased, "largest bias"),
    (uneven, "deviation of the output weights from 1/√m"),
    (wide, "variance of the weights off the subspace, in standard errors from its own"),
]
UNMOVED = [(moved, "movement of the weights off the subspace")]

BREAKS = [
    *((LargeGradient(**SMALL), *row) for row in ON_DATA + ON_NETWORK + UNMOVED),
    *((ConstantGradient(**WIDER), *row) for row in ON_DATA + ON_NETWORK + UNMOVED),
    *((SmallGradient(**SMALL), *row) for row in ON_DATA + ON_NETWORK + UNMOVED),
    *((TinyStart(**SMALL), *row) for row in ON_DATA + ON_NETWORK + UNMOVED),
    *((Regularised(**SMALL), *row) for row in ON_DATA + ON_NETWORK),
    *((StronglyRegularised(**SMALL), *row) for row in ON_DATA + ON_NETWORK),
    *((SubspacePerturbation(**SMALL), *row) for row in ON_DATA + ON_NETWORK + UNMOVED),
    *((SmallUniversalPerturbation(**SMALL), *row) for row in ON_DATA + ON_NETWORK + UNMOVED),
    *((FrozenOffSubspace(), *row) for row in ON_DATA),
    (LargeGradient(**SMALL), lambda instance: with_truth(instance, codimension=0), "codimension"),
    (AffinePlane(), lambda instance: with_truth(instance, offset=None), "distance of the data's plane from the origin"),
    (
        RotationInvariance(),
        lambda instance: replace(instance, facts=Rotation(2 * instance.facts.matrix)),
        "deviation of R from an orthogonal matrix",
    ),
    (TinyStart(**SMALL), lambda instance: tiny(instance, 2.0), "β"),
    (Regularised(**SMALL), lambda instance: retrained(instance, rate=1.5, steps=2), "ηλ"),
    (StronglyRegularised(**SMALL), lambda instance: retrained(instance, rate=0.01, steps=2), "(1-ηλ)^T"),
    (PrintedSlope(), lambda instance: with_truth(instance, dim=1), "dimension"),
    *(
        (theorem, lambda instance: spiky(instance), "excess kurtosis in standard errors")
        for theorem in CONCENTRATION[:4]
    ),
    *(
        (theorem, lambda instance: spiky(instance), "excess kurtosis of v in standard errors")
        for theorem in CONCENTRATION[4:]
    ),
    *((theorem, lambda instance: first_zero(instance), "length of u") for theorem in CONCENTRATION[4:]),
    *((replace(theorem, threshold=0.0), lambda instance: instance, "threshold t") for theorem in CONCENTRATION[4:]),
]


def tiny(instance: Instance, factor: float) -> Instance:
    """A start that is `factor` times as long, and said to be so."""
    start = instance.two_layer.start
    assert start is not None
    longer = replace(start, W=factor * start.W, start=None)
    training = instance.known(SubspaceTraining)
    assert training is not None
    return Instance(instance.data, replace(longer, start=longer), replace(training, beta=factor * training.beta))


def retrained(instance: Instance, **changes) -> Instance:
    """The off-subspace weights that this training would have left."""
    training = instance.known(SubspaceTraining)
    assert training is not None
    training = replace(training, **changes)
    start = instance.two_layer.start
    assert start is not None
    factor = abs(1 - training.rate * training.decay) ** training.steps
    return Instance(instance.data, replace(start, W=factor * start.W, start=start), training)


def spiky(instance: Instance) -> Instance:
    X = instance.data.X.clone()
    X[-1] = 0
    X[-1, 0] = 100.0
    return Instance(Data(X, instance.data.y))


def first_zero(instance: Instance) -> Instance:
    X = instance.data.X.clone()
    X[0] = 0
    return Instance(Data(X, instance.data.y))


@pytest.mark.parametrize(("theorem", "breaking", "name"), BREAKS)
def test_breaking_one_hypothesis_names_exactly_that_one(theorem, breaking, name):
    instance = default_of(theorem)
    if name != "threshold t":
        assert check_instance(theorem, instance).failed == []
    verdict = check_instance(theorem, breaking(instance))
    assert verdict.verdict is CheckOutcome.HYPOTHESES_FAIL
    assert verdict.failed == [name]


def test_too_small_a_codimension_fails_by_the_hypothesis_of_5_1_alone(rng):
    theorem = SubspacePerturbation(dim=2000, codimension=900, width=4, examples=6)
    verdict = check_default(theorem, rng)
    assert verdict.failed == ["codimension beside 32(m-1)ln(m²d)"]
    (hypothesis,) = [each for each in verdict.hypotheses if not each.holds]
    assert hypothesis.slack == pytest.approx(900 - 96 * math.log(16 * 2000))


@pytest.mark.parametrize("theorem", [SubspacePerturbation(**SMALL), SmallUniversalPerturbation(**SMALL)])
def test_no_neuron_against_the_label_is_the_hidden_hypothesis(theorem, rng):
    instance = theorem.default(rng)
    instance = with_network(instance, v=lambda network: network.v.abs())
    assert check_instance(theorem, instance).failed == ["points with enough active neurons against the label"]


def test_an_output_of_zero_has_no_sign_to_flip(rng):
    theorem = SubspacePerturbation(**SMALL)
    instance = theorem.default(rng)
    data = replace(instance.data, X=torch.zeros_like(instance.data.X), X_test=None, y_test=None)
    failed = check_instance(theorem, replace(instance, data=data)).failed
    assert failed == ["points with enough active neurons against the label"]


def test_shares_are_hypotheses_of_the_corollaries(rng):
    greedy = ConstantGradient(**WIDER, active_share=0.99)
    assert check_default(greedy, rng).failed == ["smallest share of active neurons"]
    assert check_default(ConstantGradient(**WIDER, codimension_share=0.9), rng).failed == ["codimension over dimension"]
    narrow = SmallUniversalPerturbation(**SMALL, codimension_share=0.9)
    assert check_instance(narrow, default_of(narrow)).failed == ["codimension over dimension"]


@pytest.mark.parametrize("theorem", CONCENTRATION, ids=lambda theorem: theorem.id)
def test_failure_rates_agree_with_the_exact_tail(theorem, rng):
    tail = theorem.tail(theorem.dim)
    trials = check_many(theorem, 20_000, rng)
    assert stats.binomtest(trials.failures, 20_000, tail).pvalue > 1e-3
    assert trials.verdict is CheckOutcome.CONFIRMED
    assert trials.skipped == 0


@pytest.mark.parametrize("dim", [1, 2, 16, 100, 1000])
def test_exact_tails_match_closed_forms_and_the_lemmas(dim):
    assert ShortVector().tail(dim) == pytest.approx(special.gammainc(dim / 2, dim / 4))
    assert LongVector().tail(dim) == pytest.approx(special.gammaincc(dim / 2, dim), rel=1e-9)
    assert ShortVector().tail(dim) <= math.exp(-dim / 16)
    assert LongVector().tail(dim) <= math.exp(-dim / 16)
    assert ProductWithFixed(threshold=1.5, deviation=0.7).tail(dim) == pytest.approx(
        math.erfc(1.5 / 0.7 / math.sqrt(2))
    )


def test_the_product_of_gaussians_has_its_exact_tail():
    """In one dimension <u, v> is a product of two normals, whose density is K_0/π."""
    theorem = ProductOfGaussians(dim=1, threshold=1.2)
    reach = math.sqrt(2) * 1.2
    x = torch.linspace(reach, 60, 400_001, dtype=torch.float64)
    area = float(torch.trapezoid(torch.from_numpy(special.k0(x.numpy())), x)) * 2 / math.pi
    assert theorem.tail(1) == pytest.approx(area, rel=1e-6)


def test_an_exact_tail_above_the_promise_would_be_a_violation(rng, monkeypatch):
    monkeypatch.setattr(ShortVector, "tail", lambda self, dim: 0.5)
    verdict = check_default(ShortVector(), rng)
    assert verdict.verdict is CheckOutcome.VIOLATED
    assert EXACT in verdict.advice


def explicit(rng: torch.Generator, dim: int = 300, codimension: int = 250, width: int = 6) -> Instance:
    data = Subspace(dim, codimension).sample(5, rng)
    return Instance(data, Kaiming().draw(dim, width, rng))


def test_gradients_off_an_explicit_subspace_are_the_networks_own(rng):
    instance = explicit(rng)
    gradient = instance.two_layer.logit_gradients(instance.data.X, torch.ones(5).double())
    complement = instance.data.truth.complement
    assert complement is not None
    torch.testing.assert_close(OffSubspace(instance).gradients, (gradient @ complement).norm(dim=1))


@pytest.mark.parametrize("known", ["complement", "basis", "nothing"])
def test_the_subspace_may_be_known_or_found(known, rng):
    instance = explicit(rng)
    truth = {
        "complement": instance.data.truth,
        "basis": replace(instance.data.truth, complement=None),
        "nothing": DataInfo(dim=300),
    }[known]
    verdict = check(LargeGradient(), Data(instance.data.X, instance.data.y, truth=truth), instance.network)
    assert verdict.verdict is CheckOutcome.CONFIRMED
    found = 295 if known == "nothing" else 250
    assert verdict.hypotheses[0].value == found


def test_off_subspace_weights_in_the_span_have_the_explicit_law(rng):
    """‖Π∇N‖² md/k is χ² with ℓ degrees of freedom, whichever way the instance is made."""
    recipe = SubspaceRecipe(40, 30, 5, examples=3, tests=1, steps=1)
    sizes = []
    for _ in range(80):
        off = OffSubspace(recipe.instance(rng))
        k = int(off.active[-1].sum())
        if k:
            sizes.append(float(off.gradients[-1]) ** 2 * 5 * 40 / k)
    assert stats.kstest(sizes, stats.chi2(30).cdf).pvalue > 1e-3


def test_the_universal_direction_flips_and_is_orthogonal_to_the_data(rng):
    theorem = SubspacePerturbation(**SMALL)
    instance = theorem.default(rng)
    witness = theorem.witness(instance)
    basis, network = instance.data.truth.basis, instance.two_layer
    assert basis is not None
    assert witness.perturbations is not None
    assert witness.examples is not None
    assert float((witness.perturbations @ basis).abs().max()) == 0
    before, after = network.logits(witness.examples), network.logits(witness.examples + witness.perturbations)
    assert bool((before * after < 0).all())
    k = against(OffSubspace(instance))
    scales = before.abs() * (4 / k[k > 0]) * math.sqrt(2000 / 1200)
    ratios = witness.perturbations.norm(dim=1) / scales
    assert witness.measures[LENGTH] == pytest.approx(float(ratios.max()))
    assert witness.measures[LENGTH] <= 8 * math.sqrt(2)


def test_one_direction_serves_every_point_of_the_subspace(rng):
    theorem = SubspacePerturbation(**SMALL)
    instance = SubspaceRecipe(2000, 1200, 4, examples=6, tests=30).instance(rng)
    assert check_instance(theorem, instance).verdict is CheckOutcome.CONFIRMED
    Z = theorem.witness(instance).perturbations
    assert Z is not None
    cosines = (Z @ Z.T) / (Z.norm(dim=1, keepdim=True) * Z.norm(dim=1))
    torch.testing.assert_close(cosines.abs(), torch.ones_like(cosines))


def test_trials_of_5_1_skip_what_the_hypotheses_exclude(rng):
    trials = check_many(SubspacePerturbation(**SMALL), 12, rng)
    assert trials.failures == 0
    assert 0 < trials.skipped < 12
    assert trials.promised_failure_rate == pytest.approx(5 * (4 * math.exp(-1200 / 16) + 2000**-0.5))


@pytest.mark.parametrize(("dim", "width"), [(12_000, 20), (5000, 7), (100_000, 2), (50, 1)])
def test_the_smallest_codimension_is_the_smallest(dim, width):
    solution = SubspacePerturbation(dim=dim, width=width).solve_for("codimension")
    assert solution.least >= least_codimension(dim, width)
    assert solution.least == 1 or solution.least - 1 < least_codimension(dim, width)


def test_there_may_be_no_codimension():
    solution = SubspacePerturbation(dim=1000, width=5).solve_for("codimension")
    assert math.isnan(solution.least)
    assert "there is none" in solution.explanation


def test_the_widest_network_is_the_widest():
    solution = SubspacePerturbation(dim=12_000, codimension=9500).solve_for("width")
    assert solution.most == 20
    assert least_codimension(12_000, 21) > 9500 >= least_codimension(12_000, 20)


def test_weights_stay_off_the_subspace_under_stochastic_descent_too(rng):
    for theorem in (FrozenOffSubspace(batch=4), RotationInvariance(batch=4)):
        assert check_default(theorem, rng).verdict is CheckOutcome.CONFIRMED


def test_the_papers_grid_is_outside_every_theorem(rng):
    instance = Instance(Grid25().sample(), Kaiming().draw(3, 30, rng))
    for theorem in (FrozenOffSubspace(), LargeGradient(), SmallGradient(), SubspacePerturbation()):
        assert "distance of the data's plane from the origin" in check_instance(theorem, instance).failed


def test_regularised_weights_shrink_by_the_stated_factor(rng):
    instance = Regularised(**SMALL, decay=3.0, steps=40).default(rng)
    off, start = OffSubspace(instance), instance.two_layer.start
    assert start is not None
    torch.testing.assert_close(off.weights, (1 - 0.01 * 3.0) ** 40 * off.project(start.W))


def test_a_network_is_asked_for_where_one_is_needed(rng):
    with pytest.raises(InputError, match="two-layer"):
        check_instance(LargeGradient(), Instance(explicit(rng).data))
