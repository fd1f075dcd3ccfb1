"""The margin along one ray, with every kink: exact where the network is made of affine maps and ReLUs."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.attacks.pieces import is_piecewise_linear, pieces
from brittle.networks import Network

SAMPLES = 400
MOST_KINKS = 20_000


@dataclass(frozen=True)
class Profile:
    """The margin at `sizes` t, `values`; linear between them where `exact`. `kinks` counts the bends."""

    sizes: list[float]
    values: list[float]
    exact: bool
    kinks: int


def profile(network: Network, x: Tensor, y: Tensor, direction: Tensor, limit: float) -> Profile:
    """From x along the unit vector `direction`, up to the length `limit`."""
    if not is_piecewise_linear(network):
        return _sampled(network, x, y, direction, limit)
    far = torch.tensor([limit], dtype=torch.float64)
    found = pieces(network, x[None], y[None], direction[None], far)
    if found.start.shape[1] > MOST_KINKS:
        return _sampled(network, x, y, direction, limit)
    sizes, values = [0.0], [float(found.value[0, 0].min())]
    for start, stop, value, slope in zip(
        found.start[0].tolist(), found.stop[0].tolist(), found.value[0].tolist(), found.slope[0].tolist(), strict=True
    ):
        for t, height in _lowest(stop - start, value, slope):
            sizes.append(start + t)
            values.append(height)
    kept = _bends(sizes, values)
    return Profile([sizes[k] for k in kept], [values[k] for k in kept], True, max(0, len(kept) - 2))


def _lowest(length: float, value: list[float], slope: list[float]) -> list[tuple[float, float]]:
    """The corners of the least of some lines on (0, length], its right end included."""
    corners: list[tuple[float, float]] = []
    t, lines = 0.0, list(zip(value, slope, strict=True))
    if length <= 0:
        return []
    here = min(lines, key=lambda line: (line[0], line[1]))
    while True:
        crossings = [((v - here[0]) / (here[1] - s), v, s) for v, s in lines if s < here[1]]
        later = [each for each in crossings if t < each[0] < length]
        if not later:
            return [*corners, (length, here[0] + here[1] * length)]
        t, *line = min(later, key=lambda each: (each[0], each[2]))
        here = (line[0], line[1])
        corners.append((t, here[0] + here[1] * t))


def _bends(sizes: list[float], values: list[float]) -> list[int]:
    """The first and last point, and those between where the slope changes."""
    kept = [0]
    for place in range(1, len(sizes) - 1):
        before, after = sizes[place] - sizes[kept[-1]], sizes[place + 1] - sizes[place]
        if before <= 0 or after <= 0:
            continue
        bend = (values[place + 1] - values[place]) / after - (values[place] - values[kept[-1]]) / before
        if abs(bend) * min(before, after) > 1e-12 * max(1e-300, max(map(abs, values[place - 1 : place + 2]))):
            kept.append(place)
    return [*kept, len(sizes) - 1]


def _sampled(network: Network, x: Tensor, y: Tensor, direction: Tensor, limit: float) -> Profile:
    steps = torch.linspace(0, limit, SAMPLES, dtype=torch.float64)
    margins = network.margins(x + steps[:, None] * direction, y.expand(SAMPLES)).double()
    return Profile(steps.tolist(), [value if math.isfinite(value) else 0.0 for value in margins.tolist()], False, 0)
