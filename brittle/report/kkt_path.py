"""Stationarity and normalised margin along gradient flow, beside the recipe's stop and the solved KKT point."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brittle.margin import KKTPoint, Moment
from brittle.report.style import COLOURS, panels

FLOOR = 1e-16  # rounding error


def kkt_path(flow: Sequence[Moment], solved: KKTPoint, recipe: Moment | None = None) -> Figure:
    """Over -ln L: the least stationarity over all multipliers (left, logarithmic), the normalised margin (right).

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> start = bt.networks.PyTorch().draw(6, width=10, rng=torch.Generator().manual_seed(0))
        >>> moments = bt.margin.along_flow(start, data, [-3, -10])
        >>> solved = bt.margin.solve(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
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


def _draw(axes: Axes, flow: Sequence[Moment], recipe: Moment | None, name: str, solved: float, colour: str) -> None:
    """A line for the flow, a cross for the recipe, a dashed level for the solved point."""
    axes.plot([-m.log_loss for m in flow], [getattr(m, name) for m in flow], "o-", color=colour, label="flow")
    if recipe is not None:
        axes.plot(-recipe.log_loss, getattr(recipe, name), "x", color=colour, markersize=9, label="recipe's stop")
    axes.axhline(max(solved, FLOOR), linestyle="--", color=colour, label="solved KKT point")
