"""Certified accuracy at the radii of the published tables: networks trained for the radius, then proved.

    python -m benchmarks.record train mnist --out NETWORK
    python -m benchmarks.record prove mnist --network NETWORK --images 1000 --keep FOLDER --json FILE
    python -m benchmarks.record table FILE ...

BRITTLE_DATA holds the pictures. `train` leaves 2,000 training pictures aside, which a seed has chosen, and prints the
accuracy on them, clean and under attack: recipes are compared there. `prove` judges test pictures in an order that a
seed has chosen, so that the first of them are a sample of all; its chunks are files, so that the same command goes on
where it was stopped, and with a larger --images beyond. A picture counts as certified if it is classified rightly and
provably no perturbation in all of space within the radius changes that.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.robust_training import RobustTraining
from benchmarks.verdicts import judged
from brittle.attacks import PGD
from brittle.common.errors import require
from brittle.common.files import write_json
from brittle.common.progress import Progress
from brittle.common.threads import one_thread
from brittle.data import Cifar10, Data, Mnist
from brittle.experiments.engines import Local
from brittle.experiments.pieces import Executor
from brittle.networks import Network, load_network, save_network

HELD_OUT = 2000
NETWORK_FILES = (".pt", ".safetensors")
SIZES = ("width", "components", "epochs", "steps", "seed")  # of the training that options may change


@dataclass(frozen=True)
class Problem:
    """Pictures, the radius, the training for it, and what was published (deterministic unless it says so)."""

    load: Callable[[], Data]
    image: tuple[int, int, int]
    radius: float
    training: RobustTraining
    published: str


PROBLEMS = {
    "mnist": Problem(
        lambda: Mnist().load(),
        (1, 28, 28),
        1.58,
        RobustTraining(width=2048, components=160, budget=1.75, epochs=60, bend=0.6, steps=3),
        "nearest prototypes 73.0, CRM-LipLT 63.4, GloRo 62.8, BCP 47.95; "
        "randomised smoothing, probabilistic and of another classifier: 82.2 at 1.5, 70.7 at 1.75",
    ),
    "cifar10": Problem(
        lambda: Cifar10().load(),
        (3, 32, 32),
        36 / 255,
        RobustTraining(width=1024, components=256, budget=0.16, epochs=40, bend=0.6, mirror=True, steps=2),
        "LipNeXt 73.2, GloRo 58.4, BCP 51.3",
    ),
}


def halves(data: Data) -> tuple[Data, Data]:
    """What is trained on, and what is held out."""
    order = shuffled(len(data))
    count = min(HELD_OUT, len(data) // 5)
    held, inner = torch.split(order, [count, len(data) - count])
    return Data(data.X[inner], data.y[inner]), Data(data.X[held], data.y[held])


def shuffled(count: int) -> Tensor:
    """0 to count - 1 in an order that is the same every time."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(1))


def train(problem: Problem, inner: Data, held: Data) -> tuple[Network, dict[str, float]]:
    """The network, and what it reaches on held-out pictures."""
    begun = time.process_time()
    network = problem.training.train(inner, problem.image, _told())
    seconds = time.process_time() - begun
    flipped = PGD(budget=problem.radius, steps=40).run(network, held)
    return network, {
        "accuracy": network.accuracy(held.X, held.y),
        "under attack": 1 - flipped.rate,
        "processor": seconds,
    }


def _told() -> Callable[[Progress], None]:
    """A line every minute."""
    last = [time.monotonic()]

    def watch(progress: Progress) -> None:
        if time.monotonic() > last[0] + 60:
            last[0] = time.monotonic()
            print(f"{progress.done:.0%}: {progress.note}", flush=True)

    return watch


def table(files: list[Path]) -> str:
    """One row for each file that `prove` wrote."""
    lines = ["| pictures | radius | images | wrong | flipped | open | certified | 95 % interval | processor s each |"]
    lines.append("|" + "---|" * 9)
    for found in (json.loads(path.read_text(encoding="utf-8")) for path in files):
        low, high = found["interval"]
        cells = [found["problem"], f"{found['radius']:.4g}"]
        cells += [str(found[name]) for name in ("examples", "wrong", "flipped", "open")]
        cells += [f"{found['certified']:.2%}", f"{low:.1%} to {high:.1%}"]
        cells.append(f"{found['processor'] / found['examples']:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _trained(options: argparse.Namespace) -> None:
    require(options.out.suffix in NETWORK_FILES, f"--out is {options.out}; give it one of {', '.join(NETWORK_FILES)}")
    require(options.out.parent.is_dir(), f"--out is {options.out}, in a folder that does not exist")
    problem = PROBLEMS[options.problem]
    given = {name: value for name in SIZES if (value := getattr(options, name)) is not None}
    problem = replace(problem, training=replace(problem.training, **given))
    print(f"{options.problem}: {problem.training}", flush=True)
    network, reached = train(problem, *halves(problem.load()))
    save_network(network, options.out)
    print(f"held-out pictures: accuracy {reached['accuracy']:.2%}, {reached['under attack']:.2%} under attack")
    print(f"{reached['processor']:.0f} processor seconds; {options.out}")


def _proved(options: argparse.Namespace) -> None:
    problem, network = PROBLEMS[options.problem], load_network(options.network)
    test = problem.load().test
    some = test.take(shuffled(len(test))[: options.images])
    crew = Executor(Local(options.jobs), options.keep)
    tally = judged(network, some, problem.radius, options.nodes, crew, _told())
    found: dict[str, Any] = {"problem": options.problem, "radius": problem.radius, **tally.to_json()}
    low, high = tally.interval
    print(f"{options.problem} at {problem.radius:.4g}: {tally.counts} of {tally.examples}")
    print(f"certified {tally.proved:.2%}, 95 % in [{low:.2%}, {high:.2%}]; published: {problem.published}")
    print(f"{tally.processor:.0f} processor seconds")
    if options.json:
        write_json(options.json, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True, metavar="train | prove | table")
    training, proof, shown = (verbs.add_parser(name) for name in ("train", "prove", "table"))
    for verb in (training, proof):
        verb.add_argument("problem", choices=PROBLEMS)
    training.add_argument("--out", type=Path, required=True, help="a file for the network: .pt or .safetensors")
    for name in SIZES:
        training.add_argument(f"--{name}", type=int, help="other than the recipe's")
    proof.add_argument("--network", type=Path, required=True)
    proof.add_argument("--images", type=int, default=1000, help="of the test set")
    proof.add_argument("--keep", type=Path, help="a folder for finished chunks")
    proof.add_argument("--jobs", type=int, default=1)
    proof.add_argument("--nodes", type=int, default=3000, help="of branch and bound, for one picture; 0 for none")
    proof.add_argument("--json", metavar="FILE")
    shown.add_argument("files", nargs="+", type=Path)
    training.set_defaults(run=_trained)
    proof.set_defaults(run=_proved)
    shown.set_defaults(run=lambda options: print(table(options.files)))
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    with one_thread():
        main()
