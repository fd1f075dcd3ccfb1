"""Proofs in the making: programs of steps and splits, as `proofcheck` reads them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from brittle.certificates.deep_dual.chain import Chain, LayeredMultipliers, Margins
from brittle.certificates.deep_dual.definite import Curvatures, of_network
from brittle.certificates.deep_dual.solver import (
    DenseLayers,
    ascend,
    first_multipliers,
    first_order_flips,
    refine_multipliers,
)
from brittle.certificates.rounding import Array, near_one
from brittle.networks import Layered
from proofcheck.lagrangian import FREE, Step
from proofcheck.proof import CLOSE, MULTIPLIERS, STEP

BITS = 24  # of a multiplier: any number of the right sign proves something, and short ones are small in a file


class ProofNotFound(Exception):
    """No proof was found."""


class Line(NamedTuple):
    """One of proofcheck's codes with its step, or with the neuron of a split."""

    code: int
    step: Step | None = None
    neuron: int = 0


Program = tuple[Line, ...]


def round_to_digits(values: Array | float) -> Array:
    """To few binary digits; signs and zeros stay."""
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, BITS)), exponent - BITS))


def short(step: Step) -> Step:
    """The step with few digits."""
    kinds, *multipliers, mu = step
    return Step._make((kinds, *map(round_to_digits, multipliers), float(round_to_digits(mu))))


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


# Proofs for any depth by one dual point without intervals: the multipliers of `certificates.deep_dual`.
#
# All curvatures are those of the network, or of one rival where that is not enough and the network is small.


STEPS = (50, 350)  # of the solver, and then as many more
SMALL = 800  # neurons of a network whose curvatures are refined for each rival


@dataclass(frozen=True, eq=False)
class ChainProof:
    """A network with its curvatures."""

    chain: Chain
    curvatures: Curvatures
    dense: DenseLayers | None

    @classmethod
    def of(cls, network: Layered) -> "ChainProof":
        chain = Chain.of(network)
        return cls(chain, of_network(chain), DenseLayers.of(chain) if sum(chain.widths) <= SMALL else None)

    def around(self, x: Tensor, radius: float, y: Tensor, box: tuple[float, float] | None) -> "Rivals":
        """The margins over all rivals in the ball, and the start of their multipliers."""
        margins = self.chain.around(x, radius, y, box)
        flips, mu = first_order_flips(margins)
        found = ascend(margins, first_multipliers(margins, self.curvatures.values, flips, mu), flips, STEPS[0])[0]
        W, by, b, b_by = self.chain.last.differences(y)
        units = near_one(W, by, b, b_by - self.chain.units[-1] - margins.exponent)[2]
        return Rivals(self, margins, found, flips.delta.norm(dim=1).numpy(), units)


@dataclass(frozen=True, eq=False)
class Rivals:
    """One row of multipliers for every rival, with the length of its first-order flip, and the unit of its margin."""

    chained: ChainProof
    margins: Margins
    multipliers: LayeredMultipliers
    distances: Array
    units: np.ndarray

    def first(self, rival: int) -> Step:
        return self._step(rival, self.multipliers.of(torch.tensor([rival])))

    def better(self, rival: int) -> Step:
        """With more steps of the solver, and curvatures of its own."""
        row = torch.tensor([rival])
        margins, start = self.margins.of(row), self.multipliers.of(row)
        flip, _ = first_order_flips(margins)
        found = ascend(margins, start, flip, STEPS[1])[0]
        if self.chained.dense is not None:
            found = refine_multipliers(self.chained.dense, margins, found)[0]
        return self._step(rival, found)

    def _step(self, rival: int, found: LayeredMultipliers) -> Step:
        """In the network's units: h_k = 2^(units_k + e)·h, δ = 2^e·δ, f = 2^(unit + units_K + e)·f."""
        e, chain = self.margins.exponent, self.chained.chain
        by = [np.full(width, unit) for width, unit in zip(chain.widths, chain.units, strict=True)]
        units = np.concatenate(by)
        lam = [np.broadcast_to(each.numpy(), len(unit)) for each, unit in zip(found.curvatures, by, strict=True)]
        alpha, beta = (np.concatenate([each[0].numpy() for each in part]) for part in (found.signs, found.lines))
        mu = np.ldexp(float(found.margin[0]), int(e - self.units[rival] - chain.units[-1]))
        walls = np.zeros(len(self.margins.x)) if found.walls is None else np.ldexp(found.walls[0].numpy(), e)
        nothing = np.zeros(len(units))
        kinds = np.full(len(units), FREE, dtype=np.int8)
        alpha, beta = np.ldexp(alpha, e - units), np.ldexp(beta, e - units)
        curved = np.ldexp(np.concatenate(lam), -2 * units)
        return short(Step(kinds, alpha, beta, curved, nothing, nothing, nothing, walls, float(mu)))
