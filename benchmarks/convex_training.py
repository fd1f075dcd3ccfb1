"""Convex training as a peer of the largest margin: what the networks of pyscnn reach of it.

    python -m benchmarks.convex_training ROWS [--cases NAME ...] [--seeds N ...] [--gates N] [--json FILE]

ROWS is what `benchmarks.largest --json` wrote: γ* comes from there. pyscnn (which this project does not install) trains
two-layer networks as a convex program over activation patterns that it samples: squared loss plus λ Σ‖u‖. Small λ
interpolate the labels, large ones shrink the margins; every λ is tried and the largest margin counts.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.largest import CASES
from brittle.data import Data
from brittle.networks import TwoLayer

PENALTIES = (3e-2, 1e-2, 3e-3, 1e-3)


def trained(data: Data, gates: int, penalty: float) -> TwoLayer:
    """pyscnn's ReLU network, in float64."""
    from scnn.optimize import optimize
    from scnn.regularizers import NeuronGL1

    X, y = data.X.numpy().astype(np.float32), data.y.numpy().astype(np.float32)
    model, _ = optimize("relu", gates, X, y, regularizer=NeuronGL1(penalty), bias=True, unitize_data=False)
    torch.set_default_dtype(torch.float32)  # it changes the default
    W, b, v = (torch.from_numpy(np.array(each, dtype=np.float64)) for each in model.parameters)
    return TwoLayer(W, b.reshape(-1), v.reshape(-1))


def margin(network: TwoLayer, data: Data) -> float:
    """min q over the smallest ‖θ‖² of all networks with these neurons: 2 Σ |v| ‖(w, b)‖."""
    sizes = (network.W.square().sum(1) + network.b.square()).sqrt() * network.v.abs()
    return float(network.margins(data.X, data.y).min() / (2 * sizes.sum()))


def measure(case: str, seed: int, best: float, gates: int) -> dict[str, Any]:
    setting, examples, _ = CASES[case]
    data = setting.sample(examples, torch.Generator().manual_seed(seed))
    shares, began = {}, time.process_time()
    for penalty in PENALTIES:
        shares[penalty] = margin(trained(data, gates, penalty), data) / best
    penalty = max(shares, key=lambda each: shares[each])
    seconds = time.process_time() - began
    return {
        "case": case,
        "seed": seed,
        "share": shares[penalty],
        "penalty": penalty,
        "gates": gates,
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("rows", type=Path, help="what benchmarks.largest --json wrote")
    parser.add_argument("--cases", nargs="+", choices=CASES, metavar="NAME", help="instead of all in the rows")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--gates", type=int, default=500, help="activation patterns that are sampled")
    parser.add_argument("--json", type=Path, help="all rows are written here")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = []
    for row in json.loads(options.rows.read_text()):
        if row["seed"] in options.seeds and row["case"] in (options.cases or CASES):
            found.append(measure(row["case"], row["seed"], row["normalised_margin"], options.gates))
            told = "{case} {seed}  γ/γ* {share:.4f} at λ = {penalty:g}, {gates} patterns, {seconds:.1f} s for all λ"
            print(told.format(**found[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
