"""Forged proofs: how many does proofcheck accept? None may be.

python -m benchmarks.forged [--count N] [--seed S]. Proofs of small networks (two layers, three layers, a box) are bent
in two ways. *Lies* claim a radius a little (at least 1e-9 of it) above the length of a flip that was measured, and then
change anything else in the file in the hope that it passes. *Broken* proofs claim what is true, but with something
taken out that they cannot do without: a branch, a step, a sign, the network, the order of the examples, bytes.
"""

import argparse
import io
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from brittle.attacks import MinimumNorm
from brittle.certificates import Dual, Exact
from brittle.data import Data
from brittle.networks import Deep, TwoLayer
from brittle.proving import prove, write_beside
from proofcheck.__main__ import main as proofcheck

Arrays = dict[str, np.ndarray]
Rng = np.random.Generator
NAMES = ("alpha", "beta", "lam", "rho", "tau", "nu")
ODD = (0.0, -1.0, 1e-12, 1e6, 1e300, np.nan, np.inf, -np.inf)
BOX = (-1.0, 1.0)


@dataclass(frozen=True)
class Genuine:
    """One claim of a proof on its own: its arrays, the files it is about, and the length of a flip of the example."""

    arrays: Arrays
    network: Path
    data: Path
    upper: float


def genuine(folder: Path, seed: int, examples: int = 5) -> list[Genuine]:
    """Claims about three small networks."""
    rng = torch.Generator().manual_seed(seed)
    found = []
    for name, network, box in (
        ("two", _two_layers(rng), None),
        ("three", _deep(rng, (4, 6, 5, 3)), None),
        ("boxed", _deep(rng, (4, 6, 5, 3)), BOX),
    ):
        X = 0.8 * (2 * torch.rand(examples, 4, generator=rng, dtype=torch.float64) - 1)
        logits = network.logits(X)
        y = torch.where(logits > 0, 1, -1) if logits.ndim == 1 else logits.argmax(1)
        data = Data(X, y)
        method = Exact(gap=1e-5) if box is None else Dual(boxed=True)
        bounds = method.bound(network, data, attack=MinimumNorm(), bounds=box)
        proof = prove(network, data, bounds.lower, bounds.flips, box=box, seconds=5)
        path = folder / f"{name}.npz"
        beside = write_beside(proof, path, None, None)
        arrays = proof.arrays()
        rivals = (len(arrays["starts"]) - 1) // len(arrays["rows"])
        found += [
            Genuine(_alone(arrays, place, rivals, proof.X, proof.y), beside[0], beside[1], float(bounds.upper[row]))
            for place, row in enumerate(proof.rows)
        ]
    return found


def _two_layers(rng: torch.Generator) -> TwoLayer:
    W, b, v = (torch.randn(*shape, generator=rng, dtype=torch.float64) for shape in ((12, 4), (12,), (12,)))
    return TwoLayer(W, 0.3 * b, v)


def _deep(rng: torch.Generator, shape: tuple[int, ...]) -> Deep:
    pairs = list(pairwise(shape))
    weights = [torch.randn(m, d, generator=rng, dtype=torch.float64) * (2 / d) ** 0.5 for d, m in pairs]
    return Deep.dense(weights, [0.2 * torch.randn(m, generator=rng, dtype=torch.float64) for _, m in pairs])


def _alone(arrays: Arrays, place: int, rivals: int, X: np.ndarray, y: np.ndarray) -> Arrays:
    from proofcheck.proof import digest

    starts = arrays["starts"][place * rivals : (place + 1) * rivals + 1]
    found = {name: values.copy() for name, values in arrays.items()}
    found["rows"], found["radii"] = arrays["rows"][[place]], arrays["radii"][[place]]
    found["program"], found["starts"] = arrays["program"][starts[0] : starts[-1]].copy(), starts - starts[0]
    row = int(found["rows"][0])
    found["data"] = np.frombuffer(digest([X[[row]], y[[row]]]), dtype=np.uint8)
    return found


# Whatever may help a lie.


def _scale(arrays: Arrays, rng: Rng) -> None:
    name = rng.choice([each for each in (*NAMES, "mu") if each in arrays])
    arrays[name] = arrays[name] * 2.0 ** rng.normal(0, 3)


def _scale_one(arrays: Arrays, rng: Rng) -> None:
    name = rng.choice([each for each in (*NAMES, "mu") if each in arrays])
    values = arrays[name].astype(np.float64)
    values.flat[rng.integers(values.size)] *= 2.0 ** rng.normal(0, 10)
    arrays[name] = values


def _odd_number(arrays: Arrays, rng: Rng) -> None:
    name = rng.choice([*NAMES, "mu", "walls"])
    shape = arrays["kinds"].shape
    values = arrays.get(name, np.zeros((shape[0], 4) if name == "walls" else shape)).astype(np.float64)
    values.flat[rng.integers(values.size)] = rng.choice(ODD)
    arrays[name] = values


def _negated(arrays: Arrays, rng: Rng) -> None:
    name = rng.choice([each for each in (*NAMES, "mu") if each in arrays])
    arrays[name] = -arrays[name]


def _kind(arrays: Arrays, rng: Rng) -> None:
    kinds = arrays["kinds"].copy()
    kinds.flat[rng.integers(kinds.size)] = rng.integers(-1, 6)
    arrays["kinds"] = kinds


def _all_settled(arrays: Arrays, rng: Rng) -> None:
    arrays["kinds"] = np.full_like(arrays["kinds"], rng.integers(4))


def _line_out(arrays: Arrays, rng: Rng) -> None:
    gone = int(rng.integers(len(arrays["program"])))
    arrays["program"] = np.delete(arrays["program"], gone, axis=0)
    arrays["starts"] = np.where(arrays["starts"] > gone, arrays["starts"] - 1, arrays["starts"])


def _line_changed(arrays: Arrays, rng: Rng) -> None:
    program = arrays["program"].copy()
    program[rng.integers(len(program))] = rng.integers(-1, 5), rng.integers(-2, len(arrays["kinds"]) + 2)
    arrays["program"] = program


def _never(arrays: Arrays, rng: Rng) -> None:
    count = len(arrays["starts"])
    arrays["program"], arrays["starts"] = np.array([[3, 0]] * (count - 1)), np.arange(count)


def _starts(arrays: Arrays, rng: Rng) -> None:
    starts = arrays["starts"].copy()
    starts[rng.integers(len(starts))] = rng.integers(-2, len(arrays["program"]) + 2)
    arrays["starts"] = starts


def _steps_swapped(arrays: Arrays, rng: Rng) -> None:
    order = rng.permutation(len(arrays["kinds"]))
    for name in (*NAMES, "mu", "kinds"):
        if name in arrays and len(arrays[name]) == len(order):
            arrays[name] = arrays[name][order]


def _box(arrays: Arrays, rng: Rng) -> None:
    if "box" in arrays and rng.random() < 0.2:
        arrays["walls"] = rng.normal(0, 1, (len(arrays["kinds"]), 4))


def _nothing(arrays: Arrays, rng: Rng) -> None:
    pass


HELPS: tuple[Callable[[Arrays, Rng], None], ...] = (
    _nothing,
    _scale,
    _scale_one,
    _odd_number,
    _negated,
    _kind,
    _all_settled,
    _line_out,
    _line_changed,
    _never,
    _starts,
    _steps_swapped,
    _box,
)


def lie(genuine: Genuine, rng: Rng) -> tuple[str, Arrays]:
    """A radius above a flip of the example, and up to three other changes."""
    arrays = {name: values.copy() for name, values in genuine.arrays.items()}
    raised = genuine.upper * (1 + 10.0 ** rng.uniform(-9, -0.5))
    arrays["radii"] = np.array([raised])
    helps = rng.choice(len(HELPS), size=rng.integers(0, 4))
    for each in helps:
        if len(arrays["program"]):
            HELPS[each](arrays, rng)
    return "lie" + "".join(HELPS[each].__name__ for each in helps[:1]), arrays


# What no proof can do without.


def _sign(arrays: Arrays, rng: Rng) -> None:
    name = rng.choice([each for each in ("alpha", "beta", "rho", "tau") if each in arrays])
    values = arrays[name].astype(np.float64)
    used = np.flatnonzero(values)
    values.flat[rng.choice(used)] *= -1
    arrays[name] = np.where(values < 0, values, values)
    steps = arrays["program"][np.isin(arrays["program"][:, 0], (0, 1)), 1]
    row = int(np.flatnonzero((arrays[name] < 0).any(1))[0])
    if len(arrays[name]) > 1 and row not in steps:  # a step that is not used: let it be
        arrays["radii"] = np.array([np.nan])


def _end_out(arrays: Arrays, rng: Rng) -> None:
    arrays["program"] = arrays["program"][:-1]
    arrays["starts"] = np.minimum(arrays["starts"], len(arrays["program"]))


def _line_more(arrays: Arrays, rng: Rng) -> None:
    arrays["program"] = np.vstack([arrays["program"], arrays["program"][-1:]])
    arrays["starts"][-1] += 1


def _no_number(arrays: Arrays, rng: Rng) -> None:
    arrays["radii"] = np.array([rng.choice([np.nan, np.inf, -1.0, 0.0])])


def _other_network(arrays: Arrays, rng: Rng) -> None:
    arrays["network"] = rng.permutation(arrays["network"])


def _other_data(arrays: Arrays, rng: Rng) -> None:
    arrays["data"] = rng.permutation(arrays["data"])


def _other_row(arrays: Arrays, rng: Rng) -> None:
    arrays["rows"] = (arrays["rows"] + rng.integers(1, 5)) % 5


def _missing(arrays: Arrays, rng: Rng) -> None:
    del arrays[rng.choice(["network", "data", "rows", "radii", "starts", "program", "kinds", "mu"])]


def _texts(arrays: Arrays, rng: Rng) -> None:
    arrays["radii"] = np.array(["far"])


BREAKS = (
    _sign,
    _end_out,
    _line_more,
    _no_number,
    _other_network,
    _other_data,
    _other_row,
    _missing,
    _texts,
)


def broken(genuine: Genuine, rng: Rng) -> tuple[str, Arrays]:
    """A true claim without what proves it."""
    arrays = {name: values.copy() for name, values in genuine.arrays.items()}
    chosen = BREAKS[rng.integers(len(BREAKS))]
    chosen(arrays, rng)
    return chosen.__name__, arrays


def accepted(arrays: Arrays, genuine: Genuine, path: Path, bytes_out: int = 0) -> tuple[bool, str]:
    """Whether proofcheck accepts a file with these arrays, and what it prints."""
    np.savez(path, **arrays)  # type: ignore[arg-type]
    if bytes_out:
        path.write_bytes(path.read_bytes()[:-bytes_out])
    return run(path, genuine.network, genuine.data)


def run(path: Path, network: Path, data: Path) -> tuple[bool, str]:
    return printed(lambda: proofcheck([str(path), "--network", str(network), "--data", str(data)]))


def printed(checker: Callable[[], int]) -> tuple[bool, str]:
    """Whether a checker ends with exit code 0, and what it prints."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = checker()
    return code == 0, out.getvalue() + err.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, tried, wrong, started = np.random.default_rng(given.seed), Counter[str](), 0, time.process_time()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        claims = genuine(folder, given.seed)
        good = [each for each in claims if accepted(each.arrays, each, folder / "proof.npz")[0]]
        print(f"{len(good)} of {len(claims)} genuine claims are accepted", flush=True)
        for _ in range(given.count):
            claim = good[rng.integers(len(good))]
            bend = lie if rng.random() < 0.8 and np.isfinite(claim.upper) else broken
            words, arrays = bend(claim, rng)
            bytes_out = int(rng.integers(1, 2000)) if rng.random() < 0.03 else 0
            passed, output = accepted(arrays, claim, folder / "proof.npz", bytes_out)
            tried[words] += 1
            wrong += passed
            if passed or output.count("\n") != 1:
                print(f"{'ACCEPTED' if passed else 'NOT ONE LINE'}: {words}: {output}", flush=True)
    print(f"{sum(tried.values())} forged proofs of {len(tried)} kinds, {wrong} accepted, ", end="")
    print(f"{time.process_time() - started:.0f} processor seconds")


if __name__ == "__main__":
    main()
