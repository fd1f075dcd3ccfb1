"""z_1 = W_1 x + b_1, z_k = W_k h_{k-1} + b_k with h = φ(z) = max(z, 0), and the logits W_{K+1} h_K + b_{K+1}."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from proofcheck.balls import Array, Ball, ball, frobenius, joined, lengths


class Intervals(NamedTuple):
    """low ≤ z ≤ high of all hidden neurons, layer after layer, at every flip that is left."""

    low: Array
    high: Array

    def at(self, neuron: int, low: float, high: float) -> "Intervals | None":
        """The part in which one of them has an interval; None if there is none. (NaN says nothing: fmax skips it.)"""
        part = Intervals(self.low.copy(), self.high.copy())
        part.low[neuron], part.high[neuron] = np.fmax(part.low[neuron], low), np.fmin(part.high[neuron], high)
        return None if part.low[neuron] > part.high[neuron] else part


@dataclass(frozen=True, eq=False)
class Network:
    """(weights, bias) of every layer."""

    weights: list[Array]
    biases: list[Array]

    @cached_property
    def parts(self) -> list[slice]:
        """Where each hidden layer is in a list of all hidden neurons."""
        return [slice(*pair) for pair in pairwise(np.cumsum([0, *map(len, self.biases[:-1])]).tolist())]

    def parameters(self) -> list[Array]:
        return [each for pair in zip(self.weights, self.biases, strict=True) for each in pair]

    @cached_property
    def frame(self) -> tuple[Ball, Ball]:
        """Z and E of coordinates ε of δ with W_1 δ = Zε and ‖δ‖² ≥ ε·Eε: δ itself, or fewer. For those,
        δ = W_1ᵀTε + a rest that W_1 maps to 0, with any regular T. This one makes E about I; it is triangular, and
        regular if no 0 is on its diagonal.
        """
        W, (m, d) = self.weights[0], self.weights[0].shape
        R = np.asarray(np.linalg.qr(W.T, mode="r"), dtype=np.float64)
        if m < d and (abs(R.diagonal()) > 1e-6 * abs(R).max()).all():
            T = np.triu(solve_triangular(R, np.eye(m)))
            Z = (ball(W) @ W.T) @ T
            E = ball(T.T) @ Z
            if T.diagonal().all() and frobenius((E - np.eye(m)).size()) < 1e-3:
                return Z, E
        return ball(W), ball(np.eye(d))

    def margins(self, y: float) -> list[tuple[Ball, Ball]]:
        """f = c·h_K + c_0 for every rival: below 0 where the example flips to it. A single logit has the sign of y."""
        V, c = ball(self.weights[-1]), ball(self.biases[-1])
        if len(c.mid) == 1:
            return [(V[0] * y, c[0] * y)]
        return [(V[int(y)] - V[k], c[int(y)] - c[k]) for k in range(len(c.mid)) if k != y]

    def offsets(self, x: Array) -> Ball:
        """z of all hidden neurons where δ = 0 in the first layer, and where h = 0 in the layer before any other."""
        return joined([ball(self.weights[0]) @ x + self.biases[0], *map(ball, self.biases[1:-1])])

    def first_intervals(self, z: Ball, radius: float) -> Intervals:
        """z_1 is within ‖w‖·radius of its value at the example; nothing is known yet of other layers."""
        reach = np.full(len(z.mid), np.inf)
        reach[self.parts[0]] = lengths(self.weights[0].T) * radius
        return Intervals(z.widened(reach).low(), z.widened(reach).high())
