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

from proofcheck.balls import UP, Array, Ball, Definite, ball, definite, joined, lengths
from proofcheck.network import Intervals, Network, Refused

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


class Quadratic(NamedTuple):
    """½v·Qv + q·v + constant, with what proves that Q ≻ 0."""

    Q: Ball
    q: Ball
    constant: Ball
    proof: Definite

    def floor(self) -> tuple[float, Array, float]:
        """A floor F, the point ṽ, and √(g·Q⁻¹g)."""
        v = -self.proof.solve(self.q.mid)
        v = v - self.proof.solve((self.Q @ v + self.q).mid)
        g = self.Q @ v + self.q
        rest = self.proof.norm(g)
        return float((self.constant + v @ (g + self.q) * 0.5 - ball(rest) * rest * 0.5).low), v, rest


@dataclass(frozen=True, eq=False)
class Margin:
    """f at the example x, in the ball of the radius and in the box (bottom, top)."""

    network: Network
    x: Array
    z: Ball  # the network's offsets there
    radius: float
    c: Ball
    c0: Ball
    box: tuple[float, float] | None
    proved: dict[bytes, tuple[Ball, Definite]]  # Q of networks without settled neurons: few, and large

    def never(self, known: Intervals) -> bool:
        """Whether f ≥ 0 in the whole branch: what is left of its terms has no negative weight."""
        return bool(self.c0.mid >= 0 and (known.high[self.network.parts[-1]][self.c.mid < 0] <= 0).all())

    def check(self, step: Step, known: Intervals) -> None:
        """Refuse multipliers of the wrong sign, and signs and ends of intervals that nothing proves."""
        last, kinds, low, high = self.network.parts[-1], step.kinds, np.isfinite(known.low), np.isfinite(known.high)
        line, other = kinds[last] == LINE, (kinds != FREE) & (step.tau != 0)
        good = all(np.isfinite(each).all() for each in step) and (self.box is not None or not step.walls.any())
        if not (good and all(np.all(each >= 0) for each in (*step[1:3], *step[4:6], step.mu))):
            raise Refused("a multiplier has the wrong sign, or is no number")
        if not (
            (kinds >= FREE).all() and (known.low[kinds == ON] >= 0).all() and (known.high[kinds == OFF] <= 0).all()
        ):
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

    def chain(self, step: Step, known: Intervals) -> Quadratic:
        """Where all are FREE, without τ and ρ: L is smallest in δ at -W_1ᵀ(b_z - λh) - p, which leaves h alone."""
        (b_z, b_h, constant), net, key = self.coefficients(step, known), self.network, step.lam.tobytes()
        if key not in self.proved:
            self.proved.clear()
            self.proved[key] = _chained(net, step.lam)
        back = [b_z[part] @ W for W, part in zip(net.weights, net.parts, strict=False)]
        if self.box is not None:
            wall = np.where(step.walls > 0, self.box[1], self.box[0])
            back[0], constant = back[0] + step.walls, constant + ball(step.walls) @ (ball(self.x) - wall)
        bent = ball(step.lam[net.parts[0]]) * (ball(net.weights[0]) @ back[0])
        q = b_h - self.z * step.lam + joined([bent, ball(np.zeros(len(step.lam) - len(bent.mid)))])
        q = q + joined([*back[1:], ball(np.zeros(len(net.biases[-2])))])
        return Quadratic(self.proved[key][0], q, constant + b_z @ self.z - back[0] @ back[0] * 0.5, self.proved[key][1])

    def dense(self, step: Step, known: Intervals) -> tuple[Quadratic, Ball, Ball]:
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
        return Quadratic(Q, q, constant + (b_z + tau * z) @ z, _proved(Q)), A, z

    def _forms(self, step: Step) -> tuple[Ball, Ball]:
        """With columns for ε, for the FREE neurons in their order, and for 1."""
        net, free, p = self.network, step.kinds == FREE, len(self.network.frame.E.mid)
        wide, place, rows, H = p + int(free.sum()) + 1, p, [], ball(np.zeros((0, 0)))
        for k, part in enumerate(net.parts):
            if k == 0:
                Z = Ball(*np.zeros((2, part.stop, wide)))
                Z.mid[:, :p], Z.rad[:, :p] = net.frame.Z.mid, net.frame.Z.rad
                Z.mid[:, -1], Z.rad[:, -1] = self.z.mid[part], self.z.rad[part]
            else:
                Z = np.column_stack([net.weights[k], net.biases[k]]) @ joined([H, ball(np.eye(1, wide, wide - 1))])
            rows.append(Z)
            H, own = Z * (step.kinds[part] == ON)[:, None], np.flatnonzero(free[part])
            H.mid[own, place + np.arange(len(own))] = 1
            place += len(own)
        return joined(rows)[:, :-1], joined(rows)[:, -1]

    def after(self, step: Step, known: Intervals, narrow: bool) -> Intervals | None:
        """What is known of the flips of a branch once a step is made; None: there are none."""
        self.check(step, known)
        if not narrow and (step.kinds == FREE).all() and not (step.tau.any() or step.rho.any()):
            return self._closed(self.chain(step, known).floor()[0])
        quadratic, A, offsets = self.dense(step, known)
        floor, v, rest = quadratic.floor()
        if floor >= self.enough or not (narrow and floor > -np.inf):
            return self._closed(floor)
        reach = float(np.sqrt((ball(self.enough) - floor).high * 2) * UP + rest) * UP
        low, high = _shadows(quadratic.proof, A, A @ v + offsets, reach, v, step.kinds == FREE, known)
        return None if (low > high).any() else Intervals(low, high)

    def _closed(self, floor: float) -> None:
        if not floor >= self.enough:
            raise Refused("a step proves less than the radius")

    @property
    def enough(self) -> float:
        return float((ball(self.radius) * self.radius * 0.5).high)


def _proved(Q: Ball) -> Definite:
    proof = definite(Q)
    if proof is None:
        raise Refused("a step's matrix is not proved to be definite")
    return proof


def _chained(net: Network, lam: Array) -> tuple[Ball, Definite]:
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
    return Q, _proved(Q)


def _shadows(
    proof: Definite, A: Ball, z: Ball, reach: float, v: Array, free: NDArray[np.bool_], known: Intervals
) -> tuple[Array, Array]:
    """What ‖v - ṽ‖_Q ≤ reach leaves of all z = Av + offsets, which are given at ṽ. At a flip a FREE neuron is on one of
    two rays, on which m = h - z or m = h is 0: z is z + θm there, for any θ. (NaN says nothing: fmax and fmin skip it.)
    """
    n, size = int(free.sum()), len(v)
    (W, r), (H, r_H) = proof.spread(A.T), proof.spread(ball(np.eye(size, n, n - size)))
    around = z.widened((lengths(W) + r) * reach)
    low, high = np.fmax(known.low, around.low), np.fmin(known.high, around.high)
    W_f, r_f, z_f, h = ball(W[:, free]), r[free], z[free], ball(v[size - n :])

    def ray(m: Ball, M: Ball, r_M: Array, left: Array, right: Array) -> tuple[Array, Array]:
        """The ends of z on a ray, in [left, right]; M are the directions of m as those of z are W."""
        a, b, c = (M.mid**2).sum(0), (M.mid * W_f.mid).sum(0), (W_f.mid**2).sum(0)
        root = np.sqrt(np.maximum(a * c - b * b, 0) / (a * reach**2 - m.mid**2)) * m.mid  # for the best θ
        thetas = np.nan_to_num((-b + root) / a), np.nan_to_num((-b - root) / a)
        far = [lengths(W_f + M * theta) + (r_f + abs(theta) * r_M) * UP for theta in thetas]
        ends = [(z_f + m * theta).widened(each * reach) for theta, each in zip(thetas, far, strict=True)]
        gone = abs(m.mid) - m.rad > (lengths(M) + r_M) * reach * UP * UP
        return np.where(gone, np.inf, np.fmax(left, ends[0].low)), np.where(gone, -np.inf, np.fmin(right, ends[1].high))

    on = ray(h - z_f, ball(H) - W_f, r_H + r_f, np.fmax(low[free], 0), high[free])
    off = ray(h, ball(H), r_H, low[free], np.fmin(high[free], 0))
    low[free], high[free] = np.where(off[0] > off[1], on[0], off[0]), np.where(on[0] > on[1], off[1], on[1])
    return low, high
