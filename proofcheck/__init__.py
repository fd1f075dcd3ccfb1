"""Checks proofs of robustness with balls of real numbers. Nothing of the program that made them is used or trusted.

Read in this order: `balls` (arithmetic), `network` (the subject), `lagrangian` (the mathematics), `proof` (files).
"""
