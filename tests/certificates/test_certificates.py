"""Every certificate on the cases whose answer is known, and the entry that judges them."""

import math
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from brittle.attacks import MinimumNorm
from brittle.certificates import Certificate, Contradiction, Dual, Exact, LinearRelaxation, Lipschitz, RadiusBounds
from brittle.certificates.base import LONGEST, default_cap
from brittle.certificates.margins import TwoLayerMargins
from brittle.common.errors import InputError
from brittle.data import Clusters, Data, Orthogonal, Sphere
from brittle.networks import Deep, TorchLinearInit, TwoLayer
from brittle.networks.constructions import clustered, nearly_orthogonal, orthogonal_kkt, smaller_norm
from tests.cases import CERTIFICATES

ROWS = [pytest.param(part, id=name) for name, part in CERTIFICATES]


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def network(W, b, v, c=0.0):
    return TwoLayer(tensor(*W), tensor(*b), tensor(*v), tensor(c)[0])


def labelled(net, X):
    logits = net.logits(X)
    return Data(X, torch.where(logits > 0, 1.0, -1.0).double() if net.classes == 1 else logits.argmax(1))


@pytest.fixture
def small(rng):
    net = TorchLinearInit().draw(6, 12, rng).to(torch.float64)
    return net, labelled(net, torch.randn(8, 6, generator=rng, dtype=torch.float64))


@pytest.mark.parametrize("part", ROWS)
def test_every_certificate_lies_below_the_exact_radius(part, small):
    net, data = small
    radius = Exact(gap=1e-8).bound(net, data)
    found = part.bound(net, data)
    assert (found.lower <= radius.upper * (1 + 1e-9)).all()
    assert (found.lower > 0).all()
    assert (found.upper >= radius.lower * (1 - 1e-9)).all()


@pytest.mark.parametrize("part", ROWS)
def test_results_have_one_shape_and_become_json(part, small):
    net, data = small
    found = part.bound(net, data)
    content = found.to_json()
    assert set(content) == {"lower", "upper", "exact", "seconds", "status", "method", "cap", "reason", "nodes"}
    assert content["method"] == part.name
    assert all(len(content[name]) == len(data) for name in ("lower", "upper", "exact", "seconds", "status", "reason"))
    flipped = net.margins(data.X + found.flips, data.y) < 0
    assert flipped[found.upper.isfinite()].all()
    assert torch.equal(found.flips.norm(dim=1)[flipped], found.upper[flipped])


@pytest.mark.parametrize("part", ROWS)
def test_errors_have_radius_zero(part, small):
    net, data = small
    found = part.bound(net, Data(data.X, -data.y))
    assert (found.lower == 0).all()
    assert (found.upper == 0).all()
    assert set(found.status) == {"error"}


@pytest.mark.parametrize("part", ROWS)
def test_a_linear_network_by_hand(part):
    """N(x) = φ(3x₁+4x₂) - φ(-3x₁-4x₂): the radius is |N|/5; the dual bound is exact because it can be."""
    net = network([[3.0, 4.0], [-3.0, -4.0]], [0.0, 0.0], [1.0, -1.0])
    found = part.bound(net, Data(tensor([2.0, 1.0], [-1.0, 0.0]), tensor(1.0, -1.0)))
    assert (found.lower <= tensor(2.0, 0.6) * (1 + 1e-12)).all()
    assert found.upper.tolist() == pytest.approx([2.0, 0.6], rel=1e-9)
    if isinstance(part, Exact):
        assert found.lower.tolist() == pytest.approx([2.0, 0.6], rel=1e-8)


@pytest.mark.parametrize("part", ROWS)
def test_degenerate_networks(part):
    """Dead and repeated neurons, zero weights, a network that is 0 nearly everywhere, one that never flips."""
    X, y = tensor([2.0, 0.0], [0.5, 0.0]), tensor(1.0, 1.0)
    dead = network([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]], [0.0, 0.3, 0.0, -9.0], [1.0, 0.0, 1.0, -1.0])
    repeated = network([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]], [0.0, 0.0, -1.0], [3.0, -1.0, -1.0])
    for net, radius in ((dead, (11.0, 9.5)), (repeated, (3.0, 1.5))):
        found = part.bound(net, Data(X, y))
        assert (found.lower <= tensor(*radius) * (1 + 1e-9)).all()
        if isinstance(part, Exact):
            assert found.lower.tolist() == pytest.approx(radius, rel=1e-6)
            assert found.exact.all()
    never = network([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], [1.0, 2.0])
    found = part.bound(never, Data(X, y), cap=7.0)
    assert found.upper.isinf().all()
    if isinstance(part, Exact | Dual):
        assert found.lower.tolist() == [7.0, 7.0]
        assert found.status == ("capped", "capped")
    constant = network([[0.0, 0.0]], [1.0], [0.0], 1.0)
    assert part.bound(constant, Data(X, y), cap=7.0).lower.tolist() == [7.0, 7.0]


def test_a_point_on_the_boundary_is_an_error():
    net = network([[1.0], [-1.0]], [0.0, 0.0], [1.0, -1.0])
    found = Exact().bound(net, Data(tensor([0.0], [1e-12]), tensor(1.0, 1.0)))
    assert found.status[0] == "error"
    assert 0 < found.lower[1] <= 1e-12 <= found.upper[1] * (1 + 1e-3)


def test_a_plateau_is_no_flip():
    """N = φ(x) - φ(-x-1): from x = 1 the output is 0 on [-1, 0] and negative only beyond -1."""
    net = network([[1.0], [-1.0]], [0.0, -1.0], [1.0, -1.0])
    data = Data(tensor([1.0], [3.0]), tensor(1.0, 1.0))
    found = Exact().bound(net, data)
    assert found.lower.tolist() == pytest.approx([2.0, 4.0], rel=1e-6)
    assert found.exact.all()
    assert Dual(refined=True).bound(net, data).lower[0] <= 2.0


def test_the_constructions_have_the_radii_of_their_theorems(rng):
    sphere = Sphere(dim=200).sample(8, rng)
    means = Clusters(dim=200, clusters=4, noise=0.0).sample(8, rng)
    orthogonal = Orthogonal(dim=12).sample(12, rng)
    assert means.truth.means is not None
    assert means.truth.mean_labels is not None
    cases = (
        (nearly_orthogonal(sphere.X, sphere.y), sphere),
        (clustered(means.truth.means, means.truth.mean_labels), Data(means.truth.means, means.truth.mean_labels)),
        (smaller_norm(orthogonal.X, orthogonal.y), orthogonal),
        (orthogonal_kkt(orthogonal.X, orthogonal.y), orthogonal),
    )
    for construction, data in cases:
        found = Exact().bound(construction.network, data)
        assert found.exact.all()
        assert (found.lower >= construction.promised * (1 - 1e-6)).all()
        assert (found.upper >= construction.radius * (1 - 1e-9)).all()
        assert (found.lower <= construction.flip * (1 + 1e-9)).all()
    for construction, data in cases[2:]:  # their radius is exact
        lower = Exact().bound(construction.network, data).lower
        assert float(lower.min()) == pytest.approx(construction.radius, rel=1e-6)


def test_the_radius_of_several_classes_is_that_of_the_worst_pair(rng):
    net = TorchLinearInit().draw_deep(5, [9], rng, outputs=4).to(torch.float64)
    data = labelled(net, torch.randn(3, 5, generator=rng, dtype=torch.float64))
    found = Exact().bound(net, data)
    for row, label in enumerate(data.y.tolist()):
        point, right = data.X[row : row + 1], tensor(1.0)
        radii = [
            float(Exact().bound(net.pair(label, rival).as_two_layer(), Data(point, right)).lower)
            for rival in range(4)
            if rival != label
        ]
        assert float(found.lower[row]) == pytest.approx(min(radii), rel=1e-5)
    assert (Dual().bound(net, data).lower <= found.upper * (1 + 1e-9)).all()


def test_a_two_layer_network_in_the_span_of_its_weights(rng):
    """Fewer neurons than dimensions: the reduction changes nothing but the time."""
    net = TorchLinearInit().draw(40, 6, rng).to(torch.float64)
    data = labelled(net, torch.randn(5, 40, generator=rng, dtype=torch.float64))
    Q, _ = torch.linalg.qr(net.W.T)
    small = TwoLayer(net.W @ Q, net.b, net.v, net.c)
    inside, around = Exact().bound(small, Data(data.X @ Q, data.y)), Exact().bound(net, data)
    assert around.lower.tolist() == pytest.approx(inside.lower.tolist(), rel=1e-5)


def test_a_box_restricts_the_attacker_only():
    net = network([[1.0], [-1.0]], [0.0, 0.0], [1.0, -1.0])
    data = Data(tensor([0.5]), tensor(1.0))
    inside = Exact().bound(net, data, bounds=(0.0, 1.0), cap=3.0)
    assert inside.upper.isinf().all()
    assert float(inside.lower) <= 0.5 * (1 + 1e-6)
    wide = Exact().bound(net, data, bounds=(-1.0, 1.0))
    assert wide.upper.tolist() == pytest.approx([0.5], rel=1e-9)
    assert -1 <= float(data.X + wide.flips) <= 1


def test_time_limits_leave_an_enclosure(rng):
    net = TorchLinearInit().draw(8, 60, rng).to(torch.float64)
    data = labelled(net, torch.randn(2, 8, generator=rng, dtype=torch.float64))
    rushed, patient = Exact(seconds=1e-6).bound(net, data), Exact(gap=1e-3).bound(net, data)
    assert (rushed.lower > 0).all()
    assert (rushed.lower <= patient.upper).all()
    assert (patient.upper - patient.lower <= 1e-3 * patient.upper * (1 + 1e-6)).all()


def test_refinement_only_helps_on_average(small):
    net, data = small
    quick, refined = Dual().bound(net, data), Dual(refined=True).bound(net, data)
    assert float(refined.lower.mean()) >= float(quick.lower.mean()) * (1 - 1e-9)
    assert float(quick.ratio.mean()) > 0.9


@pytest.mark.parametrize("widths", [[10, 8], [7, 6, 5]])
def test_relaxation_of_deep_networks_survives_attack_and_sampling(widths, rng):
    net = TorchLinearInit().draw_deep(4, widths, rng, outputs=3).to(torch.float64)
    data = labelled(net, torch.randn(3, 4, generator=rng, dtype=torch.float64))
    for part in (LinearRelaxation(), LinearRelaxation(steps=5), Lipschitz("spectral")):
        found = part.bound(net, data, attack=MinimumNorm(starts=2, rounds=3))
        assert (found.lower > 0).all()
        for _ in range(50):
            step = torch.randn(data.X.shape, generator=rng, dtype=torch.float64)
            step *= (found.lower / step.norm(dim=1))[:, None]
            assert (net.margins(data.X + step, data.y) > 0).all()


def test_float32_networks_are_certified_with_the_weights_they_have(rng):
    net = TorchLinearInit().draw(5, 8, rng).to(torch.float32)
    data = labelled(net.to(torch.float64), torch.randn(3, 5, generator=rng, dtype=torch.float64))
    assert torch.equal(Exact().bound(net, data).lower, Exact().bound(net.to(torch.float64), data).lower)
    module = net.to(torch.float64).module()
    assert Exact().bound(module, data).lower.tolist() == pytest.approx(Exact().bound(net, data).lower.tolist())


@pytest.mark.parametrize("part", ROWS)
@pytest.mark.parametrize("sizes", [(1e-200, 1e-10), (1e-120, 1e100), (1e120, 1e150)])
def test_radii_do_not_depend_on_the_scale_of_the_weights(part, sizes, small):
    """Squares of 1e-200 are 0 in floating point: a norm must not be."""
    net, data = small
    some = Data(data.X[:2], data.y[:2])
    inner, outer = sizes
    scaled = TwoLayer(net.W * inner, net.b * inner, net.v * outer, net.c * inner * outer)
    radius = Exact().bound(net, some)
    found = part.bound(scaled, some)
    assert (found.lower <= radius.upper * (1 + 1e-9)).all()
    assert (found.lower > 0).all()


def test_a_flip_that_is_only_rounding_is_none():
    """0.1 + 0.2 - 0.3 is not 0 in floating point; the flip that was measured is the sum's rounding."""
    net = network([[1.0], [1.0], [1.0]], [0.0, 0.0, 0.0], [0.1, 0.2, -0.3])
    tilted = network([[1.0], [1.0], [1.0], [-1.0]], [0.0, 0.0, 0.0, 1.0], [-0.1, -0.2, 0.3, 1.0])
    for each in (net, tilted):
        y = torch.where(each.logits(tensor([0.5])) > 0, 1.0, -1.0).double()
        found = Exact(seconds=1.0).bound(each, Data(tensor([0.5]), y), cap=10.0)
        assert (found.lower <= found.upper).all()


@dataclass(frozen=True)
class Boast(Certificate):
    name: ClassVar[str] = "boast"

    def prepare(self, network):
        return lambda example, enclosure: enclosure.proven(2 * enclosure.ball)


def test_a_certificate_above_a_flip_is_a_bug(small):
    net, data = small
    with pytest.raises(Contradiction, match="example 0 flips at"):
        Boast().bound(net, data)


def test_bad_input_is_named(small, rng):
    net, data = small
    with pytest.raises(InputError, match=r"cap is -1"):
        Dual().bound(net, data, cap=-1.0)
    with pytest.raises(InputError, match="have shape"):
        Dual().bound(net, Data(data.X[:, :3], data.y))
    deep = TorchLinearInit().draw_deep(6, [5, 5], rng)
    for part in (Lipschitz(), Lipschitz("sum")):
        with pytest.raises(InputError, match="two layers"):
            part.bound(deep, data)
    with pytest.raises(InputError, match="constant is 'best'"):
        Lipschitz("best")
    with pytest.raises(InputError, match="gap is 0"):
        Exact(gap=0)


def test_ratio_is_only_about_examples_with_a_flip():
    found = RadiusBounds(
        tensor(1.0, 0.0, 7.0), tensor(2.0, 0.0, math.inf), *[torch.zeros(3)] * 2, ("",) * 3, "", 7.0, tensor()
    )
    assert found.ratio.tolist() == [0.5]


def test_two_layers_as_a_deep_network(rng):
    net = TorchLinearInit().draw(5, 8, rng).to(torch.float64)
    deep = Deep.dense((net.W, net.v[None]), (net.b, net.c[None]))
    data = labelled(net, torch.randn(3, 5, generator=rng, dtype=torch.float64))
    assert Exact().bound(deep, data).lower.tolist() == pytest.approx(Exact().bound(net, data).lower.tolist(), rel=1e-5)


def test_without_denormals_nothing_is_certified(small):
    net, data = small
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush denormals")
    try:
        with pytest.raises(InputError, match="flushed to 0"):
            Dual().bound(net, data)
    finally:
        torch.set_flush_denormal(False)


def test_nobody_asks_farther_than_100_times_the_longest_example():
    ones = tensor(1.0, 1.0)
    assert default_cap(Data(tensor([3.0, 4.0], [1.0, 0.0]), ones)) == 500
    assert default_cap(Data(tensor([0.3, 0.4], [0.0, 0.0]), ones)) == 100
    assert default_cap(Data(tensor([1e306, 0.0], [1.0, 0.0]), ones)) == LONGEST


def test_neurons_without_weights_are_a_constant_by_hand():
    """N(x) = φ(x) - φ(-x) + 2φ(¼) + 3φ(-2) - φ(½) - 1 = x - 1 flips at a distance of 1 from x = 2."""
    net = network([[1.0], [-1.0], [0.0], [0.0], [0.0]], [0.0, 0.0, 0.25, -2.0, 0.5], [1.0, -1.0, 2.0, 3.0, -1.0], -1.0)
    margins = TwoLayerMargins.of(net, "exact")
    assert margins.constant_inputs.tolist() == [0.25, 0.0, 0.5]
    assert margins.constant.tolist() == [[2.0, 3.0, -1.0]]
    found = Exact().bound(net, Data(tensor([2.0]), tensor(1.0)))
    assert found.lower.tolist() == pytest.approx([1.0], rel=1e-5)


def test_progress_counts_the_examples_that_are_finished():
    net, seen = network([[1.0], [-1.0]], [0.0, 0.0], [1.0, -1.0]), []
    Lipschitz().bound(net, Data(tensor([2.0], [-1.0]), tensor(1.0, -1.0)), watch=seen.append)
    assert [(each.done, each.note) for each in seen] == [(0.5, "1 of 2 examples"), (1.0, "2 of 2 examples")]
