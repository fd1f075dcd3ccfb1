"""vardi2022: the instances are confirmed, every hypothesis is needed by name, and the sums are the multipliers'."""

import json
import math
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from brittle.attacks import first_flip
from brittle.cli import main
from brittle.common.errors import InputError
from brittle.networks import PyTorch, TwoLayer, save_network
from brittle.networks.constructions import nearly_orthogonal, orthogonal_kkt
from brittle.settings import Data, Orthogonal, Sphere, Truth, save_data
from brittle.theorems import Instance, Outcome, check_default, check_instance, check_many
from brittle.theorems.base import (
    COMPARATOR_FLIPPED,
    LARGEST_MARGIN,
    LONGEST,
    SMALLEST_NORM,
    promise_at_most,
)
from brittle.theorems.vardi2022 import THEOREMS
from brittle.theorems.vardi2022.convergence import FlowFindsKKT
from brittle.theorems.vardi2022.example import Lengths
from brittle.theorems.vardi2022.existence import (
    RobustNetworkExists,
    SmallerNormIsFragile,
    SphereIsNearlyOrthogonal,
    cosine_tail,
)
from brittle.theorems.vardi2022.instances import fragile_network, orthogonal_instance, sphere_instance
from brittle.theorems.vardi2022.lemmas import DirectionOfEveryNeuron, Lemma, MultiplierSums, RoomIsPositive
from brittle.theorems.vardi2022.sizes import Sizes
from brittle.theorems.vardi2022.universal import UniversalPerturbation, UniversalPerturbationOnTheMargin
from tests.theorems.breaking import failed, names

LEMMAS = [theorem for theorem in THEOREMS if isinstance(theorem, Lemma)]
EXPLICIT = [theorem for theorem in THEOREMS if theorem.explicit_constants]
QUICK = [replace(theorem, until=-100.0) if isinstance(theorem, FlowFindsKKT) else theorem for theorem in EXPLICIT]


@pytest.fixture(scope="module")
def closed_form() -> Instance:
    return orthogonal_instance(299, 100)


@pytest.mark.parametrize("theorem", QUICK, ids=lambda theorem: theorem.id)
def test_the_default_instance_is_confirmed(theorem, rng):
    verdict = check_default(theorem, rng)
    assert verdict.verdict is Outcome.CONFIRMED, verdict.advice
    assert all(hypothesis.slack >= 0 for hypothesis in verdict.hypotheses)


@pytest.mark.parametrize("theorem", [UniversalPerturbation(), *LEMMAS], ids=lambda theorem: theorem.id)
def test_the_closed_form_is_confirmed(theorem, closed_form):
    assert check_instance(theorem, closed_form).verdict is Outcome.CONFIRMED


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
    assert verdict.verdict is Outcome.CONFIRMED
    assert [each.threshold for each in verdict.bound if each.name == LARGEST_MARGIN] == [pytest.approx(-9)]


def test_almost_orthogonal_examples_at_a_solved_point(rng):
    theorem = UniversalPerturbation(dim=400, examples=21, coherence=4.0)
    verdict = check_default(theorem, rng)
    assert verdict.verdict is Outcome.CONFIRMED
    assert verdict.measured[LARGEST_MARGIN] < -1


def test_a_doctored_bound_is_violated(closed_form):
    @dataclass(frozen=True)
    class Doctored(UniversalPerturbation):
        def bound(self, instance):
            return [promise_at_most(LONGEST, 1.0)]

    verdict = check_instance(Doctored(), closed_form)
    assert verdict.verdict is Outcome.VIOLATED
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
    return Instance(replace(data, truth=Truth(dim=data.dim + 1)), instance.network)


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
    assert check_instance(UniversalPerturbationOnTheMargin(), instance).measured["examples on the margin"] == 100


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
    (bound,) = check_instance(DirectionOfEveryNeuron(), closed_form).bound
    assert bound.value == pytest.approx(1, rel=1e-9)


@given(st.integers(2, 60), st.floats(0, 5), st.integers(6, 400))
def test_the_room_is_at_least_a_third(examples, coherence, dim):
    if examples <= (dim + 1) / (3 * (coherence + 1)):
        assert dim - examples * coherence >= dim / 3


@pytest.mark.parametrize("unknown", UniversalPerturbation.unknowns)
def test_solving_for_a_size_agrees_with_the_hypothesis(unknown):
    theorem = UniversalPerturbation(dim=500, examples=30, coherence=2.5)
    solution = theorem.solve_for(unknown)
    fits = [m for m in range(2, 501) if m <= (500 + 1) / (3 * (2.5 + 1))]
    dims = [d for d in range(1, 501) if (d + 1) / (3 * (2.5 + 1)) >= 30]
    wanted = (fits[0], fits[-1]) if unknown == "examples" else (dims[0], math.inf)
    assert (solution.least, solution.most) == wanted
    assert math.isnan(replace(theorem, coherence=400.0).solve_for("examples").most)


def one_example_twice() -> Instance:
    data = Orthogonal(30).sample(5)
    return Instance(Data(torch.cat([data.X, data.X[:1]]), torch.cat([data.y, data.y[:1]])))


def test_the_construction_needs_its_hypotheses():
    short = Instance(Data(torch.eye(5).double(), torch.ones(5).double()))
    assert failed(RobustNetworkExists(), short) == ["relative deviation of ‖x‖ from √d"]
    assert failed(RobustNetworkExists(), one_example_twice()) == ["largest |<x_i, x_j>|/d"]


def test_no_ray_flips_the_construction_within_its_radius(rng):
    data = Sphere(200).sample(12, rng)
    network = nearly_orthogonal(data.X, data.y).network
    radius = check_instance(RobustNetworkExists(), Instance(data)).bound[1].value
    for i in range(len(data)):
        rays = torch.nn.functional.normalize(data.X - data.X[i], dim=1)
        rays[i] = torch.nn.functional.normalize(torch.randn(200, generator=rng, dtype=torch.float64), dim=0)
        X, y = data.X[i].expand(len(rays), -1), data.y[i].expand(len(rays))
        assert float(first_flip(network, X, y, rays).min()) >= radius * (1 - 1e-9)


def orthogonal(dim: int, examples: int) -> Instance:
    data = Orthogonal(dim).sample(examples)
    return Instance(data, fragile_network(data))


def uneven() -> Instance:
    data = Orthogonal(8).sample(8)
    data = replace(data, y=torch.tensor([1.0, 1, 1, 1, 1, -1, -1, -1]).double())
    return Instance(data, fragile_network(data))


def tilted() -> Instance:
    """One example leans towards another by 10^-6."""
    data = Orthogonal(8).sample(8)
    X = data.X.clone()
    X[0, 1] = 1e-6 * math.sqrt(8)
    X[0] *= math.sqrt(8) / X[0].norm()
    data = replace(data, X=X)
    return Instance(data, TwoLayer(X / 8, torch.zeros(8).double(), data.y))


def orthogonal_of_another_norm() -> Instance:
    data = Orthogonal(8).sample(8)
    data = Data(data.X * 1.01, data.y)
    return Instance(data, TwoLayer(data.X / 8, torch.zeros(8).double(), data.y))


WORKED_EXAMPLE = {
    "relative deviation of ‖x‖ from √d": orthogonal_of_another_norm,
    "largest |<x_i, x_j>|/d": tilted,
    "examples": lambda: orthogonal(8, 6),
    "examples of one label more than of the other": uneven,
    "deviation from the network N'": lambda: Instance(orthogonal(8, 8).data, orthogonal(8, 8).two_layer.scaled(1.1)),
}


@pytest.mark.parametrize("name", WORKED_EXAMPLE)
def test_each_hypothesis_of_the_worked_example(name):
    assert failed(SmallerNormIsFragile(), WORKED_EXAMPLE[name]()) == [name]
    assert names(SmallerNormIsFragile(), orthogonal(8, 8)) == set(WORKED_EXAMPLE)


@given(st.integers(3, 400), st.floats(0.01, 0.99))
def test_the_exact_tail_is_the_integral_of_the_density(dim, threshold):
    def density(t):
        return (1 - t * t) ** ((dim - 3) / 2)

    below, above = quad(density, 0, threshold)[0], quad(density, threshold, 1)[0]
    assert cosine_tail(dim, threshold) == pytest.approx(above / (above + below), rel=1e-6, abs=1e-12)


@given(st.integers(6, 10_000))
def test_the_stated_probabilities_allow_for_the_exact_ones(dim):
    assert cosine_tail(dim, 0.5) <= dim * 0.75 ** ((dim - 3) / 2)
    assert cosine_tail(dim, min(1.0, math.log(dim) / math.sqrt(dim))) <= dim ** (1 - math.log(dim) / 4)


def test_near_orthogonality_needs_the_sphere_and_six_dimensions(rng):
    uneven = Sphere(50).sample(4, rng)
    uneven = replace(uneven, X=uneven.X * torch.tensor([[1.0], [1], [1], [2]]).double(), truth=Truth())
    assert failed(SphereIsNearlyOrthogonal(), Instance(uneven)) == ["relative spread of ‖x‖"]
    assert failed(SphereIsNearlyOrthogonal(), Instance(Sphere(5).sample(4, rng))) == ["dimension"]


def test_a_vacuous_probability_is_said_to_be_one(rng):
    verdict = check_default(SphereIsNearlyOrthogonal(dim=1000, examples=31), rng)
    assert verdict.verdict is Outcome.INCONCLUSIVE
    assert verdict.measured["exact chance of > ln(d)/√d, summed over pairs"] < 1e-8


def test_near_orthogonality_over_many_draws(rng):
    trials = check_many(SphereIsNearlyOrthogonal(), 200, rng)
    assert (trials.failures, trials.skipped) == (0, 0)
    assert trials.verdict is Outcome.CONFIRMED


def test_many_draws_at_once_fail_as_often_as_the_exact_tail_says(rng):
    """Two points of R^12, where ln(d)/√d > 1/2: what remains is |cos| > 1/2, and one pair needs no union bound."""
    theorem = SphereIsNearlyOrthogonal(dim=12, examples=2)
    counted = theorem.failures(20_000, rng)
    exact = cosine_tail(12, 0.5)
    assert counted.failures / 20_000 == pytest.approx(exact, abs=4 * math.sqrt(exact / 20_000))


def test_flow_must_begin_at_a_small_loss(rng):
    data = Sphere(20).sample(5, rng)
    instance = Instance(data, PyTorch().draw(20, 10, rng))
    assert failed(FlowFindsKKT(), instance) == ["sum of the losses"]


def test_flow_on_the_logistic_loss(rng):
    verdict = check_default(FlowFindsKKT(logistic=True, until=-100.0), rng)
    assert verdict.verdict is Outcome.CONFIRMED, verdict.advice


def test_a_logistic_loss_below_one_does_not_classify():
    """The paper's condition as printed, with the natural logarithm: one example is wrong and L = 0.74 < 1."""
    X = torch.tensor([[1.0], [-1.0]]).double()
    network = TwoLayer(torch.tensor([[1.0], [-1.0]]).double(), torch.zeros(2).double(), torch.tensor([5, 0.1]).double())
    instance = Instance(Data(X, torch.tensor([1.0, -1.0])), network)
    (loss,) = FlowFindsKKT(logistic=True).hypotheses(instance)
    assert instance.smallest_margin < 0
    assert loss.value < 1
    assert not loss.holds


def test_lemmas_without_a_network(rng):
    data = sphere_instance(100_000, 5, rng).data
    assert check_instance(RoomIsPositive(), Instance(data)).verdict is Outcome.CONFIRMED
    assert Sizes(data).limit == pytest.approx((100_001) / (3 * (Sizes(data).coherence + 1)))


def test_the_length_of_the_perturbation_grows_as_claimed(rng):
    verdict = check_default(Lengths(), rng)
    assert verdict.verdict is Outcome.SCALING_ONLY
    orthogonal, sphere = verdict.scaling
    assert orthogonal.fitted == pytest.approx(0, abs=0.02)
    assert sphere.fitted == pytest.approx(0.25, abs=0.1)
    assert check_instance(Lengths(), orthogonal_instance(299, 100)).scaling == ()


def test_class_numbers_are_refused(rng):
    data = Data(torch.eye(4).double() * 2, torch.tensor([0, 1, 1, 0]))
    with pytest.raises(InputError, match="class numbers"):
        check_instance(RoomIsPositive(), Instance(data))


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
