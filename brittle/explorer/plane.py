"""The laboratory: a network on points in the plane, and everything that is known of it."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor

from brittle.attacks import DIRECTIONS, Universal
from brittle.auditing.found import HEADLINES
from brittle.certificates import Exact
from brittle.common.errors import InputError, require
from brittle.common.threads import one_torch_thread
from brittle.data import Data
from brittle.explorer import points, requests
from brittle.explorer.requests import Clock, JsonQuery
from brittle.explorer.start import AGAIN, STEPS, WIDEST, make_start, train_to_marks
from brittle.kkt import KKTPoint, KKTResidual, follow, gap, largest, residual, solve
from brittle.kkt.any_width.largest import first_network
from brittle.networks import Network, TwoLayer, as_two_layer
from brittle.theorems import Comparison, Instance, Theorem, check_instance, find
from brittle.training import MaximumRadius, Steps

REMEMBERED = 8  # landings
GAP = 1e-3  # that is proved of the largest margin
LONG, SHORT = 150, 30  # steps for the radius: from anywhere, and after a point was moved


@dataclass(frozen=True, eq=False)
class JumpTarget:
    """The `network` that a jump on these `data` led to, its `residual` if known, and what else there is to `say` of it.

    `point` is the KKT point that it is, if it is one: it can be followed while points move.
    """

    network: TwoLayer
    data: Data
    residual: KKTResidual | None
    say: dict[str, Any]
    point: KKTPoint | None = None


Start = Callable[[], TwoLayer]  # a network that classifies the points, however long it takes to find one
Jump = Callable[[Start, Data, Clock, JumpTarget | None, bool], JumpTarget | None]


@dataclass(frozen=True, eq=False)
class Memory:
    """Where the last jumps led, by the weights: whoever moves a point goes on from there."""

    landed: OrderedDict[bytes, JumpTarget] = field(default_factory=OrderedDict)

    def keep(self, landed: JumpTarget) -> None:
        self.landed[_key(landed.network)] = landed
        while len(self.landed) > REMEMBERED:
            self.landed.popitem(last=False)

    def find(self, network: TwoLayer) -> JumpTarget | None:
        """The jump that led to exactly this network."""
        return self.landed.get(_key(network))


def _key(network: TwoLayer) -> bytes:
    return b"".join(each.contiguous().numpy().tobytes() for each in (network.W, network.b, network.v))


def kkt_point(start: Start, data: Data, clock: Clock, last: JumpTarget | None, patient: bool) -> JumpTarget | None:
    """The last KKT point, followed to where the points are now; else, if `patient`, the one near the start."""
    point, way = None, "followed"
    if last is not None and last.point is not None and last.data.X.shape == data.X.shape:
        point = follow(last.point, last.data, data)
    if point is None and not patient and last is not None:
        return None
    if point is None:
        point, way = solve(start(), data, watch=clock), "solved"
    say = {"status": point.status.value, "way": way, "rounds": point.rounds}
    return JumpTarget(point.network, data, point.residual, say, point)


def largest_margin(start: Start, data: Data, clock: Clock, last: JumpTarget | None, patient: bool) -> JumpTarget | None:
    """The KKT point of the largest margin over all widths, with its proof; who does not wait follows the last one."""
    if not patient and last is not None:
        return kkt_point(start, data, clock, last, patient)
    found = largest(data, gap=GAP, seconds=clock.left, clock=time.thread_time)
    point = solve(found.network, data, watch=clock)
    network = point.network if point.normalised_margin >= found.normalised_margin * (1 - 1e-9) else found.network
    measured = residual(network, data)
    say = {"way": "largest", "status": found.status.value, "upper": found.upper}
    say["share"] = measured.normalised_margin / found.upper
    return JumpTarget(network, data, measured, say, point if network is point.network else None)


def for_the_radius(start: Start, data: Data, clock: Clock, last: JumpTarget | None, patient: bool) -> JumpTarget | None:
    """Trained on for every point's distance from the boundary, up to what the data allow: what hardening does."""
    steps = LONG if patient or last is None else SHORT
    regime = MaximumRadius(until=Steps(steps))
    made = regime.train(start(), data, Generator().manual_seed(0), watch=clock).network
    return JumpTarget(as_two_layer(made, "what hardening made"), data, None, {"way": "radius", "steps": steps})


JUMPS: dict[str, tuple[str, Jump]] = {
    "kkt": ("Jump to the KKT point", kkt_point),
    "largest": ("Largest margin", largest_margin),
    "radius": ("Harden", for_the_radius),
}


# Theorems on an instance: every hypothesis with its slack, and the promise where all of them hold.


def on_instance(data: Data, network: Network, theorems: Sequence[Theorem] = ()) -> list[dict[str, Any]]:
    """One entry for each theorem, the headlines unless others are given; what it cannot be asked about says why."""
    instance = Instance(data, network)
    return [entry(each, instance) for each in theorems or [find(name) for name in HEADLINES]]


def entry(theorem: Theorem, instance: Instance) -> dict[str, Any]:
    """The theorem's hypotheses on this instance and, where they hold, what it promises beside what was measured."""
    about = {"id": theorem.id, "claim": theorem.claim, "applies_to": theorem.applies_to}
    try:
        verdict = check_instance(theorem, instance)
    except InputError as error:
        return about | {"verdict": "not_applicable", "why": str(error), "hypotheses": [], "promises": []}
    return about | {
        "verdict": verdict.verdict.value,
        "why": verdict.advice,
        "hypotheses": [describe_comparison(each) for each in verdict.hypotheses],
        "promises": [describe_comparison(each) for each in verdict.bound],
    }


def describe_comparison(comparison: Comparison) -> dict[str, Any]:
    """A measured value beside its threshold; infinities become null, and `shown` keeps them."""
    shown = f"{comparison.value:.4g} {comparison.relation.value} {comparison.threshold:.4g}"
    return comparison.to_json() | {"shown": shown}


GRID = 84  # logits from the lower to the upper edge of the picture
PARTS = ("grid", "radii", "universal", "kkt", "gap", "theorems")
LARGEST_WEIGHT = 1e12
ASKED_DIRECTIONS = ("examples", "gradients")
PROOF = Exact(seconds=1.0, nodes=100)  # for one example


def plane(memory: Memory, asked: JsonQuery) -> dict[str, Any]:
    """The network that was given, drawn or jumped to, with the parts that were asked for."""
    clock, data = Clock(), points.read_points(asked)
    parts = asked.words("parts", PARTS, PARTS)
    jump = asked.word("jump", ("none", *JUMPS), "none")
    with one_torch_thread():
        network, origin = network_of(asked, data)
        landed = None if jump == "none" else _landed(memory, asked, data, network, clock)
        network = network if landed is None else landed.network
        found = {
            "network": requests.weights(network),
            "origin": origin if landed is None else landed.say["way"],
            "behind": jump != "none" and landed is None,
        }
        return found | measure_network(asked, network, data, parts, landed, clock)


def _landed(memory: Memory, asked: JsonQuery, data: Data, network: TwoLayer, clock: Clock) -> JumpTarget | None:
    """Where the jump leads; None where the last landing cannot be followed and nobody waits for another one."""
    jump = JUMPS[asked.word("jump", tuple(JUMPS), "kkt")][1]
    last = memory.find(network)
    start = partial(_classifying, asked, data, network, last is not None, clock)
    landed = jump(start, data, clock, last, asked.flag("patient", True))
    if landed is not None:
        memory.keep(landed)
    return landed


def measure_network(
    asked: JsonQuery, network: TwoLayer, data: Data, parts: tuple[str, ...], landed: JumpTarget | None, clock: Clock
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


def grid(network: TwoLayer, asked: JsonQuery) -> dict[str, Any]:
    """Logits in the picture, row by row from its lower edge; `half` is half its height, `aspect` its width over it."""
    x, y = asked.number("x", 0.0, -1e3, 1e3), asked.number("y", 0.0, -1e3, 1e3)
    half, aspect = asked.number("half", 3.0, 1e-3, 1e3), asked.number("aspect", 1.0, 0.5, 2.0)
    columns = round(GRID * aspect)
    across = torch.linspace(-half * aspect, half * aspect, columns, dtype=torch.float64)
    up = torch.linspace(-half, half, GRID, dtype=torch.float64)
    logits = network.logits(torch.cartesian_prod(y + up, x + across).flip(1)).view(GRID, columns)
    return {"x": x, "y": y, "half": half, "aspect": aspect, "logits": requests.pack_float32(logits)}


def radii(network: TwoLayer, data: Data, clock: Clock) -> dict[str, Any]:
    """Every point's distance to a flip, enclosed, and the flip."""
    found = PROOF.bound(network, data, rng=Generator().manual_seed(0), watch=clock)
    return {
        "lower": found.lower,
        "upper": found.upper,
        "status": [each.value for each in found.status],
        "flips": found.flips,
    }


def universal(network: TwoLayer, data: Data, asked: JsonQuery) -> dict[str, Any]:
    """One direction against all labels: where along it each point is flipped."""
    name = asked.word("direction", ASKED_DIRECTIONS, "examples")
    found = Universal(direction=DIRECTIONS[name]).run(network, data)
    return {"z": found.z, "smallest": found.smallest, **describe_flips(found.considered, found.intervals)}


def describe_flips(considered: Tensor, intervals: Any) -> dict[str, Any]:
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


def share(network: TwoLayer, data: Data, landed: JumpTarget | None) -> dict[str, Any]:
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


def network_of(asked: JsonQuery, data: Data) -> tuple[TwoLayer, str]:
    weights = asked.part("network")
    if weights is None:
        return make_start(asked, data), "start"
    v = weights.numbers("v", WIDEST, LARGEST_WEIGHT)
    b, W = weights.numbers("b", WIDEST, LARGEST_WEIGHT), weights.rows("W", 2, WIDEST, LARGEST_WEIGHT)
    require(len(v) == len(b) == len(W) > 0, "W, b and v of the network must have one row for every neuron")
    c = weights.number("c", 0.0, -LARGEST_WEIGHT, LARGEST_WEIGHT)
    arrays = [torch.tensor(each, dtype=torch.float64) for each in (W, b, v, c)]
    return TwoLayer(arrays[0], arrays[1], arrays[2], arrays[3]), "given"


def _classifying(asked: JsonQuery, data: Data, network: TwoLayer, landed: bool, clock: Clock) -> TwoLayer:
    """The network itself if it classifies every point, else what the flow makes of a start, else any that does.

    Of one that a jump `landed` on, before a point was moved, the flow goes on, and not for long.
    """
    if network.homogeneous and bool((network.margins(data.X, data.y) > 0).all()):
        return network
    start, steps = (network, AGAIN) if landed else (make_start(asked, data), STEPS)
    for training in train_to_marks(asked, data, start, clock, steps):
        if training.margin > 0:
            return training.network
    return first_network(data, biases=True, seed=0)
