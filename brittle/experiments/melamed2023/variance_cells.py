"""How many principal components hold most of the variance of a set of pictures."""

import torch

from brittle.experiments.base import Experiment, Params, Point
from brittle.experiments.images import KINDS, missing
from brittle.settings import explained_variance

SHARES = (0.9, 0.95)


class VarianceCells(Experiment):
    """Cells `data` and `examples` (0 for all of them); `seed` picks which."""

    family = "melamed2023/variance"

    def measure(self, params: Params) -> Point:
        if (nothing := missing(params)) is not None:
            return nothing
        rng = torch.Generator().manual_seed(params["seed"])
        data = KINDS[params["data"]]().sample(params["examples"] or None, rng)
        share = explained_variance(data)
        counts = {f"components_{s * 100:.0f}": int((share < s).sum()) + 1 for s in SHARES}
        return {"dim": data.dim, "used": len(data), "cumulative": [round(float(s), 6) for s in share], **counts}

    def cost(self, params: Params) -> float:
        """Reading the files, and the covariance."""
        if params.get("missing"):
            return params["would_take"]
        return {"digits": 0.1, "mnist": 5.0, "cifar10": 60.0}[params["data"]]
