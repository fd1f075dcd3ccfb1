"""Ours: what becomes of the papers' effects where their hypotheses do not reach."""

from brittle.experiments.beyond import linear_figures, manifold_figures, noise_figures, universal_figures

FIGURES = (*universal_figures.FIGURES, *linear_figures.FIGURES, *manifold_figures.FIGURES, *noise_figures.FIGURES)

__all__ = ["FIGURES"]
