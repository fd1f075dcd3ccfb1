"""The convex problem behind the residual: which multipliers and slopes at kinks explain the weights best?

minimise ‖θ - Σ_i λ_i g_i‖² over λ ≥ 0 and, at kinks, 0 ≤ s_ij ≤ λ_i. On the examples that may carry a multiplier,
g_i stacks y_i v_j σ'_ij x̃_i (first layer, with s_ij = λ_i σ'_ij) and y_i φ(z_ij) (second layer).
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.common.errors import require
from brittle.common.kinds import check_kinds
from brittle.common.result import Result
from brittle.data import Data
from brittle.kkt.arrow import Arrow, ArrowBlock, ArrowVector
from brittle.kkt.examples import Weights
from brittle.kkt.interior_point import Quadratic, longest_step
from brittle.networks import TwoLayer

CHUNK = 5_000_000  # entries of the largest temporary (examples x neurons)


class StationarityResidual(NamedTuple):
    """θ - Σ λ_i g_i: its norm, and its inner products with the columns of λ and of s."""

    norm: float
    inner: ArrowVector


@dataclass(frozen=True, eq=False)
class Stationarity:
    """X (N, d) rows x̃, y (N,), W (m, d) rows w̃, v (m,), Z (N, m) = X Wᵀ.

    active (N, m): where the slope is 1; kinks (K, 2): pairs (example, neuron) where it is free, arranged as by `order`.
    """

    X: Tensor
    y: Tensor
    W: Tensor
    v: Tensor
    Z: Tensor
    active: Tensor
    kinks: Tensor

    def order(self, kinks: Tensor) -> Tensor:
        """The order that groups kinks by neuron, neurons with equally many kinks side by side."""
        rows, neurons = kinks.T
        counts = torch.bincount(neurons, minlength=len(self.v))
        return torch.argsort((counts[neurons] * len(self.v) + neurons) * len(self.y) + rows)

    def chunks(self) -> list[slice]:
        """Runs of neurons whose matrices (N, run) are of bounded size."""
        step = max(1, CHUNK // max(1, len(self.y)))
        return [slice(j, j + step) for j in range(0, len(self.v), step)]

    def arrow(self) -> Arrow:
        """The quadratic form, K_ik = y_i y_k [Σ_j v_j² 1_ij 1_kj x̃_i·x̃_k + φ_i·φ_k] and its kinks."""
        gram = self.X @ self.X.T
        head = torch.zeros_like(gram)
        outer = torch.zeros_like(gram)
        for part in self.chunks():
            slopes = self.active[:, part] * self.v[part]
            head.addmm_(slopes, slopes.T)
            outputs = self.Z[:, part].relu()
            outer.addmm_(outputs, outputs.T)
        signs = self.y[:, None] * self.y
        gram *= signs
        return Arrow(head * gram + outer * signs, tuple(self._blocks(gram)))

    def _blocks(self, gram: Tensor) -> list[ArrowBlock]:
        """`gram` carries the signs y_i y_k."""
        counts = torch.bincount(self.kinks[:, 1], minlength=len(self.v))[self.kinks[:, 1]]
        blocks = []
        for size in torch.unique(counts).tolist():
            pairs = self.kinks[counts == size].view(-1, size, 2)
            index, neuron = pairs[..., 0], pairs[:, 0, 1]
            weight = self.v[neuron].square()[:, None, None]
            own = weight * gram[index[..., None], index[:, None, :]]
            cross = weight * gram[index] * self.active[:, neuron].T[:, None, :]
            blocks.append(ArrowBlock(index, own, cross))
        return blocks

    def rhs(self) -> ArrowVector:
        """<θ, g_i> and <θ, kink>: 2 q_i by Euler's identity, apart from what near-kinks withhold."""
        top = torch.zeros_like(self.y)
        for part in self.chunks():
            Z = self.Z[:, part]
            top += (self.active[:, part] * Z + Z.relu()) @ self.v[part]
        rows, neurons = self.kinks.T
        return ArrowVector(self.y * top, self.y[rows] * self.v[neurons] * self.Z[rows, neurons])

    def misfit(self, x: ArrowVector) -> StationarityResidual:
        """What these multipliers leave of θ, computed from the weights and not from the quadratic form."""
        rows, neurons = self.kinks.T
        square, top, bottom = 0.0, torch.zeros_like(x.lam), torch.zeros_like(x.s)
        for part in self.chunks():
            v, active, outputs = self.v[part], self.active[:, part], self.Z[:, part].relu()
            load = active * x.lam[:, None]
            here = torch.nonzero((neurons >= part.start) & (neurons < part.stop))[:, 0]
            load[rows[here], neurons[here] - part.start] += x.s[here]
            first = self.W[part] - v[:, None] * ((load * self.y[:, None]).T @ self.X)
            second = v - outputs.T @ (x.lam * self.y)
            square += float(first.square().sum() + second.square().sum())
            inner = (self.X @ first.T) * v * self.y[:, None]
            top += (active * inner).sum(1) + self.y * (outputs @ second)
            bottom[here] = inner[rows[here], neurons[here] - part.start]
        return StationarityResidual(square**0.5, ArrowVector(top, bottom))


def stationarity_problem(X: Tensor, y: Tensor, weights: Weights, kink_tolerance: float) -> Stationarity:
    """The problem of these examples; the slope is free where |z_ij| ≤ kink_tolerance ‖w̃_j‖ ‖x̃_i‖."""
    W, v = weights
    Z = X @ W.T
    close = Z.abs() <= kink_tolerance * X.norm(dim=1)[:, None] * W.norm(dim=1)
    close &= (v != 0) & (W != 0).any(1)  # the slopes of a neuron that is zero change nothing
    kinks = torch.nonzero(close)
    unordered = Stationarity(X, y, W, v, Z, (Z > 0) & ~close, kinks)
    return Stationarity(X, y, W, v, Z, unordered.active, kinks[unordered.order(kinks)])


# The last digits of the stationarity problem: least squares on the variables that are off their bounds.
#
# At an exact KKT point every bound's multiplier vanishes, and an interior point stalls at ‖θ - Σ λ_i g_i‖ ~ 1e-8. Once
# the variables on their bounds are known, one linear system gives the rest to machine precision.


BOUND = 1e-6  # a variable below this share of the largest multiplier is tried at zero
NOISE = 1e-14  # relative size of the residual at which there is nothing left to gain
STALLS = 3  # steps without a gain of a tenth
REFINEMENTS = 3  # of the linear system's solution
FIXED = 1e8  # weight that holds a multiplier at zero, in units of the quadratic form


class ActiveBounds(NamedTuple):
    """Variables that are held at a bound: off (N,) at λ = 0; zero (K,) at s = 0; full (K,) at s = λ."""

    off: Tensor
    zero: Tensor
    full: Tensor


class LeastSquaresStep(NamedTuple):
    """x: where a least-squares step led; blocked: it met a bound on the way."""

    x: ArrowVector
    blocked: bool


class Pulls(NamedTuple):
    """Which variables the misfit wants larger or smaller: lam_up (N,), s_up and s_down (K,)."""

    lam_up: Tensor
    s_up: Tensor
    s_down: Tensor


@dataclass(frozen=True, eq=False)
class PolishState:
    """x and its bounds; best: the best point so far; least: the norm of its misfit; stalls: steps that gained little.

    done: there is nothing left to gain.
    """

    x: ArrowVector
    bounds: ActiveBounds
    best: ArrowVector
    least: float
    stalls: int = 0
    done: bool = False


@dataclass(frozen=True, eq=False)
class Polish:
    """An active-set method for the stationarity problem; `scale` is ‖θ‖."""

    problem: Stationarity
    scale: float

    @property
    def _rows(self) -> Tensor:
        """The example of every kink."""
        return self.problem.kinks[:, 0]

    def start(self, x: ArrowVector) -> PolishState:
        """With every variable at the bound that it is close to."""
        small = BOUND * float(x.lam.max())
        bounds = ActiveBounds(x.lam <= small, x.s <= small, x.lam[self._rows] - x.s <= small)
        return PolishState(x, bounds, x, self.problem.misfit(x).norm)

    def step(self, state: PolishState) -> PolishState:
        """Least squares on the free variables, then the bounds that the misfit suggests."""
        rows, off = self._rows, state.bounds.off
        zero = (state.bounds.zero & ~state.bounds.full) | off[rows]
        full = state.bounds.full & ~zero
        begun = ArrowVector(torch.where(off, 0.0, state.x.lam), state.x.s)
        x, blocked = self._descend(begun, ActiveBounds(off, zero, full))
        misfit = self.problem.misfit(x)
        stalls = 0 if misfit.norm < 0.9 * state.least else state.stalls + 1
        if misfit.norm < state.least:
            state = replace(state, best=x, least=misfit.norm)
        pulls = self._pulls(misfit)
        released = (off & pulls.lam_up).any() | (zero & pulls.s_up).any() | (full & pulls.s_down).any()
        done = misfit.norm <= NOISE * self.scale or stalls == STALLS or not (blocked or bool(released))
        bounds = ActiveBounds(
            (off & ~pulls.lam_up) | (x.lam <= 0),
            (zero | (x.s <= 0)) & ~pulls.s_up,
            (full | (x.s >= x.lam[rows])) & ~pulls.s_down,
        )
        return replace(state, x=x, bounds=bounds, stalls=stalls, done=done)

    def run(self, x: ArrowVector, limit: int = 12) -> ArrowVector:
        """A feasible point that explains θ at least as well."""
        state = self.start(x)
        for _ in range(limit):
            state = self.step(state)
            if state.done:
                break
        return state.best

    def _pulls(self, misfit: StationarityResidual) -> Pulls:
        """Derivatives beyond the noise; a λ may rise together with the s at its kinks."""
        noise, (lam, s) = 1e-3 * misfit.norm, misfit.inner
        return Pulls(lam.index_add(0, self._rows, s.clamp(min=0)) > noise, s > noise, s < -noise)

    def _descend(self, x: ArrowVector, bounds: ActiveBounds) -> LeastSquaresStep:
        """The least-squares step on the free variables, cut where the first bound is met."""
        off, zero, full = bounds
        rows, neurons = self.problem.kinks.T
        active = self.problem.active.clone()
        active[rows[full], neurons[full]] = True
        place = torch.nonzero(~(zero | full))[:, 0]
        place = place[self.problem.order(self.problem.kinks[place])]
        reduced = replace(self.problem, active=active, kinks=self.problem.kinks[place])
        arrow, index = reduced.arrow(), rows[place]
        weight = float(arrow.head.diagonal().max()) * (1e-15 + FIXED * off.to(x.lam.dtype))
        none = torch.zeros(len(place), dtype=x.lam.dtype)
        factored, blocked = arrow.factor(weight, none, none), False
        for _ in range(REFINEMENTS):
            lam, t = x.lam, x.s[place]
            inner = reduced.misfit(ArrowVector(lam, t)).inner
            dlam, dt = factored.solve(ArrowVector(torch.where(off, 0.0, inner.lam), inner.s))
            dlam = torch.where(off, 0.0, dlam)
            length = longest_step([lam, t, lam[index] - t], [dlam, dt, dlam[index] - dt])
            blocked = length < 1
            lam = (lam + length * dlam).clamp(min=0)
            s = torch.where(full, lam[rows], torch.where(zero, 0.0, x.s))
            x = ArrowVector(lam, s.index_copy(0, place, torch.minimum((t + length * dt).clamp(min=0), lam[index])))
            if blocked:
                break
        return LeastSquaresStep(x, blocked)


# How far is a network from a KKT point of min ½‖θ‖² subject to y_i N(x_i) ≥ 1?


ON_MARGIN = 1.1  # vardi2022 section 6: an example is on the margin if q ≤ 1.1 min q


@dataclass(frozen=True, eq=False)
class KKTResidual(Result):
    """How nearly the KKT conditions hold, measured after the network was scaled to min q = 1.

    Every number is what the multipliers and slopes given here attain, never what a solver claims.

    stationarity: ε = ‖θ - Σ λ_i g_i‖ / ‖θ‖
    complementarity: δ = Σ λ_i (q_i - 1) / Σ λ_i
    normalised_margin: γ = min q / ‖θ‖²
    share_on_margin: of the examples, those with q ≤ 1.1 min q
    multipliers (n,): λ, zero outside on_margin
    on_margin (n,): the examples that may carry a multiplier
    kinks (K, 2): pairs (example, neuron) whose slope is free
    slopes (K,): σ' there
    balance: max_j ||v_j| - ‖(w_j, b_j)‖| / ‖θ‖, zero at a KKT point
    norm_gap: |‖θ‖² - 2 Σ λ_i| / ‖θ‖², zero at a KKT point
    kink_tolerance, margin_tolerance, biases: as they were given

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> found = bt.kkt.residual(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> found.share_on_margin, bool((found.multipliers > 0).all())
        (1.0, True)
    """

    stationarity: float
    complementarity: float
    normalised_margin: float
    share_on_margin: float
    multipliers: Tensor
    on_margin: Tensor
    kinks: Tensor
    slopes: Tensor
    balance: float
    norm_gap: float
    kink_tolerance: float
    margin_tolerance: float
    biases: bool


@check_kinds
def residual(
    network: TwoLayer,
    data: Data,
    *,
    biases: bool = True,
    kink_tolerance: float = 1e-6,
    margin_tolerance: float = 1e-6,
) -> KKTResidual:
    """The distance of a two-layer network that classifies the data from a KKT point.

    An example may carry a multiplier if q ≤ (1 + margin_tolerance) min q, so complementarity never exceeds that
    tolerance; with `inf` stationarity is the smallest over all multipliers, a lower bound. The slope at z_ij is free
    if |z_ij| ≤ kink_tolerance ‖(w_j, b_j)‖ ‖(x_i, 1)‖. Without biases, b is no parameter and must be zero.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> robust = bt.networks.nearly_orthogonal(data.X, data.y).network  # robust, and no KKT point
        >>> bt.kkt.residual(robust, data).stationarity > 0.01
        True
    """
    require(margin_tolerance >= 0, f"margin_tolerance is {margin_tolerance!r}; it must be a number of at least 0")
    X, weights = homogeneous(network, data, biases)
    q = weights.margins(X, data.y)
    require_classified(q)
    W, v = weights = weights.divided(float(q.min()) ** 0.5)
    q = q / q.min()
    square = float(W.square().sum() + v.square().sum())
    on_margin = q <= 1 + margin_tolerance
    problem = stationarity_problem(X[on_margin], data.y[on_margin], weights, kink_tolerance)
    lam, s = best = _explain(problem, square)
    rows, neurons = problem.kinks.T
    indices = torch.nonzero(on_margin)[:, 0]
    total = float(lam.sum())
    return KKTResidual(
        stationarity=problem.misfit(best).norm / square**0.5,
        complementarity=float(lam @ (q[on_margin] - 1)) / total if total > 0 else 0.0,
        normalised_margin=1 / square,
        share_on_margin=float((q <= ON_MARGIN).double().mean()),
        multipliers=torch.zeros_like(q).index_copy(0, indices, lam),
        on_margin=on_margin,
        kinks=torch.stack([indices[rows], neurons], 1),
        slopes=torch.where(lam[rows] > 0, s / lam[rows].clamp(min=1e-300), 0.0),
        balance=float((v.abs() - W.norm(dim=1)).abs().max()) / square**0.5,
        norm_gap=abs(square - 2 * total) / square,
        kink_tolerance=kink_tolerance,
        margin_tolerance=margin_tolerance,
        biases=biases,
    )


class Homogeneous(NamedTuple):
    """X (n, d or d+1) rows x̃, and the weights of N(x) = Σ v_j φ(w̃_j·x̃)."""

    X: Tensor
    weights: Weights


def homogeneous(network: TwoLayer, data: Data, biases: bool) -> Homogeneous:
    """The examples and the network without biases of their own, checked."""
    data.require_binary()
    network.check(data.X, data.y)
    require(network.homogeneous, f"the network has the output bias {float(network.c):g}; KKT points are about c = 0")
    for name in ("W", "b", "v"):
        require(bool(torch.isfinite(getattr(network, name)).all()), f"{name} of the network holds NaN or infinity")
    network = network.to(torch.float64)
    if not biases:
        largest = float(network.b.abs().max())
        require(largest == 0, f"biases=False, but the network has a bias of {largest:g}; b must be zero")
        return Homogeneous(data.X, Weights(network.W, network.v))
    ones = torch.ones(len(data), 1, dtype=torch.float64)
    W = torch.cat([network.W, network.b[:, None]], 1)
    return Homogeneous(torch.cat([data.X, ones], 1), Weights(W, network.v))


def require_classified(q: Tensor) -> None:
    """Every margin is positive."""
    wrong = int((q <= 0).sum())
    require(
        wrong == 0,
        f"the network misclassifies {wrong} of {len(q)} examples (smallest margin {float(q.min()):.3g}); "
        "a KKT point needs every margin positive: train it further",
    )


def _explain(problem: Stationarity, square: float) -> ArrowVector:
    """The multipliers λ and s = λσ' that explain θ best; `square` is ‖θ‖²."""
    typical = square / (2 * len(problem.y))
    minimum = Quadratic(problem.arrow(), problem.rhs()).minimise(typical, tolerance=1e-13 * square)
    lam, s, _ = minimum.values
    x = ArrowVector(lam, torch.minimum(s, lam[problem.kinks[:, 0]]))
    if minimum.gap <= 1e-9 * problem.misfit(x).norm ** 2:
        return x
    return Polish(problem, square**0.5).run(x)
