"""Figures for frei2023, which has none: one direction flips fresh examples of clusters."""

from brittle.experiments.frei2023.figures import FIGURES

__all__ = ["FIGURES"]
