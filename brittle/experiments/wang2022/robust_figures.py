"""wang2022, figure 4: adversarial training in the lazy regime is robust below 5/√d, and only with room of 25/√m."""

import math
from collections.abc import Sequence
from itertools import pairwise, product
from statistics import median
from typing import Any, ClassVar

from brittle.experiments.base import Claim, Experiment, Seconds
from brittle.experiments.cell import Cell, Point
from brittle.experiments.images import or_missing
from brittle.experiments.picture import Heat, Picture, PlotCurve
from brittle.experiments.summary import (
    describe_missing_data,
    distinct,
    exponent,
    make_undecided_claim,
    mean,
    restrict_claims,
    share,
    values,
    where,
)
from brittle.experiments.wang2022.robust_cells import RobustCell

READING = "read as: the 95 % interval of the exponent of its half holds -½, with all examples and the paper's attack"
WIDTH = 1000
BALL = 10 / math.sqrt(WIDTH)  # V of the left panel


class RobustFigure(Experiment):
    """What the two panels have in common: the cells of a preset, the crossing of one half, and the map."""

    kind = RobustCell
    axis: ClassVar[str]  # what is varied along the map's x axis
    group: ClassVar[str]  # and along its y axis
    constant: ClassVar[float]  # the paper's threshold is constant/√group

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        found = self._thresholds(points)
        text = self._text()
        if not found:
            none = "robust accuracy crosses one half nowhere in the range"
            return restrict_claims("mnist", points, [Claim(text, none, None) if points else make_undecided_claim(text)])
        scaled = [at * math.sqrt(value) for value, at in found]
        where_found = ", ".join(f"{at:.3g} at {value}" for value, at in found)
        power = exponent("half", self._symbol(), [value for value, _ in found], [at for _, at in found])
        measured = f"half at {where_found}: {min(scaled):.2f} to {max(scaled):.2f} times 1/√{self._symbol()}"
        measured += f"; ~ {power}" if power is not None else ""
        whole = all(point["examples"] == 0 for point in points)  # fewer examples and shorter attacks move the half
        holds = power.holds(-0.5) if power is not None and whole else None
        return restrict_claims("mnist", points, [Claim(text, measured, holds), *self._more(points, found)])

    def _text(self) -> str:
        raise NotImplementedError

    def _symbol(self) -> str:
        return "d" if self.group == "dim" else "m"

    def _more(self, points: Sequence[Point], found: list[tuple[int, float]]) -> list[Claim]:
        return []

    def _row(self, points: Sequence[Point], value: int) -> list[tuple[float, float]]:
        some = where(points, **{self.group: value})
        return [
            (at, mean(values(where(some, **{self.axis: at}), "robust_accuracy"))) for at in distinct(some, self.axis)
        ]

    def _thresholds(self, points: Sequence[Point]) -> list[tuple[int, float]]:
        """Where the robust accuracy of each d (or m) passes ½, interpolated; without those where it does not."""
        found = []
        for value in distinct(points, self.group):
            for (x0, y0), (x1, y1) in pairwise(self._row(points, value)):
                if (y0 - 0.5) * (y1 - 0.5) <= 0 and y0 != y1:
                    found.append((value, x0 + (0.5 - y0) / (y1 - y0) * (x1 - x0)))
                    break
        return found

    def picture(self, points: Sequence[Point]) -> Picture:
        if not points:
            return Picture([Heat("no data", "", "", [0.0, 1.0], [0.0, 1.0], [[None, None]] * 2)])
        xs, ys = distinct(points, self.axis), distinct(points, self.group)
        rows = [dict(self._row(points, y)) for y in ys]
        line = PlotCurve(
            rf"${self.constant:g}/\sqrt{{{self._symbol()}}}$",
            [self.constant / math.sqrt(y) for y in ys],
            [float(y) for y in ys],
            style="dotted",
            colour=1,
        )
        x_label, y_label = (r"$\|\delta\|$", "input dimension $d$") if self.axis == "budget" else ("$V$", "width $m$")
        heat = Heat(
            "",
            x_label,
            y_label,
            xs,
            ys,
            [[row.get(x) for x in xs] for row in rows],
            "robust accuracy",
            0.0,
            1.0,
            [line],
            y_scale="log",
        )
        return Picture([heat])

    def remarks(self, points: Sequence[Point], seconds: Seconds) -> list[str]:
        said = describe_missing_data("mnist", points, seconds)
        rising = [point["still_rising"] for point in points]
        if any(rising):
            said.append(f"{share(rising)} networks were still becoming more robust after {points[0]['epochs']} epochs.")
        return said


class Figure4Left(RobustFigure):
    """Robust test accuracy after projected adversarial training, by PGD, over ‖δ‖ and the dimension.

    Unit-norm digits 0 and 1; width 1000, every hidden weight kept within V = 10/√1000 of its start; dotted: 5/√d.
    """

    id = "wang2022/fig4left"
    title = "Robust accuracy over perturbation size and dimension"
    axis = "budget"
    group = "dim"
    constant = 5.0

    def grid(self, preset: str) -> Sequence[Cell]:
        sides, budgets, common, seeds = {
            "smoke": ((4, 8), (0.05, 1.0), SMOKE, 1),
            "quick": ((7, 10, 14, 20, 28), (0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.65, 0.9), QUICK, 1),
            "full": (range(5, 29), [round(0.05 * k, 2) for k in range(1, 21)], FULL, 5),
        }[preset]
        width = 100 if preset == "smoke" else WIDTH
        cells = [
            RobustCell(side=side, width=width, radius=10 / math.sqrt(width), budget=budget, seed=seed, **common)
            for side, budget, seed in product(sides, budgets, range(seeds))
        ]
        return or_missing(common["data"], cells)

    def _text(self) -> str:
        return f"robust accuracy drops near ‖δ‖ = 5/√d ({READING})"

    def _more(self, points: Sequence[Point], found: list[tuple[int, float]]) -> list[Claim]:
        text = "the drop is sharp (read as: from half to twice its place the accuracy falls by over ½, in the median d)"
        falls = []
        for value, at in found:
            row = self._row(points, value)
            before, after = [y for x, y in row if x <= at / 2], [y for x, y in row if x >= 2 * at]
            if before and after:
                falls.append(before[-1] - after[0])
        if not falls:
            return [make_undecided_claim(text)]
        return [Claim(text, f"{median(falls):.2f} in the median of {len(falls)} dimensions", median(falls) > 0.5)]


class Figure4Right(RobustFigure):
    """Robust test accuracy after projected adversarial training, by PGD, over the width m and V.

    Unit-norm digits 0 and 1, d = 784, ‖δ‖ = .2; V is how far a hidden weight may be from its start; dotted: 25/√m.
    """

    id = "wang2022/fig4right"
    title = "Robust accuracy over room to move and width"
    axis = "radius"
    group = "width"
    constant = 25.0

    def grid(self, preset: str) -> Sequence[Cell]:
        side, widths, radii, common, seeds = {
            "smoke": (8, (50, 100), (0.05, 1.0), SMOKE, 1),
            "quick": (28, (500, 1000, 2000, 4000), (0.1, 0.2, 0.35, 0.5, 0.7, 1.0), QUICK, 1),
            "full": (28, (500, 1000, 2000, 4000, 8000, 16_000), [round(0.05 * k, 2) for k in range(1, 21)], FULL, 5),
        }[preset]
        cells = [
            RobustCell(side=side, width=width, radius=radius, budget=0.2, seed=seed, **common)
            for width, radius, seed in product(widths, radii, range(seeds))
        ]
        return or_missing(common["data"], cells)

    def _text(self) -> str:
        return f"robust accuracy rises near V = 25/√m ({READING})"


SMOKE: dict[str, Any] = {
    "data": "digits", "examples": 100, "batch": 10, "rate": 0.1, "points": 30, "inner": 5, "epochs": 3,
}  # fmt: skip
# As many SGD steps an epoch, and as long, as with all 12,665 examples: the sum over a batch is what a step follows.
QUICK: dict[str, Any] = {
    "data": "mnist", "examples": 1000, "batch": 10, "rate": 0.128, "points": 200, "inner": 20, "epochs": 30,
}  # fmt: skip
FULL: dict[str, Any] = {
    "data": "mnist", "examples": 0, "batch": 128, "rate": 0.01, "points": 2115, "inner": 100, "epochs": 300,
}  # fmt: skip

FIGURES = (Figure4Left(), Figure4Right())
