"""What rational arithmetic says of dual bounds, of the signs they settle, and of the bounds after that."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from benchmarks.fuzz.ordinary import draw
from brittle.certificates.dual import first_iterate, solve_closed_form
from brittle.certificates.dual_bound import initial_kinds, never_flips
from brittle.certificates.margins import LocalModel, WeightSpan, localise
from brittle.certificates.rounding import Array
from brittle.certificates.saddle import SolvedSaddle
from brittle.certificates.settled_signs import find_settled_signs, trim
from brittle.networks import TwoLayer
from tests.certificates.reference import Margin, Proof, neurons


@dataclass
class ProofTally:
    """What rational arithmetic said, and what it refuted."""

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, other: "ProofTally") -> None:
        self.cases += other.cases
        self.outcomes += other.outcomes
        self.violations += other.violations


def examine(seed: int) -> ProofTally:
    outcome = confirm(seed)
    return ProofTally(1, Counter([outcome]), [f"seed {seed}: refuted"] if outcome == "refuted" else [])


def confirm(seed: int) -> str:
    """What rational arithmetic says of one dual bound in a ball of 1.5, of the signs it settles, of the bound then."""
    network, data = draw(np.random.default_rng(seed))
    rows = (network.margins(data.X, data.y) > 0).nonzero()[:, 0]
    if not len(rows):
        return "nothing to prove"
    x, y = data.X[rows[0]].numpy(), float(data.y[rows[0]])
    margin = _near_one(network, x, y)
    with np.errstate(all="ignore"):
        model = localise(WeightSpan.of(margin.W), *margin, ball=1.5)
        if never_flips(model, initial_kinds(model)):
            return "nothing to prove"
        solved = solve_closed_form(model, first_iterate(model, np.zeros(model.W.shape[1])))
        return _confirm(margin, model, solved)


def _confirm(margin: Margin, model: LocalModel, solved: SolvedSaddle) -> str:
    point = solved.dual_point
    radius = solved.proven_radius
    if radius == 0:
        return "zero"
    ball = min(model.ball, 1.2 * radius)  # nearer to the bound, more signs are settled
    proof, signs = Proof.of(margin, model, point), find_settled_signs(model, point, ball)
    if not proof.holds(radius):
        return "refuted"
    if not signs.any():
        return "confirmed"
    settled = {neuron: int(sign) for neuron, sign in zip(neurons(margin, model), signs, strict=True) if sign}
    if not all(proof.settles(neuron, sign, ball) for neuron, sign in settled.items()):
        return "refuted"
    smaller = trim(solved, ball)
    again = solve_closed_form(smaller.model, smaller.iterate)
    model, point = again.model, again.dual_point
    holds = never_flips(model, point.kinds) or Proof.of(margin, model, point, settled).holds(again.proven_radius)
    return "confirmed with signs" if holds else "refuted"


def _near_one(network: TwoLayer, x: Array, y: float) -> Margin:
    """W, b, y·v and y·c with rows and outputs near 1, by powers of two: the draws leave room for them."""
    W, b, v, c = network.W.numpy(), network.b.numpy(), y * network.v.numpy(), y * float(network.c)
    rows = np.where(W.any(1), np.frexp(np.abs(W).max(1))[1], 0)
    top = max(np.where(v != 0, rows + np.frexp(v)[1], -(10**4)).max(), np.frexp(c)[1] if c else -(10**4))
    W, b, v = np.ldexp(W, -rows[:, None]), np.ldexp(b, -rows), np.ldexp(v, rows - top)
    return Margin(W, b, v, float(np.ldexp(c, -top)), x)
