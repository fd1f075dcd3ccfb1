"""The rounds of convex programs: pricing over the start's patterns, then linearising again until Newton can finish."""

from dataclasses import replace

import torch
from torch import Tensor

from brittle.common.progress import Progress, Watch
from brittle.margin.active_set_newton import KINK, OFF, ON, Guess, finish
from brittle.margin.columns import Columns, first_choice, realised
from brittle.margin.examples import Examples
from brittle.margin.interior_point import Iterate
from brittle.margin.pricing import reduced_costs
from brittle.margin.restricted_master import RestrictedMaster

FIRST = 10  # columns of each sign to begin with
ENTER = 10  # columns that enter in one round of pricing
PRICING_ROUNDS = 8
ROUNDS = 80
LOOSEST, LOOSE = 1e-2, 1e-3  # gap at which patterns are corrected, at first and before Newton
CORRECTIONS = 10  # times that Newton goes on after patterns were corrected
SHARE = 1.0  # wrong patterns per neuron up to which Newton may start
TIGHTEST = 1e-10  # an interior point gives no more digits
SAFE = 0.3  # the least margin with which a program may be left
FLIP = 0.3  # a pattern is wrong where |z| exceeds this many tolerances of the largest |z|


class ColumnGeneration:
    """One run from the patterns of a network to neurons U (G, d) and signs (G,)."""

    def __init__(self, examples: Examples, watch: Watch) -> None:
        self.K, self.y, self.X, self.unit = examples.K, examples.y, examples.X, examples.unit
        self.watch = watch
        self.count = self.steps = 0
        self.last: tuple[RestrictedMaster, Iterate] | None = None

    def run(self, W: Tensor, v: Tensor, pricing: float) -> tuple[Tensor, Tensor]:
        columns = self._priced(self._pool(W, v), pricing)
        return self._linearised(columns)

    def _pool(self, W: Tensor, v: Tensor) -> Columns:
        """The start's patterns, the heaviest neurons first."""
        order = (v.abs() * W.norm(dim=1)).argsort(descending=True)
        order = order[v[order] != 0]
        return realised(self.X @ W[order].T, v[order].sign(), self.y).distinct()

    def _master(self, columns: Columns, tolerance: float) -> tuple[RestrictedMaster, Iterate]:
        if self.last is not None and self.last[0].columns is columns and self.last[1].gap <= tolerance:
            return self.last
        master = RestrictedMaster(self.K, self.y, columns)
        iterate = master.solve(tolerance)
        self.last = master, iterate
        self.count += 1
        self.steps += iterate.steps
        return self.last

    def _priced(self, pool: Columns, pricing: float) -> Columns:
        """Columns that no pattern of the pool improves by more than a share `pricing`."""
        chosen = first_choice(pool, self.y, FIRST)
        columns = pool.take(chosen)
        for done in range(PRICING_ROUNDS):
            self.watch(Progress(0.3 * done / PRICING_ROUNDS, f"pricing, {int(chosen.sum())} columns"))
            if bool(chosen.all()):
                break
            _, iterate = self._master(columns, LOOSEST)
            costs = reduced_costs(self.K, self.y, iterate.values[0], pool, -pricing)
            costs[chosen] = torch.inf
            entering = costs.argsort()[:ENTER]
            entering = entering[costs[entering] < -pricing]
            if not len(entering):
                break
            chosen[entering] = True
            columns = pool.take(chosen)
        return columns

    def _linearised(self, columns: Columns) -> tuple[Tensor, Tensor]:
        """Programs of rising accuracy, each with the patterns that the last one's neurons show, then Newton."""
        tolerance = LOOSEST
        for done in range(ROUNDS):
            self.watch(Progress(0.3 + 0.6 * done / ROUNDS, f"linearising, {len(columns)} columns"))
            guess = read(*self._master(columns, tolerance))
            wrong = self._mismatches(guess, FLIP * tolerance)
            neurons = self._neurons(guess)
            if tolerance > TIGHTEST and not self._classifies(guess, wrong):
                tolerance = max(0.1 * tolerance, TIGHTEST)
                continue
            few = int((wrong & guess.margin).sum()) <= SHARE * len(columns)
            guess = flipped(guess, wrong)
            if few and tolerance <= LOOSE:
                guess, state = self._finished(guess)
                if state == "solved":
                    return self._neurons(guess)
                if state == "failed" and tolerance <= TIGHTEST:
                    break
                tolerance = max(1e-2 * tolerance, TIGHTEST) if state == "failed" else LOOSE
            elif few:
                tolerance = max(0.1 * tolerance, LOOSE)
            columns = guess.columns.distinct()
        return neurons

    def _finished(self, guess: Guess) -> tuple[Guess, str]:
        """Newton's answer; as long as a few patterns disagree with it, corrected and answered again."""
        state = "failed"
        for _ in range(CORRECTIONS):
            solved = finish(self.K, self.y, guess)
            if solved is None:
                return guess, state
            wrong = self._mismatches(solved, 1e-9) & (solved.lam > 0)
            if not bool(wrong.any()):
                return solved, "solved"
            guess, state = flipped(solved, wrong), "corrected"
            if len(guess.columns.distinct()) < len(guess.columns):
                break
        return guess, state

    def _mismatches(self, guess: Guess, tolerance: float) -> Tensor:
        """Where a column's pattern on its own class differs from what its neuron does there."""
        k = guess.coefficients(self.y) @ self.K
        height = k / k.abs().amax(1, keepdim=True).clamp(min=1e-300)
        on = guess.columns.patterns > 0
        return ~guess.other(self.y) & ((on & (height < -tolerance)) | (~on & (height > tolerance)))

    def _classifies(self, guess: Guess, wrong: Tensor) -> bool:
        """Whether these neurons satisfy the program with corrected patterns up to scale, so that it has a solution."""
        z = guess.mu[:, None] * (guess.coefficients(self.y) @ self.K)
        patterns = flipped(guess, wrong).columns.patterns
        q = torch.where(guess.other(self.y), -z.relu(), patterns * z).sum(0)
        return bool((q > SAFE).all())

    def _neurons(self, guess: Guess) -> tuple[Tensor, Tensor]:
        U = guess.mu[:, None] * (guess.coefficients(self.y) @ self.X) / self.unit
        return U, guess.columns.signs


def flipped(guess: Guess, wrong: Tensor) -> Guess:
    """With the patterns changed where they are wrong."""
    patterns = torch.where(wrong, 1 - guess.columns.patterns, guess.columns.patterns)
    return replace(guess, columns=Columns(guess.columns.signs, patterns))


def read(master: RestrictedMaster, iterate: Iterate) -> Guess:
    """Which neurons live, which examples lie on the margin and which are kinks: each value against its multiplier."""
    lam, _, t, w, slack = iterate.values
    floor, _, low, high, mu = iterate.duals
    full = -master.coefficients(torch.zeros_like(lam), t)
    state = torch.full(full.shape, KINK)
    kind = torch.where(low > t, OFF, torch.where(high > w, ON, KINK))
    start = 0
    for side, part in zip(master.sides, master.parts(kind), strict=True):
        state[start : start + len(part), side.other] = part
        start += len(part)
    guess = Guess(master.columns, lam, mu, full, lam > floor, state)
    return guess.take(torch.nonzero(mu > slack)[:, 0])
