"""frei2023, whose theorems have no figures: KKT networks on clusters generalise, and one short direction flips them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from brittle.experiments.base import Claim, Params, Point, Seconds
from brittle.experiments.frei_cells import SIZES, ClusterCells
from brittle.experiments.picture import Chart, Curve, Picture
from brittle.experiments.summary import distinct, mean, over_seeds, undecided, values, where
from brittle.theorems.scaling import fitted

NAMES = {
    "size": "KKT network",
    "construction_size": "robust construction",
    "linear_size": "linear model",
    "neighbour_size": "nearest neighbour",
}


@dataclass(frozen=True)
class Grid:
    """What a preset covers."""

    dims: tuple[int, ...]  # figure a
    clusters: tuple[int, ...]
    seeds: int
    test: int
    width: int
    widths: tuple[int, ...]  # figure b
    networks: int  # of each width
    crowded_dim: int  # figure c
    crowded: tuple[int, ...]


GRIDS = {
    "smoke": Grid((10**4, 10**8), (2, 4, 8), 1, 60, 100, (50, 150), 2, 6, (3, 18)),
    "quick": Grid(
        (10**4, 10**8), (2, 4, 8, 16, 32, 64), 3, 400, 1000, (50, 100, 300, 1000, 3000), 4, 16, (8, 16, 32, 48, 64)
    ),
    "full": Grid(
        (10**4, 10**6, 10**8),
        (2, 4, 8, 16, 32, 64, 128),
        5,
        1000,
        1000,
        (50, 100, 300, 1000, 3000),
        4,
        40,
        (20, 40, 80, 120, 160),
    ),
}


def cell(dim: int, clusters: int, seed: int, **others: object) -> Params:
    """Every seed draws data of its own unless it is told to share them."""
    usual = {"noise": 1.0, "per_cluster": 10, "test": 400, "width": 1000, "data_seed": seed, "at": "kkt", "shortest": 0}
    return {"dim": dim, "clusters": clusters, "seed": seed, **usual, **others}


class FigureA(ClusterCells):
    """Fresh examples of clustered data with σ = 1 and random means, 10 training examples per cluster.

    Left: the smallest c at which x - y·c·z/‖z‖, z = Σ y^(q) μ^(q), flips every fresh example of the KKT network, beside
    the same for three rules that need no training; middle: in units of √(d/k); right: test error.
    """

    id = "frei2023/fig-a"
    title = "One direction against KKT networks, by the number of clusters"

    def grid(self, preset: str) -> list[Params]:
        grid = GRIDS[preset]
        return [
            cell(d, k, seed, test=grid.test, width=grid.width)
            for d, k, seed in product(grid.dims, grid.clusters, range(grid.seeds))
        ]

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        return [
            _generalises(points, "KKT networks classify fresh examples rightly (read as: test error at most 1 %)"),
            _flips_all(points),
            *_root_of_clusters(points),
            _spares_construction(points),
        ]

    def picture(self, points: Sequence[Point]) -> Picture:
        dims = distinct(points, "dim")
        some = where(points, dim=dims[-1]) if dims else []
        sizes = [over_seeds(some, "clusters", name, label) for name, label in NAMES.items()]
        ks = [float(k) for k in distinct(some, "clusters")]
        if dims:
            sizes.append(Curve(r"$\sqrt{d/k}$", ks, [math.sqrt(dims[-1] / k) for k in ks], None, "dotted", 6))
        ratios = [over_seeds(where(points, dim=d), "clusters", "ratio", f"$d = {d:.0e}$") for d in dims]
        errors = [
            over_seeds(some, "clusters", name.replace("size", "error") if "_" in name else "error", label)
            for name, label in NAMES.items()
        ]
        title = f"$d = {dims[-1]:.0e}$" if dims else ""
        return Picture(
            [
                Chart(title, "clusters $k$", "smallest universal $c$", sizes, x_scale="log", y_scale="log"),
                Chart("KKT networks", "clusters $k$", r"$c/\sqrt{d/k}$", ratios, x_scale="log", y_range=(0, 2)),
                Chart(title, "clusters $k$", "test error", errors, x_scale="log"),
            ]
        )

    def remarks(self, points: Sequence[Point], seconds: Seconds) -> list[str]:
        return [
            "Theorem 4.2 asks for k ln²d training examples, and each cluster has 10 here: every cell is outside its "
            "hypotheses, and what is measured goes beyond them."
        ]


class FigureB(ClusterCells):
    """Networks of several widths on the same clustered data (k = 16, σ = 1, d = 10^6), at KKT points and after flow.

    Left: the smallest c that flips every fresh example, by width; right: the share of the fresh examples that one
    perturbation of growing size flips, one line for each network.
    """

    id = "frei2023/fig-b"
    title = "One direction against networks of every width"

    def grid(self, preset: str) -> list[Params]:
        grid = GRIDS[preset]
        return [
            cell(10**6, 16, seed, test=grid.test, width=width, at=at, data_seed=0)
            for at, width, seed in product(("kkt", "flow"), grid.widths, range(grid.networks))
        ]

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        claims = [_generalises(points, "every width classifies fresh examples rightly (read as: error at most 1 %)")]
        for at, name in (("kkt", "KKT networks"), ("flow", "networks at loss 1e-30")):
            some = where(points, at=at)
            claims += [_width_free(some, name), _transfers(some, name)]
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
                "dotted" if at == "kkt" else "dashed",
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


class FigureC(ClusterCells):
    """More clusters than a linear rule can tell apart: random means and labels are separable up to about k = 2d.

    Left: test error of KKT networks; middle: the median of the shortest perturbations found, beside the exact distance
    of the rule that takes the nearest mean; right: the smallest c for which Σ y^(q) μ^(q) flips every fresh example.
    Noise σ = 0.1, 5 training examples per cluster.
    """

    id = "frei2023/fig-c"
    title = "Beyond linear separability"

    def grid(self, preset: str) -> list[Params]:
        grid = GRIDS[preset]
        return [
            cell(grid.crowded_dim, k, seed, noise=0.1, per_cluster=5, test=grid.test, width=grid.width, shortest=40)
            for k, seed in product(grid.crowded, range(grid.seeds))
        ]

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        beyond = [point for point in points if not point["separable"]]
        texts = (
            "conjecture: KKT networks generalise beyond linear separability (read as: test error at most 5 %)",
            "conjecture: they are not robust there (read as: the shortest perturbation found is at most ¾ of what the "
            "nearest mean's rule withstands)",
            "conjecture: Σ y μ still flips every fresh example at some c below √d",
        )
        if not beyond:
            return [undecided(text) for text in texts]
        shares = [point["shortest"] / point["rule_radius"] for point in beyond]
        ratios = [math.inf if point["size"] is None else point["size"] / math.sqrt(point["dim"]) for point in beyond]
        errors, worst = values(beyond, "error"), max(beyond, key=lambda point: point["error"])
        of = f"over {len(beyond)} networks"
        return [
            Claim(
                texts[0],
                f"mean {mean(errors):.1%} {of}, largest {max(errors):.1%} (k = {worst['clusters']})",
                mean(errors) <= 0.05,
            ),
            Claim(texts[1], f"share from {min(shares):.2f} to {max(shares):.2f} {of}", max(shares) <= 0.75),
            Claim(texts[2], f"c/√d from {min(ratios):.2f} to {max(ratios):.2f} {of}", max(ratios) < 1),
        ]

    def picture(self, points: Sequence[Point]) -> Picture:
        dims = distinct(points, "dim")
        title = f"$d = {dims[0]}$" if dims else ""
        ks = [float(k) for k in distinct(points, "clusters")]
        root = [Curve(r"$\sqrt{d}$", ks, [math.sqrt(dims[0])] * len(ks), None, "dotted", 6)] if dims else []
        lengths = [
            over_seeds(points, "clusters", "shortest", "KKT network"),
            over_seeds(points, "clusters", "rule_radius", "nearest mean's rule"),
        ]
        return Picture(
            [
                Chart(title, "clusters $k$", "test error", [over_seeds(points, "clusters", "error", "KKT network")]),
                Chart(title, "clusters $k$", "median distance to a flip", lengths),
                Chart(
                    title,
                    "clusters $k$",
                    "smallest universal $c$",
                    [over_seeds(points, "clusters", "size", "KKT network"), *root],
                ),
            ]
        )

    def remarks(self, points: Sequence[Point], seconds: Seconds) -> list[str]:
        told = [
            f"k = {k}: {sum(point['separable'] for point in some)} of {len(some)}"
            for k in distinct(points, "clusters")
            if (some := where(points, clusters=k))
        ]
        return ["The means are linearly separable in " + "; ".join(told) + "."] if told else []


FIGURES = (FigureA(), FigureB(), FigureC())


def _generalises(points: Sequence[Point], text: str) -> Claim:
    errors = values(points, "error")
    if not errors:
        return undecided(text)
    return Claim(text, f"largest error {max(errors):.2%} in {len(errors)} networks", max(errors) <= 0.01)


def _flips_all(points: Sequence[Point]) -> Claim:
    text = "one direction flips every fresh example"
    if not points:
        return undecided(text)
    flipped = sum(point["size"] is not None for point in points)
    return Claim(text, f"in {flipped} of {len(points)} networks", flipped == len(points))


def _root_of_clusters(points: Sequence[Point]) -> list[Claim]:
    """The exponent of k in c, at each d."""
    claims = []
    text = "‖z‖ ~ √(d/k)"
    for d in distinct(points, "dim"):
        some = [point for point in where(points, dim=d) if point["size"] is not None]
        if len(distinct(some, "clusters")) < 3:
            continue
        sizes = [(k, mean(values(where(some, clusters=k), "size"))) for k in distinct(some, "clusters")]
        found = fitted("c", "k", -0.5, [k for k, _ in sizes], [size for _, size in sizes])
        ratios = values(some, "ratio")
        measured = f"{found}; c/√(d/k) from {min(ratios):.2f} to {max(ratios):.2f}"
        claims.append(
            Claim(
                f"{text} at d = {d:.0e} (read as: exponent of k within 0.1)", measured, abs(found.fitted + 0.5) <= 0.1
            )
        )
    return claims or [undecided(text)]


def _spares_construction(points: Sequence[Point]) -> Claim:
    """z has length √(d/k), and the construction's radius is √d/8: so k > 64 would be enough."""
    text = "the perturbation that flips the KKT network leaves the robust construction alone (k ≥ 8)"
    some = values([point for point in points if point["clusters"] >= 8], "construction_flipped")
    if not some:
        return undecided(text)
    return Claim(text, f"it flips at most {max(some):.1%} of the construction's fresh examples", max(some) == 0)


def _width_free(points: Sequence[Point], name: str) -> Claim:
    text = f"{name}: c does not depend on the width (read as: the widths' means within 10 % of their mean)"
    means = [mean(values(where(points, width=width), "size")) for width in distinct(points, "width")]
    if len(means) < 2 or any(math.isnan(each) for each in means):
        return undecided(text)
    spread = max(abs(each / mean(means) - 1) for each in means)
    return Claim(text, f"largest distance from the mean {spread:.1%}", spread <= 0.1)


def _transfers(points: Sequence[Point], name: str) -> Claim:
    """The size is the first of `SIZES` that flips every fresh example of the first network."""
    text = f"{name}: z sized for one network flips the others too (read as: at least 95 % of fresh examples)"
    size = next((i for i, share in enumerate(points[0]["flipped"]) if share == 1), None) if points else None
    if len(points) < 2 or size is None:
        return undecided(text)
    shares = [point["flipped"][size] for point in points[1:]]
    measured = f"at c = {SIZES[size]:.2f}·√(d/k), at least {min(shares):.1%} on each of {len(shares)} others"
    return Claim(text, measured, min(shares) >= 0.95)
