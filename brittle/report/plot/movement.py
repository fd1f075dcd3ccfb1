"""Neurons before and after training."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from torch import Tensor

from brittle.certificates import RadiusBounds
from brittle.common.errors import require
from brittle.common.kinds import check_kinds
from brittle.common.result import Result
from brittle.data import Data
from brittle.kkt import KKTPoint, PathNetwork
from brittle.networks import Layered, Network, as_layered
from brittle.report.style import COLOURS, panels, save

MOST = 400  # neurons that are drawn


@dataclass(frozen=True, eq=False)
class Movement(Result):
    """What `neurons` draws.

    before, after (m, 2): each neuron's weights times the length of what comes out of it, in two coordinates; signs (m,)
    of its output weight, 0 where there are several; axes (dim, 2): the coordinates, orthonormal; shown (2,): the share
    of the squared length of all neurons that lies in them, before and after.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(2).sample(2)
        >>> start = bt.networks.TorchLinearInit().draw(2, width=10, rng=torch.Generator().manual_seed(0))
        >>> trained = bt.training.GradientDescent(until=bt.training.Steps(50)).train(start, data).network
        >>> moved = bt.plot.Movement.of(trained, data)
        >>> moved.before.shape, [round(share, 6) for share in moved.shown.tolist()]
        (torch.Size([10, 2]), [1.0, 1.0])
    """

    before: Tensor
    after: Tensor
    signs: Tensor
    axes: Tensor
    shown: Tensor

    @classmethod
    def of(cls, network: Network, data: Data, start: Network | None = None) -> "Movement":
        """From `start`, or from where the network remembers that its training began."""
        after = as_layered(network, "a picture of neurons").to(torch.float64)
        before = after.start if start is None else as_layered(start, "a picture of neurons").to(torch.float64)
        require(before is not None, "start is None, and the network does not know where its training began: give start")
        assert before is not None
        same = before.shape == after.shape
        require(same, f"start has the shape {before.shape}, the network {after.shape}; they must be the same")
        axes = _two(data.X.double())
        sized = [_sized(each) for each in (before, after)]
        shares = torch.stack([(each @ axes).square().sum() / each.square().sum().clamp_min(1e-300) for each in sized])
        signs = after.weights[1][0].sign() if after.depth == 2 and after.classes == 1 else torch.zeros(after.widths[0])
        return cls(sized[0] @ axes, sized[1] @ axes, signs, axes, shares)


def _sized(network: Layered) -> Tensor:
    """Weights of the first layer, each times the length of what comes out of it."""
    sizes: Tensor = network.weights[1].norm(dim=0)
    return network.weights[0] * sizes[:, None]


def _two(X: Tensor) -> Tensor:
    """The coordinates themselves where there are two, otherwise those in which the examples are longest."""
    if X.shape[1] <= 2:
        return torch.eye(X.shape[1], 2, dtype=torch.float64)
    directions: Tensor = torch.linalg.svd(X, full_matrices=False).Vh
    return directions[:2].T.contiguous()


def neurons(network: Network, data: Data, start: Network | None = None) -> Figure:
    """Every neuron as a point, its weights times its output's, before and after training, with the way between.

    In the plane of the two features, or of the two directions in which the examples are longest.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(2).sample(2)
        >>> start = bt.networks.TorchLinearInit().draw(2, width=10, rng=torch.Generator().manual_seed(0))
        >>> trained = bt.training.GradientDescent(until=bt.training.Steps(50)).train(start, data).network
        >>> figure = bt.plot.neurons(trained, data)
    """
    moved = Movement.of(network, data, start)
    figure, (before, after) = panels(columns=2, width=4.4, height=4.4)
    strongest = moved.after.norm(dim=1).argsort(descending=True)[:MOST]
    colours = [COLOURS[{1: 0, -1: 1}.get(int(sign), 6)] for sign in moved.signs[strongest]]
    ways = torch.stack([moved.before, moved.after], 1)[strongest].numpy()
    after.add_collection(LineCollection(list(ways), colors=colours, linewidths=0.5, alpha=0.35))
    for axes, place, name in ((before, 0, "before"), (after, 1, "after")):
        axes.scatter(ways[:, place, 0], ways[:, place, 1], s=12, c=colours, zorder=3)
        axes.axhline(0, color="black", linewidth=0.5)
        axes.axvline(0, color="black", linewidth=0.5)
        share = f" ({moved.shown[place]:.0%} of the neurons' squared length)" if len(moved.axes) > 2 else ""
        axes.set_title(f"{name} training{share}", fontsize="small")
        axes.set(aspect="equal", xlabel="first direction", ylabel="second direction")
    return figure


# Stationarity and normalised margin along gradient flow, beside the recipe's stop and the solved KKT point.


FLOOR = 1e-16  # rounding error


def kkt_path(flow: Sequence[PathNetwork], solved: KKTPoint, recipe: PathNetwork | None = None) -> Figure:
    """Over -ln L: the least stationarity over all multipliers (left, logarithmic), the normalised margin (right).

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.TorchLinearInit().draw(6, width=10, rng=torch.Generator().manual_seed(0))
        >>> moments = bt.kkt.along_flow(start, data, [-3, -10])
        >>> solved = bt.kkt.solve(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> figure = bt.plot.path(moments, solved)
    """
    figure, (left,) = panels(width=6.4, height=3.8)
    right = left.twinx()
    right.grid(False)
    right.spines["right"].set_visible(True)
    _draw(left, flow, recipe, "stationarity", solved.residual.stationarity, COLOURS[0])
    _draw(right, flow, recipe, "normalised_margin", solved.normalised_margin, COLOURS[1])
    left.set(xlabel="-log-loss", xscale="log", yscale="log", ylim=(FLOOR / 3, 3))
    right.set_ylim(bottom=0)
    left.set_ylabel("stationarity ε", color=COLOURS[0])
    right.set_ylabel("normalised margin γ", color=COLOURS[1])
    title = f"solved: ε = {solved.residual.stationarity:.0e}, γ = {solved.normalised_margin:.3g}"
    if flow:
        title += f"; the flow ends at ε = {flow[-1].stationarity:.2g}, γ = {flow[-1].normalised_margin:.3g}"
    left.set_title(title, fontsize="small")
    left.legend(loc="center left")
    return figure


def _draw(
    axes: Axes, flow: Sequence[PathNetwork], recipe: PathNetwork | None, name: str, solved: float, colour: str
) -> None:
    """A line for the flow, a cross for the recipe, a dashed level for the solved point."""
    axes.plot([-m.log_loss for m in flow], [getattr(m, name) for m in flow], "o-", color=colour, label="flow")
    if recipe is not None:
        axes.plot(-recipe.log_loss, getattr(recipe, name), "x", color=colour, markersize=9, label="recipe's stop")
    axes.axhline(max(solved, FLOOR), linestyle="--", color=colour, label="solved KKT point")


# Lower bound, radius and upper bound of every example, sorted: how much room is left between proof and attack.


def sandwich(found: RadiusBounds) -> Figure:
    """Sorted by upper bound, then by lower bound; examples without a known flip stand at the right without an upper.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> figure = bt.plot.sandwich(bt.certificates.LinearRelaxation().bound(network, data))
    """
    shown = torch.where(found.upper.isfinite(), found.upper, found.cap)
    order = torch.argsort(shown + 1e-9 * found.lower)
    lower, upper, exact = found.lower[order], found.upper[order], found.exact[order]
    places = torch.arange(1, len(order) + 1)
    figure, (axes,) = panels(width=6.0)
    axes.vlines(places, lower, shown[order], color="#BBBBBB", linewidth=1.0)
    known = upper.isfinite()
    axes.plot(places[known], upper[known], "v", color=COLOURS[1], label="attack (upper bound)")
    axes.plot(places[~exact], lower[~exact], "^", color=COLOURS[0], label=f"certificate ({found.method})")
    axes.plot(places[exact], lower[exact], "o", color=COLOURS[2], label="exact radius", markersize=3.5)
    axes.set(xlabel="example, sorted by radius", ylabel="ℓ2 distance to a flip", xlim=(0, len(order) + 1))
    axes.set_ylim(bottom=0)
    axes.set_title(f"{int(exact.sum())} of {len(order)} exact, mean lower/upper {_mean(found)}")
    axes.legend(loc="upper left")
    return figure


@check_kinds
def draw_sandwich(found: RadiusBounds, path: str | Path) -> Path:
    """The enclosures of all examples, sorted by radius, as a picture file.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> found = bt.certificates.Dual().bound(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> bt.report.draw_sandwich(found, "radii.png").name
        'radii.png'
    """
    return save(sandwich(found), path)


def _mean(found: RadiusBounds) -> str:
    return f"{float(found.ratio.mean()):.4f}" if len(found.ratio) else "unknown"
