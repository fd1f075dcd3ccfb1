"""The best multipliers of a deep problem: a primal-dual interior point (HKM direction, Mehrotra's corrector).

Maximise t over multipliers y with S(y, t) ≻ 0 and y ≥ 0 where a sign is asked. On the central path X = νS⁻¹ and w = ν/y
satisfy 2a·Xb + w = 0 for every constraint (a, b), and X₁₁ = ½ for t. With ΔX = κνS⁻¹ - X - sym(XΔS S⁻¹) - C and
Δw = κν/y - w - wΔy/y - c/y (C and c are the corrector's products, κ the centring) these are equations MΔy = rhs.
In every iteration the judge is asked first: it proves a floor, and narrows intervals; signs that follow are settled and
the problem shrinks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from brittle.certificates.deep_exact.judge import examine
from brittle.certificates.deep_exact.newton import (
    LinearisedSdp,
    SdpIterate,
    advance,
    evaluate_unrounded,
    linearise,
    update_border,
    with_t,
)
from brittle.certificates.deep_exact.problem import FREE, Root, SdpProblem, SignBranch, Signs, carry_multipliers
from brittle.certificates.rounding import Array
from brittle.common.time_limit import check_time

Observe = Callable[[SignBranch, SdpProblem, Array], None]  # sees the multipliers that the judge is asked about

WIDTH = 4.0  # of the first multipliers, in units of ν/(u-l)²
MOST = 70  # iterations


class BranchStatus(Enum):
    CLOSED = "no flip of the branch is shorter than asked"
    OPEN = "more iterations would not close the branch"
    FAILED = "the iterations broke down"


class BranchTarget(NamedTuple):
    """Flips ‖ε‖ ≤ reach are asked about; a floor of `enough` under ½‖ε‖² closes the branch.

    The iterations end at a duality gap of `precision`, in shares of F, or of `patience`, in shares of what is left to
    prove, if no sign was settled lately; `expired` says that time is up.
    """

    reach: float
    enough: float
    precision: float
    expired: Callable[[], bool]
    patience: float = 0.05


@dataclass(frozen=True, eq=False)
class SolvedBranch:
    """A branch with the best floor proved, where the iterations stand, and what the relaxed point says.

    point (p,) is ε at the minimum of the Lagrangian; looseness (n of the root,) how far each neuron is from its graph.
    """

    branch: SignBranch
    problem: SdpProblem
    iterate: SdpIterate
    floor: float
    ending: BranchStatus
    point: Array
    looseness: Array

    @classmethod
    def nothing(cls, branch: SignBranch, problem: SdpProblem, floor: float) -> "SolvedBranch":
        """Where no start is feasible in floating point."""
        size = problem.p + problem.n + 1
        iterate = SdpIterate(np.zeros(len(problem.signed)), np.zeros((size, size)), np.zeros(len(problem.signed)))
        far = np.full(len(branch.signs), -np.inf)
        return cls(branch, problem, iterate, floor, BranchStatus.FAILED, np.zeros(problem.p), far)


def first_iterate(problem: SdpProblem, reach: float, margin: float) -> SdpIterate | None:
    """λ = τ = s, ρ = 2s takes h and z apart, so that any s > 0 is feasible."""
    n, k, p = problem.n, problem.k, problem.p
    nu = reach**2 / (p + 3 * n + k + 2)
    s = WIDTH * nu / np.maximum(problem.high - problem.low, 1e-6) ** 2
    y = np.concatenate([[nu / max(margin, 1e-9), 0.0], s[:n], 2 * s[:n], s])
    return center_iterate(problem, y, nu)


def center_iterate(problem: SdpProblem, y: Array, nu: float) -> SdpIterate | None:
    """X and w at ν for given multipliers; None if they are not feasible."""
    here = linearise(problem, y, slack=nu)
    if here is None:
        return None
    y = y.copy()
    y[1] = here.value - nu
    return SdpIterate(y, nu * here.inverse, np.where(problem.signed, nu / np.where(problem.signed, y, 1.0), 0.0))


def inherit_iterate(old: SdpProblem, new: SdpProblem, iterate: SdpIterate, signs: Signs) -> SdpIterate | None:
    """The iterate in a branch with more signs: rows of X that belong to settled neurons leave. None if infeasible."""
    keep = np.concatenate([np.arange(old.p), old.p + np.flatnonzero(signs[old.free] == FREE), [old.p + old.n]])
    y = carry_multipliers(iterate.y, old, new, signs)
    before, after = evaluate_unrounded(old, iterate.y), evaluate_unrounded(new, y)
    if before is None or after is None or before <= iterate.y[1]:
        return None
    y[1] = after - (before - iterate.y[1])
    return SdpIterate(y, iterate.X[np.ix_(keep, keep)], carry_multipliers(iterate.w, old, new, signs))


def with_margin(shared: SdpProblem, problem: SdpProblem, iterate: SdpIterate, margin: float) -> SdpIterate | None:
    """The iterate of a problem without a margin for one that has it; the margin at the example is its first slack."""
    before = evaluate_unrounded(shared, iterate.y)
    if before is None or not before > iterate.y[1]:
        return None
    slack, y, w = before - iterate.y[1], iterate.y.copy(), iterate.w.copy()
    w[0] = max(margin, 1e-9)
    y[0] = slack / w[0]
    value = evaluate_unrounded(problem, y)
    return None if value is None else SdpIterate(with_t(y, value - slack), iterate.X, w)


def climb(problem: SdpProblem, iterate: SdpIterate, steps: int) -> SdpIterate:
    """Some iterations without the judge: a start that several margins share."""
    for _ in range(steps):
        check_time()
        here = linearise(problem, iterate.y)
        moved = None if here is None else advance(problem, iterate, here)
        if moved is None:
            return iterate
        iterate = moved[0]
    return iterate


def ignore_progress(branch: SignBranch, problem: SdpProblem, y: Array) -> None:
    """Nobody watches."""


def maximise(
    root: Root,
    branch: SignBranch,
    rival: int,
    iterate: SdpIterate,
    target: BranchTarget,
    floor: float,
    observe: Observe = ignore_progress,
) -> SolvedBranch:
    """Iterate until the branch is closed, or nothing more is to be had; `floor` is known already."""
    problem = SdpProblem.of(root, branch, rival)
    quiet, done, ending, here = 0, 0, BranchStatus.OPEN, None
    while done < MOST:
        check_time()
        verdict = examine(problem, iterate.y, target.reach)
        observe(branch, problem, iterate.y)
        floor = max(floor, verdict.floor)
        if floor >= target.enough or verdict.empty:
            return _result(root, branch, problem, iterate, floor, BranchStatus.CLOSED, here)
        narrowed = problem.placed(verdict.low, verdict.high, branch)
        if (narrowed.signs != branch.signs).any():
            smaller = SdpProblem.of(root, narrowed, rival)
            moved = inherit_iterate(problem, smaller, iterate, narrowed.signs)
            if moved is None:
                ending = BranchStatus.FAILED
                break
            branch, problem, iterate, quiet, here = narrowed, smaller, moved, 0, None
            continue
        old = linearise(problem, iterate.y)
        if old is None:
            ending = BranchStatus.FAILED
            break
        branch, within = narrowed, problem.within(narrowed)
        here, problem = update_border(problem, within, iterate.y, old), within
        iterate = iterate._replace(y=with_t(iterate.y, here.value - here.slack))
        advanced = advance(problem, iterate, here)
        if advanced is None:
            ending = BranchStatus.FAILED
            break
        iterate, gap, lengths = advanced
        quiet, done = quiet + 1, done + 1
        if max(lengths) < 1e-4:
            ending = BranchStatus.FAILED
            break
        patience = target.patience * (target.enough - floor) if problem.n and quiet >= 2 else 0.0
        precise = target.precision * max(abs(here.value), 0.01 * target.enough)
        if gap < max(patience, precise) or target.expired():
            break
    return _result(root, branch, problem, iterate, floor, ending, here)


def _result(
    root: Root,
    branch: SignBranch,
    problem: SdpProblem,
    iterate: SdpIterate,
    floor: float,
    ending: BranchStatus,
    at: LinearisedSdp | None,
) -> SolvedBranch:
    n, p, looseness = problem.n, problem.p, np.full(len(root.low), -np.inf)
    if at is None:
        return SolvedBranch(branch, problem, iterate, floor, ending, np.zeros(p), looseness)
    m, h, z = problem.multipliers(iterate.y), at.minimiser[p : p + n], problem.rows[1 : 1 + n] @ at.minimiser
    low, high = problem.ends[:2]
    looseness[problem.free] = m.lam * h * (h - z) + m.rho * h * (z - high) + m.tau * (z - h) * (z - low)
    return SolvedBranch(branch, problem, iterate, floor, ending, at.minimiser[:p], looseness)
