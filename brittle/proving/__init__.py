"""Certified radii as files that `proofcheck` proves again."""

from brittle.proving.prove import Proof, join_proofs, prove, write_beside

__all__ = ["Proof", "join_proofs", "prove", "write_beside"]
