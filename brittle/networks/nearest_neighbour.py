"""The 1-nearest-neighbour rule as a network: a comparator whose distance to the boundary can be computed exactly."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from brittle.common.errors import InputError, require
from brittle.geometry import least_distance
from brittle.networks.base import Network, in_chunks


@dataclass(frozen=True, eq=False)
class NearestNeighbour(Network):
    """Points (n, dim) with labels (n,): ±1 for a sign network, class numbers for one logit per class.

    The score of a class is s_k(x) = max over its points p of x·p - ‖p‖²/2, which is -½ (distance)² up to a term that is
    the same for all classes: the nearest point wins. The logit of a sign network is s₊ - s₋. All are piecewise
    linear, with the winning points as gradients.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> rule = bt.networks.NearestNeighbour(torch.tensor([[0.0], [4.0]]), torch.tensor([-1.0, 1.0]))
        >>> rule.predict(torch.tensor([[1.0], [3.0]])).tolist()
        [-1.0, 1.0]
    """

    points: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        fits = self.points.ndim == 2 and self.points.numel() > 0 and self.points.is_floating_point()
        require(fits, f"the points have shape {tuple(self.points.shape)}; floats of shape (n, dim) are needed")
        require(self.labels.shape == self.points.shape[:1], "every point needs one label")
        if self.labels.is_floating_point():
            signs = sorted(torch.unique(self.labels).tolist()) == [-1, 1]
            require(signs, "the labels must be -1 and 1, both of them, or class numbers")
        else:
            numbers = torch.unique(self.labels).tolist()
            whole = numbers == list(range(len(numbers))) and len(numbers) > 1
            require(whole, f"the class numbers are {numbers}; 0, 1, ... without gaps are needed")

    @property
    def dim(self) -> int:
        return self.points.shape[1]

    @property
    def classes(self) -> int:
        return 1 if self.labels.is_floating_point() else int(self.labels.max()) + 1

    @property
    def dtype(self) -> torch.dtype:
        return self.points.dtype

    def logits(self, X: Tensor) -> Tensor:
        return in_chunks(self._logits, self._row_bytes, X)

    def logit_gradients(self, X: Tensor, weights: Tensor) -> Tensor:
        return in_chunks(self._logit_gradients, self._row_bytes, X, weights)

    def _logits(self, X: Tensor) -> Tensor:
        scores = self._best(X)[0]
        return scores[:, 1] - scores[:, 0] if self.classes == 1 else scores

    def _logit_gradients(self, X: Tensor, weights: Tensor) -> Tensor:
        weights = weights.to(self.dtype)
        if self.classes == 1:
            weights = torch.stack([-weights, weights], 1)
        winners = self.points[self._best(X)[1]]
        return torch.einsum("nk,nkd->nd", weights, winners)

    def _best(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The score of every class and the point that gives it: (n, classes) each, the negative class first."""
        scores = X.to(self.dtype) @ self.points.T - self.points.square().sum(1) / 2
        best = [scores.where(self._members == k, -torch.inf).max(1) for k in range(max(2, self.classes))]
        return torch.stack([each.values for each in best], 1), torch.stack([each.indices for each in best], 1)

    @property
    def _members(self) -> Tensor:
        return (self.labels > 0).long() if self.classes == 1 else self.labels

    @property
    def _row_bytes(self) -> int:
        return (3 * len(self.points) + 2 * max(2, self.classes) * self.dim) * self.points.element_size()

    def radii(self, X: Tensor, y: Tensor) -> Tensor:
        """The exact distance from every row to the nearest place where another label is at least as near; (n,).

        A point q of another label rules where it is nearer than all points p of the label y: the polyhedron
        2δ·(q-p) ≥ ‖x-q‖² - ‖x-p‖² in δ. The distance to it is at least that of every half-space, which orders the
        candidates q and ends the search; each projection is a non-negative least-squares problem (Lawson and Hanson).
        """
        self.check(X, y)
        same = self.labels[None, :] == y.to(self.labels)[:, None]
        radii = [self._radius(x, own) for x, own in zip(X.double(), same, strict=True)]
        return torch.tensor(radii, dtype=torch.float64)

    def _radius(self, x: Tensor, own: Tensor) -> float:
        points = self.points.double()
        P, Q = points[own], points[~own]
        gaps = torch.cdist(Q, P, compute_mode="donot_use_mm_for_euclid_dist")
        offsets = ((x - Q).square().sum(1)[:, None] - (x - P).square().sum(1)[None, :]) / 2
        half_spaces = torch.where(gaps > 0, offsets / gaps, 0.0)
        lower, best = half_spaces.amax(1).clamp(min=0), torch.inf
        for q in lower.argsort().tolist():
            if lower[q] >= best:
                break
            apart = gaps[q] > 0
            normals = (Q[q] - P[apart]) / gaps[q, apart, None]
            best = min(best, least_distance(normals.numpy(), half_spaces[q, apart].numpy()).distance)
        return best

    def module(self) -> nn.Module:
        raise InputError("the nearest-neighbour rule has no parameters to train")

    def loaded(self, module: nn.Module) -> "NearestNeighbour":
        raise InputError("the nearest-neighbour rule has no parameters to train")
