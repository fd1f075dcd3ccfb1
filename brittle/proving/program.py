"""Proofs in the making: programs of steps and splits, as `proofcheck` reads them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from brittle.certificates.scales import Array
from proofcheck.lagrangian import Step

BITS = 24  # of a multiplier: any number of the right sign proves something, and short ones are small in a file


class Unproved(Exception):
    """No proof was found."""


class Line(NamedTuple):
    """One of proofcheck's codes with its step, or with the neuron of a split."""

    code: int
    step: Step | None = None
    neuron: int = 0


Program = tuple[Line, ...]


def rounded(values: Array | float) -> Array:
    """To few binary digits; signs and zeros stay."""
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, BITS)), exponent - BITS))


def short(step: Step) -> Step:
    """The step with few digits."""
    kinds, *multipliers, mu = step
    return Step._make((kinds, *map(rounded, multipliers), float(rounded(mu))))


def steps_of(programs: Sequence[Program]) -> Iterator[Step]:
    """All steps in the order of their lines."""
    for program in programs:
        for line in program:
            if line.step is not None:
                yield line.step
