"""wang2022's figures: what their cells measure, by other means, and how their claims are judged."""

from types import SimpleNamespace

import pytest
import torch

from brittle.experiments import EXPERIMENTS
from brittle.experiments.images import zeros_and_ones
from brittle.experiments.wang2022 import lazy_cells
from brittle.experiments.wang2022.lazy_cells import LossConverged, flips
from brittle.networks import LazyInit


def test_steps_are_the_smallest_that_flip(rng):
    data = zeros_and_ones("digits", 8, True).test
    some = data.take(torch.arange(8))
    network = LazyInit().draw(data.dim, 60, rng)
    point = flips(network, some, False, True)
    sizes = torch.linspace(0, 1, 4001, dtype=torch.float64)
    found = []
    for x in some.X:
        f = float(network.logits(x[None]))
        g = network.logit_gradients(x[None], torch.ones(1, dtype=torch.float64))[0]
        flipped = [f * network.logits(x + way * sizes[:, None] * g) < 0 for way in (1, -1)]
        found.append(float(sizes[flipped[0] | flipped[1]][0]))
    assert point["flipped"] == 1
    torch.testing.assert_close(torch.tensor(point["all_step"]), torch.tensor(found), rtol=0, atol=3e-4)
    assert point["step"] == pytest.approx(sum(point["all_step"]) / len(some), rel=1e-4)
    assert point["relative_size"] == pytest.approx(point["size"])


def _points(exponents, **more):
    common = {"data": "mnist", "setting": "text", "width": 1000, "error": 0.004, "left": True, "steps": 9, **more}
    return [{**common, "dim": d, **{name: 3 * d**e for name, e in exponents.items()}} for d in (49, 100, 196, 784)]


LAWS = {"relative_size": -0.5, "gradient": 0.5, "step": -1.0, "relative_step": -1.0, "output": 0.0}


def test_exponents_are_judged_from_one_side_and_on_mnist_alone():
    figure = EXPERIMENTS["wang2022/fig2"]
    claims = figure.judge(_points(LAWS))
    assert [claim.holds for claim in claims] == [True] * 4 + [None]
    assert claims[0].measured == "d^(-0.500), 95 % in [-0.500, -0.500]"
    wrong = figure.judge(_points({**LAWS, "step": -0.7}, error=0.02))
    assert [claim.holds for claim in wrong] == [True, True, False, True, False]
    better = figure.judge(_points({**LAWS, "step": -1.7, "gradient": 0.9, "relative_size": -0.51}))
    assert [claim.holds for claim in better] == [True] * 4 + [None]
    assert [claim.holds for claim in figure.judge(_points({**LAWS, "gradient": 0.3}))][1] is False
    assert all(claim.holds is None for claim in figure.judge(_points(LAWS, data="digits")))
    assert "d^(+0.00 ± 0.00)" in " ".join(figure.remarks(_points(LAWS), {}))


def test_only_the_figures_of_the_main_text_promise_an_error_below_one_percent():
    for name, promised in (("2", True), ("5", False), ("3", True), ("6", False)):
        texts = [claim.text for claim in EXPERIMENTS[f"wang2022/fig{name}"].judge([])]
        assert any("test error" in text for text in texts) is promised


@pytest.mark.parametrize("biased", [True, False])
def test_networks_have_biases_unless_examples_have_unit_norm(biased, monkeypatch):
    seen = []
    monkeypatch.setattr(lazy_cells, "flips", lambda network, *rest: seen.append(network) or {})
    cell = next(c for c in EXPERIMENTS[f"wang2022/fig{2 if biased else 5}"].grid("smoke") if c.setting == "text")
    cell.measure()
    assert bool(seen[0].b.any()) is biased


def test_an_error_below_one_percent_is_confirmed_at_the_papers_sizes_alone():
    """A network as wide as the paper's can refute it anywhere."""
    judge = EXPERIMENTS["wang2022/fig2"].judge
    complete = [{**_points(LAWS)[0], "dim": 25, "width": 100_000}, *_points(LAWS)]
    for points, holds in (
        (complete, True),
        (complete[1:], None),
        ([{**point, "width": 10_000} for point in complete], None),
        ([*complete[1:], {**complete[1], "error": 0.0217}], False),
        ([{**point, "width": 300, "error": 0.3} for point in complete], None),
    ):
        assert judge(points)[-1].holds is holds
    assert "not decided at this size: d ≥ 49 and m ≤ 1000" in judge(complete[1:])[-1].measured


def _radii(**more):
    return [
        {**point, "radius": radius, "seed": 0, "step": point["step"] * radius, "gradient": 5.0, "left": radius < 20}
        for radius in (10.0, 20.0, 40.0)
        for point in _points(LAWS, **more)
    ]


def test_growth_with_the_radius():
    figure = EXPERIMENTS["wang2022/fig3"]
    points = _radii()
    claims = figure.judge(points)
    assert [claim.holds for claim in claims] == [None, None, None, None, True, None, None]
    assert "the same network in all 4 places" in claims[1].measured
    assert "factor 2, 95 % in [2, 2]" in claims[4].measured
    points[4]["left"] = True  # one of the networks at C0 = 20 reached the edge, and its η is twice as large at 40
    assert figure.judge(points)[5].holds is None
    assert "in 1 of 4 places" in figure.judge(points)[5].measured
    for point, step in zip(points[4:8], (1.0, 2.0, 1.0, 1.0), strict=True):
        point["left"], point["step"] = True, step
    for point, step in zip(points[8:], (2.0, 1.0, 1.5, 1.0), strict=True):
        point["step"] = step
    assert figure.judge(points)[5].holds is None  # it rises and falls: the interval holds 1


@pytest.mark.parametrize(("width", "holds"), [(1000, None), (100_000, False)])
def test_a_fall_refutes_growth_at_the_papers_width_alone(width, holds):
    points = [{**point, "step": 1 / point["step"]} for point in _radii(width=width)]
    claim = EXPERIMENTS["wang2022/fig3"].judge(points)[4]
    assert claim.holds is holds
    assert ("not decided at this size: m = 1000" in claim.measured) is (width == 1000)


def test_training_ends_where_the_loss_has_converged():
    stop = LossConverged(0.01, epoch=10)
    path = [SimpleNamespace(steps=100, log_loss=-1.0), SimpleNamespace(steps=300, log_loss=-2.0)]
    assert not stop.reached(SimpleNamespace(steps=399, log_loss=-1.0), path[:0])
    assert not stop.reached(SimpleNamespace(steps=400, log_loss=-2.11), path)
    assert stop.reached(SimpleNamespace(steps=400, log_loss=-2.09), path)
    assert not stop.reached(SimpleNamespace(steps=399, log_loss=-2.0), path)  # too near the last point: from -1 to -2


def test_the_histogram_is_judged_by_its_median():
    figure = EXPERIMENTS["wang2022/fig7"]
    for step, holds in ((0.045, True), (0.09, False)):
        point = {"data": "mnist", "width": 100_000, "all_step": [step] * 9 + [7.0]}
        assert figure.judge([point])[0].holds is holds
        assert figure.judge([{**point, "width": 1000}])[0].holds is None


def _map(threshold, data="mnist", power=0.5, examples=0):
    common = {"data": data, "examples": examples}
    return [
        {**common, "dim": d, "budget": b, "robust_accuracy": 1.0 if b * d**power < threshold else 0.0}
        for d in (49, 64, 100, 144, 196, 400)
        for b in (0.01 * k for k in range(1, 101))
    ]


def test_the_drop_is_judged_by_its_exponent():
    figure = EXPERIMENTS["wang2022/fig4left"]
    assert [claim.holds for claim in figure.judge(_map(5.2))] == [True, True]
    assert "95 % in [-0.5" in figure.judge(_map(5.2))[0].measured
    assert figure.judge(_map(2.6, power=0.3))[0].holds is False
    assert figure.judge(_map(5.2, examples=1000))[0].holds is None  # quick leaves it open
    assert figure.judge(_map(5.2, data="digits"))[0].holds is None
    assert figure.judge(_map(100.0))[0].holds is None


def test_a_robust_cell_depends_on_its_budget():
    figure = EXPERIMENTS["wang2022/fig4left"]
    small, large = sorted((cell for cell in figure.grid("smoke") if cell.side == 8), key=lambda cell: cell.budget)
    near, far = small.measure(), large.measure()
    assert far["robust_accuracy"] <= near["robust_accuracy"] <= near["accuracy"]
    assert far["robust_accuracy"] < 0.2
