"""The margin along a ray, with every kink where it is; and what one direction does to all examples, by its size."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from torch import Tensor

from brittle.attacks import MinimumNorm, UniversalResult, first_flip
from brittle.attacks.pieces import is_piecewise_linear, pieces
from brittle.attacks.subject import Holder, Model, subject
from brittle.certificates import Certificate
from brittle.common.errors import require, require_positive
from brittle.common.result import Result
from brittle.networks import Network
from brittle.report.style import COLOURS, panels

SAMPLES = 801  # of a network that is not made of lines
BEYOND = 1.6  # how far to look, in lengths of the way to the flip


@dataclass(frozen=True, eq=False)
class Along(Result):
    """What `ray` draws.

    at (k,): lengths t along the ray; margins (k,): the margin at x + t u, linear in between where `exact`; flip: the
    first t with a negative margin, infinity where there is none up to the end; direction (dim,): the unit vector u;
    radius: what is proved for the example in every direction, 0 unless asked for.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> W, one = torch.tensor([[1.0], [-1.0]]), torch.ones(2)
        >>> network = bt.networks.TwoLayer(W, one, one, torch.tensor(-2.5))
        >>> data = bt.data.Data([[2.0]], [1.0])
        >>> along = bt.plot.Along.of(network, data, 0, direction=[-1.0], limit=5.0)
        >>> along.at.tolist(), along.margins.tolist(), along.flip
        ([0.0, 1.0, 3.0, 5.0], [0.5, -0.5, -0.5, 1.5], 0.5)
    """

    at: Tensor
    margins: Tensor
    flip: float
    direction: Tensor
    exact: bool
    radius: float

    @classmethod
    def of(
        cls,
        network: Model,
        data: Holder,
        example: int = 0,
        *,
        direction: Tensor | list[float] | None = None,
        limit: float | None = None,
        certificate: Certificate | None = None,
    ) -> "Along":
        """Along `direction`, that of the shortest flip unless given, up to `limit`."""
        known, data = subject(network, data)
        require(0 <= example < len(data), f"example is {example}; it must be from 0 to {len(data) - 1}")
        known, one = known.to(torch.float64), data.take(torch.tensor([example]))
        way = (
            MinimumNorm().run(known, one).perturbations[0] if direction is None else torch.as_tensor(direction).double()
        )
        require(way.shape == one.X[0].shape, f"direction has shape {tuple(way.shape)}; ({one.columns},) is needed")
        require(float(way.norm()) > 0, "direction is zero; the example needs a way to go (is it misclassified?)")
        unit = way / way.norm()
        reach = float(first_flip(known, one.X, one.y, unit[None]).item())
        limit = (
            limit if limit is not None else BEYOND * (reach if 0 < reach < torch.inf else float(one.X.norm()) or 1.0)
        )
        require_positive("limit", limit)
        exact = is_piecewise_linear(known)
        at = (
            _knots(known, one.X, one.y, unit, limit)
            if exact
            else torch.linspace(0, limit, SAMPLES, dtype=torch.float64)
        )
        with torch.no_grad():
            margins = known.margins(one.X + at[:, None] * unit, one.y.expand(len(at))).double()
        radius = 0.0 if certificate is None else float(certificate.bound(known, one).lower[0])
        return cls(at, margins, reach if reach <= limit else torch.inf, unit, exact, radius)


def _knots(network: Network, x: Tensor, y: Tensor, unit: Tensor, limit: float) -> Tensor:
    """Where the margin bends: at the kinks of the logits, and where the nearest rival changes."""
    found = pieces(network, x, y, unit[None], torch.tensor([limit], dtype=torch.float64))
    knots = [torch.zeros(1, dtype=torch.float64), torch.tensor([limit], dtype=torch.float64)]
    for start, stop, value, slope in zip(found.start[0], found.stop[0], found.value[0], found.slope[0], strict=True):
        if stop > start:
            knots.append(start + envelope(value, slope, float(stop - start)))
    places: Tensor = torch.cat(knots).sort().values
    return places[torch.cat([places.new_ones(1, dtype=torch.bool), places.diff() > 0])]


def envelope(value: Tensor, slope: Tensor, length: float) -> Tensor:
    """Where the smallest of the lines value + t slope changes in [0, length), 0 among them."""
    at, bends = 0.0, [0.0]
    now = min(range(len(value)), key=lambda line: (float(value[line]), float(slope[line])))
    while True:
        steeper = slope < slope[now]
        meets = torch.where(steeper, (value - value[now]) / (slope[now] - slope).clamp_min(1e-300), torch.inf)
        after = float(meets.clamp_min(at).min())
        if not after < length:
            return torch.tensor(bends, dtype=torch.float64)
        first = (meets.clamp_min(at) == after).nonzero()[:, 0]
        now = int(first[slope[first].argmin()])
        at = after
        bends.append(at)


def ray(
    network: Model,
    data: Holder,
    example: int = 0,
    *,
    direction: Tensor | list[float] | None = None,
    limit: float | None = None,
    certificate: Certificate | None = None,
) -> Figure:
    """The margin of one example along `direction`, that of its shortest flip unless given, with every kink.

    With a `certificate` the length that is proved safe in every direction is shaded.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> network = bt.networks.nearly_orthogonal(data.X, data.y).network
        >>> figure = bt.plot.ray(network, data, example=1, certificate=bt.certificates.Exact())
    """
    shown = Along.of(network, data, example, direction=direction, limit=limit, certificate=certificate)
    figure, (axes,) = panels(width=6.2)
    axes.axhline(0, color="black", linewidth=0.8)
    if shown.radius > 0:
        axes.axvspan(0, shown.radius, color=COLOURS[2], alpha=0.12, label=f"proved safe, up to {shown.radius:.4g}")
    axes.plot(
        shown.at, shown.margins, "o-" if len(shown.at) < 120 and shown.exact else "-", label="margin", markersize=3
    )
    if shown.flip < torch.inf:
        axes.plot([shown.flip], [0], "x", color=COLOURS[1], markersize=9, label=f"flips at {shown.flip:.4g}")
    bends = f", {len(shown.at) - 2} kinks" if shown.exact else ""
    axes.set(xlabel="length of the perturbation", ylabel="margin")
    axes.set_title(f"Example {example} along a ray{bends}")
    axes.legend()
    return figure


def curve(results: UniversalResult | Mapping[str, UniversalResult]) -> Figure:
    """The share of the examples that one direction flips, by its size; several results by their names.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> figure = bt.plot.curve(bt.attacks.Universal().run(network, data))
    """
    named = {"": results} if isinstance(results, UniversalResult) else results
    require(len(named) > 0, "results is empty; give at least one, by its name")
    ends = [each.smallest if each.smallest < torch.inf else 2 * each.size for each in named.values()]
    sizes = torch.linspace(0, 1.25 * max(*ends, 1e-300), 400, dtype=torch.float64)
    figure, (axes,) = panels(width=6.2)
    for name, each in named.items():
        axes.plot(sizes, 100 * each.curve(sizes), label=name or None)
        if each.smallest < torch.inf:
            axes.axvline(each.smallest, color="black", linestyle=":", linewidth=1)
    axes.set(xlabel="size of the perturbation", ylabel="examples flipped, %", ylim=(-3, 103))
    axes.set_title("One direction for all examples")
    if any(named):
        axes.legend()
    return figure
