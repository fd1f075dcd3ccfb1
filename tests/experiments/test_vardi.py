"""vardi2022's figures: how their claims are judged, and the settings that section 6 calls similar."""

import math
from dataclasses import replace

import pytest
import torch

from brittle.data import Gaussian
from brittle.experiments import EXPERIMENTS
from brittle.experiments.vardi2022.cells import UniversalCell


def _points(power, dims=(36, 64, 100, 200), **more):
    common = {"at": "flow", "alpha": 1.5, "width": 9, "share_on_margin": 0.95, "size": 1.0, **more}
    return [{**common, "dim": d, "seed": s, "ratio": 8 * d**power * (1 + 0.01 * s)} for d in dims for s in range(3)]


def test_c_falls_with_d_and_is_below_the_root_from_some_d_on():
    figure = EXPERIMENTS["vardi2022/fig1a"]
    falls, below, flips = figure.judge(_points(-0.5))
    assert (falls.holds, below.holds, flips.holds) == (True, True, True)
    assert below.measured.startswith("below from d = 100 at n = d^1.5")  # 8/√64 is one
    assert "0.808 at 100" in falls.measured
    rises, above, _ = figure.judge(_points(0.1))
    assert (rises.holds, above.holds) == (False, False)
    assert "no d ≤ 200" in above.measured
    assert figure.judge(_points(-0.5, dims=(36, 64)))[0].holds is None


def test_a_network_that_nothing_flips_is_not_below_the_root():
    points = _points(-0.6)
    points[-1] |= {"ratio": None, "size": None}
    assert [claim.holds for claim in EXPERIMENTS["vardi2022/fig1a"].judge(points)] == [True, False, False]


def test_shares_are_judged_at_the_papers_dimensions():
    figure = EXPERIMENTS["vardi2022/fig2a"]
    points = [*_points(0, dims=(36,), share_on_margin=0.8), *_points(0, dims=(100,))]
    claim = figure.judge(points)[1]
    assert claim.holds is True
    assert "below d = 100 80.0% (d = 36, α = 1.5)" in claim.measured
    assert figure.judge(points[:3])[1].holds is None
    assert figure.judge(_points(0, dims=(100,), share_on_margin=0.9))[1].holds is False


def test_the_main_case_of_many_examples_is_in_every_preset():
    for name in ("fig1a", "fig2a", "fig2b"):
        for preset in ("quick", "full"):
            cells = EXPERIMENTS[f"vardi2022/{name}"].grid(preset)
            assert max(cell.examples for cell in cells if cell.alpha == 1.5 and cell.dim <= 100) == 1000


def test_similar_means_similar():
    figure = EXPERIMENTS["vardi2022/sec6"]
    usual = _points(-0.5, law="sphere", loss="exponential")
    logistic = [{**point, "loss": "logistic", "ratio": 1.05 * point["ratio"]} for point in usual]
    gaussian = [{**point, "law": "gaussian", "share_on_margin": 0.8} for point in usual]
    assert [claim.holds for claim in figure.judge([*usual, *logistic, *gaussian])] == [True, True, True, False]
    assert [claim.holds for claim in figure.judge([*usual, *logistic])] == [True, True, None, None]


def test_gaussian_cells_are_measured_in_units_of_their_norm():
    cell = UniversalCell(dim=30, alpha=0.5, width=50, seed=1, at="flow", law="gaussian")
    point = cell.measure()
    X = Gaussian(30).sample(5, torch.Generator().manual_seed(1)).X
    norm = math.sqrt(sum(float(x @ x) for x in X) / 5)
    assert point["ratio"] == pytest.approx(point["size"] / norm, rel=1e-12)
    logistic = replace(cell, law="sphere", loss="logistic").measure()
    usual = replace(cell, law="sphere").measure()
    assert logistic["size"] == pytest.approx(usual["size"], rel=0.02)
    assert logistic["size"] != usual["size"]
