"""Forged proofs of margins: how many does margincheck accept? None may be.

python -m benchmarks.forged_margins [--count N] [--seed S]. *Lies* claim that no network has a margin that the network
in the file is known to have, and then change anything else in the hope that it passes. *Broken* proofs claim what is
true, but with something taken out that they cannot do without: a leaf, a sign, that of a multiplier, the data, bytes.
"""

import argparse
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks.forged import ODD, Arrays, Rng, printed
from brittle.data import Data, Sphere, save_data
from brittle.kkt import largest
from margincheck.__main__ import main as margincheck

NAMES = ("lam", "y", "C")
DEFENCELESS = ("W", "b", "v", "lam", "ceiling", "y", "C", "leaf_points", "leaf_signs", "point_sides", "data", "biases")


@dataclass(frozen=True)
class Genuine:
    """A proof's arrays, the file that it is about, and the margin of its network."""

    arrays: Arrays
    data: Path
    margin: float


def genuine(folder: Path, seed: int) -> list[Genuine]:
    """Largest margins with and without biases."""
    rng, found = torch.Generator().manual_seed(seed), []
    for dim, examples, biases in ((3, 6, True), (4, 9, True), (5, 8, False)):
        drawn = Sphere(dim).sample(examples, rng)
        data = Data(drawn.X, torch.where(torch.arange(examples) % 2 == 0, 1.0, -1.0).double())
        best = largest(data, gap=1e-6, biases=biases)
        path = folder / f"{dim}.npz"
        save_data(data, path)
        found.append(Genuine(best.proof.arrays(), path, best.normalised_margin))
    return found


# Whatever may help a lie.


def _scaled(arrays: Arrays, rng: Rng) -> None:
    name = rng.choice(NAMES)
    arrays[name] = arrays[name] * 2.0 ** rng.normal(0, 1)


def _one_scaled(arrays: Arrays, rng: Rng) -> None:
    name = rng.choice(NAMES)
    arrays[name].flat[rng.integers(arrays[name].size)] *= 2.0 ** rng.normal(0, 10)


def _odd_number(arrays: Arrays, rng: Rng) -> None:
    name = rng.choice(NAMES)
    arrays[name].flat[rng.integers(arrays[name].size)] = rng.choice(ODD)


def _negated(arrays: Arrays, rng: Rng) -> None:
    name = rng.choice(NAMES)
    arrays[name] = -arrays[name]


def _flattened(arrays: Arrays, rng: Rng) -> None:
    name = rng.choice(["y", "C"])
    arrays[name] = np.zeros_like(arrays[name])


def _leaf_out(arrays: Arrays, rng: Rng) -> None:
    gone = int(rng.integers(len(arrays["leaf_points"])))
    for name in ("leaf_points", "leaf_signs"):
        arrays[name] = np.delete(arrays[name], gone, axis=0)


def _leaf_twice(arrays: Arrays, rng: Rng) -> None:
    one, other = rng.integers(len(arrays["leaf_points"]), size=2)
    for name in ("leaf_points", "leaf_signs"):
        arrays[name][one] = arrays[name][other]


def _leaf_elsewhere(arrays: Arrays, rng: Rng) -> None:
    place = int(rng.integers(len(arrays["leaf_points"])))
    arrays["leaf_points"][place] = rng.integers(-1, len(arrays["point_sides"]) + 1)


def _one_point(arrays: Arrays, rng: Rng) -> None:
    arrays["leaf_points"][:] = rng.integers(len(arrays["point_sides"]))


def _any_sign(arrays: Arrays, rng: Rng) -> None:
    signs = arrays[rng.choice(["leaf_signs", "point_signs"])]
    signs.flat[rng.integers(signs.size)] = rng.integers(-2, 3)


def _sides(arrays: Arrays, rng: Rng) -> None:
    arrays["point_sides"] = arrays["point_sides"] * -1


def _biases(arrays: Arrays, rng: Rng) -> None:
    arrays["biases"] = 1 - arrays["biases"]


HELPS = (
    _scaled,
    _one_scaled,
    _odd_number,
    _negated,
    _flattened,
    _leaf_out,
    _leaf_twice,
    _leaf_elsewhere,
    _one_point,
    _any_sign,
    _sides,
    _biases,
)


def below(arrays: Arrays, margin: float, by: float) -> None:
    """The ceiling from which a bound below the margin follows."""
    total = 2 * float(np.nansum(np.clip(arrays["lam"], 0, 1e100)))
    arrays["ceiling"] = np.array(max((margin * (1 - by) * total) ** 2, 1e-300))


def lie(genuine: Genuine, rng: Rng) -> tuple[str, Arrays]:
    """A bound below the network's own margin, and up to three other changes."""
    arrays, helps = copied(genuine.arrays), rng.choice(len(HELPS), size=rng.integers(0, 4))
    for each in helps:
        if len(arrays["leaf_points"]):
            HELPS[each](arrays, rng)
    below(arrays, genuine.margin, 10.0 ** rng.uniform(-9, -0.5))
    return "lie" + "".join(HELPS[each].__name__ for each in helps[:1]), arrays


# What no proof can do without.


def _sign(arrays: Arrays, rng: Rng) -> None:
    """A leaf turned to its neighbour: its own patterns lie in none."""
    row, column = rng.choice(np.argwhere(arrays["leaf_signs"]))
    arrays["leaf_signs"][row, column] *= -1


def _wrong_multipliers(arrays: Arrays, rng: Rng) -> None:
    arrays["C"] = -arrays["C"]


def _barely_wrong(arrays: Arrays, rng: Rng) -> None:
    """The first multiplier, of an example of the other class, a last bit above 0 for one pattern."""
    free = int(((arrays["point_signs"][0] == 0) & _own(arrays)).sum())
    row = arrays["C"][: free + 1]
    row[1:], row[0] = 0, 5e-324


def _own(arrays: Arrays) -> np.ndarray:
    labels = np.where(np.arange(len(arrays["lam"])) % 2 == 0, 1, -1)
    return np.asarray((labels == arrays["point_sides"][0]) & (arrays["lam"] > 0))


def _low_ceiling(arrays: Arrays, rng: Rng) -> None:
    arrays["ceiling"] = arrays["ceiling"] * (1 - 2e-6)  # a gap of 1e-6 in the margin is 2e-6 of its square


def _other_data(arrays: Arrays, rng: Rng) -> None:
    arrays["data"] = rng.permutation(arrays["data"])


def _missing(arrays: Arrays, rng: Rng) -> None:
    del arrays[rng.choice(DEFENCELESS)]


def _short(arrays: Arrays, rng: Rng) -> None:
    name = rng.choice(["y", "C", "lam", "point_sides", "leaf_signs"])
    arrays[name] = arrays[name][:-1]


def _texts(arrays: Arrays, rng: Rng) -> None:
    arrays["ceiling"] = np.array("low")


BREAKS = (_leaf_out, _sign, _wrong_multipliers, _barely_wrong, _low_ceiling, _other_data, _missing, _short, _texts)


def broken(genuine: Genuine, rng: Rng) -> tuple[str, Arrays]:
    """A true claim without what proves it."""
    arrays, chosen = copied(genuine.arrays), BREAKS[rng.integers(len(BREAKS))]
    chosen(arrays, rng)
    return chosen.__name__, arrays


def copied(arrays: Arrays) -> Arrays:
    return {name: values.copy() for name, values in arrays.items()}


def accepted(arrays: Arrays, genuine: Genuine, path: Path, bytes_out: int = 0) -> tuple[bool, str]:
    """Whether margincheck accepts a file with these arrays, and what it prints."""
    np.savez(path, **arrays)  # type: ignore[arg-type]
    if bytes_out:
        path.write_bytes(path.read_bytes()[:-bytes_out])
    return printed(lambda: margincheck([str(path), "--data", str(genuine.data)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, tried, wrong, started = np.random.default_rng(given.seed), Counter[str](), 0, time.process_time()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "proof.npz"
        claims = genuine(Path(name), given.seed)
        good = [each for each in claims if accepted(each.arrays, each, path)[0]]
        print(f"{len(good)} of {len(claims)} genuine proofs are accepted", flush=True)
        for _ in range(given.count):
            words, arrays = (lie if rng.random() < 0.8 else broken)(claim := good[rng.integers(len(good))], rng)
            bytes_out = int(rng.integers(1, 2000)) if rng.random() < 0.03 else 0
            passed, output = accepted(arrays, claim, path, bytes_out)
            tried[words] += 1
            wrong += passed
            if passed or output.count("\n") != 1:
                print(f"{'ACCEPTED' if passed else 'NOT ONE LINE'}: {words}: {output}", flush=True)
    print(f"{sum(tried.values())} forged proofs of {len(tried)} kinds, {wrong} accepted, ", end="")
    print(f"{time.process_time() - started:.0f} processor seconds")


if __name__ == "__main__":
    main()
