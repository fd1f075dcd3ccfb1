"""Proofs for any depth by the dual of all layers: `certificates.deep_exact` at a fixed radius, one rival at a time.

Every point that its interior point asks its own judge about is kept; the last ones before a sign was settled are asked
of `proofcheck`, whose intervals are what is known from then on. Lengths are in units of 2^e, each z in one of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from brittle.certificates.deep_exact.ball import AttackBall
from brittle.certificates.deep_exact.ball import LayerIntervals as FirstIntervals
from brittle.certificates.deep_exact.branch_and_bound import loosest, margin_at
from brittle.certificates.deep_exact.interior_point import BranchTarget, SolvedBranch, first_iterate, maximise
from brittle.certificates.deep_exact.leaf import inequalities, multipliers
from brittle.certificates.deep_exact.problem import FREE as UNKNOWN
from brittle.certificates.deep_exact.problem import OFF as IS_OFF
from brittle.certificates.deep_exact.problem import ON as IS_ON
from brittle.certificates.deep_exact.problem import Root, SdpProblem, SignBranch, margin_units, units_of
from brittle.certificates.layers import DeepMargins
from brittle.certificates.rounding import Array
from brittle.proving.program import Line, Program, ProofNotFound, short
from proofcheck.balls import Refused
from proofcheck.lagrangian import FREE, OFF, ON, Margin, Step
from proofcheck.network import Intervals
from proofcheck.proof import CLOSE, NEVER, SPLIT, STEP

BEYOND = 1e-9  # of ½R²: what the solver asks for the sake of rounding
PRECISION = 1e-6
SPLIT_ENDS = 1e-3  # of its interval: a split neuron is listed as if it could still cross its kink
POINT = 1e-6  # of what a neuron's weights can do: the least width for that


@dataclass(frozen=True)
class SeenBranches:
    """A point that the judge was asked about."""

    signs: NDArray[np.int8]
    step: Step


@dataclass(frozen=True, eq=False)
class DeepProver:
    """Looks for a proof that no flip of the margin lies within its radius; `expired` says that time is up."""

    margin: Margin
    expired: Callable[[], bool]

    def program(self, first: Step) -> Program:
        """From a step that needs no intervals."""
        known = self.margin.network.first_intervals(self.margin.z, self.margin.radius)
        nothing = np.zeros_like(first.alpha)
        for step in (first, first._replace(alpha=nothing, beta=nothing, mu=0.0)):  # the second says little, but always
            try:
                after = self.margin.after(step, known, narrow=True)
            except Refused:
                continue
            return (Line(STEP, step), *([] if after is None else self._branch(after, _signs(after))))
        raise ProofNotFound("no step is definite")

    def _branch(self, known: Intervals, base: NDArray[np.int8]) -> list[Line]:
        """The lines that leave no flip in a branch; `base` are signs at the root, whose constraints are forgotten."""
        if self.margin.never(known):
            return [Line(NEVER)]
        if self.expired():
            raise ProofNotFound("time is up")
        local = _DeepBranch.of(self.margin, known, np.where(base == UNKNOWN, _signs(known), UNKNOWN).astype(np.int8))
        solved, seen = local.solved(self.expired)
        lines, after = self._replayed(seen, known)
        if after is None:
            return self._pruned(lines, known)
        if lines and bool((_signs(after) != _signs(known)).any()):
            return [*lines, *self._branch(after, base)]  # a smaller problem: once more
        open_ = local.listed[_signs(after)[local.listed] == UNKNOWN]
        if len(open_) == 0:
            return [*lines, *self._leaf(after)]
        neuron = loosest(solved)
        place = -1 if neuron is None else int(local.listed[neuron])
        if place not in open_:
            place = int(open_[np.minimum(-after.low[open_], after.high[open_]).argmax()])
        lines.append(Line(SPLIT, neuron=place))
        for low, high in ((0.0, np.inf), (-np.inf, 0.0)):
            part = Intervals(after.low.copy(), after.high.copy())
            part.low[place], part.high[place] = max(part.low[place], low), min(part.high[place], high)
            if part.low[place] <= part.high[place]:
                lines += self._branch(part, base)
        return lines

    def _replayed(self, seen: list[SeenBranches], known: Intervals) -> tuple[list[Line], Intervals | None]:
        """The steps that matter, and what is known after them."""
        lines, groups = list[Line](), _groups(seen)
        for group, following in zip(groups, [*groups[1:], None], strict=False):  # there may be none
            wanted = None if following is None else following[0].step.kinds
            for each in (group[-1], *group, group[-1]):
                if lines and wanted is not None and _proved(wanted, known):
                    break  # what the next points take for granted
                if not _proved(each.step.kinds, known):
                    continue
                try:
                    after = self.margin.after(each.step, known, narrow=True)
                except Refused:
                    continue
                if after is None:
                    return [*lines, Line(self._code(each.step, known), each.step)], None
                if _narrower(after, known):
                    lines.append(Line(STEP, each.step))
                    known = after
        return lines, known

    def _pruned(self, lines: list[Line], known: Intervals) -> list[Line]:
        """The last few of the lines, if they close the branch too."""
        count = 1
        while count < len(lines):
            now: Intervals | None = known
            for place, line in enumerate(lines[-count:]):
                assert now is not None
                assert line.step is not None
                before = now
                try:
                    now = self.margin.after(line.step, before, narrow=True)
                except Refused:
                    break
                if now is None:
                    return [*lines[-count:][:place], Line(self._code(line.step, before), line.step)]
            count *= 2
        return lines

    def _code(self, step: Step, known: Intervals) -> int:
        """CLOSE where the step needs no intervals."""
        try:
            self.margin.after(step, known, narrow=False)
        except Refused:
            return STEP
        return CLOSE

    def _leaf(self, known: Intervals) -> list[Line]:
        """Without free neurons: the multipliers of the polyhedron's nearest point, or of a contradiction."""
        first = self.margin.network.first_intervals(self.margin.z, self.margin.radius)
        alive = np.where(first.high > 0, _signs(known), UNKNOWN)  # the model knows no rows of the others
        step = _DeepBranch.of(self.margin, known, alive.astype(np.int8)).leaf(known)
        try:
            after = self.margin.after(step, known, narrow=True)
        except Refused as reason:
            raise ProofNotFound(f"a branch without free neurons stays open: {reason}") from None
        if after is not None:
            raise ProofNotFound("a branch without free neurons stays open")
        return [Line(self._code(step, known), step)]


def _signs(known: Intervals) -> NDArray[np.int8]:
    return np.where(known.low >= 0, IS_ON, np.where(known.high <= 0, IS_OFF, UNKNOWN)).astype(np.int8)


def _proved(kinds: NDArray[np.int8], known: Intervals) -> bool:
    """Whether the signs that a step takes for granted are known."""
    return bool((known.low[kinds == ON] >= 0).all() and (known.high[kinds == OFF] <= 0).all())


def _narrower(after: Intervals, before: Intervals) -> bool:
    """Whether an interval shrank by more than a little."""
    old, new = before.high - before.low, after.high - after.low
    return bool((~np.isfinite(old) & np.isfinite(new)).any() or (new < 0.99 * old).any())


def _groups(seen: list[SeenBranches]) -> list[list[SeenBranches]]:
    """Points that follow each other with the same signs."""
    groups: list[list[SeenBranches]] = []
    for each in seen:
        if groups and (groups[-1][0].signs == each.signs).all():
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


@dataclass(frozen=True, eq=False)
class _DeepBranch:
    """A branch as the interior point sees it; `listed` (n,) are the root's neurons in the network."""

    margin: Margin
    root: Root
    branch: SignBranch
    listed: NDArray[np.intp]
    units: NDArray[np.int64]  # of all hidden neurons
    margin_unit: int

    @classmethod
    def of(cls, margin: Margin, known: Intervals, split: NDArray[np.int8]) -> "_DeepBranch":
        net = margin.network
        low, high = known.low.copy(), known.high.copy()
        steep = np.concatenate([np.linalg.norm(W, axis=1) for W in net.weights[:-1]]) * margin.radius
        wide = SPLIT_ENDS * np.maximum.reduce([high - low, np.abs(high) + np.abs(low), POINT * steep])
        low, high = (
            np.where(split == UNKNOWN, *each) for each in ((low, np.fmin(low, -wide)), (high, np.fmax(high, wide)))
        )
        parts = net.parts
        ends = FirstIntervals(tuple(low[part] for part in parts), tuple(high[part] for part in parts))
        weights = [torch.from_numpy(W) for W in (*net.weights[:-1], margin.c.mid[None])]
        biases = [torch.from_numpy(b) for b in (*net.biases[:-1], margin.c0.mid.reshape(1))]
        none = np.zeros(1, dtype=np.int64)
        margins = DeepMargins(tuple(weights), tuple(biases), torch.from_numpy(margin.x), 0, none)
        ball = AttackBall.of(margins, margin.radius)
        units = [units_of(*each) for each in zip(ends.low, ends.high, strict=True)]
        root = Root.of(ball, ends)
        listed = np.concatenate([part.start + place for part, place in zip(parts, root.places, strict=True)])
        branch = root.branch
        for place, neuron in enumerate(listed):
            if split[neuron]:
                branch = branch.split(place, int(split[neuron]))
        return cls(margin, root, branch, listed, np.concatenate(units), int(margin_units(ball, units[-1])[0]))

    def solved(self, expired: Callable[[], bool]) -> tuple[SolvedBranch, list[SeenBranches]]:
        seen: list[SeenBranches] = []
        ball = self.root.ball
        target = BranchTarget(ball.reach, 0.5 * ball.reach**2 * (1 + BEYOND), PRECISION, expired)
        problem = SdpProblem.of(self.root, self.branch, 0)
        start = first_iterate(problem, ball.reach, margin_at(ball, 0))
        if start is None:
            return SolvedBranch.nothing(self.branch, problem, 0.0), seen

        def observe(branch: SignBranch, problem: SdpProblem, y: Array) -> None:
            seen.append(SeenBranches(branch.signs.copy(), self.step(branch, problem, y)))

        return maximise(self.root, self.branch, 0, start, target, 0.0, observe), seen

    def step(self, branch: SignBranch, problem: SdpProblem, y: Array) -> Step:
        m, kinds = problem.multipliers(y), self._kinds(branch)
        lam, rho, tau = np.zeros((3, len(kinds)))
        free, settled = self.listed[problem.free], self.listed[problem.settled]
        lam[free], rho[free], tau[free], tau[settled] = m.lam, m.rho, m.tau, m.sigma
        by = 2 * self.root.ball.exponent - 2 * self.units
        nothing = np.zeros(len(kinds))
        lam, rho, tau = np.ldexp(lam, by), np.ldexp(rho, by), np.ldexp(tau, by)
        mu = float(np.ldexp(m.mu, 2 * self.root.ball.exponent - self.margin_unit))
        return short(Step(kinds, nothing, nothing, lam, rho, tau, nothing, np.zeros(len(self.margin.x)), mu))

    def leaf(self, known: Intervals) -> Step:
        """f ≤ 0 and both ends of every neuron that was listed. The best multiple tν has t = h·ν/‖Aᵀν‖²; for a
        contradiction that is endless, and twice of what is to be proved has to do.
        """
        signs = np.where(known.low >= 0, IS_ON, IS_OFF)[self.listed].astype(np.int8)
        ends = (np.ldexp(each[self.listed], -self.units[self.listed]) for each in known)
        branch = SignBranch(signs, *ends)
        problem = SdpProblem.of(self.root, branch, 0)
        A, h = inequalities(problem)
        nu = multipliers(A, h)
        normal, lift = nu @ A, float(h @ nu)
        nu = nu * min(lift / max(float(normal @ normal), 1e-300), 2 * self.root.ball.reach**2 / max(lift, 1e-300))
        k, e, nothing = problem.k, self.root.ball.exponent, np.zeros(len(self.units))
        both, settled = nothing.copy(), self.listed[problem.settled]
        both[settled] = nu[1 + k :] - nu[1 : 1 + k]
        both, mu = np.ldexp(both, 2 * e - self.units), float(np.ldexp(nu[0], 2 * e - self.margin_unit))
        walls = np.zeros(len(self.margin.x))
        return short(Step(self._kinds(branch), nothing, nothing, nothing, nothing, nothing, both, walls, mu))

    def _kinds(self, branch: SignBranch) -> NDArray[np.int8]:
        signs = np.concatenate(self.root.signs)
        signs[self.listed] = branch.signs
        return np.where(signs == UNKNOWN, FREE, np.where(signs == IS_ON, ON, OFF)).astype(np.int8)
