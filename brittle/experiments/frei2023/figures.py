"""frei2023, whose theorems have no figures: KKT networks on clusters generalise, and one short direction flips them."""

import math
from collections.abc import Sequence
from itertools import product

from brittle.experiments.base import Claim, Experiment, Seconds
from brittle.experiments.cell import Point
from brittle.experiments.frei2023.cells import SIZES, ClusterCell
from brittle.experiments.frei2023.claims import (
    conjecture,
    flips_all,
    generalises,
    root_of_clusters,
    spares_construction,
    transfers,
    width_free,
)
from brittle.experiments.frei2023.presets import GRIDS, cell
from brittle.experiments.picture import Chart, Curve, Picture
from brittle.experiments.summary import distinct, over_seeds, where

NAMES = {
    "size": "KKT network",
    "construction_size": "robust construction",
    "linear_size": "linear model",
    "neighbour_size": "nearest neighbour",
}


class FigureA(Experiment):
    """Fresh examples of clustered data with σ = 1 and random means, 10 training examples per cluster.

    Left: the smallest c at which x - y·c·z/‖z‖, z = Σ y^(q) μ^(q), flips every fresh example of the KKT network, beside
    the same for three rules that need no training; middle: in units of √(d/k); right: test error.
    """

    id = "frei2023/fig-a"
    title = "One direction against KKT networks, by the number of clusters"
    kind = ClusterCell

    def grid(self, preset: str) -> list[ClusterCell]:
        grid = GRIDS[preset]
        return [
            cell(d, k, seed, test=grid.test, width=grid.width)
            for d, k, seed in product(grid.dims, grid.clusters, range(grid.seeds))
        ]

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        return [
            generalises(points, "KKT networks classify fresh examples rightly (read as: test error at most 1 %)"),
            flips_all(points),
            *root_of_clusters(points),
            spares_construction(points),
        ]

    def picture(self, points: Sequence[Point]) -> Picture:
        dims = distinct(points, "dim")
        some = where(points, dim=dims[-1]) if dims else []
        sizes = [over_seeds(some, "clusters", name, label) for name, label in NAMES.items()]
        ks = [float(k) for k in distinct(some, "clusters")]
        if dims:
            sizes.append(Curve(r"$\sqrt{d/k}$", ks, [math.sqrt(dims[-1] / k) for k in ks], None, "dotted", 6))
        ratios = [over_seeds(where(points, dim=d), "clusters", "ratio", _power(d)) for d in dims]
        errors = [
            over_seeds(some, "clusters", name.replace("size", "error") if "_" in name else "error", label)
            for name, label in NAMES.items()
        ]
        title = _power(dims[-1]) if dims else ""
        return Picture(
            [
                Chart(title, "clusters $k$", "smallest universal $c$", sizes, x_scale="log", y_scale="log"),
                Chart("KKT networks", "clusters $k$", r"$c/\sqrt{d/k}$", ratios, x_scale="log", y_range=(0, 2)),
                Chart(title, "clusters $k$", "test error", errors, x_scale="log", y_range=(-0.02, 0.5)),
            ]
        )

    def remarks(self, points: Sequence[Point], seconds: Seconds) -> list[str]:
        return [
            "Theorem 4.2 asks for k ln²d training examples, and each cluster has 10 here: every cell is outside its "
            "hypotheses, and what is measured goes beyond them."
        ]


class FigureB(Experiment):
    """Networks of several widths on the same clustered data (k = 16, σ = 1, d = 10^6), at KKT points and after flow.

    Left: the smallest c that flips every fresh example, by width; right: the share of the fresh examples that one
    perturbation of growing size flips, one line for each network.
    """

    id = "frei2023/fig-b"
    title = "One direction against networks of every width"
    kind = ClusterCell

    def grid(self, preset: str) -> list[ClusterCell]:
        grid = GRIDS[preset]
        return [
            cell(10**6, 16, seed, test=grid.test, width=width, at=at, data_seed=0)
            for at, width, seed in product(("kkt", "flow"), grid.widths, range(grid.networks))
        ]

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        claims = [generalises(points, "every width classifies fresh examples rightly (read as: error at most 1 %)")]
        for at, name in (("kkt", "KKT networks"), ("flow", "networks at loss 1e-30")):
            some = where(points, at=at)
            claims += [width_free(some, name), transfers(some, name)]
        return claims

    def picture(self, points: Sequence[Point]) -> Picture:
        kinds = (("kkt", "KKT", "dashed", 0), ("flow", "loss $10^{-30}$", "line", 1))
        by_width = [
            over_seeds(where(points, at=at), "width", "ratio", label, style=style, colour=colour)
            for at, label, style, colour in kinds
        ]
        shares = [
            Curve(
                label if number == 0 else "",
                SIZES,
                point["flipped"],
                None,
                "plain",
                colour,
            )
            for at, label, _, colour in kinds
            for number, point in enumerate(where(points, at=at))
        ]
        return Picture(
            [
                Chart("", "width", r"smallest universal $c/\sqrt{d/k}$", by_width, x_scale="log", y_range=(0, 2)),
                Chart(f"{len(points)} networks, one $z$", r"$c/\sqrt{d/k}$", "share flipped", shares),
            ],
            columns=2,
        )


class FigureC(Experiment):
    """More clusters than a linear rule can tell apart: random means and labels are separable up to about k = 2d.

    Left: test error of KKT networks; middle: the median of the shortest perturbations found, beside the exact distance
    of the rule that takes the nearest mean; right: the smallest c/√d for which Σ y^(q) μ^(q) flips every fresh example.
    One colour for each d. Noise σ = 0.1, 5 training examples per cluster.
    """

    id = "frei2023/fig-c"
    title = "Beyond linear separability"
    kind = ClusterCell

    def grid(self, preset: str) -> list[ClusterCell]:
        grid = GRIDS[preset]
        common = {"noise": 0.1, "per_cluster": 5, "test": grid.test, "width": grid.width, "shortest": 40}
        return [
            cell(d, round(crowd * d), seed, **common)
            for d, crowd, seed in product(grid.crowded_dims, grid.crowded, range(grid.seeds))
        ]

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        return conjecture(points)

    def picture(self, points: Sequence[Point]) -> Picture:
        panels = (
            ("test error", [("error", "KKT", "line")]),
            ("median distance to a flip", [("shortest", "KKT", "line"), ("rule_radius", "nearest mean", "dashed")]),
            (r"smallest universal $c/\sqrt{d}$", [("of_root", "KKT", "line")]),
        )
        scaled = [
            {
                **point,
                "crowd": point["clusters"] / point["dim"],
                "of_root": None if point["size"] is None else point["size"] / math.sqrt(point["dim"]),
            }
            for point in points
        ]
        return Picture(
            [Chart("", "clusters over dimensions $k/d$", y, _by_crowd(scaled, names)) for y, names in panels]
        )

    def remarks(self, points: Sequence[Point], seconds: Seconds) -> list[str]:
        told = [
            f"d = {d}, k = {k}: {sum(point['separable'] for point in some)} of {len(some)}"
            for d in distinct(points, "dim")
            for k in distinct(where(points, dim=d), "clusters")
            if (some := where(points, dim=d, clusters=k))
        ]
        return ["The means are linearly separable in " + "; ".join(told) + "."] if told else []


def _by_crowd(points: Sequence[Point], names: Sequence[tuple[str, str, str]]) -> list[Curve]:
    """One curve for each dimension and each of the measures (name, label, style)."""
    return [
        over_seeds(where(points, dim=d), "crowd", name, f"{label}, $d = {d}$", style=style, colour=colour)
        for colour, d in enumerate(distinct(points, "dim"))
        for name, label, style in names
    ]


FIGURES = (FigureA(), FigureB(), FigureC())


def _power(d: int) -> str:
    return f"$d = 10^{{{math.log10(d):.0f}}}$"
