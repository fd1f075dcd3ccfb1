"""A network in space: its zero surface and the examples, which often lie on a plane."""

import torch
from matplotlib.figure import Figure

from brittle.attacks.subject import Holder, Model, subject
from brittle.common.errors import require, require_count
from brittle.report.boundary import draw_surface
from brittle.report.style import Drawing, house_style

ROOM = 0.3


def space(network: Model, data: Holder, *, grid: int = 31, elevation: float = 18.0, azimuth: float = -60.0) -> Figure:
    """The zero surface of a network with one output on examples with three features, seen from these angles.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.settings.Grid25().sample()
        >>> start = bt.networks.PyTorch().draw(3, width=40, rng=torch.Generator().manual_seed(0))
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
