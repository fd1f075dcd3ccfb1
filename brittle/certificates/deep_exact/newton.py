"""One iteration of the interior point: where S is linearised, the equations MΔy = rhs, and how far a step may go.

See interior_point.py for the problem and the notation.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotri, dtrtrs

from brittle.certificates.deep_exact.problem import SdpProblem
from brittle.certificates.rounding import Array, Factor, factor

FRACTION = 0.8  # of the way to the boundary
CENTRING = 0.02  # the least share of ν that a step aims at
PRODUCTS = 14  # of Lanczos' method
LANCZOS = np.random.default_rng(1).normal(size=4096)


class SdpIterate(NamedTuple):
    """y with t at [1], the primal matrix X and the slacks w of the multipliers with a sign."""

    y: Array
    X: Array
    w: Array

    def moved(self, step: "SdpStep", dual: float, primal: float) -> "SdpIterate":
        return SdpIterate(self.y + dual * step.y, self.X + primal * step.X, self.w + primal * step.w)


class LinearisedSdp(NamedTuple):
    """S, the factor of S, S⁻¹, the minimiser ξ* = (x*, 1), the value F there, and the slack F - t."""

    S: Array
    L: Array
    inverse: Array
    minimiser: Array
    value: float
    slack: float


class SdpStep(NamedTuple):
    y: Array
    S: Array
    X: Array
    w: Array
    turned: Array  # ΔS·S⁻¹


def with_t(y: Array, t: float) -> Array:
    y = y.copy()
    y[1] = t
    return y


def evaluate_unrounded(problem: SdpProblem, y: Array) -> float | None:
    """F(y), without rounding: what the solver goes by."""
    S = problem.lagrangian(with_t(y, 0.0))
    L = factor(S[:-1, :-1])
    if L is None:
        return None
    return float(0.5 * (S[-1, -1] - S[:-1, -1] @ L.solve(S[:-1, -1])))


def linearise(problem: SdpProblem, y: Array, slack: float | None = None) -> LinearisedSdp | None:
    """None where S is not positive definite; a given slack stands for t."""
    S = problem.lagrangian(y)
    L = factor(S[:-1, :-1])
    if L is None:
        return None
    inverse = _inverse(L.L)
    q, corner = S[:-1, -1], 0.5 * S[-1, -1] + y[1]
    x = -inverse @ q
    value = float(corner + 0.5 * q @ x)
    slack = value - float(y[1]) if slack is None else slack
    return None if not slack > 0 else _join(S, L.L, inverse, x, value, slack)


def update_border(old: SdpProblem, new: SdpProblem, y: Array, at: LinearisedSdp) -> LinearisedSdp:
    """After new intervals, which change the last row of S only: the slack stays, t moves."""
    S = at.S.copy()
    S[-1] = S[:, -1] = old.border(y, new, S)
    inverse = (at.inverse - np.outer(at.minimiser, at.minimiser) / (2 * at.slack))[:-1, :-1]
    x = -inverse @ S[:-1, -1]
    value = 0.5 * float(S[-1, -1] + S[:-1, -1] @ x) + float(y[1])
    return _join(S, at.L[:-1, :-1], inverse, x, value, at.slack)


def _join(S: Array, L: Array, inverse: Array, x: Array, value: float, slack: float) -> LinearisedSdp:
    """The factor and the inverse of S from those of Q."""
    q, minimiser = S[:-1, -1], np.append(x, 1.0)
    S[-1, -1] = 2 * slack - q @ x
    whole = np.zeros_like(S, order="F")
    whole[:-1, :-1] = L
    whole[-1, :-1] = dtrtrs(L, q, lower=1)[0]
    whole[-1, -1] = np.sqrt(2 * slack)
    bordered = np.outer(minimiser, minimiser) / (2 * slack)
    bordered[:-1, :-1] += inverse
    return LinearisedSdp(S, whole, bordered, minimiser, value, slack)


def _inverse(L: Array) -> Array:
    lower = np.tril(dpotri(L, lower=1)[0])
    return np.asarray(lower + np.tril(lower, -1).T)


def advance(
    problem: SdpProblem, now: SdpIterate, at: LinearisedSdp
) -> tuple[SdpIterate, float, tuple[float, float]] | None:
    """One iteration: the new iterate, the duality gap before it and the step lengths; None if it breaks down."""
    signed, X_factor = problem.signed, factor(now.X)
    newton = Newton.of(problem, now, at)
    if X_factor is None or newton is None:
        return None
    affine = newton.direction(0.0)
    dual, primal = _lengths(now, at, X_factor.L, signed, affine, 1.0)
    ahead = now.moved(affine, dual, primal)
    gap_after = _gap(ahead.X, at.S + dual * affine.S, ahead.w, ahead.y, signed)
    centring = float(np.clip((max(gap_after, 0.0) / newton.gap) ** 2, CENTRING, 1))
    if min(dual, primal) < 0.1:
        centring = max(centring, 0.5)
    step = newton.direction(centring, affine)
    dual, primal = _lengths(now, at, X_factor.L, signed, step, FRACTION)
    return now.moved(step, dual, primal), newton.gap, (dual, primal)


def _gap(X: Array, S: Array, w: Array, y: Array, signed: NDArray[np.bool_]) -> float:
    return float((X * S).sum() + w[signed] @ y[signed])


class Newton(NamedTuple):
    """The equations MΔy = rhs of one iteration, factored, with rows and columns scaled to a unit diagonal."""

    problem: SdpProblem
    now: SdpIterate
    at: LinearisedSdp
    factor: Factor
    scale: Array
    products: Array  # 2a·S⁻¹b
    inverse_y: Array  # 1/y where a sign is asked
    gap: float
    nu: float

    @classmethod
    def of(cls, problem: SdpProblem, now: SdpIterate, at: LinearisedSdp) -> "Newton | None":
        signed = problem.signed
        in_inverse = problem.gram(at.inverse)
        M = _schur(problem, problem.gram(now.X), in_inverse)
        inverse_y = np.where(signed, 1 / np.where(signed, now.y, 1.0), 0.0)
        M.flat[:: len(M) + 1] += now.w * inverse_y
        scale = 1 / np.sqrt(M.diagonal())
        M *= scale[:, None]
        M *= scale
        L, more = None, 1e-14
        while L is None and more < 1 and np.isfinite(scale).all():
            M.flat[:: len(M) + 1] = 1 + more
            L, more = factor(M), 10 * more
        if L is None:
            return None
        gap = _gap(now.X, at.S, now.w, now.y, signed)
        products = problem.products(at.inverse)
        return cls(problem, now, at, L, scale, products, inverse_y, gap, gap / (len(at.S) + int(signed.sum())))

    def direction(self, centring: float, affine: SdpStep | None = None) -> SdpStep:
        """Towards the point of the path at centring·ν; `affine` gives the corrector."""
        aim = centring * self.nu
        rhs = aim * (self.products + self.inverse_y)
        rhs[1] += 1
        dw, dX = aim * self.inverse_y - self.now.w, aim * self.at.inverse - self.now.X
        if affine is not None:
            corrector, bent = affine.X @ affine.turned, affine.w * affine.y * self.inverse_y
            corrector = 0.5 * (corrector + corrector.T)
            rhs = rhs - self.problem.products(corrector) - bent
            dw, dX = dw - bent, dX - corrector
        dy = self.scale * self.factor.solve(self.scale * rhs)
        dS = self.problem.lagrangian(dy, objective=0.0)
        turned = dS @ self.at.inverse
        product = self.now.X @ turned
        dX = dX - 0.5 * (product + product.T)
        return SdpStep(dy, dS, dX, dw - self.now.w * dy * self.inverse_y, turned)


def _schur(problem: SdpProblem, in_X: Array, in_inverse: Array) -> Array:
    """M_kl = <A_k, X A_l S⁻¹> for A = abᵀ + baᵀ, from the products of all forms."""
    aXa, bXa, bXb = _products(problem, in_X)
    aSa, bSa, bSb = _products(problem, in_inverse)
    mixed = bXa * bSa.T
    M = mixed + mixed.T
    bXb *= aSa
    M += bXb
    aXa *= bSb
    M += aXa
    return np.asarray(M)


def _products(problem: SdpProblem, G: Array) -> tuple[Array, Array, Array]:
    """a_k·a_l, b_k·a_l and b_k·b_l in the metric of G."""
    left, right = np.ascontiguousarray(problem.left(G).T), np.ascontiguousarray(problem.right(G).T)
    return problem.left(left), problem.right(left), problem.right(right)


def _lengths(
    now: SdpIterate, at: LinearisedSdp, X_factor: Array, signed: NDArray[np.bool_], step: SdpStep, fraction: float
) -> tuple[float, float]:
    """How far y and S, and X and w, may go."""
    dual = _to_boundary(at.S, at.L, step.S, fraction, _positive(now.y, step.y, signed, fraction))
    primal = _to_boundary(now.X, X_factor, step.X, fraction, _positive(now.w, step.w, signed, fraction))
    return dual, primal


def _positive(values: Array, step: Array, signed: NDArray[np.bool_], fraction: float) -> float:
    falling = signed & (step < 0)
    return min(1.0, fraction * float((values[falling] / -step[falling]).min(initial=np.inf)))


def _to_boundary(A: Array, L: Array, step: Array, fraction: float, most: float) -> float:
    """A length ≤ most with A + length/fraction·step positive definite: Lanczos' method, then a test."""
    top = _largest_eigenvalue(L, step)
    length = min(most, fraction / top) if top > 0 else most
    while fraction < 1 and factor(A + (length / fraction) * step) is None:
        length *= 0.9
        if length < 1e-3:
            return 0.0
    return length


def _largest_eigenvalue(L: Array, step: Array) -> float:
    """Of -L⁻¹·step·L⁻ᵀ, by a few of Lanczos' steps."""
    start = np.resize(LANCZOS, len(L))
    v, last, beta = start / np.linalg.norm(start), np.zeros(len(L)), 0.0
    alphas: list[float] = []
    betas: list[float] = []
    for _ in range(PRODUCTS):
        image = -(step @ dtrtrs(L, v, lower=1, trans=1)[0])
        image = dtrtrs(L, image, lower=1)[0]
        alphas.append(float(image @ v))
        image = image - alphas[-1] * v - beta * last
        beta = float(np.linalg.norm(image))
        if not beta > 1e-12:
            break
        betas.append(beta)
        last, v = v, image / beta
    off = np.array(betas[: len(alphas) - 1])
    return float(np.linalg.eigvalsh(np.diag(alphas) + np.diag(off, 1) + np.diag(off, -1))[-1])
