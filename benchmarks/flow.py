"""Gradient flow against the recipe of vardi2022 on the same data in one run, and against the machine's matmul rate.

    python -m benchmarks.flow [--cases 100x10 ...] [--seeds N] [--width N] [--threads N ...] [--json FILE]

A case DxN is N examples on the sphere in D dimensions, to loss 1e-30 in float64 from PyTorch's initialisation. The
recipe runs to its end on the first number of threads; on the others its time is its time per step there times that
number of steps. `seconds` are wall clock, `processor` is processor time, which a busy machine does not distort.
`matmul_share` is the rate of one large step of the flow (5000 examples, 1000 dimensions, width 1000, float32), counted
as two matrix products per gradient, over the best rate that the same machine reaches in plain products beside it.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from brittle.attacks import Universal
from brittle.common.files import write_json
from brittle.data import Data, Sphere
from brittle.networks import TorchLinearInit, TwoLayer
from brittle.training import Flow, Loss, SgdSchedule, Steps, TrainingResult

PROBE = 500  # steps over which the recipe's time per step is measured
LARGE = (5000, 1000, 1000)  # examples, dimension, width


@dataclass(frozen=True)
class Timed:
    result: Any
    seconds: float
    processor: float


def timed(work: Callable[[], Any]) -> Timed:
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return Timed(result, time.perf_counter() - wall, time.process_time() - processor)


def instance(dim: int, examples: int, width: int, seed: int) -> tuple[TwoLayer, Data]:
    rng = torch.Generator().manual_seed(seed)
    data = Sphere(dim).sample(examples, rng)
    return TorchLinearInit().draw(dim, width, rng), data


def recipe_run(network: TwoLayer, data: Data, reference: TrainingResult[TwoLayer] | None) -> Timed:
    """To the end; or, where it has already been there, by its time per step."""
    if reference is None:
        return timed(lambda: SgdSchedule().train(network, data))
    probe = timed(lambda: SgdSchedule(until=Steps(PROBE)).train(network, data))
    factor = reference.steps / PROBE
    return Timed(reference, probe.seconds * factor, probe.processor * factor)


def universal(network: TwoLayer, data: Data) -> float:
    return Universal(margin_slack=0.1).run(network, data).smallest


def against_recipe(
    dim: int, examples: int, width: int, seed: int, threads: int, reference: TrainingResult[TwoLayer] | None
) -> tuple[dict[str, Any], TrainingResult[TwoLayer]]:
    torch.set_num_threads(threads)
    network, data = instance(dim, examples, width, seed)
    Flow(until=Steps(3)).train(network, data)  # the first products of a process are slow
    flow = timed(lambda: Flow(until=Loss(1e-30)).train(network, data))
    recipe = recipe_run(network, data, reference)
    fast, slow = flow.result, recipe.result
    row = {
        "case": f"{dim}x{examples}",
        "seed": seed,
        "threads": threads,
        "recipe_evaluations": slow.gradient_evaluations,
        "flow_evaluations": fast.gradient_evaluations,
        "evaluations_ratio": slow.gradient_evaluations / fast.gradient_evaluations,
        "recipe_seconds": recipe.seconds,
        "flow_seconds": flow.seconds,
        "seconds_ratio": recipe.seconds / flow.seconds,
        "processor_ratio": recipe.processor / flow.processor,
        "margin_error": abs(fast.normalised_margin / slow.normalised_margin - 1),
        "universal_error": abs(universal(fast.network, data) / universal(slow.network, data) - 1),
        "log_losses": [slow.log_loss, fast.log_loss],
    }
    return row, slow


def large_step(threads: int, rounds: int = 5) -> dict[str, Any]:
    """The best rates of the flow's step and of plain products, measured in turns."""
    torch.set_num_threads(threads)
    examples, dim, width = LARGE
    network, data = instance(dim, examples, width, seed=0)
    run = Flow(precision="float32", until=Steps(1)).begin(network, data, None)
    run.measure()
    products = [_product(examples, dim, width), _product(2048, 2048, 2048)]
    flow_rate = peak = 0.0
    for _ in range(rounds):
        peak = max(peak, *(rate(threads, work, operations) for work, operations in products))
        before = run.evaluations
        step = timed(run.step)
        operations = 4.0 * examples * dim * width * (run.evaluations - before)
        flow_rate = max(flow_rate, operations / _clock(step, threads))
    gigaflops = {"step_gigaflops": flow_rate / 1e9, "matmul_gigaflops": peak / 1e9}
    return {"threads": threads, "matmul_share": flow_rate / peak, **gigaflops}


def _product(rows: int, inner: int, columns: int) -> tuple[Callable[[], Any], float]:
    A, B, C = torch.randn(rows, inner), torch.randn(inner, columns), torch.empty(rows, columns)
    return lambda: torch.mm(A, B, out=C), 2.0 * rows * inner * columns


def rate(threads: int, work: Callable[[], Any], operations: float) -> float:
    return max(operations / _clock(timed(work), threads) for _ in range(3))


def _clock(measured: Timed, threads: int) -> float:
    """Processor time tells what one thread did, whatever else the machine does; with more only the wall clock tells."""
    return measured.processor if threads == 1 else measured.seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="brittle bench flow", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", nargs="+", default=["100x10"], metavar="DxN")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--width", type=int, default=1000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", metavar="FILE")
    chosen = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for case in chosen.cases:
        dim, examples = (int(part) for part in case.split("x"))
        for seed in range(chosen.seeds):
            reference = None
            for threads in chosen.threads:
                row, reference = against_recipe(dim, examples, chosen.width, seed, threads, reference)
                rows.append(row)
    steps = [large_step(threads) for threads in chosen.threads]
    summary = {name: rows[0][name] for name in ("evaluations_ratio", "seconds_ratio", "processor_ratio")}
    summary |= {name: max(row[name] for row in rows) for name in ("margin_error", "universal_error")}
    show({**summary, "matmul_share": steps[0]["matmul_share"], "runs": rows, "large_steps": steps}, chosen.json)


def show(result: dict[str, Any], file: str | None) -> None:
    if file == "-":
        print(json.dumps(result, indent=2))
        return
    if file is not None:
        write_json(file, result)
    for row in (*result["runs"], *result["large_steps"]):
        shown = (
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items()
        )
        print("  ".join(shown), file=sys.stdout)


if __name__ == "__main__":
    main()
