"""How many principal components hold most of the variance of a set of pictures."""

from dataclasses import dataclass

import torch

from brittle.data import compute_explained_variance
from brittle.experiments.cell import Cell, Point
from brittle.experiments.images import KINDS

SHARES = (0.9, 0.95)


@dataclass(frozen=True, kw_only=True)
class VarianceCell(Cell):
    """How many principal components hold most of the variance."""

    family = "melamed2023/variance"
    data: str  # digits, mnist or cifar10
    examples: int  # 0 for all of them
    seed: int  # which examples

    def measure(self) -> Point:
        rng = torch.Generator().manual_seed(self.seed)
        data = KINDS[self.data]().sample(self.examples or None, rng)
        share = compute_explained_variance(data)
        counts = {f"components_{s * 100:.0f}": int((share < s).sum()) + 1 for s in SHARES}
        return {"dim": data.dim, "used": len(data), "cumulative": [round(float(s), 6) for s in share], **counts}

    def cost(self) -> float:
        """Reading the files, and the covariance."""
        return {"digits": 0.1, "mnist": 5.0, "cifar10": 60.0}[self.data]
