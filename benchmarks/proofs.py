"""Proofs: how many certified radii proofcheck proves again, at what cost, and how large the files are.

python -m benchmarks.proofs [--only WORD] [--examples N] [--networks FOLDER]; BRITTLE_DATA for MNIST and the folder
`sdpcrown`. Processor seconds per example, on one thread: of the certificate with its attack, of the search for the
proof, and of proofcheck, which is run on the file that was written. *Whole*: claims that lose less than 1e-8.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.deep import BOX, GAP, PROBLEMS, Nothing
from benchmarks.deep import examples as sdpcrown_examples
from benchmarks.deep_exact import CASES, network_of
from benchmarks.forged import run
from brittle.attacks import MinimumNorm
from brittle.certificates import Certificate, Dual, Exact
from brittle.cli.audit import make_default_subject
from brittle.common.threads import one_thread
from brittle.data import Data, Mnist
from brittle.data.sources import data_folder
from brittle.networks import Network, TorchLinearInit
from brittle.proving import prove, write_beside

SMALL = "mnist_mlp"  # the network of benchmarks.deep whose neurons have curvatures and branches of their own


class Case(NamedTuple):
    name: str
    make: Callable[[int], tuple[Network, Data]]
    method: Certificate
    options: dict[str, Any]


def _demo(count: int) -> tuple[Network, Data]:
    network, data = make_default_subject(torch.Generator().manual_seed(0))
    return network, Data(data.test.X[:count], data.test.y[:count])


def _wide(count: int) -> tuple[Network, Data]:
    rng = torch.Generator().manual_seed(0)
    network = TorchLinearInit().draw(200, 1000, rng)
    X = torch.randn(count, 200, generator=rng, dtype=torch.float64)
    return network, Data(X, torch.where(network.logits(X) > 0, 1.0, -1.0).double())


def _mnist(folder: Path | None) -> Callable[[int], tuple[Network, Data]]:
    def make(count: int) -> tuple[Network, Data]:
        mnist = Mnist().load()
        network = network_of(CASES[0], mnist, folder)
        right = (network.margins(mnist.test.X, mnist.test.y) > 0).nonzero()[:count, 0]
        return network, Data(mnist.test.X[right], mnist.test.y[right])

    return make


def _sdpcrown(place: int) -> Callable[[int], tuple[Network, Data]]:
    def make(count: int) -> tuple[Network, Data]:
        folder, problem = data_folder() / "sdpcrown", PROBLEMS[place]
        return problem.make(folder / f"{problem.name}.pth"), sdpcrown_examples(folder, problem, count)

    return make


def cases(networks: Path | None) -> Iterator[Case]:
    yield Case("demo, digits 3 and 8, width 200", _demo, Exact(gap=1e-4), {})
    yield Case("width 1000, d=200, at its initialisation", _wide, Exact(gap=1e-4), {})
    yield Case("784-100-100-10", _mnist(networks), Exact(gap=1e-3), {})
    for place, problem in enumerate(PROBLEMS):
        make, options = _sdpcrown(place), {"attack": Nothing(), "cap": problem.radius}
        small = problem.name == SMALL
        yield Case(f"{problem.name}, dual", make, Dual(), options)
        if small:
            yield Case(f"{problem.name}, dual refined", make, Dual(refined=True), options)
            yield Case(f"{problem.name}, exact", make, Exact(GAP), {**options, "attack": MinimumNorm()})
        if problem.box:
            options = {**options, "bounds": BOX}
            yield Case(f"{problem.name}, dual in the box", make, Dual(boxed=True), options)
            if small:
                yield Case(f"{problem.name}, dual refined in the box", make, Dual(boxed=True, refined=True), options)


def measure(case: Case, count: int, folder: Path) -> None:
    network, data = case.make(count)
    started = time.process_time()
    bounds = case.method.bound(network, data, **case.options)
    certified = time.process_time()
    box = BOX if "box" in case.name else None
    proof = prove(network, data, bounds.lower, bounds.flips, box=box)
    searched = time.process_time()
    path = folder / "proof.npz"
    proof.save(path)
    beside = write_beside(proof, path, None, None)
    checking = time.process_time()
    passed, output = run(path, *beside)
    seconds = [
        (b - a) / len(data) for a, b in ((started, certified), (certified, searched), (checking, time.process_time()))
    ]
    proved, losses = output.count("no flip within"), proof.losses
    assert passed == (proved == len(proof.rows))
    print(
        f"| {case.name} | {proved} of {len(losses)} | {int((losses <= 1e-8).sum())} | {100 * losses.mean():.2g} % |"
        f" {' | '.join(f'{each:.3f}' for each in seconds)} | {path.stat().st_size / max(proved, 1) / 1e3:.1f} kB |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--examples", type=int, default=20)
    parser.add_argument("--networks", type=Path, help="where trained networks are kept")
    given = parser.parse_args()
    print("| network | proved again | whole | mean loss | certificate s | proof s | check s | size per example |")
    print("|---|---|---|---|---|---|---|---|")
    with one_thread(), tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        for case in cases(given.networks):
            if given.only in case.name:
                measure(case, given.examples, Path(folder))


if __name__ == "__main__":
    main()
