"""The shortest flip within one linear region of a deep ReLU network, and the proof that none there is shorter."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from brittle.attacks.restriction import Restriction
from brittle.common.time_limit import check_time
from brittle.geometry import least_distance
from brittle.networks import Layered

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
