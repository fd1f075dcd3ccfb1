"""What gradient flow is biased to: how far a network is from a KKT point, and KKT points themselves."""

from brittle.margin.kkt import KKTResidual, residual

__all__ = ["KKTResidual", "residual"]
