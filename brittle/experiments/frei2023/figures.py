"""frei2023, whose theorems have no figures: KKT networks on clusters generalise, and one short direction flips them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from brittle.experiments.base import Claim, Experiment, Seconds
from brittle.experiments.cell import Point
from brittle.experiments.frei2023.cells import SIZES, ClusterCell
from brittle.experiments.picture import Chart, Picture, PlotCurve
from brittle.experiments.summary import (
    distinct,
    exponent,
    make_undecided_claim,
    mean,
    over_seeds,
    relative_spread,
    values,
    where,
)
from brittle.theorems.comparison import fit_scaling


@dataclass(frozen=True)
class ClusterGrid:
    """What a preset covers."""

    dims: tuple[int, ...]  # d of figure a
    clusters: tuple[int, ...]  # k of figure a
    seeds: int  # how many
    test: int  # fresh examples
    crowded_dims: tuple[int, ...]  # d of figure c
    crowded: tuple[float, ...]  # k/d of figure c
    width: int = 1000  # of figures a and c
    widths: tuple[int, ...] = (50, 100, 300, 1000, 3000)  # of figure b
    networks: int = 4  # of each width in figure b


GRIDS = {
    "smoke": ClusterGrid(
        dims=(10**4, 10**8),
        clusters=(2, 4, 8),
        seeds=1,
        test=60,
        width=100,
        widths=(50, 150),
        networks=2,
        crowded_dims=(4, 6),
        crowded=(0.5, 3),
    ),
    "quick": ClusterGrid(
        dims=(10**4, 10**8),
        clusters=(2, 4, 8, 16, 32, 64),
        seeds=3,
        test=200,
        crowded_dims=(8, 12, 16, 24),
        crowded=(0.5, 1, 2, 3, 4),
    ),
    "full": ClusterGrid(
        dims=(10**4, 10**6, 10**8),
        clusters=(2, 4, 8, 16, 32, 64, 128),
        seeds=5,
        test=1000,
        crowded_dims=(10, 20, 40, 60),
        crowded=(0.5, 1, 2, 3, 4),
    ),
}


def cell(dim: int, clusters: int, seed: int, **others: Any) -> ClusterCell:
    """Every seed draws data of its own unless it is told to share them."""
    return ClusterCell(**{"dim": dim, "clusters": clusters, "seed": seed, "data_seed": seed, **others})


# What frei2023 says about KKT networks on clusters, beside what was measured.


def generalises(points: Sequence[Point], text: str) -> Claim:
    """The test error of every network."""
    errors = values(points, "error")
    if not errors:
        return make_undecided_claim(text)
    return Claim(text, f"largest error {max(errors):.2%} in {len(errors)} networks", max(errors) <= 0.01)


def flips_all(points: Sequence[Point]) -> Claim:
    """Whether some size along Σ y μ flips all fresh examples, in every network."""
    text = "one direction flips every fresh example"
    if not points:
        return make_undecided_claim(text)
    flipped = sum(point["size"] is not None for point in points)
    return Claim(text, f"in {flipped} of {len(points)} networks", flipped == len(points))


def root_of_clusters(points: Sequence[Point]) -> list[Claim]:
    """The exponent of k in c, at each d."""
    claims = []
    text = "‖z‖ ~ √(d/k)"
    for d in distinct(points, "dim"):
        some = [point for point in where(points, dim=d) if point["size"] is not None]
        if len(distinct(some, "clusters")) < 3:
            continue
        sizes = [(k, mean(values(where(some, clusters=k), "size"))) for k in distinct(some, "clusters")]
        found = fit_scaling("c", "k", -0.5, [k for k, _ in sizes], [size for _, size in sizes])
        ratios = values(some, "ratio")
        measured = f"{found}; c/√(d/k) from {min(ratios):.2f} to {max(ratios):.2f}"
        claims.append(
            Claim(
                f"{text} at d = {d:.0e} (read as: exponent of k within 0.1)", measured, abs(found.fitted + 0.5) <= 0.1
            )
        )
    return claims or [make_undecided_claim(text)]


def spares_construction(points: Sequence[Point]) -> Claim:
    """z has length √(d/k), and the construction's radius is √d/8: so k > 64 would be enough."""
    text = "the perturbation that flips the KKT network leaves the robust construction alone (k ≥ 8)"
    some = values([point for point in points if point["clusters"] >= 8], "construction_flipped")
    if not some:
        return make_undecided_claim(text)
    return Claim(text, f"it flips at most {max(some):.1%} of the construction's fresh examples", max(some) == 0)


def width_free(points: Sequence[Point], name: str) -> Claim:
    """How far the mean sizes of the widths are from each other."""
    text = f"{name}: c does not depend on the width (read as: the widths' means within 10 % of their mean)"
    means = [mean(values(where(points, width=width), "size")) for width in distinct(points, "width")]
    if len(means) < 2 or any(math.isnan(each) for each in means):
        return make_undecided_claim(text)
    spread = relative_spread(means)
    return Claim(text, f"largest distance from the mean {spread:.1%}", spread <= 0.1)


def transfers(points: Sequence[Point], name: str) -> Claim:
    """The size is the first of `SIZES` that flips every fresh example of the first network, and then a tenth more."""
    text = f"{name}: z, a tenth longer than flips one network, flips the others (read as: 95 % of fresh examples)"
    exact = next((i for i, share in enumerate(points[0]["flipped"]) if share == 1), None) if points else None
    if len(points) < 2 or exact is None or 1.1 * SIZES[exact] > SIZES[-1]:
        return make_undecided_claim(text)
    longer = next(i for i, size in enumerate(SIZES) if size >= 1.1 * SIZES[exact])
    least = {i: min(point["flipped"][i] for point in points[1:]) for i in (exact, longer)}
    measured = (
        f"at least {least[longer]:.1%} on each of {len(points) - 1} others ({SIZES[longer]:.2f}·√(d/k)); "
        f"{least[exact]:.1%} without the tenth"
    )
    return Claim(text, measured, least[longer] >= 0.95)


def conjecture(points: Sequence[Point]) -> list[Claim]:
    """Section 5: the results should hold for clusters that no linear rule separates; d by d, for it is asymptotic."""
    beyond = [point for point in points if not point["separable"]]
    texts = (
        "conjecture: KKT networks generalise beyond linear separability (read as: mean error at most 5 % at every d)",
        "conjecture: they are not robust there (read as: the shortest perturbation found is at most ¾ of what the "
        "nearest mean's rule withstands, in the mean at every d)",
        "conjecture: Σ y μ still flips every fresh example at some c below √d (read as: in the mean, at the largest d; "
        "refuted where c/√d does not fall with d)",
    )
    if not beyond:
        return [make_undecided_claim(text) for text in texts]
    errors = _means([(point["dim"], point["error"]) for point in beyond])
    shares = _means([(point["dim"], point["shortest"] / point["rule_radius"]) for point in beyond])
    roots = [(p["dim"], math.inf if p["size"] is None else p["size"] / math.sqrt(p["dim"])) for p in beyond]
    finite = [(d, ratio) for d, ratio in roots if ratio < math.inf]
    trend = exponent("c/√d", "d", [d for d, _ in finite], [ratio for _, ratio in finite])
    by_dim, of = _means(roots), f"({len(beyond)} networks)"
    ratios = f"c/√d {_by_dim(by_dim, '.2f')} {of}" + ("" if trend is None else f": {trend}")
    short = True if by_dim[max(by_dim)] < 1 else False if trend is not None and trend.low >= 0 else None
    if short is None:
        ratios += f"; not decided at this size: d ≤ {max(by_dim):g}"
    return [
        Claim(texts[0], f"{_by_dim(errors, '.1%')} {of}", max(errors.values()) <= 0.05),
        Claim(texts[1], f"share {_by_dim(shares, '.2f')} {of}", max(shares.values()) <= 0.75),
        Claim(texts[2], ratios, short),
    ]


def _means(pairs: Sequence[tuple[int, float]]) -> dict[int, float]:
    """Of what belongs to each dimension."""
    return {d: mean([value for dim, value in pairs if dim == d]) for d in sorted({d for d, _ in pairs})}


def _by_dim(means: Mapping[int, float], form: str) -> str:
    return ", ".join(f"{value:{form}} at d = {d}" for d, value in means.items())


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
            sizes.append(PlotCurve(r"$\sqrt{d/k}$", ks, [math.sqrt(dims[-1] / k) for k in ks], None, "dotted", 6))
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
            PlotCurve(
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


def _by_crowd(points: Sequence[Point], names: Sequence[tuple[str, str, str]]) -> list[PlotCurve]:
    """One curve for each dimension and each of the measures (name, label, style)."""
    return [
        over_seeds(where(points, dim=d), "crowd", name, f"{label}, $d = {d}$", style=style, colour=colour)
        for colour, d in enumerate(distinct(points, "dim"))
        for name, label, style in names
    ]


FIGURES = (FigureA(), FigureB(), FigureC())


def _power(d: int) -> str:
    return f"$d = 10^{{{math.log10(d):.0f}}}$"
