"""The plane through one example, its shortest flip and its nearest rival, in any number of dimensions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from brittle.attacks import AttackResult, MinimumNorm
from brittle.attacks.subject import Holder, Model, subject
from brittle.certificates import Certificate
from brittle.common.errors import require, require_count, require_value
from brittle.common.result import Result
from brittle.data import Data
from brittle.geometry import nearest_rivals
from brittle.report.style import COLOURS, Drawing, draw_surface, house_style, panels

GRID = 121
REACH = 2.2  # lengths of the flip to each side


@dataclass(frozen=True, eq=False)
class Slice(Result):
    """What `slice` draws.

    steps (g,): lengths to each side; margins (g, g): at x + steps[j]·along + steps[i]·across; along (dim,): unit vector
    of the shortest flip; across (dim,): the way to the nearest example of another label, orthogonal to it; flip: the
    length of the flip; rival: the row of that example, -1 where all have one label; radius: what is proved, 0 unless
    asked for.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> network = bt.networks.nearly_orthogonal(data.X, data.y).network
        >>> shown = bt.plot.Slice.of(network, data, 1)
        >>> round(shown.flip, 4), abs(float(shown.along @ shown.across)) < 1e-9
        (1.4142, True)
    """

    steps: Tensor
    margins: Tensor
    along: Tensor
    across: Tensor
    flip: float
    rival: int
    radius: float

    @classmethod
    def of(cls, network: Model, data: Holder, example: int = 0, *, certificate: Certificate | None = None) -> "Slice":
        """Through this example."""
        known, data = subject(network, data)
        require(0 <= example < len(data), f"example is {example}; it must be from 0 to {len(data) - 1}")
        known, one = known.to(torch.float64), data.take(torch.tensor([example]))
        flip = MinimumNorm().run(known, one).perturbations[0]
        length = float(flip.norm())
        require(length > 0, f"example {example} has no flip to show: it is misclassified, or none was found")
        along = flip / length
        rival, across = _across(data, example, along)
        steps = torch.linspace(-REACH * length, REACH * length, GRID, dtype=torch.float64)
        up, right = torch.meshgrid(steps, steps, indexing="ij")
        points = one.X + right.reshape(-1, 1) * along + up.reshape(-1, 1) * across
        with torch.no_grad():
            margins = known.margins(points, one.y.expand(len(points))).double().view(GRID, GRID)
        radius = 0.0 if certificate is None else float(certificate.bound(known, one).lower[0])
        return cls(steps, margins, along, across, length, rival, radius)


def _across(data: Data, example: int, along: Tensor) -> tuple[int, Tensor]:
    """The nearest rival, and the way there without what lies along the flip; any other way where there is none."""
    rival = -1
    way = torch.zeros_like(along)
    if bool((data.y != data.y[example]).any()):
        rival = int(nearest_rivals(data.X[[example]], data.y[[example]], data.X, data.y)[1][0])
        way = data.X[rival] - data.X[example]
        way = way - (way @ along) * along
    if float(way.norm()) <= 1e-12 * float(data.X.norm()):
        way = torch.zeros_like(along)
        way[int(along.abs().argmin())] = 1.0
        way = way - (way @ along) * along
    length = float(way.norm())
    return rival, way / length if length > 0 else way


def slice(network: Model, data: Holder, example: int = 0, *, certificate: Certificate | None = None) -> Figure:
    """The margin in the plane of an example's shortest flip (to the right) and its nearest rival (upwards).

    With a `certificate` the proved ball is drawn.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> network = bt.networks.nearly_orthogonal(data.X, data.y).network
        >>> figure = bt.plot.slice(network, data, 1, certificate=bt.certificates.Exact())
    """
    shown = Slice.of(network, data, example, certificate=certificate)
    reach = float(shown.steps[-1])
    bound = float(shown.margins.abs().max()) or 1.0
    figure, (axes,) = panels(width=5.8, height=4.6)
    with house_style():
        extent = (-reach, reach, -reach, reach)
        image = axes.imshow(shown.margins.numpy(), cmap="RdBu", vmin=-bound, vmax=bound, extent=extent, origin="lower")
        if bool((shown.margins < 0).any()):
            axes.contour(
                shown.steps.numpy(),
                shown.steps.numpy(),
                shown.margins.numpy(),
                levels=[0.0],
                colors="black",
                linewidths=1.2,
            )
        axes.plot([0], [0], "o", color="black", label=f"example {example}")
        axes.plot([shown.flip], [0], "x", color="black", label=f"its shortest flip, {shown.flip:.4g}")
        if shown.radius > 0:
            turn = torch.linspace(0, 2 * torch.pi, 200)
            ball = f"no flip inside (proved), {shown.radius:.4g}"
            axes.plot(shown.radius * turn.cos(), shown.radius * turn.sin(), "--", color=COLOURS[2], label=ball)
        figure.colorbar(image, ax=axes, label="margin")
    axes.set(xlabel="along the shortest flip", ylabel="towards another class", aspect="equal")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), fontsize="small", frameon=False)
    axes.grid(False)
    return figure


# A network in space: its zero surface and the examples, which often lie on a plane.


ROOM = 0.3


def space(network: Model, data: Holder, *, grid: int = 31, elevation: float = 18.0, azimuth: float = -60.0) -> Figure:
    """The zero surface of a network with one output on examples with three features, seen from these angles.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Grid25().sample()
        >>> start = bt.networks.TorchLinearInit().draw(3, width=40, rng=torch.Generator().manual_seed(0))
        >>> figure = bt.plot.space(start, data, grid=11)
    """
    known, data = subject(network, data)
    require(data.columns == 3, f"the examples have {data.columns} features; space takes 3 (see brittle.plot.slice)")
    require(known.classes == 1, f"the network has {known.classes} outputs; a zero surface needs one")
    require_count("grid", grid)
    low, high = data.X.min(0).values, data.X.max(0).values
    half = float((high - low).max()) / 2 * (1 + ROOM) or 1.0
    steps = torch.linspace(-half, half, grid, dtype=torch.float64)
    axes = [middle + steps for middle in (low + high) / 2]
    points = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    with torch.no_grad():
        values = known.logits(points.to(known.dtype)).double().view(grid, grid, grid)
    with house_style():
        figure = Drawing(figsize=(5.4, 4.8))
        panel = figure.add_subplot(projection="3d")
        x, y, z = (each.numpy() for each in axes)
        draw_surface(panel, x, y, z, values.numpy(), data.X.numpy(), data.y.numpy())
        panel.view_init(elevation, azimuth)
    return figure


# Examples that are pictures, what was added to them, and the sum.


FEW = 5


def flips(data: Data, found: AttackResult, rows: Sequence[int] | None = None) -> Figure:
    """Each example above its flip, enlarged to full contrast, above both together; the shortest flips unless given.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Digits(classes=(3, 8)).sample(40, torch.Generator().manual_seed(0))
        >>> rule = bt.networks.NearestNeighbour(data.X, data.y)
        >>> figure = bt.plot.flips(data, bt.attacks.GradientStep().run(rule, data), rows=[0, 1])
    """
    image = require_value(data.truth.image, "the data are no pictures: their truth has no image")
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
