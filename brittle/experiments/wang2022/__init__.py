"""Figures 2 to 7 of wang2022: networks near their initialisation, trained plainly and adversarially."""

from brittle.experiments.wang2022 import lazy, robust_figures

FIGURES = (*lazy.FIGURES, *robust_figures.FIGURES)
