"""Certified radii as files that `proofcheck` proves again."""

from brittle.proving.prove import Proof, prove, write_beside

__all__ = ["Proof", "prove", "write_beside"]
