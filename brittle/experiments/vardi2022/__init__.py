"""Figures 1 and 2 of vardi2022: one direction flips every example on the margin."""

from brittle.experiments.vardi2022.figures import FIGURES

__all__ = ["FIGURES"]
