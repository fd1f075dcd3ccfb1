"""Ours: what becomes of the papers' effects where their hypotheses do not reach, and margins beside the largest one."""

from brittle.experiments.beyond import (
    largest_figures,
    linear_figures,
    manifold_figures,
    noise_figures,
    starts_figures,
    universal_figures,
)

FIGURES = (
    *universal_figures.FIGURES,
    *linear_figures.FIGURES,
    *manifold_figures.FIGURES,
    *noise_figures.FIGURES,
    *largest_figures.FIGURES,
    *starts_figures.FIGURES,
)

__all__ = ["FIGURES"]
