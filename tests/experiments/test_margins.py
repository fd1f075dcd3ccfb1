"""Figures of our own about the largest margin: what a cell measures, and claims that can fail."""

import pytest
import torch
from scipy.stats import spearmanr

from brittle.experiments import EXPERIMENTS
from brittle.experiments.beyond.largest_cells import LargestCell
from brittle.experiments.beyond.margins import Largest, draw_data
from brittle.experiments.beyond.starts_cells import StartCell
from brittle.experiments.beyond.starts_figures import spearman
from brittle.networks import TwoLayer


@pytest.fixture(scope="module")
def best():
    return Largest.on(draw_data("sphere", 10, 6, 0))


def test_a_network_beside_itself_is_the_same_at_every_scale(best):
    network = best.found.network
    for scale in (1.0, 3.0):
        other = TwoLayer(scale * network.W, scale * network.b, network.v / scale)  # the same function
        found = best.beside("it", other)
        shares = [found[f"it_{name}"] for name in ("radius", "least", "direction")]
        assert shares == pytest.approx([1.0] * 3, rel=2e-3)
        fallen = float(network.squared_norm / other.squared_norm)
        assert found["it_share"] == pytest.approx(fallen, rel=1e-6)


def test_the_mean_radius_is_that_of_a_walk_to_the_boundary(best):
    """No shorter step than the radius flips an example, on many directions, and the mean is of all examples."""
    network, data = best.found.network, best.data
    directions = torch.randn(2000, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    steps = best.withstands.least * 0.999 * directions / directions.norm(dim=1, keepdim=True)
    for x, y in zip(data.X, data.y, strict=True):
        assert bool((network.margins(x + steps, y.expand(len(steps))) > 0).all())
    assert best.withstands.least <= best.withstands.mean
    assert best.reached


def test_on_clusters_gradient_flow_finds_the_largest_margin():
    point = LargestCell(law="clusters", dim=200, examples=12, width=40, seed=0).measure()
    assert point["reached"]
    assert point["kkt_share"] == pytest.approx(1.0, abs=1e-5)
    assert point["kkt_radius"] == pytest.approx(1.0, abs=2e-3)
    assert point["early_share"] < point["late_share"] < 1


def test_starts_of_a_seed_share_their_data_and_others_do_not():
    cells = [StartCell(dim=12, examples=8, width=20, scale=0.5, start=k, seed=s) for k, s in ((0, 0), (1, 0), (0, 1))]
    first, second, other = (cell.measure()["margin"] for cell in cells)
    assert first == second != other


def test_no_kkt_point_exceeds_the_largest_margin():
    shares = [
        StartCell(dim=20, examples=14, width=30, scale=1.0, start=start, seed=2).measure()["kkt_share"]
        for start in range(4)
    ]
    assert max(shares) <= 1 + 1e-6
    assert min(shares) > 0.5


@pytest.mark.parametrize("second", [[1.0, 2.0, 3.0, 4.0], [4.0, 1.0, 1.0, 0.0], [2.0, 2.0, 1.0, 3.0]])
def test_the_correlation_of_ranks(second):
    first = [0.1, 0.4, 0.4, 0.9]
    assert spearman(first, second) == pytest.approx(spearmanr(first, second).statistic)
    assert spearman(first, [1.0] * 4) == 0


def test_claims_fail_on_numbers_that_say_the_contrary():
    sphere = {
        "law": "sphere",
        "kkt_radius": 0.9,
        "late_radius": 0.9,
        "early_radius": 0.9,
        "neurons": 3,
        "kkt_neurons": 9,
    }
    points = [
        {**sphere, "dim": 100, "examples": 10, "kkt_share": 0.9},
        {**sphere, "dim": 100, "examples": 40, "kkt_share": 1.0},
        {**sphere, "dim": 20, "examples": 40, "kkt_share": 1.0},
        {**sphere, "law": "clusters", "dim": 100, "examples": 40, "kkt_share": 0.9, "early_radius": 1.1},
    ]
    for name in ("beyond/largest", "beyond/robust-margin"):
        assert [claim.holds for claim in EXPERIMENTS[name].judge(points)] == [False] * 4
    starts = [
        {"dim": 100, "examples": 31, "width": 10 * k, "seed": 0, "kkt_share": 1.0 - k / 9, "kkt_radius": -k}
        for k in range(5)
    ]
    assert [claim.holds for claim in EXPERIMENTS["beyond/starts"].judge(starts)] == [False] * 3
