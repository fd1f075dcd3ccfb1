"""melamed2023, figure 1: pictures lie near a linear subspace of few dimensions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from brittle.experiments.base import Claim, Experiment, Seconds
from brittle.experiments.cell import Cell, Point
from brittle.experiments.images import NAMES, or_missing
from brittle.experiments.melamed2023.variance_cells import VarianceCell
from brittle.experiments.picture import Chart, Picture, PlotCurve
from brittle.experiments.summary import describe_missing_data, restrict_claims


class Variance(Experiment):
    """The share of the variance on the first principal components, centred PCA of all training pictures.

    Dotted lines: 90 % and 95 %. The paper's counts are those of its plot, whose components are numbered from 0.
    """

    kind = VarianceCell
    data: ClassVar[str]  # the name of the data set
    printed: ClassVar[tuple[int, int]]  # components for 90 % and 95 % in the paper
    smoke: ClassVar[tuple[str, int]]  # data and number of examples in a smoke run

    def grid(self, preset: str) -> Sequence[Cell]:
        name, examples = self.smoke if preset == "smoke" else (self.data, 0)
        return or_missing(name, [VarianceCell(data=name, examples=examples, seed=0)])

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        claims = []
        for share, printed in zip((90, 95), self.printed, strict=True):
            text = f"{share} % of {NAMES[self.data]}'s variance lies on {printed} components"
            text += f" (counted from 1: {printed + 1})"
            found = [point[f"components_{share}"] for point in points]
            measured = f"{found[0]} components of {points[0]['dim']}, centred" if found else ""
            claims.append(Claim(text, measured, all(count in (printed, printed + 1) for count in found)))
        whole = all(point["examples"] == 0 for point in points)
        return restrict_claims(self.data, points, claims if whole else [replace(claim, holds=None) for claim in claims])

    def picture(self, points: Sequence[Point]) -> Picture:
        curves = []
        for point in points:
            share = point["cumulative"]
            curves.append(PlotCurve(NAMES[point["data"]], [float(k + 1) for k in range(len(share))], share))
            curves += [
                PlotCurve(f"{s} %: {point[f'components_{s}']}", [1.0, float(len(share))], [s / 100] * 2, style="dotted")
                for s in (90, 95)
            ]
        return Picture([Chart("", "principal components", "share of the variance", curves)])

    def remarks(self, points: Sequence[Point], seconds: Seconds) -> list[str]:
        return describe_missing_data(self.data, points, seconds)


class MelamedFigure1a(Variance):
    id = "melamed2023/fig1a"
    title = "Cumulative variance of CIFAR-10"
    data = "cifar10"
    printed = (98, 216)
    smoke = ("cifar10", 1000)


class MelamedFigure1b(Variance):
    id = "melamed2023/fig1b"
    title = "Cumulative variance of MNIST"
    data = "mnist"
    printed = (86, 153)
    smoke = ("digits", 0)


FIGURES = (MelamedFigure1a(), MelamedFigure1b())
