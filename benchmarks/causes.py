"""Whether the audit names the cause that was planted.

    python -m benchmarks.causes [--plants NAME ...] [--seeds N] [--json FILE]

Every plant is a network that is weak for a reason that is known, on one of five kinds of data: the labels are partly
wrong, the first layer has large weights off the data's subspace that training never touched, training stopped as soon
as most examples were right, training never left its initialisation, or nothing of all this, and one direction flips
most examples, as the papers prove of gradient flow. The audit is right where the first of its `weaknesses` is the
planted one.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Generator

import brittle
from brittle.auditing.verdict import off_subspace_cost
from brittle.common.files import write_json
from brittle.data import Clusters, Data, Digits, Sphere, Subspace
from brittle.networks import Initialisation, Kaiming, Network, TorchLinearInit
from brittle.networks import LazyInit as LazyStart
from brittle.training import Accuracy, Flow, GradientDescent, Logistic, LogLoss, Stop

Made = tuple[Network, Data]
FITTED = LogLoss(-3.0)
FLIPPED = 0.1  # of the labels
MEASURES = {
    "doubtful": "doubtful labels",
    "off": "off-subspace factor",
    "margins": "weakest margins",
    "moved": "moved",
    "direction": "one direction",
    "toward": "toward rivals",
}
EXAMPLES, BUDGET = 40, 6.0  # of an audit


def digits(rng: Generator) -> Data:
    return Digits(classes=(3, 8)).sample(150, rng)


def clusters(rng: Generator) -> Data:
    return Clusters(60, 6, 0.5).sample(120, rng)


def sphere(rng: Generator) -> Data:
    """Full rank, random labels."""
    return Sphere(40).sample(60, rng)


def nearly_orthogonal(rng: Generator) -> Data:
    """Few examples in many dimensions, in coordinates of their span."""
    return Sphere(2000).sample(24, rng, in_span=True)


def subspace(rng: Generator) -> Data:
    return Subspace(120, 100).sample(60, rng)


def clusters_on_subspace(rng: Generator) -> Data:
    inner = Clusters(20, 4, 0.5).sample(80, rng)
    basis = torch.linalg.qr(torch.randn(120, 20, generator=rng, dtype=torch.float64)).Q
    return Data(inner.X @ basis.T, inner.y)


def flowed(data: Data, start: Initialisation, width: int, rng: Generator, until: Stop = FITTED) -> Network:
    begun = start.draw(data.columns, width, rng)
    return Flow(until=until, loss=Logistic()).train(begun, data).network


def wrong_labels(data: Data, rng: Generator) -> Made:
    rows = torch.randperm(len(data), generator=rng)[: int(FLIPPED * len(data))]
    noisy = replace(data, y=data.y.index_copy(0, rows, -data.y[rows]))
    return flowed(noisy, TorchLinearInit(), 100, rng), noisy


def off_subspace(data: Data, rng: Generator) -> Made:
    return flowed(data, Kaiming(), 200, rng), data


def stopped(data: Data, rng: Generator) -> Made:
    """At an accuracy of 90 %."""
    begun = TorchLinearInit().draw(data.columns, 100, rng)
    return GradientDescent(until=Accuracy(0.9), rate=0.01).train(begun, data).network, data


def lazy(data: Data, rng: Generator) -> Made:
    return flowed(data, LazyStart(), 1000, rng, LogLoss(-4.0)), data


def universal(data: Data, rng: Generator) -> Made:
    return flowed(data, TorchLinearInit(scale=4.0), 100, rng, LogLoss(-12.0)), data


Plant = tuple[str, Callable[[Generator], Data], Callable[[Data, Generator], Made]]
NAMES = {
    "wrong labels": "Doubtful labels",
    "off-subspace weights": "Off-subspace weights",
    "stopped early": "Training stopped early",
    "lazy start": "Lazy training",
    "one direction": "One direction",
}
PLANTS: dict[str, Plant] = {
    "wrong labels, digits": ("wrong labels", digits, wrong_labels),
    "wrong labels, clusters": ("wrong labels", clusters, wrong_labels),
    "off-subspace weights, subspace": ("off-subspace weights", subspace, off_subspace),
    "off-subspace weights, clusters": ("off-subspace weights", clusters_on_subspace, off_subspace),
    "stopped early, digits": ("stopped early", digits, stopped),
    "stopped early, sphere": ("stopped early", sphere, stopped),
    "lazy start, digits": ("lazy start", digits, lazy),
    "lazy start, sphere": ("lazy start", sphere, lazy),
    "one direction, nearly orthogonal": ("one direction", nearly_orthogonal, universal),
    "one direction, clusters": ("one direction", clusters, universal),
}


def audited(plant: Plant, seed: int) -> dict[str, Any]:
    """What the audit names first, whether that is what was planted, and the numbers that decided it."""
    cause, sample, train = plant
    rng = torch.Generator().manual_seed(seed)
    network, data = train(sample(rng), rng)
    found = brittle.audit(network, data, budget=BUDGET, examples=EXAMPLES, remedies="none")
    sentence = found.weaknesses[0] if found.weaknesses else ""
    first = next((name for name, start in NAMES.items() if sentence.startswith(start)), "")
    weak, tells = found.vulnerability, found.evidence
    return {
        "first": first,
        "right": first == cause,
        "doubtful": tells.doubtful_share,
        "off": off_subspace_cost(weak),
        "margins": tells.weakest_margins,
        "moved": found.regime.relative_move,
        "direction": tells.one_direction,
        "toward": tells.toward_rivals,
        "share": None if found.limit is None else found.limit.share,
    }


def words(name: str, rows: list[dict[str, Any]]) -> str:
    def spread(what: str) -> str:
        values = [row[what] for row in rows if row[what] is not None]
        return f"{min(values):.2f} to {max(values):.2f}" if values else ""

    measures = [spread(what) for what in MEASURES]
    return f"| {name} | {sum(row['right'] for row in rows)} of {len(rows)} | {' | '.join(measures)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--plants", nargs="+", choices=PLANTS, default=list(PLANTS), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=100, help="The thresholds were set with 0 and 1 in view.")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    print(f"| planted | named first | {' | '.join(MEASURES.values())} |")
    print("|---" * (2 + len(MEASURES)) + "|")
    found = {}
    for name in options.plants:
        found[name] = [audited(PLANTS[name], options.first_seed + seed) for seed in range(options.seeds)]
        print(words(name, found[name]), flush=True)
    runs = [row for rows in found.values() for row in rows]
    print(f"\n{sum(row['right'] for row in runs)} of {len(runs)} are named first.")
    if options.json:
        write_json(options.json, found)


if __name__ == "__main__":
    main()
