"""Proofs in the making: programs of steps and splits, as `proofcheck` reads them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from brittle.certificates.scales import Array
from proofcheck.lagrangian import Step
from proofcheck.proof import CLOSE, MULTIPLIERS, STEP

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


def programs_of(claims: Mapping[str, np.ndarray], neurons: int, inputs: int) -> Iterator[Program]:
    """Read the programs of a file's arrays, in which a multiplier may be absent or have one row for all steps."""
    shapes = {name: (len(claims["kinds"]), inputs if name == "walls" else neurons) for name in MULTIPLIERS}
    columns = [
        np.broadcast_to(np.asarray(claims.get(name, 0.0), dtype=np.float64), shape) for name, shape in shapes.items()
    ]
    steps = list(map(Step, claims["kinds"], *columns, claims["mu"].tolist()))
    lines = [
        Line(code, steps[place]) if code in (STEP, CLOSE) else Line(code, neuron=place)
        for code, place in claims["program"].tolist()
    ]
    for begin, end in pairwise(claims["starts"].tolist()):
        yield tuple(lines[begin:end])


def steps_of(programs: Sequence[Program]) -> Iterator[Step]:
    """All steps in the order of their lines."""
    for program in programs:
        for line in program:
            if line.step is not None:
                yield line.step
