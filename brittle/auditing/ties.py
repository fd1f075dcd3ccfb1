"""How far examples keep their class where a tie counts as a loss of it.

A flip is strict: the margin is below 0. On a plateau, where the margin is 0 all around, the class is lost long before,
and what is proved ends there. The distance to margins below τ, a ten-millionth of the typical margin, is that of strict
flips of the network whose own logit is lowered by τ.
"""

import torch
from torch import Generator, Tensor

from brittle.attacks import FREE
from brittle.auditing.budget import Budget
from brittle.auditing.costs import Costs
from brittle.auditing.vulnerability import Radii, smallest
from brittle.common.time_limit import TimeLimitReached
from brittle.networks import Layered, Network
from brittle.settings import Data

BEFORE = 0.98  # of the way to the shortest flip: the margin is not 0 here yet, unless on a plateau
LOWERED = 1e-7  # τ, in median margins
BEYOND = 1 + 1e-5  # times the perturbation: past what τ makes of it
ROUNDINGS = 64  # units of rounding in which a margin counts as 0


def tied(network: Network, data: Data, found: Radii, flips: Tensor, rng: Generator, budget: Budget) -> Radii | None:
    """Radii with ties counted as flips; None where they are the same, which no flip crosses a plateau on the way to.

    Also None for a module of unknown layers, and where the attack cannot be afforded, or not in time.
    """
    try:
        return _tied(network, data, found, flips, rng, budget)
    except TimeLimitReached:
        return None


def _tied(network: Network, data: Data, found: Radii, flips: Tensor, rng: Generator, budget: Budget) -> Radii | None:
    if not isinstance(network, Layered) or found.partial or not _plateau(network, data, found, flips):
        return None
    if Costs.of(network).attack() * len(data) > budget.left:
        return None
    norms = found.norms.clone()
    for label in torch.unique(data.y):
        rows = (data.y == label).nonzero()[:, 0]
        near = _near(network, data.take(rows), float(label), rng, budget)
        if near is None:
            return None
        norms[rows] = torch.minimum(norms[rows], near)
    return Radii.of(norms, len(data))


def _plateau(network: Layered, data: Data, found: Radii, flips: Tensor) -> bool:
    """Whether the margin is 0 just before a shortest flip, or nothing flips an example."""
    flipped = (found.norms > 0) & found.norms.isfinite()
    if bool((found.norms == torch.inf).any()):
        return True
    points = data.X[flipped] + BEFORE * flips[flipped]
    margins = network.margins(points, data.y[flipped]).double()
    return bool((margins.abs() <= ROUNDINGS * network.rounding(points)).any())


def _near(network: Layered, own: Data, label: float, rng: Generator, budget: Budget) -> Tensor | None:
    """Distances (n,) to ties of examples of one label, each seen to be one; infinity for none, None when time is up."""
    tau = LOWERED * float(network.margins(own.X, own.y).double().abs().median())
    radii, flips = smallest(lowered(network, label, tau), own, FREE, rng, budget)
    if radii.partial:
        return None
    points = own.X + BEYOND * flips
    lost = network.margins(points, own.y).double() <= ROUNDINGS * network.rounding(points)
    seen = lost & radii.norms.isfinite()
    return torch.where(seen, BEYOND * radii.norms, torch.inf)


def lowered(network: Layered, label: float, tau: float) -> Layered:
    """The network with the margin of every example of this label lowered by τ."""
    *others, last = network.layers
    weights, bias = last.parameters
    shift = torch.zeros_like(bias)
    if network.classes == 1:
        shift -= label * tau
    else:
        shift[int(label)] -= tau
    return network.with_layers([*others, last.with_parameters(weights, bias + shift)])
