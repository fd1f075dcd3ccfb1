"""Geometry, regime and explanation on data and networks whose answers are known."""

import math
from types import SimpleNamespace

import pytest
import torch

from brittle.auditing.causes import explain, share_off, without_off_subspace_weights
from brittle.auditing.found import Audit
from brittle.auditing.geometry import geometry, random_sums, spans
from brittle.auditing.regime import AuditedInstance, training_regime
from brittle.common.errors import InputError
from brittle.data import Clusters, Data, DataInfo, Orthogonal, Sphere, Subspace
from brittle.geometry import Basis
from brittle.networks import Kaiming, LazyInit, TorchLinearInit, TwoLayer, orthogonal_kkt


def test_geometry_of_a_subspace(rng):
    found = geometry(Subspace(dim=40, codimension=30).sample(25, rng))
    assert (found.rank, found.codimension) == (10, 30)
    assert found.effective_dimensions["99%"] <= 10
    assert torch.allclose(found.basis.T @ found.basis, torch.eye(10, dtype=torch.float64), atol=1e-12)


def test_geometry_of_orthogonal_examples():
    found = geometry(Orthogonal(dim=60).sample(10))
    assert found.largest_product == pytest.approx(0, abs=1e-9)
    assert found.example_limit == pytest.approx(61 / 3)
    assert found.nearly_orthogonal
    assert found.label_balance == 0.5


def test_the_limit_of_near_orthogonality_counts_products_at_mean_square_norm_d():
    X = torch.tensor([[2.0, 0.0, 0.0, 0.0], [1.0, math.sqrt(3), 0.0, 0.0]])
    found = geometry(Data(X, torch.tensor([1.0, -1.0])))
    assert found.largest_product == pytest.approx(2.0)  # <x_1, x_2> = 2 at ‖x‖² = 4 = d
    assert found.example_limit == pytest.approx(5 / 9)
    assert not found.nearly_orthogonal


def test_clusters_are_counted(rng):
    clustered = Clusters(dim=50, clusters=4, noise=0.3).sample(120, rng)
    assert geometry(clustered).clusters == 4
    assert geometry(Sphere(dim=50).sample(120, rng)).clusters == 1


def test_duplicates_and_zero_examples_do_not_break_geometry():
    X = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    found = geometry(Data(X, torch.tensor([1.0, 1.0, -1.0])))
    assert found.duplicates == 1
    assert found.rank == 1
    assert found.norm_spread == math.inf


@pytest.mark.parametrize("rank", [12, 40])
def test_random_sums_find_the_span_of_all_examples_and_say_so(rng, rank):
    """One example in a thousand has the last direction: a subsample would miss it."""
    frame = torch.linalg.qr(torch.randn(60, rank, generator=rng, dtype=torch.float64)).Q
    coordinates = torch.randn(1000, rank, generator=rng, dtype=torch.float64)
    coordinates[:-1, -1] = 0
    data = Data(coordinates @ frame.T, torch.ones(1000).double())
    found = geometry(data, rows=30)
    assert (found.rows, found.span_known) == (30, rank == 12)
    assert found.rank == min(30, rank)
    if found.span_known:
        assert found.codimension == 48
        assert Basis(found.basis).off(data.X).abs().max() < 1e-10
        exact = geometry(data)
        assert found.affine_rank == exact.affine_rank
        assert abs(found.effective_dimensions["90%"] - exact.effective_dimensions["90%"]) <= 3
    else:
        assert (found.codimension, found.basis) == (None, None)


def test_a_basis_that_misses_one_example_is_noticed(rng):
    X = torch.zeros(500, 9, dtype=torch.float64)
    X[:, :5] = torch.randn(500, 5, generator=rng, dtype=torch.float64)
    basis = torch.eye(9, 5, dtype=torch.float64)
    assert spans(basis, X, rng)
    X[123, 7] = 1e-3
    assert not spans(basis, X, rng)


def test_random_sums_keep_lengths_on_average(rng):
    X = torch.randn(2000, 5, generator=rng, dtype=torch.float64)
    sums = random_sums(X, 400, rng)
    assert (sums.Y.T @ sums.Y).trace() == pytest.approx(float(X.square().sum()), rel=0.2)
    shifted = random_sums(X + 3.0, 400, torch.Generator().manual_seed(1))
    again = random_sums(X, 400, torch.Generator().manual_seed(1))
    assert torch.allclose(shifted.Y - 3.0 * shifted.weights[:, None], again.Y)  # sums of x - mean are known with them


def test_a_kkt_point_is_named(rng):
    data = Orthogonal(dim=20).sample(10)
    assert training_regime(AuditedInstance(data, orthogonal_kkt(data.X, data.y).network)).name == "kkt"


def test_networks_near_and_at_their_start_are_named(rng):
    data = Sphere(dim=30, radius=1.0).sample(8, rng)
    start = LazyInit().draw(30, 2000, rng)
    assert training_regime(AuditedInstance(data, start)).name == "untrained"
    moved = start.trained(start.W + 0.1 * torch.randn(start.W.shape, generator=rng).double() / 30, start.b, start.v)
    lazy, unknown = (
        training_regime(AuditedInstance(data, each)) for each in (moved, TwoLayer(moved.W, moved.b, moved.v))
    )
    assert lazy.name == "lazy"
    assert f"{lazy.relative_move:.1%}" in lazy.sentence
    assert f"{lazy.signs_changed:.1%}" in lazy.sentence
    assert unknown.name == "unknown"
    assert "--init FILE" in unknown.sentence
    half = start.trained(start.W * 1.44, start.b, start.v)
    assert training_regime(AuditedInstance(data, half)).name == "between"  # 44 % is not lazy
    rich = start.trained(5 * torch.randn(start.W.shape, generator=rng).double(), start.b, start.v)
    assert training_regime(AuditedInstance(data, rich)).name == "rich"


@pytest.mark.parametrize("classes", [1, 3])
def test_neuron_gradients_times_weights_are_the_gradient(rng, classes):
    network = TorchLinearInit().draw_deep(6, (9, 7), rng, outputs=classes)
    X = torch.randn(11, 6, generator=rng, dtype=torch.float64)
    y = torch.randint(classes, (11,), generator=rng) if classes > 1 else torch.ones(11, dtype=torch.float64)
    gradients = network.neuron_gradients(X, network.margin_weights(X, y)) @ network.weights[0]
    assert torch.allclose(gradients, network.margin_gradients(X, y), atol=1e-14)


def test_share_off_a_coordinate_plane():
    basis = torch.eye(3, dtype=torch.float64)[:, :2]
    vectors = torch.tensor([[3.0, 0.0, 4.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    assert share_off(vectors, basis) == pytest.approx((16 / 25 + 0) / 2)


def test_untouched_weights_are_told_from_trained_ones(rng):
    data = Subspace(dim=30, codimension=20).sample(15, rng)
    basis = data.truth.basis
    start = Kaiming().draw(30, 50, rng)
    step = torch.randn(start.W.shape, generator=rng, dtype=torch.float64)
    inside = start.trained(start.W + Basis(basis).project(step), start.b, start.v)
    found = explain(inside, data, basis, None)
    assert found.initial_share_of_weights_off == pytest.approx(1)
    assert found.initial_share_of_gradient_off == pytest.approx(1)
    replaced = start.trained(10 * step, start.b, start.v)
    assert explain(replaced, data, basis, None).initial_share_of_weights_off < 0.2


def test_removing_off_subspace_weights_changes_nothing_on_the_data(rng):
    data = Subspace(dim=30, codimension=20).sample(15, rng)
    for network in (TorchLinearInit().draw(30, 40, rng), TorchLinearInit().draw_deep(30, (20, 20), rng)):
        removed = without_off_subspace_weights(network, data.truth.basis)
        assert torch.allclose(removed.logits(data.X), network.logits(data.X), atol=1e-12)
        assert share_off(removed.margin_gradients(data.X, data.y), data.truth.basis) < 1e-20
        assert share_off(network.margin_gradients(data.X, data.y), data.truth.basis) > 0.1


def test_a_network_carried_by_one_neuron_says_so():
    W = torch.tensor([[10.0, 0.0], [0.0, 0.01]], dtype=torch.float64)
    network = TwoLayer(W, torch.zeros(2).double(), torch.ones(2).double())
    data = Data(torch.ones(3, 2), torch.ones(3).double())
    found = explain(network, data, torch.eye(2, dtype=torch.float64), None)
    assert (found.neurons_carrying_gradient, found.neurons) == (1, 2)


def test_a_page_compares_with_another_audit_where_there_is_one(monkeypatch):
    written = []
    monkeypatch.setattr("brittle.report.write_audit_page", lambda *given: written.append(given[-1]))
    subject = SimpleNamespace(network={"kind": "line"}, model=None, data=None)
    Audit.report(subject, "a.html")
    Audit.report(subject, "a.HTML", since=SimpleNamespace(to_json=lambda: {"verdict": "before"}))
    assert written == [None, ("the other one", {"verdict": "before"})]
    with pytest.raises(InputError, match="the page is HTML"):
        Audit.report(subject, "a.pdf")


def an_audit(names=None, certified=None):
    """What an audit holds of four examples, of which the last three were audited, and two were attacked."""
    free = SimpleNamespace(rows=torch.tensor([0, 2]), norms=torch.tensor([1.5, 0.5]), median=0.5)
    examples = torch.tensor([1, 2, 3])
    radii = {"free": free, "on": None, "off": None, "gradient_step": None, "certified": certified}
    weak = SimpleNamespace(held_out=False, examples=examples, **radii)
    data = Data(torch.eye(4), torch.tensor([1.0, 1.0, -1.0, 1.0]), truth=DataInfo(names=names))
    subject = SimpleNamespace(vulnerability=weak, data=data)
    subject.class_name = lambda label: Audit.class_name(subject, label)
    return subject


def test_examples_are_listed_with_their_radii_and_none_where_there_is_none():
    radii = {"example": [1, 2, 3], "free": [1.5, None, 0.5]}
    assert Audit.by_example(an_audit()) == radii | {"label": [1.0, -1.0, 1.0]}
    proofs = SimpleNamespace(rows=torch.tensor([1]), lower=torch.tensor([0.25]), upper=torch.tensor([2.0]))
    proofs.status, proofs.median_lower = ["bounded"], 0.25
    found = Audit.by_example(an_audit(("cat", "dog"), proofs))
    proved = {"lower": [None, 0.25, None], "upper": [None, 2.0, None], "status": [None, "bounded", None]}
    assert found == radii | {"label": ["dog", "cat", "dog"]} | proved
    rows = [line for line in Audit.to_latex(an_audit(None, proofs)).splitlines() if "&" in line]
    assert [row.split()[0] for row in rows] == ["radius", "anywhere", "proved"]
    assert len([line for line in Audit.to_latex(an_audit()).splitlines() if "&" in line]) == 2


def test_a_class_has_the_name_that_the_data_give_it():
    assert [Audit.class_name(an_audit(("cat", "dog")), label) for label in (-1.0, 0.0, 1.0)] == [
        "cat",
        "undecided",
        "dog",
    ]
    several = an_audit()
    several.data = Data(torch.eye(3), torch.arange(3), truth=DataInfo(names=("a", "b", "c")))
    assert [Audit.class_name(several, label) for label in (0, 1, 2)] == ["a", "b", "c"]
