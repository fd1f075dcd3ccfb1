"""Certified radii as files that `proofcheck` proves again."""

from brittle.proving.prove import Proof, joined, prove, write_beside

__all__ = ["Proof", "joined", "prove", "write_beside"]
