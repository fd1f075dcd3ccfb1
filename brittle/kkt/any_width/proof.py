"""A proof that no network of any width has a normalised margin above a number, as plain arrays.

For multipliers λ ≥ 0 on the examples and a neuron of sign s, let own examples be those with y_i = s and λ_i > 0, others
those with y_i = -s and λ_i > 0. A neuron's direction u shows a sign on every own example: + where u·x̃ ≥ 0, - where
u·x̃ ≤ 0. The leaves of either side split all sign patterns between them; each carries a bound on ‖Σ c_i x̃_i‖² that
holds for all its patterns at once, where the multipliers c are affine in the signs that it leaves free.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from brittle.common.errors import InputError, require
from brittle.common.files import read_npz, replacing
from brittle.networks import TwoLayer

Array = NDArray[np.float64]
Signs = NDArray[np.int8]
Index = NDArray[np.intp]
NETWORK = ("W", "b", "v")
DUAL = ("biases", "lam", "ceiling", "point_sides", "point_signs", "y", "C", "leaf_points", "leaf_signs")
DIGEST = "data"


class ProofPoint(NamedTuple):
    """Multipliers that are affine in the free signs of `side`: those of own examples whose entry of `signs` is 0.

    signs (n,): 1 and -1 where an own example's sign is fixed, 0 elsewhere
    y (f,): curvatures, one for each free example in ascending order
    C (r, f+1): c_i = C_i0 + Σ_l C_il s_l for the other examples in ascending order, then for the fixed own ones.
        A free own example has c_i = (1 + s_i) λ_i/2, which is not written down.
    """

    side: int
    signs: Signs
    y: Array
    C: Array


class ProofLeaf(NamedTuple):
    """The patterns that have these signs (n,), which extend those of the point that bounds them."""

    point: int
    signs: Signs


@dataclass(frozen=True, eq=False)
class MarginProof:
    """What shows that a network's normalised margin is nearly the largest.

    network: the one whose margin is compared, without output bias
    biases: whether networks with biases compete; if not, b is zero
    lam (n,): λ, one for each example
    ceiling: no unit neuron gains more than its square root at these λ
    points, leaves: why; the leaves of either side cover every sign pattern once
    digest: SHA-256 of the data that it is about, as `proofcheck` counts it; empty where nobody says

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> proof = bt.kkt.gap(bt.networks.orthogonal_kkt(data.X, data.y).network, data).proof
        >>> len(proof.lam), proof.biases
        (6, True)
    """

    network: TwoLayer
    biases: bool
    lam: Array
    ceiling: float
    points: tuple[ProofPoint, ...]
    leaves: tuple[ProofLeaf, ...]
    digest: bytes = b""

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Everything as a few arrays; those of the points follow each other in `y` and, row by row, in `C`."""
        n = len(self.lam)
        parameters = {name: getattr(self.network, name).double().numpy() for name in NETWORK}
        return {
            **parameters,
            "biases": np.array(self.biases, dtype=np.int8),
            "lam": self.lam,
            "ceiling": np.array(self.ceiling),
            "point_sides": np.array([point.side for point in self.points], dtype=np.int8),
            "point_signs": np.array([point.signs for point in self.points], dtype=np.int8).reshape(-1, n),
            "y": np.concatenate([np.zeros(0), *(point.y for point in self.points)]),
            "C": np.concatenate([np.zeros(0), *(point.C.ravel() for point in self.points)]),
            "leaf_points": np.array([leaf.point for leaf in self.leaves], dtype=np.int64),
            "leaf_signs": np.array([leaf.signs for leaf in self.leaves], dtype=np.int8).reshape(-1, n),
            DIGEST: np.frombuffer(self.digest, dtype=np.uint8),
        }

    def save(self, path: str | Path) -> None:
        """Write the arrays whole or not at all; `docs/largest.md` lists them."""
        with replacing(path) as stream:
            np.savez_compressed(stream, **self.arrays())  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | Path, labels: Array) -> "MarginProof":
        """Read a proof about data with these labels (n,); whether it proves anything is for `check` to say."""
        arrays = read_npz(path, (*NETWORK, *DUAL, DIGEST))
        missing = [name for name in (*NETWORK, *DUAL) if name not in arrays]
        require(not missing, f"{path}: holds no proof of a margin (no array {', '.join(missing)})")
        try:
            return _read(arrays, labels)
        except (ValueError, IndexError, TypeError, OverflowError) as error:
            raise InputError(f"{path}: the arrays of the proof do not fit together ({error})") from None


def _read(arrays: Mapping[str, NDArray[np.generic]], labels: Array) -> MarginProof:
    """The proof that the arrays spell, with shapes that fit."""
    lam = arrays["lam"].astype(np.float64)
    require(lam.shape == labels.shape, f"lam has shape {lam.shape} and there are {len(labels)} examples")
    sides, signs = arrays["point_sides"].astype(np.int8), _table(arrays["point_signs"], len(labels))
    y, C = arrays["y"].astype(np.float64), arrays["C"].astype(np.float64)
    points, at, row = [], 0, 0
    for side, fixed in zip(sides.tolist(), signs, strict=True):
        f, r = sizes(labels, lam, side, fixed)
        points.append(ProofPoint(side, fixed, y[at : at + f], C[row : row + r * (f + 1)].reshape(r, f + 1)))
        require(len(points[-1].y) == f, f"y holds {len(y)} numbers, which is not enough")
        at, row = at + f, row + r * (f + 1)
    require((at, row) == (len(y), len(C)), f"y and C hold {len(y)} and {len(C)} numbers; {at} and {row} are read")
    owners, leaves = arrays["leaf_points"].astype(np.int64).tolist(), _table(arrays["leaf_signs"], len(labels))
    W, b, v = (torch.from_numpy(arrays[name].astype(np.float64)) for name in NETWORK)
    return MarginProof(
        TwoLayer(W, b, v),
        bool(arrays["biases"]),
        lam,
        float(arrays["ceiling"]),
        tuple(points),
        tuple(ProofLeaf(*each) for each in zip(owners, leaves, strict=True)),
        arrays[DIGEST].tobytes() if DIGEST in arrays else b"",
    )


def _table(array: NDArray[np.generic], n: int) -> Signs:
    """Signs (count, n)."""
    require(array.ndim == 2 and array.shape[1] == n, f"signs have shape {array.shape}; (count, {n}) is needed")
    return array.astype(np.int8)


def sizes(labels: Array, lam: Array, side: int, signs: Signs) -> tuple[int, int]:
    """How many own examples are free, f, and how many rows C has, r."""
    free, rest = free_and_rest(labels, lam, side, signs)
    return len(free), len(rest)


def free_and_rest(labels: Array, lam: Array, side: int, signs: Signs) -> tuple[Index, Index]:
    """The own examples that are free, and those that C has rows for: the others, then the own ones that are fixed."""
    own, others = (labels == side) & (lam > 0), (labels == -side) & (lam > 0)
    rest = np.concatenate([np.flatnonzero(others), np.flatnonzero(own & (signs != 0))])
    return np.flatnonzero(own & (signs == 0)), rest
