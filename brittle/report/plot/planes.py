"""A network on the plane: its boundary, the proved balls, the lines of its neurons, one direction for all examples."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle
from torch import Tensor

from brittle.attacks import Universal, UniversalResult
from brittle.attacks.subject import Holder, Model, subject
from brittle.certificates import Certificate, Exact, RadiusBounds
from brittle.common.errors import require, require_count
from brittle.common.result import Result
from brittle.networks import Layered, Network, get_layered
from brittle.report.style import COLOURS, NEGATIVE, POSITIVE, draw_boundary, house_style, panels

ROOM = 0.35  # around the examples, as a share of their extent
KINK = "#555555"
MARKS = "osD^vP*X"


@dataclass(frozen=True, eq=False)
class Plane(Result):
    """What `plane` draws.

    x, y (g,): the grid; values (g, g): the logit at (x[j], y[i]), or the number of the class; examples (n, 2) with
    labels (n,); bounds: the proved and attacked radii, None without balls; kinks (k, 2, 2): the ends of the lines
    within the window on which a neuron of the first layer bends, with strengths (k,) in [0, 1]; universal: one
    direction against all examples, None where it was not asked for or there are more than two classes.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Data([[-1.0, 0.0], [1.0, 0.0]], [-1.0, 1.0])
        >>> network = bt.networks.TwoLayer(
        ...     torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.zeros(2), torch.tensor([1.0, -1.0])
        ... )
        >>> shown = bt.plot.Plane.of(network, data)
        >>> [round(radius, 6) for radius in shown.bounds.lower.tolist()]
        [1.0, 1.0]
    """

    x: Tensor
    y: Tensor
    values: Tensor
    examples: Tensor
    labels: Tensor
    bounds: RadiusBounds | None
    kinks: np.ndarray
    strengths: np.ndarray
    universal: UniversalResult | None

    @classmethod
    def of(
        cls,
        network: Model,
        data: Holder,
        *,
        balls: bool = True,
        neurons: bool = True,
        universal: bool = True,
        certificate: Certificate | None = None,
        grid: int = 201,
    ) -> "Plane":
        """Measured on the network; balls are proved by `certificate`, `Exact()` unless given."""
        known, data = subject(network, data)
        require(
            data.columns == 2, f"the examples have {data.columns} features; a plane takes 2 (see brittle.plot.slice)"
        )
        require_count("grid", grid)
        known = known.to(torch.float64)
        layers = get_layered(known)
        bounds = (certificate or Exact()).bound(known, data) if balls and layers is not None else None
        x, y = _window(data.X, grid)
        kinks, strengths = (
            _kinks(layers, x, y) if neurons and layers is not None else (np.zeros((0, 2, 2)), np.zeros(0))
        )
        against = Universal().run(known, data) if universal and data.binary else None
        return cls(x, y, _values(known, x, y), data.X, data.y, bounds, kinks, strengths, against)


def _window(X: Tensor, grid: int) -> tuple[Tensor, Tensor]:
    """A square with room around all examples, the same for every network."""
    low, high = X.min(0).values, X.max(0).values
    half = (1 + ROOM) * float((high - low).max()) / 2 or 1.0
    steps = torch.linspace(-half, half, grid, dtype=torch.float64)
    middle = (low + high) / 2
    return middle[0] + steps, middle[1] + steps


def _values(network: Network, x: Tensor, y: Tensor) -> Tensor:
    down, across = torch.meshgrid(y, x, indexing="ij")
    points = torch.stack([across.reshape(-1), down.reshape(-1)], 1)
    with torch.no_grad():
        values = network.logits(points) if network.classes == 1 else network.predict(points)
    return values.double().view(len(y), len(x))


def _kinks(network: Layered, x: Tensor, y: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Lines w·x + b = 0 within the window, and ‖w_j‖ times the length of what comes out of the neuron."""
    W, b = network.weights[0].numpy(), network.biases[0].numpy()
    strengths = np.linalg.norm(W, axis=1) * np.linalg.norm(network.weights[1].numpy(), axis=0)
    low, high = np.array([x[0], y[0]]), np.array([x[-1], y[-1]])
    lines, inside = segments(W, b, low, high)
    return lines, strengths[inside] / max(float(strengths.max()), 1e-300)


def segments(W: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The parts (k, 2, 2) of the lines w·x + b = 0 inside a box, and which of the rows (k,) have one."""
    squared = (W**2).sum(1)
    rows = np.flatnonzero(squared > 0)
    foot = -(b[rows] / squared[rows])[:, None] * W[rows]
    along = np.stack([-W[rows, 1], W[rows, 0]], 1) / np.sqrt(squared[rows])[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.sort(np.stack([(low - foot) / along, (high - foot) / along]), axis=0)
    parallel = along == 0  # to an axis: the line is between the walls, or nowhere
    between = (low <= foot) & (foot <= high)
    enter = np.where(parallel, np.where(between, -np.inf, np.inf), ends[0]).max(1)
    leave = np.where(parallel, np.where(between, np.inf, -np.inf), ends[1]).min(1)
    seen = enter < leave
    times = np.stack([enter[seen], leave[seen]], 1)[:, :, None]
    return foot[seen][:, None] + times * along[seen][:, None], rows[seen]


def plane(
    network: Model,
    data: Holder,
    balls: bool = True,
    neurons: bool = True,
    universal: bool = True,
    certificate: Certificate | None = None,
    title: str = "",
) -> Figure:
    """A network on examples with two features.

    The boundary; `balls` of proved radius around the examples, dotted to the flip where the radius is known;
    the lines on which `neurons` of the first layer bend, stronger ones darker; one `universal` direction that moves
    every example against its label.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Data([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [-1, 1, 1])
        >>> start = bt.networks.TorchLinearInit().draw(2, width=10, rng=torch.Generator().manual_seed(0))
        >>> network = bt.training.Flow(until=bt.training.LogLoss(-3)).train(start, data).network
        >>> figure = bt.plot.plane(network, data, balls=True, neurons=True, universal=True)
        >>> path = bt.plot.save(figure, "plane.png")
    """
    return planes({title: network}, data, balls, neurons, universal, certificate)


def planes(
    networks: Mapping[str, Model],
    data: Holder,
    balls: bool = True,
    neurons: bool = True,
    universal: bool = True,
    certificate: Certificate | None = None,
) -> Figure:
    """Several networks on the same examples, side by side under their names; options as for `plane`.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(2).sample(2)
        >>> start = bt.networks.TorchLinearInit().draw(2, width=10, rng=torch.Generator().manual_seed(0))
        >>> trained = bt.training.GradientDescent(until=bt.training.Steps(50)).train(start, data).network
        >>> figure = bt.plot.planes({"before": start, "after": trained}, data, universal=False)
    """
    require(len(networks) > 0, "networks is empty; give at least one network, by its name")
    figure, axes = panels(columns=len(networks), width=4.8, height=4.8)
    options = {"balls": balls, "neurons": neurons, "universal": universal}
    for place, (name, network) in zip(axes, networks.items(), strict=True):
        draw_plane(place, Plane.of(network, data, **options, certificate=certificate))
        place.set_title(name)
    return figure


def draw_plane(axes: Axes, shown: Plane) -> None:
    """On these axes."""
    with house_style():
        if shown.labels.is_floating_point():
            draw_boundary(
                axes, *(each.numpy() for each in (shown.x, shown.y, shown.values, shown.examples, shown.labels))
            )
        else:
            _draw_classes(axes, shown)
        _draw_kinks(axes, shown)
        if shown.bounds is not None:
            _draw_balls(axes, shown, shown.bounds)
        words = [] if shown.universal is None else [_draw_universal(axes, shown, shown.universal)]
    axes.set(
        xlim=shown.x[[0, -1]].tolist(), ylim=shown.y[[0, -1]].tolist(), xlabel="$x_1$", ylabel="$x_2$", aspect="equal"
    )
    axes.grid(False)
    _explain(axes, shown, words)


def _draw_classes(axes: Axes, shown: Plane) -> None:
    """Where each class is predicted, and its examples."""
    count = int(max(shown.values.max(), shown.labels.max())) + 1
    colours = [COLOURS[place % len(COLOURS)] for place in range(count)]
    levels = np.arange(count + 1) - 0.5
    axes.contourf(shown.x.numpy(), shown.y.numpy(), shown.values.numpy(), levels=levels, colors=colours, alpha=0.18)
    for place, colour in enumerate(colours):
        some = shown.examples[shown.labels == place]
        mark = MARKS[place % len(MARKS)]
        axes.plot(some[:, 0], some[:, 1], mark, color=colour, markeredgecolor="white", markersize=6)


def _draw_kinks(axes: Axes, shown: Plane) -> None:
    lines = LineCollection(list(shown.kinks), colors=KINK, linewidths=0.8)
    lines.set_alpha(list(0.04 + 0.36 * shown.strengths) if len(shown.kinks) else None)
    axes.add_collection(lines)


def _draw_balls(axes: Axes, shown: Plane, bounds: RadiusBounds) -> None:
    circles = [Circle((x1, x2), float(r)) for (x1, x2), r in zip(shown.examples.tolist(), bounds.lower, strict=True)]
    fills = [_colour(label) for label in shown.labels.tolist()]
    axes.add_collection(PatchCollection(circles, facecolor=fills, edgecolor="none", alpha=0.22))
    axes.add_collection(PatchCollection(circles, facecolor="none", edgecolor=fills, linewidth=0.9))
    flipped = bounds.exact & bounds.upper.isfinite() & (bounds.upper > 0)
    ways = torch.stack([shown.examples, shown.examples + bounds.flips], 1)[flipped]
    axes.add_collection(LineCollection(list(ways.numpy()), colors="black", linewidths=0.8, linestyles=":"))


def _colour(label: float) -> str:
    """As the examples of this label have it."""
    return {1.0: POSITIVE, -1.0: NEGATIVE}[label] if isinstance(label, float) else COLOURS[label % len(COLOURS)]


def _draw_universal(axes: Axes, shown: Plane, found: UniversalResult) -> str:
    moved = shown.examples + found.perturbations
    for before, after in zip(shown.examples.tolist(), moved.tolist(), strict=True):
        arrow = {"arrowstyle": "->", "color": COLOURS[3], "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", after, before, arrowprops=arrow)
    return f"one direction of size {found.size:.3g} flips {int(found.success.sum())} of {len(shown.labels)}"


def _explain(axes: Axes, shown: Plane, words: list[str]) -> None:
    """What the lines are, below the panel."""
    handles = [Line2D([], [], color=COLOURS[3], marker=">", label=each) for each in words]
    if shown.bounds is not None:
        least, median = float(shown.bounds.lower.min()), float(shown.bounds.lower.median())
        look: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "markersize": 9, "linestyle": ""}
        handles.insert(
            0,
            Line2D(
                [],
                [],
                color="black",
                label=f"proved: no flip inside (radius at least {least:.2g}, median {median:.2g})",
                **look,
            ),
        )
    if len(shown.kinks):
        handles.append(Line2D([], [], color=KINK, linewidth=0.8, label=f"{len(shown.kinks)} neurons bend here"))
    if handles:
        axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.14), fontsize="small", frameon=False)
