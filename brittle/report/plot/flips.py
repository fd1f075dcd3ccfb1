"""Examples that are pictures, what was added to them, and the sum."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from brittle.attacks import AttackResult
from brittle.common.errors import require, required
from brittle.report.style import panels
from brittle.settings import Data

FEW = 5


def flips(data: Data, found: AttackResult, rows: Sequence[int] | None = None) -> Figure:
    """Each example above its flip, enlarged to full contrast, above both together; the shortest flips unless given.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.settings.Digits(classes=(3, 8)).sample(40, torch.Generator().manual_seed(0))
        >>> rule = bt.networks.NearestNeighbour(data.X, data.y)
        >>> figure = bt.plot.flips(data, bt.attacks.GradientStep().run(rule, data), rows=[0, 1])
    """
    image = required(data.truth.image, "the data are no pictures: their truth has no image")
    alike = found.perturbations.shape == data.X.shape
    require(
        alike, f"the attack is on {len(found.norms)} examples, and the data have {len(data)}: give those it was run on"
    )
    chosen = shortest(found, FEW) if rows is None else [*rows]
    require(len(chosen) > 0, "no example was flipped, and none was asked for: there is nothing to show")
    figure, axes = panels(columns=len(chosen), rows=3, width=1.5, height=1.5)
    for column, row in enumerate(chosen):
        x, flip = data.X[row], found.perturbations[row]
        reach = float(flip.abs().max()) or 1.0
        looks: tuple[dict[str, Any], ...] = (
            {"cmap": "gray"},
            {"cmap": "RdBu", "vmin": -reach, "vmax": reach},
            {"cmap": "gray"},
        )
        for line, (values, look) in enumerate(zip((x, flip, x + flip), looks, strict=True)):
            panel = axes[line * len(chosen) + column]
            panel.imshow(_picture(values, image).numpy(), **look)
            panel.set(xticks=[], yticks=[])
            panel.grid(False)
        axes[column].set_title(f"{float(found.norms[row]):.3g}", fontsize="small")
    for line, name in enumerate(("example", "flip", "both")):
        axes[line * len(chosen)].set_ylabel(name)
    return figure


def shortest(found: AttackResult, count: int) -> list[int]:
    """The rows of the shortest flips of examples that were right."""
    some = found.success & (found.norms > 0)
    order = torch.where(some, found.norms, math.inf).argsort()
    return order[: min(count, int(some.sum()))].tolist()


def _picture(values: Tensor, image: tuple[int, ...]) -> Tensor:
    picture = values.view(*image)
    if len(image) == 3:  # channels first, as PyTorch has them
        picture = picture.permute(1, 2, 0)
        picture = (picture - picture.min()) / (picture.max() - picture.min()).clamp_min(1e-300)
    return picture
