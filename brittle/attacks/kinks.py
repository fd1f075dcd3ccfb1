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

    def rows(self, rows: Tensor) -> "Fold":
        return Fold(self.W, self.a[rows], self.c[rows], self.offset[rows], self.depth[rows])

    def shortest(self, delta: Tensor, pivots: int) -> tuple[Tensor, Tensor]:
        """From δ (n, dim) with f = 0: the shortest δ with h ≤ 0 (n, dim) and the bound that belongs to it (n,)."""
        z = self.a + delta @ self.W.T
        state = _State(delta.clone(), z, torch.zeros_like(z, dtype=torch.bool), z > 0, torch.zeros_like(self.offset))
        live = torch.arange(len(delta))
        for _ in range(pivots):
            if not len(live):
                break
            moved, done = self.rows(live)._pivot(state.rows(live))
            state.put(live, moved)
            live = live[~done]
        return state.delta, state.bound

    def _pivot(self, state: "_State") -> tuple["_State", Tensor]:
        """Go to the shortest δ of this cell, or to the first kink on the way; add that kink, or let a wrong one go."""
        weights = self.c * (state.active & ~state.held)
        p, A = weights @ self.W, self.offset + (weights * self.a).sum(1)
        index, on = _listed(state.held)
        planes, a = self.W[index] * on[..., None], self.a.gather(1, index) * on
        goal, multipliers = _projected(p, A + self.depth, planes, a)
        steep = self.c.gather(1, index)
        share = torch.where(on & (multipliers[:, :1] > 0), multipliers[:, 1:] / (multipliers[:, :1] * steep), 0.0)
        bound = _distance(p, A, planes, a, share.clamp(0, 1) * steep)

        way = (goal - state.delta) @ self.W.T
        leaving = (self.c > 0) & ~state.held & torch.where(state.active, way < 0, way > 0)
        when = torch.where(leaving, (-state.z / torch.where(leaving, way, 1.0)).clamp(min=0), torch.inf)
        reach, wall = when.min(1)
        blocked = reach < 1
        reach = reach.clamp(max=1)[:, None]
        held, active = state.held.clone(), state.active.clone()
        held[blocked, wall[blocked]] = True
        released = _release(held, active, index, torch.where(on & ~blocked[:, None], share, 0.5))
        delta, z = state.delta + reach * (goal - state.delta), state.z + reach * way
        return _State(delta, z, held, active, torch.maximum(bound, state.bound)), ~blocked & ~released


@dataclass(frozen=True, eq=False)
class _State:
    """δ and z there; which neurons are held at their kink, which of the others count as active; the best bound."""

    delta: Tensor
    z: Tensor
    held: Tensor
    active: Tensor
    bound: Tensor

    def rows(self, rows: Tensor) -> "_State":
        return _State(self.delta[rows], self.z[rows], self.held[rows], self.active[rows], self.bound[rows])

    def put(self, rows: Tensor, other: "_State") -> None:
        for name in ("delta", "z", "held", "active", "bound"):
            getattr(self, name)[rows] = getattr(other, name)


def _listed(held: Tensor) -> tuple[Tensor, Tensor]:
    """Indices (n, k) of each row's kinks, and which of them are real and not padding."""
    index = held.to(torch.uint8).topk(int(held.sum(1).max()), 1).indices
    return index, held.gather(1, index)


def _release(held: Tensor, active: Tensor, index: Tensor, share: Tensor) -> Tensor:
    """Let go, in place, of each row's kink whose share of [0, 1] is the most wrong one; returns who had such a kink."""
    if not index.shape[1]:
        return torch.zeros(len(index), dtype=torch.bool)
    wrong, worst = ((share - 0.5).abs() - 0.5).max(1)
    rows = (wrong > 1e-12).nonzero()[:, 0]
    freed = index[rows, worst[rows]]
    held[rows, freed] = False
    active[rows, freed] = share[rows, worst[rows]] > 1
    return wrong > 1e-12


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
