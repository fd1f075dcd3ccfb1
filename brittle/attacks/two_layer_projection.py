"""Shortest flips of a two-layer network, on the kinks of its neurons where that is where they lie.

f(δ) = y c0 + Σ_j c_j φ(z_j), c_j = y v_j, z = a + Wδ. A neuron with c_j < 0 bends f down, so c_j φ(z_j) ≤ c_j D_j z_j
for D_j in {0, 1}: with D fixed, f ≤ h where h is convex and equal to f as long as D is the pattern of those neurons.
The shortest δ with h ≤ 0 is found by a primal active-set method, which holds some neurons with c_j > 0 at z_j = 0.
There c_j φ(z_j) ≥ c_j r_j z_j for any 0 ≤ r_j ≤ 1, so h lies above a plane A + p·δ, and no δ with h ≤ 0 is shorter
than A/‖p‖: that is how the method's answer is judged.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.common.time_limit import check_time
from brittle.networks import TwoLayer

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
        live, state = torch.arange(len(delta)), _State.at(self, delta)
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
class _State:
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
    def at(cls, fold: Fold, delta: Tensor) -> "_State":
        z = fold.a + delta @ fold.W.T
        weights = fold.c * (z > 0)
        p, A = weights @ fold.W, fold.offset + torch.linalg.vecdot(weights, fold.a)
        return cls(fold, delta, z, p, A, torch.zeros_like(A), torch.zeros_like(z, dtype=torch.bool), z > 0, fold.c > 0)

    def rows(self, rows: Tensor) -> "_State":
        fold = Fold(
            self.fold.W, *(each[rows] for each in (self.fold.a, self.fold.c, self.fold.offset, self.fold.depth))
        )
        vectors = (self.delta, self.z, self.p, self.A, self.bound, self.held, self.active, self.free)
        return _State(fold, *(each[rows] for each in vectors))

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
