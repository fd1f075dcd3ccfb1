"""Lemma B.9 with a bound that is proven for all W of the ball and all δ at once.

For ‖δ‖ ≤ R take a point δ0 of an ε-net within ε of it. Put b_s and b'_s for the signs of w_s at x and at x + δ, and
b_s(0), b'_s(0) for those of w_s(0) at x and at x + δ0. Then √m(∇f(x; W) - ∇f(x+δ; W)) = Σ a_s w_s (b_s - b'_s) has
three parts.

- Σ a_s w_s(0)(b_s(0) - b'_s(0)): at the start, at a point of the net. For one unit vector r Bernstein's inequality with
  B.6 bounds it by 2√t((4R√ln d)^¼ + √(t/m)), w.p. 1 - e^-t. A ½-net of 5^d vectors r and the net of (1 + 2R/ε)^d points
  δ0 give its norm, up to a factor 2, with t = ln(4/γ) + d ln 5 + d ln(1 + 2R/ε).
- Σ a_s (w_s - w_s(0))(b_s - b'_s): at most C0√m.
- Σ ±a_s w_s(0) over the neurons whose sign W or δ - δ0 changes: those of S_v at x, k1 at most by B.4, and those near x
  + δ0, of which W changes one with probability V (B.4) and δ - δ0 with the probability of B.6-net: k2 at most for all
  points of the net by Chernoff's inequality (B.2), as e^-p (ep/k)^k ≤ e^-k for k ≥ e²p. W and δ choose which, so all
  sets of k rows of W(0) are allowed: such a matrix has norm ≤ √d + √k + √(2(k ln(em/k) + ln(8/γ))) for all sets at
  once: there are at most (em/k)^k.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from brittle.theorems.base import Solution
from brittle.theorems.comparison import Promise, promise_at_most
from brittle.theorems.instance import Instance
from brittle.theorems.wang2022.change import ANYWHERE, GradientChange, at_the_start, bites_from, held_anyway
from brittle.theorems.wang2022.neurons import RareCrossingNearby


def chosen_rows(count: float, dim: float, width: float, gamma: float) -> float:
    """The longest (1/√m) Σ ±w_s(0) over `count` rows that may be chosen, w.p. ≥ 1 - γ/8."""
    k = min(max(count, 1.0), width)
    ways = k * math.log(math.e * width / k)
    longest = math.sqrt(dim) + math.sqrt(k) + math.sqrt(2 * (ways + math.log(8 / gamma)))
    return math.sqrt(k / width) * longest


def uniform_bound(dim: float, width: float, radius: float, size: float, gamma: float) -> float:
    """2·2√t((4R√ln d)^¼ + √(t/m)) + C0 and what the rows that W and δ choose can add."""
    reach, epsilon = radius / math.sqrt(width), 1 / (math.sqrt(width) * math.sqrt(dim))  # any ε is allowed
    net = dim * math.log(1 + 2 * size / epsilon)
    t = math.log(4 / gamma) + dim * math.log(5) + net
    near = RareCrossingNearby(size=size, epsilon=epsilon, reach=reach).allowed(dim) + reach
    at_x = reach * width + math.sqrt(width * math.log(4 / gamma) / 2)
    nearby = math.e**2 * near * width + math.log(4 / gamma) + net
    flips = chosen_rows(at_x, dim, width, gamma) + chosen_rows(nearby, dim, width, gamma)
    return 2 * at_the_start(size, dim, width, t) + radius + flips


@dataclass(frozen=True)
class UniformChange(GradientChange, id="wang2022/B.9-repaired"):
    """‖∇f(x) - ∇f(x+δ)‖ ≤ 4√t((4R√ln d)^¼ + √(t/m)) + C0 + chosen(k1) + chosen(k2) for all ‖δ‖ ≤ R = C1/√d and all W in
    the ball, w.p. ≥ 1-γ: t = ln(4/γ) + d ln(5 + 10R/ε), chosen(k) = √(k/m)(√d + √k + √(2(k ln(em/k) + ln(8/γ)))),
    k1 = Vm + √(m ln(4/γ)/2), k2 = e²m(V + p') + ln(4/γ) + d ln(1+2R/ε), p' that of B.6-net, ε = 1/√(md)."""

    claim: ClassVar = "within C1/√d the gradient changes by at most an explicit o(√d), for all W and all δ at once"
    flaw: ClassVar = ""
    repaired: ClassVar = ""
    note: ClassVar = (
        "ours: a net over δ and r for the start, all choices of rows for what W and δ change; no S_v' with a δ "
        "for every neuron, and no condition C0 ≥ .55. Like B.9 it says little at desk scale: t is of order d ln d"
    )

    def bound(self, instance: Instance) -> list[Promise]:
        ball = self.ball(instance)
        most = uniform_bound(ball.dim, ball.width, self.radius, self.size(ball.dim), self.gamma)
        return [promise_at_most(ANYWHERE, most, trivial=held_anyway(ball))]

    def solve_for(self, unknown: str) -> Solution:
        if unknown != "dim":
            return super().solve_for(unknown)
        first = bites_from(lambda d, m: uniform_bound(d, m, self.radius, self.size_constant / math.sqrt(d), self.gamma))
        given = {"radius": self.radius, "size_constant": self.size_constant, "gamma": self.gamma}
        why = "from here on the bound at m = d^2.4 is below √d/4, what B.7 gives for the gradient itself"
        return Solution(self.id, unknown, first, math.inf, given, why)
