"""Files: what is read of them, and what they claim."""

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from proofcheck.balls import Array, Ball, Definite
from proofcheck.lagrangian import Margin, Step
from proofcheck.network import Intervals, Network, Refused

LIMIT = 2**31  # bytes that a file may unpack to
STEP, CLOSE, SPLIT, NEVER = range(4)  # what a line of a program does
DEEPEST = 400  # splits on the way to a branch
MULTIPLIERS = ("alpha", "beta", "lam", "rho", "tau", "nu")


class BadInput(Exception):
    """A file that is no proof, no network or no data."""


def arrays(path: Path) -> dict[str, np.ndarray]:
    """The plain numbers of a .npz, without pickles, and never more bytes than LIMIT."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(info.file_size for info in archive.infolist()) > LIMIT:
                raise BadInput(f"{path}: unpacks to more than {LIMIT} bytes")
        with np.load(path, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(f"{path}: cannot be read ({type(error).__name__})") from None
    if not all(isinstance(each, np.ndarray) and each.dtype.kind in "fiub" for each in found.values()):
        raise BadInput(f"{path}: holds something else than numbers")
    return {name: np.ascontiguousarray(each) for name, each in found.items()}


def read_network(path: Path) -> Network:
    """W, b, v, c of two layers; or weight.k (or values.k, columns.k, starts.k, features.k by rows) and bias.k."""
    found = arrays(path)
    try:
        if "W" in found:
            weights = [found["W"], found["v"][None]]
            biases = [found["b"], found.get("c", np.zeros(())).reshape(1)]
        else:
            count = sum(name.startswith("bias.") for name in found)
            weights, biases = [_matrix(found, k) for k in range(count)], [found[f"bias.{k}"] for k in range(count)]
        weights, biases = ([np.ascontiguousarray(each, dtype=np.float64) for each in part] for part in (weights, biases))
        shapes = [(len(b), W.shape[1]) == W.shape for W, b in zip(weights, biases, strict=True)]
        joints = [len(b) == W.shape[1] for b, W in zip(biases, weights[1:], strict=False)]
    except (KeyError, ValueError, IndexError, TypeError, MemoryError) as error:
        raise BadInput(f"{path}: is no network ({type(error).__name__}: {error})") from None
    if len(weights) < 2 or not all(shapes + joints) or not all(np.isfinite(each).all() for each in weights + biases):
        raise BadInput(f"{path}: layers do not fit together, or hold NaN or infinity")
    return Network(weights, biases)


def read_data(path: Path, network: Network, test: bool) -> tuple[Array, Array]:
    """Examples, laid flat, and labels."""
    found, mark = arrays(path), "_test" if test else ""
    try:
        X, y = found["X" + mark], found["y" + mark].astype(np.float64)
        X = np.ascontiguousarray(X.reshape(len(X), -1), dtype=np.float64)
        known = [-1, 1] if len(network.biases[-1]) == 1 else range(len(network.biases[-1]))
        if X.shape != (len(y), network.weights[0].shape[1]) or not np.isin(y, known).all():
            raise ValueError("examples and labels do not fit the network")
    except (KeyError, ValueError) as error:
        raise BadInput(f"{path}: is no data ({error})") from None
    return X, y


def _matrix(found: dict[str, np.ndarray], k: int) -> Array:
    if f"weight.{k}" in found:
        return found[f"weight.{k}"]
    starts, features = found[f"starts.{k}"], int(found[f"features.{k}"].item())
    if not (0 < features and (len(starts) - 1) * features * 8 <= LIMIT):
        raise ValueError("a layer is too large")
    W = np.zeros((len(starts) - 1, features))
    W[np.repeat(np.arange(len(W)), np.diff(starts)), found[f"columns.{k}"]] = found[f"values.{k}"]
    return W


def digest(parts: list[np.ndarray]) -> bytes:
    """SHA-256 of the shapes and of the numbers as float64."""
    found = hashlib.sha256()
    for part in parts:
        found.update(np.array([part.ndim, *part.shape], dtype="<i8").tobytes())
        found.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
    return found.digest()


class Proof:
    """Radii of some examples of some data, with a program for each of their rivals."""

    def __init__(self, path: Path, network: Network, X: Array, y: Array) -> None:
        found, self.network, self.X, self.y = arrays(path), network, X, y
        N, d = network.parts[-1].stop, X.shape[1]
        try:
            self.rows, self.radii, self.starts, self.program = (
                found[name] for name in ("rows", "radii", "starts", "program")
            )
            self.box = None if "box" not in found else (float(found["box"][0]), float(found["box"][1]))
            steps = len(found["kinds"])
            self.steps = [found["kinds"], *(found.get(name, np.zeros((1, N))) for name in MULTIPLIERS)]
            self.steps += [found["mu"], found.get("walls", np.zeros((1, d)))]
            rivals = max(len(network.biases[-1]) - 1, 1)
            fits = [len(self.rows) == len(self.radii), len(self.starts) == len(self.rows) * rivals + 1]
            fits += [each.shape[1:] == (N,) for each in self.steps[:7]] + [self.steps[8].shape[1:] == (d,)]
            fits += [len(each) in (1, steps) for each in self.steps] + [self.program.shape[1:] == (2,)]
            whole = all(each.dtype.kind in "iu" for each in (self.rows, self.starts, self.program, self.steps[0]))
            if not (all(fits) and whole and ((self.rows >= 0) & (self.rows < len(X))).all()):
                raise ValueError("its arrays do not fit together")
            for name, parts in ("network", network.parameters), ("data", [X[self.rows], y[self.rows]]):
                if found[name].tobytes() != digest(parts):
                    raise ValueError(f"it is about another {name}")
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise BadInput(f"{path}: is no proof for these files ({error})") from None

    def check(self, place: int, cache: dict[bytes, tuple[Ball, Definite]]) -> float:
        """The radius of the claim at this place, or Refused."""
        row, R = int(self.rows[place]), float(self.radii[place])
        if not (0 < R < np.inf and np.isfinite(self.X[row]).all()):
            raise Refused("the radius is no positive number")
        margins, z = self.network.margins(self.y[row]), self.network.offsets(self.X[row])
        for k, (c, c0) in enumerate(margins):
            begin, end = (int(each) for each in self.starts[place * len(margins) + k :][:2])
            margin = Margin(self.network, self.X[row], z, R, c, c0, self.box, cache)
            lines = iter(self.program[begin:end].tolist() if 0 <= begin <= end else [])
            self._run(margin, lines, self.network.first_intervals(z, R), 0)
            if next(lines, None) is not None:
                raise Refused("a program goes on after its end")
        return R

    def _run(self, margin: Margin, lines: Iterator[list[int]], known: Intervals | None, depth: int) -> None:
        """Until there are no flips of the branch left."""
        while known is not None:
            code, place = next(lines, (None, 0))
            if code == SPLIT and 0 <= place < len(known.low) and depth < DEEPEST:
                for low, high in (0.0, np.inf), (-np.inf, 0.0):
                    one = Intervals(known.low.copy(), known.high.copy())
                    one.low[place], one.high[place] = max(one.low[place], low), min(one.high[place], high)
                    self._run(margin, lines, one if one.low[place] <= one.high[place] else None, depth + 1)
                known = None
            elif code in (STEP, CLOSE) and 0 <= place < len(self.steps[0]):
                known = margin.after(self._step(place), known, code == STEP)
            elif code == NEVER and margin.never(known):
                known = None
            else:
                raise Refused("a branch is left open")

    def _step(self, place: int) -> Step:
        kinds, *multipliers, mu, walls = (each[place if len(each) > 1 else 0] for each in self.steps)
        return Step(kinds, *(each.astype(np.float64) for each in multipliers), float(mu), walls.astype(np.float64))
