"""Proofs for two layers: at a fixed radius, dual points and the signs that they settle, then branches.

Whatever the solver finds is asked of `proofcheck` at once, with the digits that the file will have: what it narrows is
what is known from then on. Lengths are in units of 2^e, margins in units of 2^top, inputs of neurons as they are.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from brittle.certificates import dual_bound
from brittle.certificates.dual import first_iterate, solve_closed_form
from brittle.certificates.dual_bound import Kind, Kinds
from brittle.certificates.margins import LocalModel, WeightSpan
from brittle.certificates.rounding import Array
from brittle.certificates.saddle import Saddle, SaddleIterate, SolvedSaddle
from brittle.proving.program import Line, Program, ProofNotFound, short
from proofcheck.balls import Refused
from proofcheck.lagrangian import FREE, LINE, OFF, ON, Margin, Step
from proofcheck.network import Intervals
from proofcheck.proof import CLOSE, NEVER, SPLIT, STEP

TURNS = 12  # of solving and narrowing a branch
LEVELS = 12  # of the barrier
PAYS = 0.7  # another turn, if the last one left less than this share of what was to be proved
MARGIN = 1e-9  # of ½R², beyond which the solver goes for the sake of rounding


@dataclass(frozen=True, eq=False)
class TwoLayerProver:
    """Looks for a proof that no flip of the margin lies within its radius; `expired` says that time is up."""

    margin: Margin
    span: WeightSpan
    expired: Callable[[], bool]

    @property
    def units(self) -> tuple[int, int]:
        """e and top."""
        e = int(np.frexp(self.margin.radius)[1])
        reach = np.ldexp(np.linalg.norm(self.margin.network.weights[0], axis=1), e)
        terms = np.abs(self.margin.c.mid) * (np.abs(self.margin.z.mid) + reach)
        return e, int(np.frexp(max(float(terms.max(initial=0.0)), abs(float(self.margin.c0.mid)), 1e-300))[1])

    def program(self, flip: Array) -> Program:
        """From a flip, or any direction, that is to be kept out."""
        known = self.margin.network.first_intervals(self.margin.z, self.margin.radius)
        return tuple(self._branch(known, np.zeros(len(known.low), dtype=np.int8), self.span.reduce(flip)))

    def _branch(self, known: Intervals, split: Kinds, epsilon: Array) -> list[Line]:
        """The lines that leave no flip in a branch; `split` says which signs are assumed."""
        lines: list[Line] = []
        left = np.inf
        for _ in range(TURNS):
            if self.margin.never(known):
                return [*lines, Line(NEVER)]
            if self.expired():
                raise ProofNotFound("time is up")
            local = _TwoLayerBranch.of(self.margin, self.span, self.units, known, split)
            solved = local.solved(epsilon)
            step = short(local.step(solved, known))
            try:
                after = self.margin.after(step, known, narrow=True)
            except Refused:
                break
            lines.append(Line(STEP, step))
            if after is None:
                return [*lines[:-1], Line(self._code(step, known), step)]
            epsilon, known = np.ldexp(solved.point, self.units[0]), after
            before, left = left, local.enough - solved.value
            if left > PAYS * before and not local.settles(after):
                break
        return [*lines, *self._children(known, split, local, solved)]

    def _code(self, step: Step, known: Intervals) -> int:
        """CLOSE where the step needs no intervals."""
        try:
            self.margin.after(step, known, narrow=False)
        except Refused:
            return STEP
        return CLOSE

    def _children(self, known: Intervals, split: Kinds, local: "_TwoLayerBranch", solved: SolvedSaddle) -> list[Line]:
        neuron = local.loosest(solved)
        if neuron is None:
            raise ProofNotFound("a branch without free neurons stays open")
        lines = [Line(SPLIT, neuron=neuron)]
        for kind, low, high in ((Kind.ACTIVE, 0.0, np.inf), (Kind.INACTIVE, -np.inf, 0.0)):
            part = Intervals(known.low.copy(), known.high.copy())
            part.low[neuron], part.high[neuron] = max(part.low[neuron], low), min(part.high[neuron], high)
            signs = split.copy()
            signs[neuron] = kind
            if part.low[neuron] <= part.high[neuron]:
                lines += self._branch(part, signs, np.ldexp(solved.point, self.units[0]))
        return lines


@dataclass(frozen=True, eq=False)
class _TwoLayerBranch:
    """The model of a branch: `places` are its neurons in the network; `enough` is ½R² and a little."""

    margin: Margin
    model: LocalModel
    places: NDArray[np.intp]
    kinds: Kinds
    units: tuple[int, int]
    enough: float

    @classmethod
    def of(
        cls, margin: Margin, span: WeightSpan, units: tuple[int, int], known: Intervals, split: Kinds
    ) -> "_TwoLayerBranch":
        e, top = units
        c, c0 = np.ldexp(margin.c.mid, -top), float(np.ldexp(margin.c0.mid, -top))
        W, a, radius = np.ldexp(span.coordinates, e), margin.z.mid, float(np.ldexp(margin.radius, -e))
        concave = c < 0
        on = np.where(concave, (known.low >= 0) & (split == 0), known.low >= 0)
        off = np.where(concave, (known.high <= 0) & (split == 0), known.high <= 0)
        sizes, nothing = np.linalg.norm(W, axis=1), np.zeros(len(c))
        live = (c != 0) & ~off & ~(concave & (known.low > 0) & (split == Kind.INACTIVE))
        model = LocalModel(
            W[live], a[live], c[live], c0, np.zeros(W.shape[1]), 0.0, radius, 1.0, sizes[live], nothing[live], False
        ).folded(on[live], np.zeros(int(live.sum()), dtype=bool))
        places = np.flatnonzero(live & ~on)
        kinds = np.where(concave, np.where(split != 0, split, Kind.CONCAVE), Kind.CONVEX)[places].astype(np.int8)
        return cls(margin, model, places, kinds, units, 0.5 * radius**2 * (1 + MARGIN))

    def solved(self, epsilon: Array) -> SolvedSaddle:
        """Curvatures along the barrier's path, with the best multipliers at each."""
        start = first_iterate(self.model, np.ldexp(epsilon, -self.units[0]))
        now = best = self._start(start)
        nu, last = np.inf, 1e-7 * abs(now.value) / len(now.point)
        for _ in range(LEVELS):
            N, _, c, kappa_N = now.saddle.concave
            if len(N) == 0 or nu <= last or best.value >= self.enough:
                break
            W, C, z = self.model.W[N], -now.iterate.multiplier * c, now.concave_inputs
            nu = max(0.2 * min(nu, dual_bound.fitting_barrier(W, C, z, kappa_N)), last)
            kappa = now.saddle.curvatures.copy()
            kappa[N] = dual_bound.newton(W, C, z, kappa_N, nu)
            saddle = Saddle.at(self.model, self.kinds, kappa)
            now = SolvedSaddle(saddle, saddle.solve(now.iterate, self.enough, rounds=4, steps=6))
            best = now if now.value > best.value else best
        if best.value < self.enough:
            best = SolvedSaddle(
                best.saddle, best.saddle.solve(best.iterate, self.enough, rounds=40, steps=30, tolerance=1e-9)
            )
        if best.value < self.enough and len(best.saddle.concave.rows) == 0:
            best = self._polyhedral(best)
        return best

    def _polyhedral(self, solved: SolvedSaddle) -> SolvedSaddle:
        """Without concave neurons the multipliers (μ, g, rest ≥ 0 with g + rest = μc where convex) are those of the
        nearest point of a polyhedron, or of a contradiction: non-negative least squares.
        """
        model, convex = self.model, self.kinds == Kind.CONVEX
        sign = np.where(self.kinds == Kind.ACTIVE, -1.0, 1.0)  # an active neuron has g = μc - ν, others g = ν ≥ 0
        held = np.where(self.kinds == Kind.ACTIVE, model.c, 0.0)
        count = len(sign)
        rows = np.vstack([model.q + held @ model.W, sign[:, None] * model.W])
        heights = np.append(model.beta + held @ model.a, sign * model.a)
        ties = np.zeros((int(convex.sum()), 1 + 2 * count))
        ties[:, 0], places = -model.c[convex], np.flatnonzero(convex)
        ties[np.arange(len(places)), 1 + places] = ties[np.arange(len(places)), 1 + count + places] = 1
        spare = np.zeros((count, rows.shape[1]))
        scale = np.abs(heights).max()
        A = np.vstack([np.vstack([rows, spare]).T, 1e6 * ties, np.append(heights, np.zeros(count))[None] / scale])
        try:
            found, _ = nnls(A, np.append(np.zeros(len(A) - 1), 1.0), maxiter=50 * A.shape[1])
        except RuntimeError:  # it did not converge
            return solved
        mu, g = found[0], sign * found[1 : 1 + count] + found[0] * held
        if not mu > 0:
            mu = 1e-12 * found.max()
        g = np.where(convex, np.clip(g, 0, mu * model.c), g)
        iterate = solved.saddle.evaluate(mu, g)
        return SolvedSaddle(solved.saddle, iterate) if iterate.value > solved.value else solved

    def _start(self, start: SaddleIterate) -> SolvedSaddle:
        if not ((self.kinds == Kind.ACTIVE) | (self.kinds == Kind.INACTIVE)).any():
            return solve_closed_form(self.model, start, self.enough)
        N = np.flatnonzero(self.kinds == Kind.CONCAVE)
        W, kappa, model = self.model.W[N], np.zeros(len(self.kinds)), self.model
        kappa[N] = dual_bound.choose_curvatures(W, -start.multiplier * model.c[N], model.a[N] + W @ start.point, 0.9)
        saddle = Saddle.at(model, self.kinds, kappa)
        return SolvedSaddle(saddle, saddle.solve(start, self.enough, rounds=6, steps=8, tolerance=1e-6))

    def settles(self, known: Intervals) -> bool:
        """Whether a concave neuron of the model has a sign now."""
        free = self.places[self.kinds == Kind.CONCAVE]
        return bool(((known.low[free] >= 0) | (known.high[free] <= 0)).any())

    def loosest(self, solved: SolvedSaddle) -> int | None:
        """The neuron to split."""
        free, _, c, kappa = solved.saddle.concave
        if len(free) == 0:
            return None
        z, t = solved.concave_inputs, -solved.iterate.multiplier * c / (2 * kappa)
        looseness = kappa * np.maximum(t**2 - z**2, 0)
        near = np.abs(z) / self.model.sizes[free]
        return int(self.places[free[looseness.argmax() if looseness.max() > 0 else near.argmin()]])

    def step(self, solved: SolvedSaddle, known: Intervals) -> Step:
        """The dual point in the network's units: a parabola of slope s at 0 and curvature κ under C·φ(z), C < 0, is
        what λ = 2κ with β = 2s + |C|, or α = -2s - |C|, leaves of it once h is minimised away.
        """
        (e, top), count = self.units, len(known.low)
        mu, g, kappa = solved.iterate.multiplier, solved.iterate.slopes, solved.saddle.curvatures
        kinds = np.where(known.low >= 0, ON, OFF).astype(np.int8)
        kinds[(kinds == OFF) & (known.high > 0)] = LINE  # those without weight
        alpha, beta, lam, nu = np.zeros((4, count))
        C = mu * self.model.c
        for kind, code in ((Kind.CONVEX, LINE), (Kind.CONCAVE, FREE), (Kind.ACTIVE, ON), (Kind.INACTIVE, OFF)):
            kinds[self.places[self.kinds == kind]] = code
        convex, bent = self.kinds == Kind.CONVEX, self.kinds == Kind.CONCAVE
        beta[self.places[convex]] = np.clip(g[convex] / C[convex], 0, 1)
        s = 2 * (g[bent] + kappa[bent] * self.model.a[bent]) - C[bent]
        alpha[self.places[bent]], beta[self.places[bent]] = np.ldexp(np.maximum([-s, s], 0), 2 * e)
        lam[self.places[bent]] = np.ldexp(2 * kappa[bent], 2 * e)
        on, off = self.kinds == Kind.ACTIVE, self.kinds == Kind.INACTIVE
        nu[self.places[on]] = np.ldexp(np.minimum(g[on] - C[on], 0), 2 * e)
        nu[self.places[off]] = np.ldexp(np.maximum(g[off], 0), 2 * e)
        nothing = np.zeros(count)
        walls = np.zeros(len(self.margin.x))
        return Step(kinds, alpha, beta, lam, nothing, nothing, nu, walls, float(np.ldexp(mu, 2 * e - top)))
