"""A ReLU network as a list of affine layers, with what rounding can do to its margins and norms."""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from scipy import sparse
from scipy.sparse import linalg as sparse_linalg
from torch import Tensor

from brittle.certificates.rounding import (
    UNDERFLOW,
    Array,
    Exponents,
    add_scaled,
    factor,
    gamma,
    near_one,
    shift_exponent,
)
from brittle.networks import Network, as_layered

STEP = 32  # between the exponents of inputs: few of them are met, and each is prepared once
SLACKS = (2e-9, 1e-6, 1e-3)  # over the estimate of a largest eigenvalue, until a proof succeeds
SPARSE = 0.1  # the share of entries that are not 0, below which a matrix is sparse
SMALL = 400  # rows of a Gram matrix all of whose eigenvalues are cheap


@dataclass(frozen=True, eq=False)
class DeepMargins:
    """z_l = weights[l] φ(z_{l-1}) + biases[l] at inputs in units of 2^exponent; the outputs, margins over every rival,
    are in units of 2^units. Every row of the weights is near 1, and every weight, bias and entry of x may be off by
    what falls below the floats on the way there.
    """

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    x: Tensor
    exponent: int
    units: Exponents

    @cached_property
    def absolute(self) -> tuple[Tensor, ...]:
        """The absolute values of the weights, once for all bounds on their rounding."""
        return tuple(W.abs() for W in self.weights)

    def outputs(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs at x, and how far they may be from those in real arithmetic."""
        value, slip = x, torch.full_like(x, UNDERFLOW)
        for layer, (W, size_of_W, b) in enumerate(zip(self.weights, self.absolute, self.biases, strict=True)):
            if layer:
                value, slip = value.clamp(min=0), torch.where(value + slip * (1 + gamma(4)) < 0, 0.0, slip)
            size = value.abs() + slip
            carried = size_of_W @ slip * (1 + gamma(len(size) + 2))
            slip = carried + gamma(len(size) + 4) * (size_of_W @ size + b.abs())
            slip = slip + UNDERFLOW * (1 + size.sum())
            value = W @ value + b
        return value, slip * (1 + gamma(4))


@dataclass(frozen=True, eq=False)
class Layers:
    """z_l = weights[l] φ(z_{l-1}) + biases[l] in float64; the last layer's rows are logits."""

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    _hidden: dict[int, tuple[list[Tensor], list[Tensor], Exponents]] = field(default_factory=dict)

    @classmethod
    def of(cls, network: Network, method: str) -> "Layers":
        layered = as_layered(network, f"method {method}")
        weights, biases = ([values.detach().numpy() for values in part] for part in (layered.weights, layered.biases))
        return cls(tuple(weights), tuple(biases))

    @cached_property
    def work(self) -> int:
        """Multiplications of one bound on the inputs of all neurons, each put in backwards down to x."""
        below, total = 0, 0
        for W in self.weights:
            total, below = total + len(W) * below, below + W.size
        return total

    def around(self, x: Tensor, ball: float, y: Tensor) -> DeepMargins:
        """The margins for inputs x + δ, ‖δ‖ ≤ ball, in units that bring every number near 1."""
        exponent = -(-math.frexp(max(float(x.abs().max()), ball))[1] // STEP) * STEP
        weights, biases, units = self._near_one(exponent)
        W, by, b, b_by = self.differences(y)
        last, bias, outputs = near_one(W, by + units, b, b_by)
        parts = (*weights, torch.from_numpy(last)), (*biases, torch.from_numpy(bias))
        return DeepMargins(*parts, torch.from_numpy(shift_exponent(x.numpy(), -exponent)), exponent, outputs)

    def last_rows(self, y: Tensor) -> tuple[Array, Exponents]:
        """The last layer's weights of every margin as rows near 1, and their units."""
        W, by, b, _ = self.differences(y)
        rows, _, units = near_one(W, by, np.zeros_like(b))
        return rows, units

    def _near_one(self, exponent: int) -> tuple[list[Tensor], list[Tensor], Exponents]:
        """All layers but the last, each neuron in a unit of its own."""
        if exponent not in self._hidden:
            weights, biases, units = [], [], None
            for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
                rows, bias, units = near_one(W, exponent if units is None else units, b)
                weights.append(torch.from_numpy(rows))
                biases.append(torch.from_numpy(bias))
            assert units is not None  # there are two layers at least
            self._hidden[exponent] = weights, biases, units
        return self._hidden[exponent]

    def differences(self, y: Tensor) -> tuple[Array, Exponents, Array, Exponents]:
        """The last layer of the margins as W·2^by, b·2^b_by, each entry rounded once at most."""
        W, b = self.weights[-1], self.biases[-1]
        if len(W) == 1:
            return float(y) * W, np.zeros(W.shape, dtype=np.int64), float(y) * b, np.zeros(1, dtype=np.int64)
        label, rivals = int(y), np.flatnonzero(np.arange(len(W)) != int(y))
        pairs = np.stack([np.broadcast_to(W[label], W[rivals].shape), -W[rivals]])
        heights = np.stack([np.broadcast_to(b[label], b[rivals].shape), -b[rivals]])
        return *add_scaled(pairs), *add_scaled(heights)


def spectral_norm(W: Array) -> float:
    """A ceiling over ‖W‖ of numbers near 1: WWᵀ or WᵀW, the smaller one, is below s²I if a Cholesky factor of the
    difference exists.
    """
    rows = W if W.shape[0] <= W.shape[1] else W.T
    frobenius = float(np.linalg.norm(W)) * (1 + gamma(W.size))
    if frobenius == 0:
        return 0.0
    gram = _gram(rows / frobenius)
    largest, count = _largest_eigenvalue(gram), max(W.shape)
    for slack in SLACKS:
        square = min(largest * (1 + slack), 1.0)
        shift = 4 * (gamma(count + 6) + gamma(len(gram) + 2)) * (len(gram) * square + 1)
        if factor((square - shift) * np.eye(len(gram)) - gram) is not None:
            return math.sqrt(square) * frobenius * (1 + gamma(4))
    return frobenius


def _gram(rows: Array) -> Array:
    """rows·rowsᵀ; most entries of a convolution's matrix are 0."""
    if np.count_nonzero(rows) > SPARSE * rows.size:
        return np.asarray(rows @ rows.T)
    few = sparse.csr_array(rows)
    return np.asarray((few @ few.T).toarray())


def _largest_eigenvalue(gram: Array) -> float:
    """An estimate."""
    if len(gram) <= SMALL:
        return float(np.linalg.eigvalsh(gram)[-1])
    start = np.random.default_rng(0).standard_normal(len(gram))
    return float(sparse_linalg.eigsh(gram, k=1, v0=start, tol=1e-8, return_eigenvectors=False)[0])
