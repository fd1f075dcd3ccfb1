"""wang2022's figures: what their cells measure, by other means, and how their claims are judged."""

import math

import pytest
import torch

from brittle.experiments import EXPERIMENTS
from brittle.experiments.images import zeros_and_ones
from brittle.experiments.wang2022.lazy_cells import flips
from brittle.networks import Lazy


def test_steps_are_the_smallest_that_flip(rng):
    data = zeros_and_ones("digits", 8, True).test
    some = data.take(torch.arange(8))
    network = Lazy().draw(data.dim, 60, rng)
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


def test_exponents_are_judged_on_mnist_alone():
    figure = EXPERIMENTS["wang2022/fig2"]
    claims = figure.judge(_points(LAWS))
    assert [claim.holds for claim in claims] == [True] * 5
    assert claims[0].measured == "-0.500 ± 0.000"
    wrong = figure.judge(_points({**LAWS, "step": -0.7}, error=0.02))
    assert [claim.holds for claim in wrong] == [True, True, False, True, False]
    assert all(claim.holds is None for claim in figure.judge(_points(LAWS, data="digits")))
    assert "d^(+0.00 ± 0.00)" in " ".join(figure.remarks(_points(LAWS), {}))


def test_growth_with_the_radius():
    figure = EXPERIMENTS["wang2022/fig3"]
    points = [
        {**point, "radius": radius, "step": point["step"] * radius, "gradient": 5.0}
        for radius in (10.0, 20.0)
        for point in _points(LAWS)
    ]
    assert [claim.holds for claim in figure.judge(points)] == [False, False, True, True]


def test_the_histogram_is_judged_by_its_median():
    figure = EXPERIMENTS["wang2022/fig7"]
    for step, holds in ((0.045, True), (0.09, False)):
        point = {"data": "mnist", "width": 100_000, "all_step": [step] * 9 + [7.0]}
        assert figure.judge([point])[0].holds is holds
        assert figure.judge([{**point, "width": 1000}])[0].holds is None


def _map(threshold, data="mnist"):
    return [
        {"data": data, "dim": d, "budget": b, "robust_accuracy": 1.0 if b * math.sqrt(d) < threshold else 0.0}
        for d in (49, 100, 400)
        for b in (0.05 * k for k in range(1, 21))
    ]


def test_the_drop_is_where_accuracy_is_one_half():
    figure = EXPERIMENTS["wang2022/fig4left"]
    assert [claim.holds for claim in figure.judge(_map(5.2))] == [True, True]
    assert figure.judge(_map(1.6))[0].holds is False
    assert figure.judge(_map(5.2, data="digits"))[0].holds is None
    assert figure.judge(_map(100.0))[0].holds is None


def test_a_robust_cell_depends_on_its_budget():
    figure = EXPERIMENTS["wang2022/fig4left"]
    small, large = sorted((cell for cell in figure.grid("smoke") if cell.side == 8), key=lambda cell: cell.budget)
    near, far = small.measure(), large.measure()
    assert far["robust_accuracy"] <= near["robust_accuracy"] <= near["accuracy"]
    assert far["robust_accuracy"] < 0.2
