"""What multipliers prove of one margin f = c·h_K + c_0 at x + δ, ‖δ‖ < R.

Every flip of a branch has f < 0, h ≥ 0, h ≥ z, h(h-z) = 0 and low ≤ z ≤ high. So with α, β, ρ, τ, μ ≥ 0, any λ and ν,

    L := ½‖δ‖² + μf + Σ_FREE [λh(h-z) - αh - β(h-z) + ρh(z-high) + τ(z-h)(z-low)] + Σ_others τ(z-low)(z-high)
         + Σ_all ν(z - (high if ν > 0 else low)) + p·(x+δ) - p₊·top + p₋·bottom

is at most ½‖δ‖² there (p only where flips outside a box do not count). A neuron is FREE: h is a variable of its own;
ON: low ≥ 0, h = z; OFF: high ≤ 0, h = 0; or, in the last layer and with c ≥ 0, a LINE: μch gives way to βμcz, which is
no more if 0 ≤ β ≤ 1. L is then a quadratic ½v·Qv + q·v + constant in v = (δ, h of the FREE). If Q ≻ 0, L is at least
F := L(ṽ) - ½g·Q⁻¹g, g = Qṽ + q, for any ṽ. F ≥ ½R² proves that the branch has no flip. Otherwise its flips lie in
‖v - ṽ‖_Q ≤ √(R² - 2F) + √(g·Q⁻¹g), and a form a·v differs there from a·ṽ by at most that times √(a·Q⁻¹a).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proofcheck.balls import UP, Array, Ball, Definite, Refused, ball, definite, joined, lengths
from proofcheck.network import Intervals, Network

FREE, ON, OFF, LINE = range(4)


class Step(NamedTuple):
    """The kinds and multipliers of all hidden neurons, layer after layer, the walls p of the box, and μ."""

    kinds: NDArray[np.int8]
    alpha: Array
    beta: Array
    lam: Array
    rho: Array
    tau: Array
    nu: Array
    walls: Array
    mu: float


@dataclass(frozen=True, eq=False)
class Margin:
    """f at the example x, in the ball of the radius and in the box (bottom, top)."""

    network: Network
    x: Array
    z: Ball  # the network's offsets there
    radius: float
    c: Ball
    c0: Ball
    box: Array  # empty: flips anywhere count
    proved: dict[bytes, tuple[Definite, Ball]]  # Q of networks without settled neurons: few, and large

    def never(self, known: Intervals) -> bool:
        """Whether f ≥ 0 in the whole branch: what is left of its terms has no negative weight."""
        return bool(self.c0.mid >= 0 and (known.high[self.network.parts[-1]][self.c.mid < 0] <= 0).all())

    def check(self, step: Step, known: Intervals) -> None:
        """Refuse multipliers of the wrong sign, and signs, ends of intervals and lines that nothing proves."""
        last, kinds, (low, high) = self.network.parts[-1], step.kinds, map(np.isfinite, known)
        on, off, line, other = kinds == ON, kinds == OFF, kinds[last] == LINE, (kinds != FREE) & (step.tau != 0)
        good = all(np.isfinite(each).all() for each in step) and (len(self.box) or not step.walls.any())
        if not (good and all(np.all(each >= 0) for each in (*step[1:3], *step[4:6], step.mu))):
            raise Refused("a multiplier has the wrong sign, or is no number")
        if not ((kinds >= FREE).all() and (known.low[on] >= 0).all() and (known.high[off] <= 0).all()):
            raise Refused("a neuron is said to be on or off, and nothing proves it")
        if not (low[(step.tau != 0) | (step.nu < 0)].all() and high[(step.rho != 0) | (step.nu > 0) | other].all()):
            raise Refused("an interval is used that nothing proves")
        lines = (kinds[: last.start] < LINE).all() and (kinds <= LINE).all() and (step.beta[last][line] <= 1).all()
        if not (lines and (self.c.mid[line] >= 0).all()):
            raise Refused("a line lies above its neuron")

    def coefficients(self, step: Step, known: Intervals) -> tuple[Ball, Ball, Ball]:
        """L = ½‖δ‖² + Σ τz² + b_z·z + Σ_FREE [λh² + (ρ-λ-τ)hz + b_h·h] + constant: b_z, b_h and the constant."""
        free, last = step.kinds == FREE, self.network.parts[-1]
        low, high = (np.where(np.isfinite(each), each, 0) for each in known)
        share = np.where(free | (step.kinds == ON), 1.0, np.where(step.kinds == LINE, step.beta, 0.0))
        pull = joined([ball(np.zeros(last.start)), self.c * step.mu * share[last]])  # of the margin, on h or on z
        tau, tau_low = ball(step.tau), ball(step.tau) * low
        b_h = pull - step.alpha - step.beta - ball(step.rho) * high + tau_low
        b_z = (ball(step.beta) - tau_low) * free + (pull - tau_low - tau * high) * ~free + step.nu
        flat = tau_low * high * ~free - ball(step.nu) * np.where(step.nu > 0, high, low)
        return b_z, b_h, self.c0 * step.mu + flat @ np.ones(len(free))

    def chain(self, step: Step, known: Intervals) -> tuple[Definite, Ball, Ball, Ball]:
        """Where all are FREE, without τ and ρ: L is smallest in δ at -W_1ᵀ(b_z - λh) - p, which leaves h alone."""
        (b_z, b_h, constant), net, key = self.coefficients(step, known), self.network, step.lam.tobytes()
        if key not in self.proved:
            self.proved.clear()
            self.proved[key] = _chained(net, step.lam)
        back = [b_z[part] @ W for W, part in zip(net.weights, net.parts, strict=False)]
        if len(self.box):
            wall = np.where(step.walls > 0, self.box[1], self.box[0])
            back[0], constant = back[0] + step.walls, constant + ball(step.walls) @ (ball(self.x) - wall)
        bent = ball(step.lam[net.parts[0]]) * (ball(net.weights[0]) @ back[0])
        q = b_h - self.z * step.lam + joined([bent, ball(np.zeros(len(step.lam) - len(bent.mid)))])
        q = q + joined([*back[1:], ball(np.zeros(len(net.biases[-2])))])
        return *self.proved[key], q, constant + b_z @ self.z - back[0] @ back[0] * 0.5

    def dense(self, step: Step, known: Intervals) -> tuple[tuple[Definite, Ball, Ball, Ball], Ball, Ball]:
        """Any step: L with the rows A and the offsets of all z = Av + offsets."""
        b_z, b_h, constant = self.coefficients(step, known)
        free, (A, z), E = step.kinds == FREE, self._forms(step), self.network.frame.E
        p, n, (lam, rho, tau) = len(E.mid), int(free.sum()), map(ball, step[3:6])
        mixed, corner = (Ball(*np.zeros((2, p + n, p + n))) for _ in range(2))
        product, bent = A[free] * (rho - lam - tau)[free][:, None], step.tau != 0
        mixed.mid[p:], mixed.rad[p:] = product.mid, product.rad
        corner.mid[:p, :p], corner.rad[:p, :p] = E.mid, E.rad
        Q = (A[bent].T * (2 * step.tau[bent])) @ A[bent] + mixed + mixed.T + corner
        Q = Q + np.diag(np.append(np.zeros(p), 2 * step.lam[free]))
        q = (b_z + tau * z * 2) @ A + joined([ball(np.zeros(p)), (b_h + (rho - lam - tau) * z)[free]])
        return (definite(Q), Q, q, constant + (b_z + tau * z) @ z), A, z

    def _forms(self, step: Step) -> tuple[Ball, Ball]:
        """With columns for ε, for the FREE neurons in their order, and for 1."""
        net, free, p = self.network, step.kinds == FREE, len(self.network.frame.E.mid)
        place, wide, rows = p, p + int(free.sum()) + 1, []
        H, one = ball(np.eye(p, wide)), ball(np.eye(1, wide, wide - 1))
        for k, part in enumerate(net.parts):
            W = ball(net.weights[k]) if k else net.frame.Z
            rows.append(joined([W.T, self.z[part][None]]).T @ joined([H, one]))
            H, own = rows[-1] * (step.kinds[part] == ON)[:, None], np.flatnonzero(free[part])
            H.mid[own, place + np.arange(len(own))] = 1
            place += len(own)
        return joined(rows)[:, :-1], joined(rows)[:, -1]

    def after(self, step: Step, known: Intervals, narrow: bool) -> Intervals | None:
        """What is known of the flips of a branch once a step is made; None: there are none."""
        self.check(step, known)
        if not narrow and (step.kinds == FREE).all() and not (step.tau.any() or step.rho.any()):
            (proof, *quadratic), A, offsets = self.chain(step, known), self.z, self.z
        else:
            (proof, *quadratic), A, offsets = self.dense(step, known)
        floor, v, rest = proof.floor(*quadratic)
        if floor >= self.enough:
            return None
        if not (narrow and floor > -np.inf):
            raise Refused("a step proves less than the radius")
        reach = float(np.sqrt((ball(self.enough) - floor).high() * 2) * UP + rest) * UP
        low, high = _shadows(proof, A, A @ v + offsets, reach, v, step.kinds == FREE, known)
        return None if (low > high).any() else Intervals(low, high)

    @property
    def enough(self) -> float:
        return float((ball(self.radius) * self.radius * 0.5).high())


def _chained(net: Network, lam: Array) -> tuple[Definite, Ball]:
    """2Λ - Λ_1W_1W_1ᵀΛ_1 with -Λ_kW_k beside it."""
    Q, first = Ball(*np.zeros((2, len(lam), len(lam)))), net.parts[0]
    B = ball(lam[first][:, None]) * net.weights[0]
    square = -(B @ B.T)
    Q.mid[first, first], Q.rad[first, first] = square.mid, square.rad
    for k in range(1, len(net.parts)):
        here, before, block = net.parts[k], net.parts[k - 1], -(ball(lam[net.parts[k]][:, None]) * net.weights[k])
        Q.mid[here, before], Q.rad[here, before] = block.mid, block.rad
        Q.mid[before, here], Q.rad[before, here] = block.mid.T, block.rad.T
    Q = Q + np.diag(2 * lam)
    return definite(Q), Q


def _shadows(
    proof: Definite, A: Ball, z: Ball, reach: float, v: Array, free: NDArray[np.bool_], known: Intervals
) -> tuple[Array, Array]:
    """What ‖v - ṽ‖_Q ≤ reach leaves of all z = Av + offsets, which are given at ṽ. At a flip a FREE neuron is on one of
    two rays, on which m = h - z or m = h is 0: z is z + θm there, for any θ. (NaN says nothing: fmax and fmin skip it.)
    """
    n, size = int(free.sum()), len(v)
    (W, r), (H, r_H) = proof.spread(A.T), proof.spread(ball(np.eye(size, n, n - size)))
    around = z.widened((lengths(W) + r) * reach)
    low, high = np.fmax(known.low, around.low()), np.fmin(known.high, around.high())
    W_f, r_f, z_f, h = ball(W[:, free]), r[free], z[free], ball(v[size - n :])

    def ray(m: Ball, M: Ball, r_M: Array, left: Array, right: Array) -> tuple[Array, Array]:
        """The ends of z on a ray, in [left, right]; M are the directions of m as those of z are W."""
        a, b, c = (M.mid**2).sum(0), (M.mid * W_f.mid).sum(0), (W_f.mid**2).sum(0)
        root = np.sqrt(np.maximum(a * c - b * b, 0) / (a * reach**2 - m.mid**2)) * m.mid  # for the best θ
        thetas = np.nan_to_num((-b + root) / a), np.nan_to_num((-b - root) / a)
        far = [lengths(W_f + M * theta) + (r_f + abs(theta) * r_M) * UP for theta in thetas]
        ends = [(z_f + m * theta).widened(each * reach) for theta, each in zip(thetas, far, strict=True)]
        gone = abs(m.mid) - m.rad > (lengths(M) + r_M) * reach * UP * UP
        low, high = np.fmax(left, ends[0].low()), np.fmin(right, ends[1].high())
        return np.where(gone, np.inf, low), np.where(gone, -np.inf, high)

    on_low, on_high = ray(h - z_f, ball(H) - W_f, r_H + r_f, np.fmax(low[free], 0), high[free])
    off_low, off_high = ray(h, ball(H), r_H, low[free], np.fmin(high[free], 0))
    low[free], high[free] = np.where(off_low > off_high, on_low, off_low), np.where(on_low > on_high, off_high, on_high)
    return low, high
