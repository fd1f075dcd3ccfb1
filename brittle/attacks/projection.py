"""Shortest flips of a two-layer network, on the kinks of its neurons where that is where they lie.

f(δ) = y c0 + Σ_j c_j φ(z_j), c_j = y v_j, z = a + Wδ. A neuron with c_j < 0 bends f down, so c_j φ(z_j) ≤ c_j D_j z_j
for D_j in {0, 1}: with D fixed, f ≤ h where h is convex and equal to f as long as D is the pattern of those neurons.
The shortest δ with h ≤ 0 is found by a primal active-set method, which holds some neurons with c_j > 0 at z_j = 0.
There c_j φ(z_j) ≥ c_j r_j z_j for any 0 ≤ r_j ≤ 1, so h lies above a plane A + p·δ, and no δ with h ≤ 0 is shorter
than A/‖p‖: that is how the method's answer is judged.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from brittle.attacks.restriction import Restriction
from brittle.common.time_limit import check_time
from brittle.geometry import least_distance
from brittle.networks import Layered, TwoLayer

DEPTH = 1e-11  # of the margin at x


@dataclass(frozen=True, eq=False)
class Fold:
    """The network as seen from n examples: a (n, width), c = y v (n, width), y c0 (n,), W within the subspace.

    depth (n,): how far below zero the goal lies, so that rounding does not make the ray to it pass by.
    """

    W: Tensor
    a: Tensor
    c: Tensor
    offset: Tensor
    depth: Tensor

    @classmethod
    def of(cls, network: TwoLayer, X: Tensor, y: Tensor, W: Tensor) -> "Fold":
        depth = DEPTH * network.margins(X, y).abs()
        return cls(W, network.preactivations(X), y[:, None] * network.v, y * network.c, depth)

    def shortest(self, delta: Tensor, pivots: int) -> tuple[Tensor, Tensor]:
        """From δ (n, dim) with f = 0: the shortest δ with h ≤ 0 (n, dim) and the bound that belongs to it (n,)."""
        delta, bound = delta.clone(), torch.zeros_like(self.offset)
        live, state = torch.arange(len(delta)), _ActiveSetState.at(self, delta)
        for _ in range(pivots):
            check_time()
            done = state.pivot()
            if 2 * int(done.sum()) >= len(live):  # a finished row stays as it is, so it need not leave at once
                delta[live], bound[live] = state.delta, state.bound
                live, state = live[~done], state.rows(~done)
            if not len(live):
                break
        delta[live], bound[live] = state.delta, state.bound
        return delta, bound


@dataclass(eq=False)
class _ActiveSetState:
    """Where n active-set methods are: δ and z there, the plane p·δ + A = 0 of their cell, the best bound so far.

    held: neurons kept at z = 0; active: those that count in p and A; free: those with c > 0 that are not held.
    """

    fold: Fold
    delta: Tensor
    z: Tensor
    p: Tensor
    A: Tensor
    bound: Tensor
    held: Tensor
    active: Tensor
    free: Tensor

    @classmethod
    def at(cls, fold: Fold, delta: Tensor) -> "_ActiveSetState":
        z = fold.a + delta @ fold.W.T
        weights = fold.c * (z > 0)
        p, A = weights @ fold.W, fold.offset + torch.linalg.vecdot(weights, fold.a)
        return cls(fold, delta, z, p, A, torch.zeros_like(A), torch.zeros_like(z, dtype=torch.bool), z > 0, fold.c > 0)

    def rows(self, rows: Tensor) -> "_ActiveSetState":
        fold = Fold(
            self.fold.W, *(each[rows] for each in (self.fold.a, self.fold.c, self.fold.offset, self.fold.depth))
        )
        vectors = (self.delta, self.z, self.p, self.A, self.bound, self.held, self.active, self.free)
        return _ActiveSetState(fold, *(each[rows] for each in vectors))

    def pivot(self) -> Tensor:
        """Go to the shortest δ of this cell, or to the first kink on the way; hold that kink, or let a wrong one go.

        Returns who has nothing left to do (n,).
        """
        index, on = _listed(self.held)
        planes, a, steep = (
            self.fold.W[index] * on[..., None],
            self.fold.a.gather(1, index) * on,
            self.fold.c.gather(1, index),
        )
        goal, multipliers = _projected(self.p, self.A + self.fold.depth, planes, a)
        share = torch.where(on & (multipliers[:, :1] > 0), multipliers[:, 1:] / (multipliers[:, :1] * steep), 0.0)
        bound = _distance(self.p, self.A, planes, a, share.clamp(0, 1) * steep)
        self.bound = torch.maximum(self.bound, bound)
        blocked = self._advance(goal)
        wrong, worst = _worst(torch.where(on & ~blocked[:, None], share, 0.5))
        rows = wrong.nonzero()[:, 0]
        self._release(rows, index[rows, worst[rows]], share[rows, worst[rows]] > 1)
        return ~blocked & ~wrong

    def _advance(self, goal: Tensor) -> Tensor:
        """Towards the goal, up to the first neuron that would change sign; returns who was stopped by one (n,)."""
        way = (goal - self.delta) @ self.fold.W.T
        leaving = self.free & (self.active != (self.z + way > 0))
        if not leaving.any():
            self.delta, self.z = goal, self.z + way
            return torch.zeros(len(goal), dtype=torch.bool)
        when = torch.where(leaving, (self.z / torch.where(leaving, -way, 1.0)).clamp(min=0), torch.inf)
        reach, wall = when.min(1)
        blocked = reach < 1
        reach = reach.clamp(max=1)[:, None]
        self.delta, self.z = self.delta + reach * (goal - self.delta), self.z + reach * way
        self._hold(blocked.nonzero()[:, 0], wall[blocked])
        return blocked

    def _hold(self, rows: Tensor, neurons: Tensor) -> None:
        """Keep these neurons at their kink: they leave the plane."""
        self._add(rows, neurons, -self.active[rows, neurons].double())
        self.held[rows, neurons], self.active[rows, neurons], self.free[rows, neurons] = True, False, False

    def _release(self, rows: Tensor, neurons: Tensor, active: Tensor) -> None:
        """Let these neurons go to their active or inactive side."""
        self._add(rows, neurons, active.double())
        self.held[rows, neurons], self.active[rows, neurons], self.free[rows, neurons] = False, active, True

    def _add(self, rows: Tensor, neurons: Tensor, times: Tensor) -> None:
        weights = times * self.fold.c[rows, neurons]
        self.p[rows] += weights[:, None] * self.fold.W[neurons]
        self.A[rows] += weights * self.fold.a[rows, neurons]


def _listed(held: Tensor) -> tuple[Tensor, Tensor]:
    """Indices (n, k) of each row's kinks, and which of them are real and not padding."""
    index = held.to(torch.uint8).topk(int(held.sum(1).max()), 1).indices
    return index, held.gather(1, index)


def _worst(share: Tensor) -> tuple[Tensor, Tensor]:
    """Whether a row has a share outside [0, 1], and the column of the one that is farthest out."""
    if not share.shape[1]:
        return torch.zeros(len(share), dtype=torch.bool), torch.zeros(len(share), dtype=torch.long)
    excess, worst = ((share - 0.5).abs() - 0.5).max(1)
    return excess > 1e-12, worst


def _projected(p: Tensor, A: Tensor, planes: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    """The shortest δ with A + p·δ = 0 and a + planes·δ = 0, and its multipliers (n, 1 + k)."""
    B = torch.cat([p[:, None], planes], 1)
    gram = B @ B.transpose(1, 2)
    size = gram.diagonal(dim1=1, dim2=2)
    ridge = torch.where(size > 0, 1e-14 * size, 1.0)
    targets = torch.cat([A[:, None], a], 1)
    factors = torch.linalg.lu_factor(gram + torch.diag_embed(ridge))
    multipliers = torch.linalg.lu_solve(*factors, targets[..., None])
    multipliers = (multipliers + torch.linalg.lu_solve(*factors, targets[..., None] - gram @ multipliers))[..., 0]
    return -(multipliers[..., None] * B).sum(1), multipliers


def _distance(p: Tensor, A: Tensor, planes: Tensor, a: Tensor, lift: Tensor) -> Tensor:
    """How far the plane A + p·δ = 0 lies from 0, with the kinks' share in it."""
    length = (p + (lift[..., None] * planes).sum(1)).norm(dim=1)
    height = (A + (lift * a).sum(1)).clamp(min=0)
    return torch.where(
        length > 0, height / torch.where(length > 0, length, 1.0), torch.where(height > 0, torch.inf, 0.0)
    )


# The shortest flip within one linear region of a deep ReLU network, and the proof that none there is shorter.


ROUNDS = 40
NEW_WALLS = 32  # in a round
TOUCHED = 1e-9  # of the distance: a wall within it is touched


def region_bounds(
    network: Layered, X: Tensor, y: Tensor, delta: Tensor, subspace: Restriction
) -> tuple[Tensor, Tensor]:
    """For every x + δ: the shortest flip in its region (n, dim), and a proved lower bound on its norm (n,)."""
    shortest, bounds = delta.clone(), torch.zeros(len(X), dtype=torch.float64)
    for row in range(len(X)):
        region = _Region(network, X[row], X[row] + delta[row], subspace)
        best, bounds[row] = region.shortest(y[row], float(delta[row].norm()))
        shortest[row] = delta[row] if best is None else best
    return shortest, bounds


@dataclass(frozen=True, eq=False)
class _Region:
    """All points with the activation pattern of `inside`; perturbations are taken from x."""

    network: Layered
    x: Tensor
    inside: Tensor
    subspace: Restriction

    @cached_property
    def pattern(self) -> list[Tensor]:
        return [z[0] > 0 for z in self.network.values(self.inside[None])[:-1]]

    def shortest(self, y: Tensor, norm: float) -> tuple[Tensor | None, float]:
        """Over every rival class: the shortest flip, and the smallest bound."""
        best, least = None, norm
        bound = torch.inf
        for row in self._margin_rows(y):
            wall, height = self._margin_plane(row)
            if height >= norm * np.linalg.norm(wall):  # even without the region's walls it is no shorter
                bound = min(bound, norm)
                continue
            delta, proved = self._projection(wall, height, least)
            bound = min(bound, proved)
            if delta is not None and float(delta.norm()) < least:
                best, least = delta, float(delta.norm())
        return best, bound

    def _margin_rows(self, y: Tensor) -> list[Tensor]:
        """The weights of the logits in each margin."""
        if self.network.classes == 1:
            return [y.reshape(1)]
        identity = torch.eye(self.network.classes, dtype=torch.float64)
        return [identity[int(y)] - identity[rival] for rival in range(self.network.classes) if rival != int(y)]

    def _margin_plane(self, row: Tensor) -> tuple[np.ndarray, float]:
        """The margin is ≤ 0 where wall·δ ≥ height."""
        layer = self.network.depth - 1
        return -self._back(row[None], layer)[0].numpy(), float(row @ self.at_x[layer])

    def _projection(self, wall: np.ndarray, height: float, least: float) -> tuple[Tensor | None, float]:
        """min ‖δ‖ with wall·δ ≥ height inside the region, unless that is no shorter than the least norm known.

        The region's walls are added as they are violated, at first those that the point inside lies on. Those that δ
        does not touch are dropped again; the norm grows in every round all the same.
        """
        walls, heights = wall[None], np.array([height])
        for layer, neurons in self._corner():
            rows, limits = self._walls(layer, neurons)
            walls, heights = np.concatenate([walls, rows]), np.concatenate([heights, limits])
        bound = 0.0
        for _ in range(ROUNDS):
            check_time()
            delta, bound = least_distance(walls, heights)
            if delta is None or bound >= least:
                return None, bound
            violated = self._violated(torch.from_numpy(delta))
            if not violated:
                return torch.from_numpy(delta), bound
            touched = walls @ delta <= heights + TOUCHED * np.linalg.norm(walls, axis=1) * np.linalg.norm(delta)
            new = [self._walls(layer, neurons) for layer, neurons in violated]
            walls, heights = (
                np.concatenate([each[touched], *added])
                for each, added in zip((walls, heights), zip(*new, strict=True), strict=True)
            )
        return None, bound

    def _violated(self, delta: Tensor) -> list[tuple[int, Tensor]]:
        """The neurons that are farthest on the wrong side, layer by layer."""
        wrong = [
            torch.where(active, -z, z) - 1e-12 * (1 + z.abs().max())
            for z, active in zip(self._values(delta)[:-1], self.pattern, strict=True)
        ]
        depths = torch.cat(wrong).clamp(min=0)
        least = depths.topk(min(NEW_WALLS, len(depths))).values[-1]
        places = [((each > 0) & (each >= least)).nonzero()[:, 0] for each in wrong]
        return [(layer, neurons) for layer, neurons in enumerate(places) if len(neurons)]

    def _corner(self) -> list[tuple[int, Tensor]]:
        """The neurons that are about to change where the region is looked at."""
        values = self._values(self.inside - self.x)[:-1]
        places = [(z.abs() <= TOUCHED * z.abs().max()).nonzero()[:, 0] for z in values]
        return [(layer, neurons) for layer, neurons in enumerate(places) if len(neurons)]

    def _walls(self, layer: int, neurons: Tensor) -> tuple[np.ndarray, np.ndarray]:
        sides = torch.where(self.pattern[layer][neurons], 1.0, -1.0).double()
        rows = torch.zeros(len(neurons), self.network.shape[layer + 1], dtype=torch.float64)
        rows[torch.arange(len(neurons)), neurons] = sides
        return self._back(rows, layer).numpy(), -(sides * self.at_x[layer][neurons]).numpy()

    @cached_property
    def at_x(self) -> list[Tensor]:
        return self._values(torch.zeros_like(self.x))

    def _values(self, delta: Tensor) -> list[Tensor]:
        """Every layer's inputs as the region's affine functions of δ, also outside of it."""
        first, *others = self.network.layers
        values = [first.apply((self.x + delta)[None])[0]]
        for layer, active in zip(others, self.pattern, strict=True):
            values.append(layer.apply((values[-1] * active)[None])[0])
        return values

    def _back(self, rows: Tensor, layer: int) -> Tensor:
        """The gradients in x of rows of weights on the values of `layer`."""
        back = self.network.layers[layer].transpose(rows)
        for below in reversed(range(layer)):
            back = self.network.layers[below].transpose(back * self.pattern[below])
        return self.subspace.project(back)
