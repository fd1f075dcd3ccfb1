"""How long the explorer takes to answer a moved point: `python -m benchmarks.explorer`.

Points of the presets are dragged at random, each move a few hundredths of the picture; the question is the one that the
page asks while a point is dragged, and computing is counted, not waiting. Where the KKT point cannot be followed the
answer is the old network on the new points, and the page asks again for the new one: that is the second column.
"""

import json
import time
from statistics import median
from typing import Any

import torch

from brittle.common.result import jsonable
from brittle.explorer.plane import Memory, plane
from brittle.explorer.points import PRESETS, preset
from brittle.explorer.requests import JsonQuery

MOVES = 30
EXAMPLES = 30
STEP = 0.03  # standard deviation of a move
DRAGGED = {"parts": ["grid", "radii", "universal", "kkt"], "jump": "kkt", "aspect": 1.5, "half": 2.6}


def timed(memory: Memory, asked: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """The answer as it is sent, and the seconds of computing."""
    begun = time.process_time()
    found = jsonable(plane(memory, JsonQuery(asked)))
    json.dumps(found)
    return found, time.process_time() - begun


def dragged(name: str) -> tuple[list[float], list[float]]:
    """Seconds of the first answers to moves, and of those that a new KKT point had to be waited for."""
    rng, memory = torch.Generator().manual_seed(0), Memory()
    points = preset(JsonQuery({"preset": name, "count": EXAMPLES, "noise": 0.08}))
    network = timed(memory, {"points": points, **DRAGGED})[0]["network"]
    first, second = [], []
    for _ in range(MOVES):
        which = int(torch.randint(len(points), (), generator=rng))
        for k, step in enumerate((STEP * torch.randn(2, generator=rng, dtype=torch.float64)).tolist()):
            points[which][k] = round(points[which][k] + step, 4)
        found, seconds = timed(memory, {"points": points, "network": network, "patient": False, **DRAGGED})
        first.append(seconds)
        if found["behind"]:
            found, seconds = timed(memory, {"points": points, "network": network, **DRAGGED})
            second.append(seconds)
        network = found["network"]
    return first, second


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'preset':10} {'median ms':>10} {'largest ms':>11}   not followed, median and largest ms")
    for name in PRESETS:
        first, second = dragged(name)
        waited = f"{len(second)} of {len(first)}" + (
            f", {1000 * median(second):.0f}, {1000 * max(second):.0f}" if second else ""
        )
        print(f"{name:10} {1000 * median(first):10.0f} {1000 * max(first):11.0f}   {waited}")


if __name__ == "__main__":
    main()
