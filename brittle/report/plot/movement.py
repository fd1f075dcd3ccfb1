"""Neurons before and after training."""

from dataclasses import dataclass

import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from torch import Tensor

from brittle.common.errors import require
from brittle.common.result import Result
from brittle.networks import Layered, Network, as_layered
from brittle.report.style import COLOURS, panels
from brittle.settings import Data

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
        >>> data = bt.settings.Orthogonal(2).sample(2)
        >>> start = bt.networks.PyTorch().draw(2, width=10, rng=torch.Generator().manual_seed(0))
        >>> trained = bt.training.Descent(until=bt.training.Steps(50)).train(start, data).network
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
        >>> data = bt.settings.Orthogonal(2).sample(2)
        >>> start = bt.networks.PyTorch().draw(2, width=10, rng=torch.Generator().manual_seed(0))
        >>> trained = bt.training.Descent(until=bt.training.Steps(50)).train(start, data).network
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
