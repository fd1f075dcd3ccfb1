"""Files, and what they claim: radii of examples, with a program for every rival of each.

A program narrows what is known of the flips of a branch until there are none: by a STEP, whose multipliers are in the
file, or by one that must CLOSE the branch at once; by a SPLIT, after which come the lines for the part with z ≥ 0 and
then those for the part with z ≤ 0; or because the margin is NEVER below 0 in what is left.
"""

import hashlib
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from proofcheck.balls import TINY, Array, Ball, Definite, Refused, U, require
from proofcheck.lagrangian import Margin, Step
from proofcheck.network import Intervals, Network

LIMIT, LARGEST, DEEPEST = 2**31, 2**14, 400  # bytes of a file; inputs and neurons of a network; splits on one way
STEP, CLOSE, SPLIT, NEVER = range(4)
MULTIPLIERS = ("alpha", "beta", "lam", "rho", "tau", "nu", "walls")


def arrays(path: Path, names: tuple[str, ...]) -> dict[str, Any]:
    """Those of the named numbers that a .npz holds (weight.0 is a `weight`): no pickles, no more than LIMIT bytes."""
    require(TINY * U > 0, "numbers below the normal floats are flushed to 0 on this machine, and nothing is proved")
    try:
        with zipfile.ZipFile(path) as archive:
            require(sum(each.file_size for each in archive.infolist()) <= LIMIT, "it unpacks to too many bytes")
        with np.load(path, allow_pickle=False) as file:
            found = {name: np.ascontiguousarray(file[name]) for name in file.files if name.split(".")[0] in names}
        require(all(each.dtype.kind in "fiu" for each in found.values()), "it holds something else than numbers")
        return found
    except Exception as error:  # a damaged file can fail in any way
        raise Refused(f"it cannot be read: {str(error)[:200] or type(error).__name__}") from None


def floats(values: Any) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)


def read_network(path: Path) -> Network:
    """W, b, v and c of two layers; or weight.0, bias.0, weight.1, ... of any number."""
    found = arrays(path, ("W", "b", "v", "c", "weight", "bias"))
    if "W" in found:
        layers = [(found["W"], found["b"]), (found["v"][None], found.get("c", np.zeros(1)).reshape(1))]
    else:
        layers = [(found[f"weight.{k}"], found[f"bias.{k}"]) for k in range(len(found) // 2)]
    alone = len(found) == (3 + ("c" in found) if "W" in found else 2 * len(layers))
    require(alone, "it holds more arrays than those of one network")
    weights, biases = [floats(W) for W, _ in layers], [floats(b) for _, b in layers]
    sizes = [weights[0].shape[1], *map(len, biases)]
    fit = all(W.shape == (sizes[k + 1], sizes[k]) for k, W in enumerate(weights)) and all(b.ndim == 1 for b in biases)
    require(fit and len(weights) > 1 and min(sizes) > 0, "the layers do not fit together")
    require(sum(sizes) <= LARGEST, f"it has more than {LARGEST} inputs and neurons")
    require(all(np.isfinite(each).all() for each in weights + biases), "it holds NaN or infinity")
    return Network(weights, biases)


def read_data(path: Path, network: Network) -> tuple[Array, Array]:
    """Examples, laid flat, and labels: classes from 0, or -1 and 1 for a single logit."""
    found, classes = arrays(path, ("X", "y")), len(network.biases[-1])
    X, y = floats(found["X"]).reshape(len(found["X"]), -1), floats(found["y"])
    require(X.shape == (len(y), network.weights[0].shape[1]) and y.ndim == 1, "its examples do not fit the network")
    require(np.isin(y, [-1, 1] if classes == 1 else range(classes)).all(), "a label is none of the network's")
    return X, y


def digest(parts: list[Array]) -> bytes:
    """SHA-256 of shapes and numbers, as little-endian int64 and float64."""
    found = hashlib.sha256()
    for part in parts:
        found.update(np.array([part.ndim, *part.shape], dtype="<i8").tobytes())
        found.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
    return found.digest()


def read_proof(path: Path, network: Network, X: Array, y: Array, seconds: float) -> "Proof":
    """If it fits: there is a row of every multiplier for each step, one for all of them, or none, if it is 0."""
    N, whole, bytes_ = network.parts[-1].stop, ("rows", "starts", "program", "kinds"), ("network", "data")
    found = arrays(path, (*whole, *bytes_, *MULTIPLIERS, "radii", "mu", "box"))
    wide = {name: X.shape[1] if name == "walls" else N for name in MULTIPLIERS}
    found = {name: np.zeros((1, wide[name])) for name in MULTIPLIERS} | {"box": np.zeros(0)} | found
    rows, steps = found["rows"].astype(np.int64), len(found["kinds"])
    claims = len(rows) * max(len(network.biases[-1]) - 1, 1)
    shapes = {"rows": (len(rows),), "radii": (len(rows),), "starts": (claims + 1,), "kinds": (steps, N), "mu": (steps,)}
    shapes |= {"program": (len(found["program"]), 2), "box": (len(found["box"]) and 2,)}
    shapes |= {name: (1 if len(found[name]) == 1 else steps, wide[name]) for name in MULTIPLIERS}
    fit = all(found[name].shape == shape for name, shape in shapes.items())
    require(fit and all(found[name].dtype.kind in "iu" for name in whole), "its arrays do not fit together")
    require(claims and ((rows >= 0) & (rows < len(X))).all(), "it claims nothing, or has examples that are not there")
    require(found["network"].tobytes() == digest(network.parameters()), "it is about another network")
    require(found["data"].tobytes() == digest([X[rows], y[rows]]), "it is about other examples")
    return Proof(network, X, y, found, seconds)


@dataclass(frozen=True, eq=False)
class Proof:
    """Claims: the example rows[k] has no flip within radii[k] (in the box, where there is one)."""

    network: Network
    X: Array
    y: Array
    found: dict[str, Any]
    seconds: float  # of processor time, for all claims
    proved: dict[bytes, tuple[Definite, Ball]] = field(default_factory=dict)

    def check(self, claim: int) -> float:
        """The radius of the claim, or Refused."""
        row, R = int(self.found["rows"][claim]), float(self.found["radii"][claim])
        require(0 < R < np.inf and np.isfinite(self.X[row]).all(), "the radius is no positive number")
        margins, z = self.network.margins(self.y[row]), self.network.offsets(self.X[row])
        for rival, (c, c0) in enumerate(margins):
            begin, end = map(int, self.found["starts"][claim * len(margins) + rival :][:2])
            lines = iter(self.found["program"][max(begin, 0) : max(end, 0)].tolist())
            margin = Margin(self.network, self.X[row], z, R, c, c0, floats(self.found["box"]), self.proved)
            self._run(margin, lines, self.network.first_intervals(z, R), 0)
            require(next(lines, None) is None, "a program goes on after its end")
        return R

    def _run(self, margin: Margin, lines: Iterator[list[int]], known: Intervals | None, depth: int) -> None:
        """Until no flips are left in the branch."""
        while known is not None:
            code, place = next(lines, (-1, 0))
            require(time.process_time() < self.seconds and depth <= DEEPEST, "the proof is too long")
            if code == SPLIT and 0 <= place < len(known.low):
                for low, high in (0.0, np.inf), (-np.inf, 0.0):
                    self._run(margin, lines, known.at(place, low, high), depth + 1)
                known = None
            elif code in (STEP, CLOSE) and 0 <= place < len(self.found["kinds"]):
                known = margin.after(self._step(place), known, code == STEP)
            else:
                require(code == NEVER and margin.never(known), "a branch is left open")
                known = None

    def _step(self, place: int) -> Step:
        values = (floats(self.found[name][place if len(self.found[name]) > 1 else 0]) for name in MULTIPLIERS)
        return Step._make((self.found["kinds"][place], *values, float(self.found["mu"][place])))
