"""Would slopes that follow signs help `Exact`? The root's bound with constant slopes of convex neurons, or affine ones.

python -m benchmarks.affine_slopes [--only WORD] [--steps N]; an experiment on what `Exact` does not do, rounding aside.

At a flip let s = ±1 be the signs of the concave neurons' inputs. Then cφ(z) = c(1+s)z/2 where c < 0, and cφ(z) ≥ gz for
any 0 ≤ g ≤ c where c > 0, also for g that depends on s: g_j = c_j(½ + T_j0 + Σ_l T_jl s_l) with |T_j0| + Σ_l |T_jl| ≤
½. For given s the minimum of ½‖δ‖² + μf over δ is l₀ + l·s - ½‖p + Bs‖², all linear in μ and μT; with
curvatures y, diag(y) ≻ BᵀB, it is at least F = l₀ - ½‖p‖² - ½Σy - ½e·(diag(y) - BᵀB)⁻¹e, e = l - Bᵀp, for every s at
once. T_jl = 0 for l > 0 is the bound of docs/certificates.md, with y = μ²c²/4κ. Here μ, y and T rise by Adam's steps.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from benchmarks.certificates import random
from brittle.attacks import MinimumNorm
from brittle.certificates import Exact, Example, RadiusInterval
from brittle.certificates.dual import first_iterate, refine, solve_closed_form
from brittle.certificates.margins import LocalModel, TwoLayerMargins
from brittle.certificates.saddle import SolvedSaddle
from brittle.common.threads import one_thread
from brittle.data import Data
from brittle.networks import Network

GAP, SECONDS = 1e-4, 60.0  # of the exact radius beside it
RATES = (0.01, 0.003, 0.02)  # of log μ, T and log y
BARRIER, LEVELS, FALL = 0.02, 6, 0.3  # ν log det at first, as a share of ½r²/d, and how it falls
EXAMPLES = 5
Variables = tuple[Tensor, Tensor, Tensor]  # log μ, T (convex neurons, 1 + concave ones), log y


@dataclass(frozen=True)
class Bound:
    """F of one model; `affine` or with one slope for each neuron."""

    model: LocalModel
    affine: bool

    def __call__(self, log_mu: Tensor, T: Tensor, log_y: Tensor) -> tuple[Tensor, Tensor] | None:
        """F and log det(I - B diag(1/y)Bᵀ), or nothing where diag(y) ≻ BᵀB fails."""
        P = self.model.c >= 0
        W, a, c, q = map(torch.from_numpy, (self.model.W, self.model.a, self.model.c, self.model.q))
        mu, y = log_mu.exp(), log_y.exp()
        slope, half = mu * c[P] * (0.5 + T[:, 0]), 0.5 * mu * c[~P]
        turns = mu * c[P][:, None] * T[:, 1:]
        p, B = mu * q + slope @ W[P] + half @ W[~P], W[P].T @ turns + W[~P].T * half
        e = a[P] @ turns + half * a[~P] - B.T @ p
        L, failed = torch.linalg.cholesky_ex(torch.eye(len(q), dtype=torch.float64) - (B / y) @ B.T)
        if failed:
            return None
        w = (B / y) @ e
        form = (e * e / y).sum() + w @ torch.cholesky_solve(w[:, None], L)[:, 0]
        height = mu * self.model.beta + slope @ a[P] + half @ a[~P]
        return height - 0.5 * (p @ p + y.sum() + form), 2 * L.diagonal().log().sum()

    def start(self, solved: SolvedSaddle) -> Variables:
        """Where `Dual(refined=True)` ended, a little inside."""
        c, mu, P = self.model.c, solved.iterate.multiplier, self.model.c >= 0
        T = torch.zeros(int(P.sum()), 1 + int((~P).sum()), dtype=torch.float64)
        T[:, 0] = torch.from_numpy(np.clip(solved.iterate.slopes[P] / (mu * np.maximum(c[P], 1e-300)), 0, 1) - 0.5)
        y = 1.02 * (mu * c[~P]) ** 2 / (4 * solved.saddle.curvatures[~P])
        return torch.tensor(np.log(mu)), T, torch.from_numpy(np.log(y))

    def best(self, solved: SolvedSaddle, steps: int) -> float:
        """The largest F on the way."""
        now = self.start(solved)
        first = second = tuple(torch.zeros_like(part) for part in now)
        barrier, best = BARRIER * 0.5 * self.model.ball**2 / len(self.model.q), solved.value
        for step in range(steps):
            here = tuple(part.requires_grad_(True) for part in now)
            value = self(*here)
            assert value is not None
            best = max(best, float(value[0].detach()))
            level = barrier * FALL ** (step * LEVELS // steps)
            slopes = torch.autograd.grad(value[0] + level * value[1], here)
            first = tuple(0.9 * m + 0.1 * g for m, g in zip(first, slopes, strict=True))
            second = tuple(0.99 * v + 0.01 * g * g for v, g in zip(second, slopes, strict=True))
            ways = [
                m / (1 - 0.9 ** (step + 1)) / ((v / (1 - 0.99 ** (step + 1))).sqrt() + 1e-12)
                for m, v in zip(first, second, strict=True)
            ]
            now = self._moved(now, ways, 1 - step / steps)
        return best

    def _moved(self, now: Variables, ways: list[Tensor], size: float) -> Variables:
        """One step, shorter where it would leave the feasible set."""
        while size > 1e-6:
            log_mu, T, log_y = (
                (part + size * rate * way).detach() for part, rate, way in zip(now, RATES, ways, strict=True)
            )
            if not self.affine:
                T[:, 1:] = 0
            there = log_mu, into_l1_balls(T, 0.5), log_y
            if self(*there) is not None:
                return there
            size *= 0.3
        return now[0].detach(), now[1].detach(), now[2].detach()


def into_l1_balls(rows: Tensor, radius: float) -> Tensor:
    """The nearest rows with Σ|entries| ≤ radius: by one sort."""
    sizes = rows.abs()
    ordered = sizes.sort(1, descending=True)[0]
    excess = (ordered.cumsum(1) - radius) / torch.arange(1, rows.shape[1] + 1)
    count = (ordered > excess).sum(1, keepdim=True)
    less = excess.gather(1, count - 1).clamp(min=0)
    return rows.sign() * (sizes - less).clamp(min=0)


def measure(name: str, network: Network, data: Data, steps: int) -> None:
    found = Exact(GAP, SECONDS).bound(network, data, attack=MinimumNorm())
    margins, heights = TwoLayerMargins.of(network, "exact"), network.margins(data.X, data.y).tolist()
    for row, upper in enumerate(found.upper.tolist()):
        example = Example(network, row, data.X[row], data.y[row], heights[row])
        enclosure = RadiusInterval(0.0, upper, found.flips[row], upper)
        margin = margins.over(next(margins.rivals(example.y)), example, upper)
        begun = time.process_time()
        start = solve_closed_form(margin.model, first_iterate(margin.model, margin.start(enclosure)))
        root = refine(start, margin.ball(enclosure) * (1 - GAP))
        refined = time.process_time() - begun
        begun = time.process_time()
        values = [root.value] + [Bound(root.model, affine).best(root, steps) for affine in (False, True)]
        ratios = " ".join(f"{(2 * max(value, 0)) ** 0.5 / margin.model.ball:.4f}" for value in values)
        neurons = f"{len(root.model.c)} neurons left, {(root.model.c < 0).sum()} of them concave"
        exact, seconds = float(found.lower[row]) / upper, time.process_time() - begun
        print(f"{name} {row}: {neurons}; exact {exact:.4f}; refined, constant, affine: {ratios}; ", end="")
        print(f"{refined:.2f} and {seconds:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--steps", type=int, default=1500)
    options = parser.parse_args()
    for dim, width in ((5, 20), (10, 40), (10, 500)):
        if options.only in f"({dim}, {width})":
            measure(f"({dim}, {width})", *random(dim, width)(EXAMPLES), options.steps)


if __name__ == "__main__":
    with one_thread():
        main()
