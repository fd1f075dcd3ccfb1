"""The laboratory: a network on points in the plane, and everything that is known of it."""

from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor

from brittle.attacks import DIRECTIONS, Universal
from brittle.certificates import Exact
from brittle.common.errors import require
from brittle.common.threads import one_torch_thread
from brittle.explorer import packed, points
from brittle.explorer.asked import Asked
from brittle.explorer.clock import Clock
from brittle.explorer.hypotheses import on_instance
from brittle.explorer.jumps import JUMPS, Landed, Memory
from brittle.explorer.start import AGAIN, STEPS, WIDEST, trained, untrained
from brittle.margin import KKTResidual, gap, residual
from brittle.margin.any_width.starts import first_network
from brittle.networks import TwoLayer
from brittle.settings import Data

GRID = 84  # logits from the lower to the upper edge of the picture
PARTS = ("grid", "radii", "universal", "kkt", "gap", "theorems")
LARGEST_WEIGHT = 1e12
ASKED_DIRECTIONS = ("examples", "gradients")
PROOF = Exact(seconds=1.0, nodes=100)  # for one example


def plane(memory: Memory, asked: Asked) -> dict[str, Any]:
    """The network that was given, drawn or jumped to, with the parts that were asked for."""
    clock, data = Clock(), points.given(asked)
    parts = asked.words("parts", PARTS, PARTS)
    jump = asked.word("jump", ("none", *JUMPS), "none")
    with one_torch_thread():
        network, origin = network_of(asked, data)
        landed = None if jump == "none" else _landed(memory, asked, data, network, clock)
        network = network if landed is None else landed.network
        found = {
            "network": packed.weights(network),
            "origin": origin if landed is None else landed.say["way"],
            "behind": jump != "none" and landed is None,
        }
        return found | measured(asked, network, data, parts, landed, clock)


def _landed(memory: Memory, asked: Asked, data: Data, network: TwoLayer, clock: Clock) -> Landed | None:
    """Where the jump leads; None where the last landing cannot be followed and nobody waits for another one."""
    jump = JUMPS[asked.word("jump", tuple(JUMPS), "kkt")][1]
    last = memory.find(network)
    start = partial(_classifying, asked, data, network, last is not None, clock)
    landed = jump(start, data, clock, last, asked.flag("patient", True))
    if landed is not None:
        memory.keep(landed)
    return landed


def measured(
    asked: Asked, network: TwoLayer, data: Data, parts: tuple[str, ...], landed: Landed | None, clock: Clock
) -> dict[str, Any]:
    """All that is asked about one network."""
    margins = network.margins(data.X, data.y)
    found: dict[str, Any] = {"margins": margins}
    if "grid" in parts:
        found["grid"] = grid(network, asked)
    if "radii" in parts:
        found["radii"] = radii(network, data, clock)
    if "universal" in parts:
        found["universal"] = universal(network, data, asked)
    right = network.homogeneous and bool((margins > 0).all())
    if "kkt" in parts:
        found["kkt"] = conditions(network, data, landed.residual if landed else None) if right else None
    if "gap" in parts:
        found["gap"] = share(network, data, landed) if right else None
    if "theorems" in parts:
        found["theorems"] = on_instance(data, network)
    return found


def grid(network: TwoLayer, asked: Asked) -> dict[str, Any]:
    """Logits in the picture, row by row from its lower edge; `half` is half its height, `aspect` its width over it."""
    x, y = asked.number("x", 0.0, -1e3, 1e3), asked.number("y", 0.0, -1e3, 1e3)
    half, aspect = asked.number("half", 3.0, 1e-3, 1e3), asked.number("aspect", 1.0, 0.5, 2.0)
    columns = round(GRID * aspect)
    across = torch.linspace(-half * aspect, half * aspect, columns, dtype=torch.float64)
    up = torch.linspace(-half, half, GRID, dtype=torch.float64)
    logits = network.logits(torch.cartesian_prod(y + up, x + across).flip(1)).view(GRID, columns)
    return {"x": x, "y": y, "half": half, "aspect": aspect, "logits": packed.drawn(logits)}


def radii(network: TwoLayer, data: Data, clock: Clock) -> dict[str, Any]:
    """Every point's distance to a flip, enclosed, and the flip."""
    found = PROOF.bound(network, data, rng=Generator().manual_seed(0), watch=clock)
    return {
        "lower": found.lower,
        "upper": found.upper,
        "status": [each.value for each in found.status],
        "flips": found.flips,
    }


def universal(network: TwoLayer, data: Data, asked: Asked) -> dict[str, Any]:
    """One direction against all labels: where along it each point is flipped."""
    name = asked.word("direction", ASKED_DIRECTIONS, "examples")
    found = Universal(direction=DIRECTIONS[name]).run(network, data)
    return {"z": found.z, "smallest": found.smallest, **flipped(found.considered, found.intervals)}


def flipped(considered: Tensor, intervals: Any) -> dict[str, Any]:
    """The intervals of every example, by its number; one that is misclassified from the beginning has none."""
    numbers = considered.nonzero()[:, 0]
    return {
        "considered": considered,
        "intervals": [
            [int(numbers[ray]), start, stop]
            for ray, start, stop in zip(
                intervals.ray.tolist(), intervals.start.tolist(), intervals.stop.tolist(), strict=True
            )
        ],
    }


def share(network: TwoLayer, data: Data, landed: Landed | None) -> dict[str, Any]:
    """How much of the largest margin over all widths it has at least: as the jump proved, or by one relaxation."""
    if landed is not None and "upper" in landed.say:
        return {"upper": landed.say["upper"], "share": landed.say["share"]}
    found = gap(network, data)
    return {"upper": found.upper, "share": found.share}


def conditions(network: TwoLayer, data: Data, known: KKTResidual | None = None) -> dict[str, Any]:
    """How nearly the KKT conditions hold."""
    found = known or residual(network, data)
    return {
        "stationarity": found.stationarity,
        "complementarity": found.complementarity,
        "normalised_margin": found.normalised_margin,
        "multipliers": found.multipliers,
    }


def network_of(asked: Asked, data: Data) -> tuple[TwoLayer, str]:
    weights = asked.part("network")
    if weights is None:
        return untrained(asked, data), "start"
    v = weights.numbers("v", WIDEST, LARGEST_WEIGHT)
    b, W = weights.numbers("b", WIDEST, LARGEST_WEIGHT), weights.rows("W", 2, WIDEST, LARGEST_WEIGHT)
    require(len(v) == len(b) == len(W) > 0, "W, b and v of the network must have one row for every neuron")
    c = weights.number("c", 0.0, -LARGEST_WEIGHT, LARGEST_WEIGHT)
    arrays = [torch.tensor(each, dtype=torch.float64) for each in (W, b, v, c)]
    return TwoLayer(arrays[0], arrays[1], arrays[2], arrays[3]), "given"


def _classifying(asked: Asked, data: Data, network: TwoLayer, landed: bool, clock: Clock) -> TwoLayer:
    """The network itself if it classifies every point, else what the flow makes of a start, else any that does.

    Of one that a jump `landed` on, before a point was moved, the flow goes on, and not for long.
    """
    if network.homogeneous and bool((network.margins(data.X, data.y) > 0).all()):
        return network
    start, steps = (network, AGAIN) if landed else (untrained(asked, data), STEPS)
    for training in trained(asked, data, start, clock, steps):
        if training.margin > 0:
            return training.network
    return first_network(data, biases=True, seed=0)
