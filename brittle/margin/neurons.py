"""Neurons by the one vector that matters at a KKT point, where |v| = ‖w̃‖."""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor


class Weights(NamedTuple):
    """W (m, d) rows w̃ and v (m,): the network x̃ ↦ Σ v_j φ(w̃_j·x̃)."""

    W: Tensor
    v: Tensor

    def margins(self, X: Tensor, y: Tensor) -> Tensor:
        """q (n,) on the rows x̃ of X (n, d) with labels y (n,)."""
        return y * ((X @ self.W.T).relu_() @ self.v)

    def divided(self, number: float) -> "Weights":
        """Every weight divided by a number."""
        return Weights(self.W / number, self.v / number)


@dataclass(frozen=True, eq=False)
class Neurons:
    """U (G, d) rows u_g = |v_g| w̃_g, signs (G,) of v_g."""

    U: Tensor
    signs: Tensor

    @classmethod
    def of(cls, weights: Weights) -> "Neurons":
        """Those of a network, zero ones included."""
        return cls(weights.v.abs()[:, None] * weights.W, weights.v.sign())

    @property
    def sizes(self) -> Tensor:
        """‖u_g‖ (G,)."""
        sizes: Tensor = self.U.norm(dim=1)
        return sizes

    def take(self, chosen: Tensor) -> "Neurons":
        """Some of them."""
        return Neurons(self.U[chosen], self.signs[chosen])

    def nonzero(self) -> "Neurons":
        """Those with u ≠ 0."""
        return self.take((self.U != 0).any(1))

    def balanced(self, divisor: float = 1.0) -> Weights:
        """Weights with |v_g| = ‖w̃_g‖ of the function divided by a number."""
        root = (self.U.norm(dim=1) / divisor).sqrt()
        return Weights(self.U / (divisor * root)[:, None], self.signs * root)


@dataclass(frozen=True, eq=False)
class Solution:
    """neurons, and what they took: programs (convex ones) and steps of the interior point."""

    neurons: Neurons
    programs: int
    steps: int
