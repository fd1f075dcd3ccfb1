"""The largest margin over all widths, proved, against KKT points and against gradient flow with many restarts.

    python -m benchmarks.largest [--cases NAME ...] [--seeds N ...] [--restarts N] [--seconds N] [--json FILE]

One thread, processor time. For each case and seed: the KKT point that a flow to log-loss -3 leads to, the one-shot
certificate at its multipliers, the search from nothing, the checker on its proof and on a copy with one leaf changed,
and the peer: the largest margin among the KKT points of --restarts other starts. With --json the rows that the file
already holds are not measured again, and it is written after every row. `--table FILE` prints what such a file holds.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from brittle.data import Clusters, Data, Setting, Sphere
from brittle.kkt import CheckedMargin, LargestMargin, MarginProof, check_margin, gap, largest, solve
from brittle.kkt.any_width.proof import ProofLeaf
from brittle.networks import TorchLinearInit
from brittle.training import Flow, LogLoss

CASES: dict[str, tuple[Setting, int, float]] = {
    "d=100 n=10": (Sphere(100), 10, 60),
    "d=5 n=10": (Sphere(5), 10, 60),
    "d=20 n=20": (Sphere(20), 20, 60),
    "d=100 n=31": (Sphere(100), 31, 60),
    "d=100 n=60": (Sphere(100), 60, 60),
    "d=100 n=100": (Sphere(100), 100, 120),
    "d=50 n=100": (Sphere(50), 100, 120),
    "d=20 n=60": (Sphere(20), 60, 60),
    "clusters d=2000 k=6 n=400": (Clusters(2000, clusters=6), 400, 60),
    "d=200 n=200": (Sphere(200), 200, 600),
}  # setting, examples, seconds of the search
USUAL = tuple(name for name in CASES if name != "d=200 n=200")
WIDTH = 1000
Row = dict[str, Any]


def kkt_point(data: Data, rng: torch.Generator) -> Any:
    start = TorchLinearInit().draw(data.columns, WIDTH, rng)
    return solve(Flow(until=LogLoss(-3)).train(start, data).network, data)


def forged(proof: MarginProof) -> MarginProof:
    """One leaf with another sign, or without curvature where no leaf has signs."""
    leaves = list(proof.leaves)
    for place, leaf in enumerate(leaves):
        if leaf.signs.any():
            signs = leaf.signs.copy()
            signs[np.flatnonzero(signs)[0]] *= -1
            leaves[place] = ProofLeaf(leaf.point, signs)
            return replace(proof, leaves=tuple(leaves))
    point = proof.points[0]
    return replace(proof, points=(point._replace(y=point.y / 2, C=point.C * 0), *proof.points[1:]))


def measure(name: str, seed: int, restarts: int, seconds: float | None) -> Row:
    setting, examples, usual = CASES[name]
    rng = torch.Generator().manual_seed(seed)
    data = setting.sample(examples, rng)
    point, solving = timed(lambda: kkt_point(data, rng))
    shot, shooting = timed(lambda: gap(point.network, data))
    best, searching = timed(lambda: largest(data, seconds=seconds or usual, clock=time.process_time))
    checked, checking = timed(lambda: check_margin(best.proof, data))
    margins, again = timed(lambda: [kkt_point(data, rng).normalised_margin for _ in range(restarts)])
    return {
        "case": name,
        "seed": seed,
        **searched(best, checked, searching, checking, check_margin(forged(best.proof), data).accepted),
        "kkt_share": point.normalised_margin / best.normalised_margin,
        "kkt_neurons": point.neurons,
        "kkt_seconds": solving,
        "one_shot_share": shot.share,
        "one_shot_seconds": shooting,
        "peer_share": max(margins, default=0.0) / best.normalised_margin,
        "peer_restarts": restarts,
        "peer_seconds": again,
    }


def searched(best: LargestMargin, checked: CheckedMargin, searching: float, checking: float, fooled: bool) -> Row:
    return {
        "normalised_margin": best.normalised_margin,
        "upper": best.upper,
        "proved_gap": best.proved_gap,
        "neurons": best.neurons,
        "seconds": searching,
        "rounds": best.rounds,
        "nodes": best.nodes,
        "leaves": checked.leaves,
        "accepted": checked.accepted,
        "check_seconds": checking,
        "forged_accepted": fooled,
    }


def timed(work: Any) -> tuple[Any, float]:
    began = time.process_time()
    return work(), time.process_time() - began


def show(row: Row) -> None:
    cells = [f"{row['case']:26s} {row['seed']}", f"gap {row['proved_gap']:.1e}", f"{row['seconds']:7.2f} s"]
    cells += [f"γ_kkt/γ* {row['kkt_share']:.4f}", f"neurons {row['kkt_neurons']} -> {row['neurons']}"]
    cells += [f"one-shot ≥ {row['one_shot_share']:.4f} in {row['one_shot_seconds']:.2f} s"]
    verdict = "accepted" if row["accepted"] else "REFUSED"
    cells += [f"{row['leaves']} leaves {verdict} in {row['check_seconds']:.2f} s"]
    cells += ["forged " + ("ACCEPTED" if row["forged_accepted"] else "refused")]
    peer = f"best of {row['peer_restarts']} restarts {row['peer_share']:.4f} in {row['peer_seconds']:.1f} s"
    print(*cells, peer, sep="  ", flush=True)


def best_share(row: Row) -> float:
    """Of the largest margin, what the best of all starts reached."""
    return float(max(row["kkt_share"], row["peer_share"]))


def table(rows: list[Row]) -> None:
    """One line for each case: the worst of its seeds, or the range."""
    for case in dict.fromkeys(row["case"] for row in rows):
        mine = [{**row, "best_share": best_share(row)} for row in rows if row["case"] == case]

        def span(name: str, form: str, of: list[Row] = mine) -> str:
            low, high = (f"{pick(row[name] for row in of):{form}}" for pick in (min, max))
            return low if low == high else f"{low} to {high}"

        cells = [case, f"{len(mine)}", span("proved_gap", ".1e"), span("seconds", ".3g"), span("kkt_share", ".4f")]
        cells += [f"{span('kkt_neurons', 'd')} → {span('neurons', 'd')}", span("best_share", ".4f")]
        cells += [span("one_shot_share", ".3f"), span("leaves", "d"), span("check_seconds", ".2g")]
        print("| " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=USUAL, metavar="NAME", help=", ".join(CASES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--restarts", type=int, default=5, help="other starts of the peer")
    parser.add_argument("--seconds", type=float, help="of each search, instead of the case's own")
    parser.add_argument("--json", type=Path, help="rows, written after each; those that it holds are not repeated")
    parser.add_argument("--table", type=Path, help="print a table of the rows in this file, and measure nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.table:
        table(json.loads(options.table.read_text()))
        return
    rows: list[Row] = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    known = {(row["case"], row["seed"]) for row in rows}
    for name, seed in ((name, seed) for name in options.cases for seed in options.seeds):
        if (name, seed) not in known:
            rows.append(measure(name, seed, options.restarts, options.seconds))
            if options.json:
                options.json.write_text(json.dumps(rows, indent=2) + "\n")
            show(rows[-1])


if __name__ == "__main__":
    main()
