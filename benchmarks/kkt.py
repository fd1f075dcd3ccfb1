"""Recipe, flow and solver on the same data in one run: time, stationarity, complementarity, normalised margin.

    python -m benchmarks.kkt [--cases NAME ...] [--seeds N] [--depth N] [--full-recipe] [--json FILE]

One thread, processor time. The recipe runs to its end once, on the first case and seed; elsewhere its time is its
measured time per step times the steps that it took there (its rate grows so fast that the count hardly depends on
the data), unless --full-recipe is given. Stationarity of recipe and flow is the least over all multipliers, a lower
bound; the solver's has its multipliers on the margin only. Ratios are against the solver, certificate included.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from brittle.data import Clusters, Data, Setting, Sphere
from brittle.kkt import residual, solve
from brittle.networks import TorchLinearInit, TwoLayer
from brittle.training import Flow, LogLoss, SgdSchedule, Steps

CASES: dict[str, tuple[Setting, int]] = {
    "d=100 n=10": (Sphere(100), 10),
    "d=n=100": (Sphere(100), 100),
    "d=n=200": (Sphere(200), 200),
    "clusters d=2000 k=6 n=400": (Clusters(2000, clusters=6), 400),
    "d=100 n=316": (Sphere(100), 316),
    "d=n=500": (Sphere(500), 500),
    "d=n=1000": (Sphere(1000), 1000),
}
USUAL = ("d=100 n=10", "d=n=100", "d=n=200", "clusters d=2000 k=6 n=400")
WIDTH = 1000
PROBE = 200  # steps over which the recipe's time per step is measured

Row = dict[str, Any]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    result = work()
    return result, time.process_time() - began


def trained_row(method: str, network: TwoLayer, data: Data, seconds: float, steps: int) -> Row:
    kkt = residual(network, data, margin_tolerance=math.inf)
    return row(method, seconds, steps, kkt.stationarity, kkt.complementarity, kkt.normalised_margin, WIDTH)


def row(method: str, seconds: float, steps: int, epsilon: float, delta: float, margin: float, neurons: int) -> Row:
    return {
        "method": method,
        "seconds": seconds,
        "steps": steps,
        "stationarity": epsilon,
        "complementarity": delta,
        "normalised_margin": margin,
        "neurons": neurons,
    }


def recipe_row(start: TwoLayer, data: Data, steps: int | None) -> Row:
    """The recipe to its end, or its time extrapolated to so many steps."""
    if steps is None:
        run, seconds = timed(lambda: SgdSchedule().train(start, data))
        return trained_row("recipe", run.network, data, seconds, run.steps)
    run, seconds = timed(lambda: SgdSchedule(until=Steps(PROBE)).train(start, data))
    return row("recipe, extrapolated", seconds * steps / run.steps, steps, math.nan, math.nan, math.nan, WIDTH)


def measure(name: str, seed: int, depth: float, recipe_steps: int | None) -> list[Row]:
    setting, examples = CASES[name]
    rng = torch.Generator().manual_seed(seed)
    data = setting.sample(examples, rng)
    start = TorchLinearInit().draw(data.columns, WIDTH, rng)
    rows = [recipe_row(start, data, recipe_steps)]
    if depth:
        flow, seconds = timed(lambda: Flow(until=LogLoss(-depth)).train(start, data))
        rows.append(trained_row(f"flow to {-depth:g}", flow.network, data, seconds, flow.gradient_evaluations))
    early, begun = timed(lambda: Flow(until=LogLoss(-3)).train(start, data))
    rows.append(trained_row("flow to -3 (start)", early.network, data, begun, early.gradient_evaluations))
    point, seconds = timed(lambda: solve(early.network, data))
    kkt = residual(point.network, data)
    rows.append(
        row(
            "solve",
            seconds,
            point.steps,
            kkt.stationarity,
            kkt.complementarity,
            kkt.normalised_margin,
            point.neurons,
        )
    )
    return [{"case": name, "seed": seed, **entry, "ratio": entry["seconds"] / seconds} for entry in rows]


def show(entry: Row) -> None:
    cells = [f"{entry['case']:26s} {entry['seed']}  {entry['method']:22s}", f"{entry['seconds']:9.2f} s"]
    cells += [f"{entry['ratio']:8.3g}x", f"{entry['steps']:7d} steps", f"{entry['neurons']:5d} neurons"]
    cells += [f"ε {entry['stationarity']:.1e}", f"δ {entry['complementarity']:.1e}"]
    print(*cells, f"γ {entry['normalised_margin']:.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=USUAL, metavar="NAME", help=", ".join(CASES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--depth", type=float, default=1e4, help="-log-loss to which the flow goes; 0 for none")
    parser.add_argument("--full-recipe", action="store_true", help="run the recipe to its end every time")
    parser.add_argument("--recipe-steps", type=int, help="extrapolate the recipe to so many steps from the beginning")
    parser.add_argument("--json", help="write the rows as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    steps, rows = options.recipe_steps, []
    for name in options.cases:
        for seed in range(options.seeds):
            case = measure(name, seed, options.depth, None if options.full_recipe else steps)
            steps = steps or case[0]["steps"]
            rows += case
            for entry in case:
                show(entry)
    if options.json:
        text = json.dumps([{k: None if v != v else v for k, v in entry.items()} for entry in rows], indent=2)
        Path(options.json).write_text(text + "\n")


if __name__ == "__main__":
    main()
