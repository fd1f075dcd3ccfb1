"""vardi2022: the instances are confirmed, every hypothesis is needed by name, and the sums are the multipliers'."""

import json
import math
from dataclasses import dataclass, replace

import pytest
import torch

from brittle.cli import main
from brittle.common.errors import InputError
from brittle.data import Data, DataInfo, Orthogonal, save_data
from brittle.networks import TwoLayer, save_network
from brittle.networks.constructions import orthogonal_kkt
from brittle.theorems import CheckOutcome, Instance, ScalingClaim, check_default, check_instance
from brittle.theorems.comparison import COMPARATOR_FLIPPED, LARGEST_MARGIN, LONGEST, SMALLEST_NORM, promise_at_most
from brittle.theorems.vardi2022 import THEOREMS
from brittle.theorems.vardi2022.convergence import FlowFindsKKT
from brittle.theorems.vardi2022.groups import ExampleGroups, orthogonal_instance, sphere_instance
from brittle.theorems.vardi2022.lemmas import LemmaC4, LemmaC5, MultiplierSums, OrthogonalLemma
from brittle.theorems.vardi2022.universal import Lengths, UniversalPerturbation, UniversalPerturbationOnTheMargin
from tests.theorems.breaking import failed, names

LEMMAS = [theorem for theorem in THEOREMS if isinstance(theorem, OrthogonalLemma)]
EXPLICIT = [theorem for theorem in THEOREMS if not isinstance(theorem, ScalingClaim | FlowFindsKKT)]


@pytest.fixture(scope="module")
def closed_form() -> Instance:
    return orthogonal_instance(299, 100)


@pytest.mark.parametrize("theorem", EXPLICIT, ids=lambda theorem: theorem.id)
def test_the_default_instance_is_confirmed(theorem, rng):
    verdict = check_default(theorem, rng)
    assert verdict.verdict is CheckOutcome.CONFIRMED, verdict.advice
    assert all(hypothesis.slack >= 0 for hypothesis in verdict.hypotheses)


@pytest.mark.parametrize("theorem", [UniversalPerturbation(), *LEMMAS], ids=lambda theorem: theorem.id)
def test_the_closed_form_is_confirmed(theorem, closed_form):
    assert check_instance(theorem, closed_form).verdict is CheckOutcome.CONFIRMED


def test_the_perturbation_on_orthogonal_examples(closed_form):
    d, m, c = 299, 100, 0.5
    eta = 1 / d + 2 * (c * m / (d + 1) + 1) * (d + 1) / (m * c * d)
    measured = check_instance(UniversalPerturbation(), closed_form).measured
    assert measured[LONGEST] == pytest.approx(eta * math.sqrt(m * d), rel=1e-12)
    assert measured[SMALLEST_NORM] == pytest.approx(math.sqrt(d / m), rel=1e-9)
    assert measured[COMPARATOR_FLIPPED] == 0


def test_margins_scale_with_the_network(closed_form):
    larger = Instance(closed_form.data, closed_form.two_layer.scaled(3.0))
    verdict = check_instance(UniversalPerturbation(), larger)
    assert verdict.verdict is CheckOutcome.CONFIRMED
    assert [each.threshold for each in verdict.bound if each.name == LARGEST_MARGIN] == [pytest.approx(-9)]


def test_almost_orthogonal_examples_at_a_solved_point(rng):
    theorem = UniversalPerturbation(dim=400, examples=21, coherence=4.0)
    verdict = check_default(theorem, rng)
    assert verdict.verdict is CheckOutcome.CONFIRMED
    assert verdict.measured[LARGEST_MARGIN] < -1


def test_a_doctored_bound_is_violated(closed_form):
    @dataclass(frozen=True)
    class Doctored(UniversalPerturbation):
        def bound(self, instance):
            return [promise_at_most(LONGEST, 1.0)]

    verdict = check_instance(Doctored(), closed_form)
    assert verdict.verdict is CheckOutcome.VIOLATED
    assert LONGEST in verdict.advice


def one_label() -> Instance:
    """u·x̃ = 1 on every example: one neuron, a KKT point of a problem with a single label."""
    data = Orthogonal(299).sample(40)
    u = data.X.sum(0) / (299 + 40)
    bias = torch.tensor([40 / (299 + 40)], dtype=torch.float64)
    size = torch.sqrt(u.square().sum() + bias.square()).sqrt()
    return Instance(Data(data.X, torch.ones(40).double()), TwoLayer(u[None] / size, bias / size, size))


def in_another_dimension(instance: Instance) -> Instance:
    """The same points as those of a larger space, where √d is larger than their norm."""
    data = instance.data
    return Instance(replace(data, truth=DataInfo(dim=data.dim + 1)), instance.network)


def unbalanced(instance: Instance) -> Instance:
    """The same function with |v_j| ≠ ‖(w_j, b_j)‖."""
    network = instance.two_layer
    return Instance(instance.data, TwoLayer(network.W * 1.5, network.b * 1.5, network.v / 1.5))


BROKEN = {
    "relative deviation of ‖x‖ from √d": lambda: in_another_dimension(orthogonal_instance(299, 100)),
    "examples of the rarer label": one_label,
    "examples": lambda: orthogonal_instance(299, 102),
    "distance from a KKT point": lambda: unbalanced(orthogonal_instance(299, 100)),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("theorem", [UniversalPerturbation(), UniversalPerturbationOnTheMargin(), *LEMMAS])
def test_each_hypothesis_is_named_when_it_alone_fails(theorem, name):
    instance = BROKEN[name]()
    if name in names(theorem, instance):
        assert failed(theorem, instance) == [name]


@pytest.mark.parametrize("theorem", [UniversalPerturbation(), UniversalPerturbationOnTheMargin(), MultiplierSums()])
def test_no_hypothesis_is_left_out(theorem, closed_form):
    assert names(theorem, closed_form) == set(BROKEN)


def test_a_misclassified_example_is_infinitely_far_from_a_kkt_point(closed_form):
    wrong = Instance(replace(closed_form.data, y=-closed_form.data.y), closed_form.network)
    for theorem in (UniversalPerturbation(), UniversalPerturbationOnTheMargin()):
        assert failed(theorem, wrong) == ["distance from a KKT point"]


def test_the_corollary_holds_where_the_theorem_says_nothing(rng):
    instance = UniversalPerturbationOnTheMargin().default(rng)
    assert failed(UniversalPerturbation(), instance) == ["relative deviation of ‖x‖ from √d", "examples"]
    assert check_instance(UniversalPerturbationOnTheMargin(), instance).measured["examples on the margin"] == 40


def test_the_sums_are_those_of_the_closed_form_multipliers(closed_form):
    known = orthogonal_kkt(closed_form.data.X, closed_form.data.y)
    beta = 100 / 299 / (2 * (1 + 100 / 299))
    slope = beta / (1 - beta)
    size = float(known.network.v[0] ** 2)
    each = torch.where(closed_form.data.y > 0, 1.0, slope) * known.multipliers * size
    assert torch.allclose(closed_form.kkt.lam, known.multipliers, rtol=1e-9)
    assert torch.allclose(closed_form.kkt.sums(+1), each, rtol=1e-9)


def test_the_sums_are_those_of_the_definition(rng):
    instance = sphere_instance(20_000, 9, rng)
    kkt, X, y = instance.kkt, instance.data.X, instance.data.y
    v = kkt.network.v
    total = sum(
        float(v[j] ** 2 * kkt.lam[i] * kkt.slopes[i, j]) for i in range(len(y)) for j in range(len(v)) if v[j] < 0
    )
    assert float(kkt.sums(-1).sum()) == pytest.approx(total, rel=1e-12)
    rebuilt = v[:, None] * ((kkt.lam * y)[:, None] * kkt.slopes).T @ X
    assert torch.allclose(rebuilt, kkt.network.W, atol=1e-9 * float(kkt.network.W.abs().max()))


def test_the_direction_lemma_is_an_equality_on_orthogonal_examples(closed_form):
    (bound,) = check_instance(LemmaC4(), closed_form).bound
    assert bound.value == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("unknown", UniversalPerturbation.unknowns)
def test_solving_for_a_size_agrees_with_the_hypothesis(unknown):
    theorem = UniversalPerturbation(dim=500, examples=30, coherence=2.5)
    solution = theorem.solve_for(unknown)
    fits = [m for m in range(2, 501) if m <= (500 + 1) / (3 * (2.5 + 1))]
    dims = [d for d in range(1, 501) if (d + 1) / (3 * (2.5 + 1)) >= 30]
    wanted = (fits[0], fits[-1]) if unknown == "examples" else (dims[0], math.inf)
    assert (solution.least, solution.most) == wanted
    assert math.isnan(replace(theorem, coherence=400.0).solve_for("examples").most)


def test_lemmas_without_a_network(rng):
    data = sphere_instance(100_000, 5, rng).data
    assert check_instance(LemmaC5(), Instance(data)).verdict is CheckOutcome.CONFIRMED
    groups = ExampleGroups(data)
    assert groups.constants.limit == pytest.approx((100_001) / (3 * (groups.coherence + 1)))


def test_the_length_of_the_perturbation_grows_as_claimed(rng):
    verdict = check_default(Lengths(), rng)
    assert verdict.verdict is CheckOutcome.SCALING_ONLY
    orthogonal, sphere = verdict.scaling
    assert orthogonal.fitted == pytest.approx(0, abs=0.02)
    assert sphere.fitted == pytest.approx(0.25, abs=0.1)
    assert check_instance(Lengths(), orthogonal_instance(299, 100)).scaling == ()


def test_class_numbers_are_refused(rng):
    data = Data(torch.eye(4).double() * 2, torch.tensor([0, 1, 1, 0]))
    with pytest.raises(InputError, match="class numbers"):
        check_instance(LemmaC5(), Instance(data))


def test_your_own_files(closed_form, tmp_path, capsys):
    save_data(closed_form.data, tmp_path / "data.npz")
    save_network(closed_form.two_layer, tmp_path / "net.npz")
    files = ["--net", str(tmp_path / "net.npz"), "--data", str(tmp_path / "data.npz")]
    assert main(["check", "vardi2022/4.1", *files, "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["verdict"] == "confirmed"
    assert content["measured"]["longest perturbation at that scale"] == pytest.approx(math.sqrt(2.99), rel=1e-9)
    save_network(unbalanced(closed_form).two_layer, tmp_path / "net.npz")
    assert main(["check", "vardi2022/4.1", *files, "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["verdict"] == "hypotheses_fail"
    assert "distance from a KKT point" in content["advice"]


def test_sums_are_promised_up_to_rounding_alone(closed_form):
    assert all(promise.tolerance <= 1e-9 for promise in MultiplierSums().bound(closed_form))
