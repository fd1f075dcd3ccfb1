"""Figures 1 to 6 of melamed2023: data on a subspace, and the boundary on it and off it."""

from brittle.experiments.melamed2023 import boundary_figures, distance_figures, variance_figures

FIGURES = (*variance_figures.FIGURES, *boundary_figures.FIGURES, *distance_figures.FIGURES)
