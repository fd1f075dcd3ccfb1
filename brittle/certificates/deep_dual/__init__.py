"""The quadratic dual bound of networks of any depth: its solver, and the judge that does not trust it."""

from brittle.certificates.deep_dual.bound import DeepDual

__all__ = ["DeepDual"]
