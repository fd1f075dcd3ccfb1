"""The shortest flip within one linear region of a deep ReLU network, and the proof that none there is shorter."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from brittle.attacks.restriction import Restriction
from brittle.geometry import least_distance
from brittle.networks import Layered

ROUNDS = 40
NEW_WALLS = 16


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
            delta, proved = self._projection(wall, height)
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
        gradient = self._back(row, layer)
        return -gradient.numpy(), float(row @ self._values(torch.zeros_like(self.x))[layer])

    def _projection(self, wall: np.ndarray, height: float) -> tuple[Tensor | None, float]:
        """min ‖δ‖ with wall·δ ≥ height inside the region, adding the region's walls as they are violated."""
        walls, heights = wall[None], np.array([height])
        known: set[tuple[int, int]] = set()
        bound = 0.0
        for _ in range(ROUNDS):
            delta, bound = least_distance(walls, heights)
            if delta is None:
                return None, torch.inf
            violated = self._violated(torch.from_numpy(delta), known)
            if not violated:
                return torch.from_numpy(delta), bound
            known |= set(violated)
            rows, limits = self._walls(violated)
            walls, heights = np.concatenate([walls, rows]), np.concatenate([heights, limits])
        return None, bound

    def _violated(self, delta: Tensor, known: set[tuple[int, int]]) -> list[tuple[int, int]]:
        """The neurons (layer, index) that are farthest on the wrong side."""
        found = []
        for layer, (z, active) in enumerate(zip(self._values(delta)[:-1], self.pattern, strict=True)):
            wrong = torch.where(active, -z, z)
            for index in (wrong > 1e-12 * (1 + z.abs().max())).nonzero()[:, 0].tolist():
                if (layer, index) not in known:
                    found.append((float(wrong[index]), layer, index))
        found.sort(reverse=True)
        return [(layer, index) for _, layer, index in found[:NEW_WALLS]]

    def _walls(self, neurons: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
        at_x = self._values(torch.zeros_like(self.x))
        rows, heights = [], []
        for layer, index in neurons:
            side = 1.0 if bool(self.pattern[layer][index]) else -1.0
            unit = torch.zeros(self.network.shape[layer + 1], dtype=torch.float64)
            unit[index] = side
            rows.append(self._back(unit, layer).numpy())
            heights.append(-side * float(at_x[layer][index]))
        return np.stack(rows), np.array(heights)

    def _values(self, delta: Tensor) -> list[Tensor]:
        """Every layer's inputs as the region's affine functions of δ, also outside of it."""
        first, *others = self.network.layers
        values = [first.apply((self.x + delta)[None])[0]]
        for layer, active in zip(others, self.pattern, strict=True):
            values.append(layer.apply((values[-1] * active)[None])[0])
        return values

    def _back(self, row: Tensor, layer: int) -> Tensor:
        """The gradient in x of a row of weights on the values of `layer`."""
        back = self.network.layers[layer].transpose(row[None])
        for below in reversed(range(layer)):
            back = self.network.layers[below].transpose(back * self.pattern[below])
        return self.subspace.project(back[0])
