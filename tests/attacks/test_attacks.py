"""What every attack must keep to, on every kind of network."""

import dataclasses

import pytest
import torch

from brittle.attacks import (
    FREE,
    PGD,
    Attack,
    AttackTarget,
    Attempt,
    Foolbox,
    GradientStep,
    MinimumNorm,
    Ray,
    Restriction,
    Universal,
    base,
    sum_signed_gradients,
)
from brittle.common.errors import InputError
from brittle.common.progress import silent
from brittle.data import Data
from brittle.networks import TorchLinearInit, TwoLayer
from tests.cases import ATTACKS

DOUBLE = torch.float64


@pytest.fixture(params=[part for _, part in ATTACKS], ids=[name for name, _ in ATTACKS])
def attack(request):
    if isinstance(request.param, Foolbox):
        pytest.importorskip("foolbox")
    return request.param


def problem(seed=0, dim=8, width=30, examples=12):
    rng = torch.Generator().manual_seed(seed)
    network = TorchLinearInit().draw(dim, width, rng)
    X = torch.randn(examples, dim, generator=rng, dtype=DOUBLE)
    y = network.logits(X).sign()
    y[0] *= -1
    return network, Data(X, y)


def tensors(result):
    return [getattr(result, each.name) for each in dataclasses.fields(result)]


def test_the_result_is_measured(attack):
    network, data = problem()
    result = attack.run(network, data)
    assert result.success.any()
    assert torch.equal(network.margins(data.X + result.perturbations, data.y) < 0, result.success)
    torch.testing.assert_close(result.norms, result.perturbations.norm(dim=1))
    assert result.success[0]
    assert result.norms[0] == 0
    lengths = result.direction.norm(dim=1)
    torch.testing.assert_close(lengths, (lengths > 0.5).double())
    assert not any(value.isnan().any() for value in tensors(result) if isinstance(value, torch.Tensor))
    assert not result.clipped.any()


def test_the_same_seed_gives_the_same_numbers(attack):
    network, data = problem()
    one, other = (attack.run(network, data, rng=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(one.perturbations, other.perturbations)


def test_many_examples_are_attacked_some_after_others(attack, monkeypatch):
    network, data = problem(examples=20)
    shares = []
    monkeypatch.setattr(base, "AT_ONCE", 7 * data.columns)
    result = attack.run(network, data, watch=lambda progress: shares.append(progress.done))
    assert len(result.norms) == len(result.perturbations) == len(result.direction) == 20
    assert torch.equal(network.margins(data.X + result.perturbations, data.y) < 0, result.success)
    assert shares == sorted(shares)
    if isinstance(attack, PGD | GradientStep | Ray):  # which look at one example at a time
        monkeypatch.undo()
        torch.testing.assert_close(result.perturbations, attack.run(network, data).perturbations)


class Far(Attack):
    """Ignores the box."""

    def propose(self, target):
        far = torch.full_like(target.X, 3.0)
        return Attempt(far, far)


def test_parts_keep_what_the_box_cut_off(monkeypatch):
    network, data = problem(examples=20)
    data = Data(data.X.clamp(-1, 1), data.y)
    whole = Far().run(network, data, bounds=(-1.0, 1.0))
    monkeypatch.setattr(base, "AT_ONCE", 6 * data.columns)
    parts = Far().run(network, data, bounds=(-1.0, 1.0))
    assert parts.clipped.any()
    for one, other in zip(tensors(whole), tensors(parts), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("at_once", [2**22, 50])
def test_vectors_may_be_left_out(attack, at_once, monkeypatch):
    monkeypatch.setattr(base, "AT_ONCE", at_once)
    network, data = problem()
    with_them, without = (attack.run(network, data, vectors=vectors) for vectors in (True, False))
    assert torch.equal(with_them.norms, without.norms)
    assert [tuple(each.shape) for each in (without.perturbations, without.direction, without.raw)] == [(0, 8)] * 3


@pytest.mark.parametrize("value", [1.0, 0.0])
def test_a_constant_network_is_never_flipped(attack, value):
    """No gradient, no crossing; with N = 0 not even a margin."""
    zeros = torch.zeros(3, 8, dtype=DOUBLE), torch.zeros(3, dtype=DOUBLE), torch.zeros(3, dtype=DOUBLE)
    network = TwoLayer(*zeros, torch.tensor(value, dtype=DOUBLE))
    X = torch.randn(4, 8, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
    y = torch.tensor([1.0, 1.0, -1.0, 1.0], dtype=DOUBLE)
    result = attack.run(network, Data(X, y))
    assert torch.equal(result.success, (y < 0) if value else torch.zeros(4, dtype=torch.bool))
    assert not any(each.isnan().any() for each in tensors(result) if isinstance(each, torch.Tensor))
    result.to_json()


def test_a_box_is_kept_and_its_work_is_told(attack):
    network, data = problem(examples=20)
    data = Data(data.X.clamp(-1, 1), data.y)
    result = attack.run(network, data, bounds=(-1.0, 1.0))
    moved = data.X + result.perturbations
    assert moved.min() >= -1 - 1e-12
    assert moved.max() <= 1 + 1e-12
    assert torch.equal(result.clipped, (result.raw != result.perturbations).any(1))
    assert torch.equal(network.margins(moved, data.y) < 0, result.success)


def test_a_plain_module_of_several_classes_in_float32(attack):
    if isinstance(attack, Universal):
        attack = dataclasses.replace(attack, direction=torch.ones(8), signed=False)
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    X = torch.randn(10, 8, generator=torch.Generator().manual_seed(1), dtype=DOUBLE)
    y = module(X.float()).argmax(1)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    result = attack.run(module, Data(X, y))
    logits = module.double()(X + result.perturbations)
    others = logits.scatter(1, y[:, None], -torch.inf).max(1).values
    assert torch.equal(logits.gather(1, y[:, None])[:, 0] < others, result.success)
    if not isinstance(attack, Universal):
        assert result.success.any()
    assert all(torch.equal(value.float(), before[name]) for name, value in module.state_dict().items())


def test_a_module_that_is_no_chain_of_relus(attack):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    X = torch.randn(6, 8, generator=torch.Generator().manual_seed(1), dtype=DOUBLE)
    y = module(X.float())[:, 0].sign().double()
    result = attack.run(module, Data(X, y))
    assert torch.equal(module.double()(X + result.perturbations)[:, 0] * y < 0, result.success)


def test_the_limit_is_kept_and_the_failure_is_told():
    network, data = problem()
    for attack in (Ray(limit=1e-3), GradientStep(limit=1e-3), MinimumNorm(limit=1e-3), PGD(limit=1e-3)):
        result = attack.run(network, data)
        assert result.norms.max() <= 1e-3
        assert result.success[0]
        assert not result.success[1:].all()
    universal = Universal(direction=sum_signed_gradients, limit=1e-3).run(network, data)
    assert universal.smallest == torch.inf


def test_restricted_attacks_stay_where_they_may():
    network, data = problem(dim=12)
    basis = torch.randn(12, 4, generator=torch.Generator().manual_seed(5), dtype=DOUBLE)
    for off in (False, True):
        inside = Restriction(basis, off=off)
        for attack in (Ray(subspace=inside), GradientStep(subspace=inside), MinimumNorm(subspace=inside)):
            result = attack.run(network, data)
            away = result.perturbations - inside.project(result.perturbations)
            assert away.abs().max() <= 1e-12
            assert result.success[1:].any()


def test_attacks_order_as_they_must():
    """Minimum norm is nowhere longer than the gradient's ray, nor is the step that looks both ways; PGD is a check."""
    network, data = problem(dim=30, width=200, examples=40)
    ray, step = Ray().run(network, data), GradientStep().run(network, data)
    shortest, pgd = MinimumNorm().run(network, data), PGD().run(network, data)
    assert (shortest.norms <= ray.norms * (1 + 1e-12)).all()  # the steps past the same flip may differ by rounding
    assert (step.norms <= ray.norms * (1 + 1e-12)).all()
    assert (shortest.norms <= pgd.norms).double().mean() > 0.9
    assert shortest.mean_norm < pgd.mean_norm


def test_the_gradient_step_is_a_multiple_of_the_gradient():
    network, data = problem(dim=20, width=100)
    result = GradientStep().run(network, data)
    gradients = network.logit_gradients(data.X, torch.ones(len(data), dtype=DOUBLE))
    flips = result.success.clone()
    flips[0] = False
    expected = result.step[:, None] * gradients
    torch.testing.assert_close(result.perturbations[flips], expected[flips], rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(result.gradient_norms, gradients.norm(dim=1))
    assert result.step[0] == 0


@pytest.mark.parametrize(
    ("bounds", "words"), [((1.0, -1.0), "below the highest"), ((-0.1, 0.1), "lie outside"), ((0.0, torch.inf), "lie")]
)
def test_a_wrong_box_is_named(bounds, words):
    network, data = problem()
    with pytest.raises(InputError, match=words):
        Ray().run(network, data, bounds=bounds)


def test_wrong_parameters_are_named():
    with pytest.raises(InputError, match="starts is 0"):
        MinimumNorm(starts=0)
    with pytest.raises(InputError, match="budget is -1"):
        PGD(budget=-1.0)
    with pytest.raises(InputError, match="steps is 0"):
        PGD(steps=0)
    network, data = problem()
    with pytest.raises(InputError, match="direction has shape"):
        Ray(direction=torch.ones(3)).run(network, data)
    with pytest.raises(InputError, match="lies in 5 dimensions"):
        Ray(subspace=Restriction(torch.eye(5, dtype=DOUBLE)[:, :2])).run(network, data)
    assert FREE.free


class Careless(Attack):
    """Does `harm` to its target before it proposes next to nothing."""

    def __init__(self, harm):
        self.harm = harm

    def propose(self, target):
        self.harm(target)
        small = torch.full_like(target.X, 1e-9)
        return Attempt(small, small)


@pytest.mark.parametrize(
    "harm",
    [lambda target: target.X.neg_(), lambda target: target.y.neg_(), lambda target: target.network.v.neg_()],
    ids=["examples", "labels", "weights"],
)
def test_an_attack_that_changes_what_it_is_measured_on_is_refused(harm):
    with pytest.raises(InputError, match=r"Careless\.propose changes the examples or the network in place"):
        Careless(harm).run(*problem())


@pytest.mark.parametrize("proposed", [None, torch.zeros(12, 8), Attempt(torch.zeros(3), torch.zeros(3))])
def test_what_is_no_attempt_is_refused_in_one_line(proposed, monkeypatch):
    monkeypatch.setattr(Far, "propose", lambda self, target: proposed)
    with pytest.raises(InputError, match=r"an Attempt with perturbations and direction of shape \(12, 8\)"):
        Far().run(*problem())


def test_a_ray_goes_up_to_the_first_wall_of_the_box_or_to_its_limit():
    """From (¼, ½, 2) in the box [0, 1]: outside it no ray goes anywhere along the third axis."""
    network, X = problem(dim=3)[0], torch.tensor([[0.25, 0.5, 0.75], [0.25, 0.5, 2.0]], dtype=DOUBLE)
    data = Data(X, torch.ones(2, dtype=DOUBLE))
    directions = torch.tensor([[0.5, 0.0, 0.0], [-0.5, 2.0, 0.0]], dtype=DOUBLE)
    box, free = (AttackTarget(network, data, bounds, torch.Generator(), silent) for bounds in ((0.0, 1.0), None))
    assert box.limits(directions, 9.0).tolist() == [1.5, 0.25]
    assert box.limits(directions, torch.tensor([1.0, 0.125])).tolist() == [1.0, 0.125]
    assert free.limits(directions, 9.0).tolist() == [9.0, 9.0]
    along = torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, -0.25], [0.0, 0.0, 0.5]], dtype=DOUBLE)
    assert box.limits(along, 9.0, torch.tensor([1, 0, 0])).tolist() == [0.0, 3.0, 0.5]
    moved = torch.tensor([[1.0, -1.0, 0.125], [-0.125, 0.25, 0.0]], dtype=DOUBLE)
    assert box.clip(moved).tolist() == [[0.75, -0.5, 0.125], [-0.125, 0.25, -1.0]]
    assert box.clip(moved[:1], torch.tensor([1])).tolist() == [[0.75, -0.5, -1.0]]
    assert torch.equal(free.clip(moved), moved)
