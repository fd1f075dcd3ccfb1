"""melamed2023's figures: what their cells measure, by other means, and how their claims are judged."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from brittle.attacks import Restriction, first_flip
from brittle.data import Data, Digits, Grid25, Line7, Subspace, principal
from brittle.experiments import EXPERIMENTS
from brittle.experiments.melamed2023.boundary_cells import axes, evaluate_on_axes, off_distances, off_lengths, start
from brittle.experiments.melamed2023.boundary_figures import LINE, PLANE, MelamedFigure2, MelamedFigure3, MelamedFigure5
from brittle.experiments.melamed2023.distance_cells import bound_restricted_radius, span, train_in_span
from brittle.experiments.melamed2023.variance_cells import VarianceCell
from brittle.experiments.run import run_cell
from brittle.networks import Deep, TorchLinearInit, TwoLayer
from brittle.training import GradientDescent, Steps


@pytest.mark.parametrize("affine", [False, True])
def test_training_in_the_span_is_training(affine, rng):
    data = Subspace(12, 8).sample(15, rng)
    if affine:
        data = principal(Data(data.X + torch.arange(12.0), data.y), 3)
    network = TorchLinearInit(scale=2, first_layer_only=True).draw_deep(12, [6, 5], rng)
    regime = GradientDescent(until=Steps(40), rate=0.3)
    inside, whole = train_in_span(regime, network, data, rng).network, regime.train(network, data).network
    assert isinstance(inside, Deep)
    assert isinstance(whole, Deep)
    for a, b in zip((*inside.weights, *inside.biases), (*whole.weights, *whole.biases), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)
    assert span(data).shape == (12, 4)


@pytest.mark.parametrize("off", [False, True])
def test_radii_in_some_directions_are_those_of_exact_rays(off, rng):
    """On a line there are two ways to go; off a plane of R³ as well."""
    network = TorchLinearInit().draw_deep(3, [7, 6], rng).to(torch.float64)
    line = torch.randn(3, 1, generator=rng, dtype=torch.float64)
    line /= line.norm()
    plane = torch.linalg.qr(torch.cat([line, torch.eye(3, dtype=torch.float64)[:, :2]], 1)).Q[:, 1:]
    X = torch.randn(6, 3, generator=rng, dtype=torch.float64)
    *others, (weight, bias) = (layer.parameters for layer in network.layers)
    parameters = [*others, (weight, bias - 1.2 * network.logits(X).median())]  # both signs occur
    pairs = zip(network.layers, parameters, strict=True)
    network = network.with_layers([layer.with_parameters(*each) for layer, each in pairs])
    data = Data(X, torch.where(network.logits(X) > 0, 1.0, -1.0).double())
    where = Restriction(plane, off=True) if off else Restriction(line)
    ends = torch.full((6,), torch.inf, dtype=torch.float64)
    ways = [first_flip(network, X, data.y, (sign * line.T).expand(6, 3), ends) for sign in (1, -1)]
    nearest = torch.minimum(*ways)
    found = [bound_restricted_radius(network, data, row, where) for row in range(6)]
    assert int((nearest > 0).sum()) > 4
    for bounds, length in zip(found, nearest.tolist(), strict=True):
        assert float(bounds.lower) == pytest.approx(min(length, bounds.cap), rel=0.011)
        assert float(bounds.lower) <= length * (1 + 1e-9)


def test_distances_off_the_data_are_those_of_a_scan(rng):
    data = Grid25(0.0).load()
    network = TorchLinearInit().draw_deep(3, [30], rng).as_two_layer()
    labels = torch.where(network.logits(data.X) >= 0, 1.0, -1.0).double()
    found = off_distances(network, replace(data, y=labels))
    sizes = torch.linspace(0, 20, 40_001, dtype=torch.float64)
    normal = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    for x, label, distance in zip(data.X, labels, found, strict=True):
        flipped = [label * network.logits(x + way * sizes[:, None] * normal) < 0 for way in (1, -1)]
        first = sizes[flipped[0] | flipped[1]]
        assert distance == pytest.approx(float(first[0]), abs=6e-4) if len(first) else distance > 20
    by_class = off_lengths(torch.tensor([3.0, 1.0, torch.inf]), torch.tensor([1.0, -1.0, -1.0]))
    assert by_class["off_positive"] == by_class["off_median"] == 3
    assert by_class["off_negative"] == by_class["off_nearest"] == 1


@pytest.mark.parametrize("points", ["line7", "grid25"])
def test_what_is_drawn(points, rng):
    dim = 2 if points == "line7" else 3
    network = TorchLinearInit().draw_deep(dim, [9], rng)
    grid = axes(points, 0.5, 5)
    values = evaluate_on_axes(network, grid)
    x = torch.stack([axis[index] for axis, index in zip(grid, (1, 3, 4), strict=False)])
    shown = values[3][1] if dim == 2 else values[1][3][4]
    assert shown == pytest.approx(float(network.logits(x[None])), rel=1e-3)


FIRST = replace(LINE, resolution=4, seed=2)
FLAT = replace(PLANE, resolution=4, seed=2)


def test_what_the_factor_divides():
    whole, divided = (start(replace(FIRST, factor=f), 2) for f in (1.0, 3.0))
    weights = start(replace(FIRST, factor=3.0, divided="weights"), 2)
    for network in (whole, divided, weights):
        assert isinstance(network, TwoLayer)
    torch.testing.assert_close(divided.W * 3, whole.W)
    torch.testing.assert_close(divided.v * 3, whole.v)
    torch.testing.assert_close(divided.b * 3, whole.b)
    torch.testing.assert_close(weights.W * 3, whole.W)
    torch.testing.assert_close(weights.b, whole.b)
    assert not whole.homogeneous
    deep = start(replace(FLAT, layers=5), 3)
    assert deep.depth == 5
    signs = start(replace(FLAT, start="signs", width=4000, factor=12**0.5), 3)
    assert set(signs.v.tolist()) == {-1.0, 1.0}
    assert float(signs.W.square().mean()) == pytest.approx(1 / 36, rel=0.05)
    normal = start(replace(FIRST, start="normal", width=4000), 2)
    assert float(normal.W.square().mean()) == pytest.approx(1 / 2, rel=0.05)


def test_a_network_that_misses_its_margin_is_not_measured():
    point = replace(FIRST, steps=3).measure()
    assert point["reached"] is False
    assert "off" not in point
    assert point["taken"] == 3
    reached = replace(FIRST, margin=-5.0).measure()
    assert reached["reached"]
    assert reached["margin_reached"] > -5
    assert len(reached["off_all"]) == len(Line7().load())


@pytest.mark.parametrize("height", [0.0, 0.5])
def test_normal_weights_shrink_as_the_theory_has_it_on_a_linear_plane_alone(height):
    """(1 - ηλ)^T/factor, multiplied out step by step."""
    cell = replace(FLAT, height=height, width=20, factor=3.0, decay=0.04, rate=0.05, margin=-5.0, steps=500)
    begun = cell.measure()
    assert begun["normal"] == begun["predicted"] == pytest.approx(1 / 3)
    point = replace(cell, margin=begun["margin_reached"] * 0.5).measure()
    kept = 1 / 3
    for _ in range(point["taken"]):
        kept *= 1 - 0.05 * 0.04
    assert point["taken"] > 3
    assert point["predicted"] == pytest.approx(kept, rel=1e-12)
    assert (point["normal"] == pytest.approx(kept, rel=1e-9)) is (height == 0)


def test_an_unsquared_penalty_has_no_closed_form():
    assert replace(FIRST, squared=False, decay=0.8).predicted(10) is None


def test_the_scripts_start_as_their_commented_lines_have_it():
    network = start(replace(MelamedFigure3.scripts["a"], seed=4), 3)
    smaller = start(replace(MelamedFigure3.scripts["b"], seed=4), 3)
    assert float(network.W.std()) == pytest.approx(1 / 3, rel=0.03)
    assert float(smaller.W.std()) == pytest.approx(1 / 6, rel=0.03)
    torch.testing.assert_close(smaller.W * 2, network.W)
    torch.testing.assert_close(smaller.b, network.b)
    torch.testing.assert_close(smaller.v, network.v)
    assert float(network.v.abs().mean()) == pytest.approx(1 / 2, rel=0.05)
    assert float(network.v.abs().max()) <= 1
    assert float(network.b.abs().max()) <= 3**-0.5


def test_every_figure_is_read_with_the_mean_first_and_the_sum_beside_it():
    for figure in (MelamedFigure2(), MelamedFigure3(), MelamedFigure5()):
        cells = figure.grid("quick")
        assert {cell.loss for cell in cells if cell.setting == "mean"} == {"mean"}
        assert {cell.loss for cell in cells if cell.setting == "sum"} == {"sum"}
    assert {cell.height for cell in MelamedFigure5().grid("quick") if cell.setting == "mean"} == {0.0}
    assert {cell.height for cell in MelamedFigure3().grid("quick") if cell.setting == "mean"} == {0.5}


def _panel(name, nearest, positive, negative):
    off = {"off_nearest": nearest, "off_positive": positive, "off_negative": negative, "off_median": None}
    return {"setting": "mean", "panel": name, "normal": 0.3, "predicted": 0.25, **off}


def test_boundaries_are_judged_by_the_nearest_point_and_by_class():
    figure = MelamedFigure2()
    usual = [_panel("a", 1.0, 1.0, 3.0)]
    points = [*usual, _panel("b", 2.0, 2.0, 2.0), _panel("c", 1.04, 1.04, None)]
    claims = figure.judge(points)
    assert [claim.holds for claim in claims] == [True, False, False, False]
    assert "×0.3 (predicted 0.25)" in claims[0].measured
    assert "median point inf against inf" in claims[0].measured
    better = figure.judge([*usual, _panel("b", 1.1, 1.1, None)])
    assert [claim.holds for claim in better] == [True, True, None, None]
    assert "(c) 0" in figure.remarks(points[:2], {})[0]


def test_the_nearest_setting_is_compared_with_the_same_loss():
    points = [
        {**_panel("a", 1.0, 1.0, 1.0), "loss": "mean"},
        {**_panel("a", 5.0, 5.0, 5.0), "setting": "sum", "loss": "sum"},
        {**_panel("c", 4.0, 4.0, 4.0), "setting": "nearest", "loss": "sum"},
    ]
    nearest = [claim for claim in MelamedFigure3().judge(points) if "nearest that reaches" in claim.text]
    assert [claim.holds for claim in nearest] == [False, False]
    assert nearest[0].measured.startswith("4.000 against 5.000")


def _distances(**sizes):
    common = {"data": "sphere", "examples": 1000, "free_rate": 1.0, "on_rate": 1.0, "off_rate": 0.5}
    return [
        {**common, "factor": f, **{side: size[k] for side, size in sizes.items()}}
        for k, f in enumerate((1.0, 4.0, 9.0))
    ]


def test_distance_claims():
    figure = EXPERIMENTS["melamed2023/fig4a"]
    good = _distances(free=(1, 2, 2), on=(3, 3.1, 2.9), off=(1, 4, 9))
    assert [claim.holds for claim in figure.judge(good)] == [True, True, True]
    bad = _distances(free=(2, 2, 2.1), on=(1, 3, 3), off=(1, 4, 3))
    assert [claim.holds for claim in figure.judge(bad)] == [False, False, False]
    assert "50.0%" in figure.remarks(good, {})[0]
    proofs = {"proved": 2.0, "same": 2.5, "exact": 4, "enclosed": 5}
    told = {f"{side}_{name}": value for side in ("free", "on", "off") for name, value in proofs.items()}
    assert "36 of 45 to within 1 %" in figure.remarks([{**point, **told} for point in good], {})[1]
    assert len(figure.picture([{**point, **told} for point in good]).panels[0].curves) == 6
    elsewhere = [{**point, "data": "digits"} for point in good]
    assert [claim.holds for claim in EXPERIMENTS["melamed2023/fig4b"].judge(elsewhere)] == [None, None, None]


def test_components_of_digits():
    point = VarianceCell(data="digits", examples=0, seed=0).measure()
    X = Digits().load().X.numpy()
    variances = np.linalg.svd(X - X.mean(0), compute_uv=False) ** 2
    share = variances.cumsum() / variances.sum()
    assert point["components_90"] == np.searchsorted(share, 0.9) + 1
    assert point["components_95"] == np.searchsorted(share, 0.95) + 1
    np.testing.assert_allclose(point["cumulative"], share, atol=1e-6)


def test_component_claims_stand_next_to_the_paper():
    figure = EXPERIMENTS["melamed2023/fig1b"]
    point = {"data": "mnist", "examples": 0, "dim": 784, "components_90": 87, "components_95": 154}
    assert [claim.holds for claim in figure.judge([point])] == [True, True]
    assert [claim.holds for claim in figure.judge([{**point, "components_95": 160}])] == [True, False]
    assert [claim.holds for claim in figure.judge([{**point, "examples": 500}])] == [None, None]


@pytest.mark.parametrize("figure_id", ["melamed2023/fig1a", "melamed2023/fig4b", "wang2022/fig2", "wang2022/fig4left"])
def test_missing_data_are_named(figure_id, tmp_path, monkeypatch):
    monkeypatch.setenv("BRITTLE_DATA", str(tmp_path))
    figure = EXPERIMENTS[figure_id]
    (cell,) = figure.grid("full")
    point = run_cell(cell.task)["measured"]
    assert point["reached"] is False
    name = "cifar10" if figure_id.endswith("1a") else "mnist"
    assert f"brittle data fetch {name}" in point["why"]
    assert all(claim.holds is None and "fetch" in claim.measured for claim in figure.judge([]))
    assert cell.cost() == cell.would_take > 1
