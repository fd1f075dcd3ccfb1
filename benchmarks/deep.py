"""Verified accuracy on the networks and images of SDP-CROWN (arXiv 2506.06665, Table 1), with its figures beside.

python -m benchmarks.deep [--only WORD] [--images N] [--crown N]; BRITTLE_DATA holds the folder `sdpcrown` with the
paper's weights and its 200 images for each data set. One thread. The time is processor time of the certificate over the
number of images, errors included, without what is prepared once for each network, which stands beside it. An image is
verified if it is classified rightly and provably no flip lies within the radius. SDP-CROWN's formula is that of its
paper with steps of our own (benchmarks/sdp_crown.py); the exact method comes with an attack, the others without.
"""

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.sdp_crown import margin_floors
from brittle.attacks import PGD, Attack, AttackResult, MinimumNorm
from brittle.attacks.base import AttackTarget, Attempt
from brittle.certificates import Certificate, Dual, Exact, LinearRelaxation, Lipschitz
from brittle.common.threads import one_thread
from brittle.data import Data
from brittle.networks import Convolution, Deep, Dense

BOX = (0.0, 1.0)
SMALL = 1000  # neurons of a network whose branches are looked at
GAP = 1e-3  # of the exact radius
MEANS, SCALE = np.array([125.3, 123.0, 113.9]) / 255, 0.225  # of CIFAR-10, as its network was trained


@dataclass(frozen=True)
class Nothing(Attack[AttackResult]):
    """Tries no perturbation: only lower bounds are measured."""

    def propose(self, target: AttackTarget) -> Attempt:
        still = torch.zeros_like(target.X)
        return Attempt(still, still)


NOTHING = Nothing()


@dataclass(frozen=True)
class Problem:
    """A network, its images, the radius in the units of the network's inputs, and what was published."""

    name: str
    make: Callable[[Path], Deep]
    images: str
    radius: float
    box: bool
    published: str


def _arrays(path: Path) -> list[Tensor]:
    return [value.double() for value in torch.load(path, weights_only=True, map_location="cpu").values()]


def _dense(path: Path) -> Deep:
    arrays = _arrays(path)
    return Deep.dense(arrays[::2], arrays[1::2])


def _convolutional(image: tuple[int, int, int]) -> Callable[[Path], Deep]:
    """Two convolutions of 4 × 4 with stride 2 and padding 1, then two dense layers."""

    def make(path: Path) -> Deep:
        arrays = _arrays(path)
        first = Convolution(arrays[0], arrays[1], image, (2, 2), (1, 1))
        second = Convolution(arrays[2], arrays[3], first.result, (2, 2), (1, 1))
        return Deep((first, second, Dense(arrays[4], arrays[5]), Dense(arrays[6], arrays[7])))

    return make


PROBLEMS = (
    Problem(
        "mnist_mlp",
        _dense,
        "mnist",
        1.0,
        True,
        "PGD 54, SDP-CROWN 32.5 (2.5 s), GCP-CROWN 41 (173 s), BM-Full 53 (0.3 h), α-CROWN 1.5, LipNaive 29",
    ),
    Problem(
        "mnist_convsmall",
        _convolutional((1, 28, 28)),
        "mnist",
        0.3,
        True,
        "PGD 84.5, SDP-CROWN 81.5 (12 s), α-CROWN 0, LipNaive 77.5",
    ),
    Problem(
        "cifar10_cnn_a",
        _convolutional((3, 32, 32)),
        "cifar",
        24 / 255 / SCALE,
        False,
        "PGD 55.5, SDP-CROWN 49 (12 s), α-CROWN 7.5, LipNaive 39",
    ),
)


def examples(folder: Path, problem: Problem, images: int) -> Data:
    """Channels first, laid flat."""
    X, y = (np.load(folder / f"{problem.images}_{part}.npy")[:images] for part in "Xy")
    X = X if problem.images == "mnist" else (X - MEANS) / SCALE
    rows = np.ascontiguousarray(np.moveaxis(X, 3, 1)).reshape(len(X), -1)
    return Data(torch.from_numpy(rows).double(), torch.from_numpy(y).long())


def _row(
    name: str,
    part: Certificate,
    network: Deep,
    data: Data,
    radius: float,
    flipped: Tensor,
    attack: Attack[Any] = NOTHING,
) -> None:
    box = BOX if isinstance(part, Dual) and part.boxed else None
    started = time.process_time()
    with torch.no_grad():
        part.prepare(network)
    prepared = time.process_time() - started
    started = time.process_time()
    bounds = part.bound(network, data, attack=attack, bounds=box, cap=radius)
    seconds = max(time.process_time() - started - prepared, 0.0) / len(data)
    verified = bounds.lower >= radius
    wrong = int((verified & flipped).sum())
    note = f"; {wrong} OF THEM FLIPPED BY PGD" if wrong else ""
    share = 100 * float(verified.double().mean())
    print(f"| {name} | {share:.1f} % of {len(data)} | {seconds:.3f} s | {prepared:.1f} s once{note} |", flush=True)


def _flipped(network: Deep, data: Data, radius: float, box: bool) -> Tensor:
    """Errors, and what PGD flips within the radius."""
    found = PGD(budget=radius, steps=100).run(network, data, bounds=BOX if box else None)
    return found.success & (found.norms <= radius * (1 + 1e-9))


def _table(folder: Path, problem: Problem, images: int, crown: int) -> None:
    network, data = problem.make(folder / f"{problem.name}.pth"), examples(folder, problem, images)
    print(f"\n{problem.name}, radius {problem.radius:.4f}; published: {problem.published}")
    free = _flipped(network, data, problem.radius, False)
    print(f"| not flipped by PGD | {100 * float((~free).double().mean()):.1f} % of {len(data)} | | |", flush=True)
    _row("LipNaive", Lipschitz("spectral"), network, data, problem.radius, free)
    _row("dual", Dual(), network, data, problem.radius, free)
    _row("dual, refined", Dual(refined=True), network, data, problem.radius, free)
    if problem.box:
        boxed = _flipped(network, data, problem.radius, True)
        print(f"| not flipped by PGD in the box | {100 * float((~boxed).double().mean()):.1f} % of {len(data)} | | |")
        _row("dual in the box", Dual(boxed=True), network, data, problem.radius, boxed)
        _row("dual in the box, refined", Dual(boxed=True, refined=True), network, data, problem.radius, boxed)
    _formula(network, data, problem.radius)
    if sum(network.widths) <= SMALL:
        _row("exact", Exact(GAP), network, data, problem.radius, free, MinimumNorm())
    few = data.take(torch.arange(min(crown, len(data))))
    for name, steps in (("CROWN", 0), ("α-CROWN", 20)) if crown else ():
        _row(name, LinearRelaxation(halvings=1, steps=steps), network, few, problem.radius, free[: len(few)])


def _formula(network: Deep, data: Data, radius: float) -> None:
    """SDP-CROWN's bound with this machine's steps, rounding aside."""
    started, floors = time.process_time(), margin_floors(network, data, radius)
    share, seconds = 100 * float((floors > 0).double().mean()), (time.process_time() - started) / len(data)
    print(f"| SDP-CROWN's formula | {share:.1f} % of {len(data)} | {seconds:.3f} s | |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="problems whose name has this word")
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--crown", type=int, default=5, help="images for CROWN and α-CROWN, slow on convolutions")
    options = parser.parse_args()
    folder = Path(os.environ.get("BRITTLE_DATA", "data")) / "sdpcrown"
    for problem in PROBLEMS:
        if options.only in problem.name:
            _table(folder, problem, options.images, options.crown)


if __name__ == "__main__":
    with one_thread():
        main()
