"""The finish: Newton's method on the equations that hold exactly at a KKT point, once it is known which they are.

Unknowns: λ on the margin, t at kinks of the other class, μ. Equations: q_i = 1 on the margin, (K c_g)_i = 0 at kinks,
c_gᵀ K c_g = 1. Wrong guesses show as wrong signs and are mended until none is left.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from brittle.margin.arrow import cholesky
from brittle.margin.columns import Columns

COARSE, FINE = 1e-7, 1e-14  # errors of the equations while the guess changes, and in the end
SIGN = 1e-12  # a violation below this is rounding
SINGULAR = 1e-11  # a pivot below this share of the largest one is zero
OFF, ON, KINK = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Guess:
    """λ (n,), μ (G,), t (G, n); which examples lie on the margin (n,), and each neuron's state (G, n) on the others.

    The state is OFF (t = 0), ON (t = λ) or KINK (t free); on the own class it is not used.
    """

    columns: Columns
    lam: Tensor
    mu: Tensor
    t: Tensor
    margin: Tensor
    state: Tensor

    def take(self, index: Tensor) -> "Guess":
        return replace(
            self, columns=self.columns.take(index), mu=self.mu[index], t=self.t[index], state=self.state[index]
        )

    def other(self, y: Tensor) -> Tensor:
        return self.columns.signs[:, None] != y

    def linear(self, y: Tensor) -> Tensor:
        """C (G, n): c_g = C_g λ away from kinks."""
        return torch.where(self.other(y), -(self.state == ON).to(self.lam.dtype), self.columns.patterns)

    def kinks(self, y: Tensor) -> Tensor:
        return self.other(y) & (self.state == KINK) & self.margin

    def coefficients(self, y: Tensor) -> Tensor:
        """c (G, n), so that u_g = μ_g Σ_i c_gi x̃_i."""
        return torch.where(self.kinks(y), -self.t, self.linear(y) * self.lam)


def finish(K: Tensor, y: Tensor, guess: Guess, rounds: int = 25) -> Guess | None:
    """The KKT point of the program with these columns near the guess, or None if Newton's method does not find it."""
    goal = COARSE
    for _ in range(rounds):
        solved = _newton(K, y, guess, goal)
        if solved is None:
            return None
        mended = _mend(K, y, solved, goal)
        if mended is None and goal == FINE:
            return solved
        goal = FINE if mended is None else COARSE
        guess = solved if mended is None else mended
        if not len(guess.mu):
            return None
    return None


def _newton(K: Tensor, y: Tensor, guess: Guess, goal: float, rounds: int = 8) -> Guess | None:
    """Steps until no equation is off by more than the goal, or rounding stops them close to it."""
    guess = replace(guess, lam=torch.where(guess.margin, guess.lam, 0.0))
    system, before = _System(K, y, guess), torch.inf
    for _ in range(rounds):
        error, step = system.step(guess)
        if error < goal or (error < 1e-12 and error > before / 2):
            return guess
        if not error < 1e6:
            return None
        dlam, dmu, dt = step()
        guess, before = replace(guess, lam=guess.lam + dlam, mu=guess.mu + dmu, t=guess.t + dt), error
    return guess if before < 1e-10 else None


class _System:
    """What stays fixed while the guess of the active equations does: the factors of K at each neuron's kinks."""

    def __init__(self, K: Tensor, y: Tensor, guess: Guess) -> None:
        self.K, self.y = K, y
        self.margin = torch.nonzero(guess.margin)[:, 0]
        self.C = guess.linear(y)
        self.kinks = [torch.nonzero(row)[:, 0] for row in guess.kinks(y)]
        self.factors = [_steady(K[k][:, k]) for k in self.kinks]
        place = torch.full((len(y),), -1, dtype=torch.long)
        place[self.margin] = torch.arange(len(self.margin))
        live = (self.C != 0) & guess.margin
        self.live = [torch.nonzero(row)[:, 0] for row in live]
        self.place = [place[rows] for rows in self.live]
        self.lifts = [
            torch.linalg.solve_triangular(L, K[k][:, rows] * C[rows], upper=False)
            for L, k, rows, C in zip(self.factors, self.kinks, self.live, self.C, strict=True)
        ]

    def step(self, guess: Guess):  # type: ignore[no-untyped-def]
        """The largest error, and a function that computes Newton's step."""
        c = guess.coefficients(self.y)
        k = c @ self.K
        margins = ((guess.mu[:, None] * self.C * k).sum(0) - 1)[self.margin]
        lengths = ((c * k).sum(1) - 1) / 2
        heights = [row[kinks] for row, kinks in zip(k, self.kinks, strict=True)]
        errors = [margins, lengths, *heights]
        worst = max(float(e.abs().max()) for e in errors if len(e))
        return worst, lambda: self._solve(guess, k, margins, lengths, heights)

    def _solve(
        self, guess: Guess, k: Tensor, margins: Tensor, lengths: Tensor, heights: list[Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        size, G = len(self.margin), len(guess.mu)
        C = self.C[:, self.margin]
        A = torch.zeros(size + G, size + G, dtype=self.K.dtype)
        right = torch.cat([-margins, -lengths])
        A[:size, :size] = self.K[self.margin][:, self.margin] * (C.T @ (guess.mu[:, None] * C))
        A[:size, size:] = (C * k[:, self.margin]).T
        A[size:, :size] = C * k[:, self.margin]
        for g, (L, lift, place) in enumerate(zip(self.factors, self.lifts, self.place, strict=True)):
            half = torch.linalg.solve_triangular(L, heights[g][:, None], upper=False)[:, 0]
            pull = lift.T @ half
            A[place[:, None], place] -= guess.mu[g] * (lift.T @ lift)
            A[size + g, place] -= pull
            right[place] += guess.mu[g] * pull
            right[size + g] += half @ half
        x = _solve_square(A, right)
        dlam = torch.zeros_like(guess.lam)
        dlam[self.margin] = x[:size]
        dt = torch.zeros_like(guess.t)
        for g, (L, kinks) in enumerate(zip(self.factors, self.kinks, strict=True)):
            rise = self.K[kinks] @ (self.C[g] * dlam) + heights[g]
            dt[g, kinks] = torch.cholesky_solve(rise[:, None], L)[:, 0]
        return dlam, x[size:], dt


def _solve_square(A: Tensor, right: Tensor) -> Tensor:
    """By LU, or the shortest solution where multipliers are not unique (more examples than dimensions, say)."""
    LU, pivots, info = torch.linalg.lu_factor_ex(A)
    pivot = LU.diagonal().abs()
    if int(info) == 0 and float(pivot.min()) > SINGULAR * float(pivot.max()):
        return torch.linalg.lu_solve(LU, pivots, right[:, None])[:, 0]
    return torch.linalg.lstsq(A, right[:, None], rcond=SINGULAR, driver="gelsd").solution[:, 0]


def _steady(K: Tensor) -> Tensor:
    """A Cholesky factor that does not amplify rounding where kinks depend on each other."""
    L, info = torch.linalg.cholesky_ex(K)
    pivot = L.diagonal().square()
    if int(info) == 0 and (not len(K) or float(pivot.min()) > SINGULAR * float(pivot.max())):
        return L
    return cholesky(K + 1e-10 * float(K.diagonal().max()) * torch.eye(len(K), dtype=K.dtype))


def _mend(K: Tensor, y: Tensor, guess: Guess, goal: float) -> Guess | None:
    """The guess with every wrong sign put right, or None if there is none."""
    sign = max(SIGN, goal)
    other, kink = guess.other(y), guess.kinks(y)
    k = guess.coefficients(y) @ K
    q = (guess.mu[:, None] * torch.where(other, -k.relu(), guess.columns.patterns * k)).sum(0)
    height = k / k.abs().amax(1, keepdim=True).clamp(min=1e-300)
    leave, enter = guess.margin & (guess.lam < -sign), ~guess.margin & (q < 1 - 10 * sign)
    below, above = kink & (guess.t < -sign), kink & (guess.t > guess.lam + sign)
    sunk = other & guess.margin & (guess.state == ON) & (height < -10 * sign)
    risen = other & guess.margin & (guess.state == OFF) & (height > 10 * sign)
    dead = guess.mu <= 0
    if not any(bool(wrong.any()) for wrong in (leave, enter, below, above, sunk, risen, dead)):
        return None
    state = guess.state.clone()
    state[below], state[above], state[sunk | risen] = OFF, ON, KINK
    t = torch.where(sunk, guess.lam, torch.where(risen, 0.0, guess.t))
    mended = replace(guess, margin=(guess.margin & ~leave) | enter, state=state, t=t)
    return mended.take(torch.nonzero(~dead)[:, 0])
