"""Checks proofs that no network of any width has a larger normalised margin. Nothing of the program that made them is
used or trusted; the arithmetic is `proofcheck.balls`.

Read in this order: `leaf` (the mathematics), `cover` (all cases), `proof` (files).
"""
