"""Files: a network, λ, a ceiling of G², and leaves that hold every pattern of signs, each under the ceiling."""

import time
from dataclasses import dataclass
from math import fsum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from margincheck.cover import covered
from margincheck.leaf import Examples, Point, Signs, bound
from proofcheck.balls import Array, Ball, ball, require
from proofcheck.proof import LARGEST, arrays, digest, floats

INTEGERS = ("biases", "point_sides", "point_signs", "leaf_points", "leaf_signs")
FLOATS = ("W", "b", "v", "lam", "ceiling", "y", "C")
RANGE, EXAMPLES = 1e100, 2**14  # of numbers; how many


def read_data(path: Path) -> tuple[Array, Array]:
    """Examples, laid flat, and labels -1 and 1."""
    found = arrays(path, ("X", "y"))
    X, y = floats(found["X"]).reshape(len(found["X"]), -1), floats(found["y"])
    require(y.shape == (len(X),) and np.isin(y, (-1, 1)).all(), "it needs as many labels, -1 or 1, as examples")
    fit = len(X) <= EXAMPLES and X.shape[1] <= LARGEST
    require(fit and (np.abs(X) <= RANGE).all(), "its examples are too many or too large")
    return X, y


@dataclass(frozen=True, eq=False)
class Proof:
    """The leaf k has the signs leaf_signs[k], which extend those of the point leaf_points[k]."""

    examples: Examples
    W: Array  # with b behind it where there are biases
    v: Array
    ceiling: float
    points: list[Point]
    leaf_points: list[int]
    leaf_signs: Signs
    seconds: float  # of processor time

    def margin(self) -> float:
        """At most min q/‖θ‖² of the network in the file."""
        z = ball(self.examples.X) @ self.W.T
        q = (Ball(np.maximum(z.mid, 0), z.rad) @ self.v) * self.examples.labels
        theta = np.append(self.W.ravel(), self.v)
        size = float((ball(theta) @ theta).high())
        return max(0.0, float(np.nextafter(q.low().min() / size, -np.inf))) if size > 0 else 0.0

    def upper(self) -> float:
        """At least γ*, or Refused."""
        for side in (1, -1):
            covered(self.leaf_signs[[self.points[place].side == side for place in self.leaf_points]], self.seconds)
        for place in sorted(set(self.leaf_points)):
            self._check(place)
        total = np.nextafter(2 * fsum(self.examples.lam), 0)
        return float(np.nextafter(np.nextafter(np.sqrt(self.ceiling), np.inf) / total, np.inf))

    def _check(self, place: int) -> None:
        """All leaves of a point."""
        point, own = self.points[place], self.examples.own(self.points[place].side)
        leaves = self.leaf_signs[np.equal(self.leaf_points, place)]
        require(not (point.signs[~own].any() or leaves[:, ~own].any()), "a sign is fixed that no own example has")
        fixed = point.signs != 0
        require((leaves[:, fixed] == point.signs[fixed]).all(), "a leaf does not extend its point")
        columns, free = self.examples.columns(point), self.examples.free(point)
        for leaf in leaves:
            require(time.process_time() < self.seconds, "the proof is too long")
            bound(columns, point.y, leaf[free], self.ceiling)


def read_proof(path: Path, X: Array, y: Array, seconds: float) -> Proof:
    """If it fits the data."""
    found = arrays(path, (*INTEGERS, *FLOATS, "data", "c"))
    require(all(found[name].dtype.kind in "iu" for name in INTEGERS), "signs, sides and places must be integers")
    W, b, v, lam, ceiling, curvatures, C = (floats(found[name]) for name in FLOATS)
    sides, signs, leaves = (found[name] for name in ("point_sides", "point_signs", "leaf_signs"))
    owners, n, count, d = found["leaf_points"], len(X), len(sides), X.shape[1]
    shapes = [(W, (len(v), d)), (b, (len(v),)), (v, (len(v),)), (lam, (n,)), (ceiling, (1,)), (signs, (count, n))]
    shapes += [(sides, (count,)), (leaves, (len(owners), n)), (owners, (len(owners),)), (found["biases"], (1,))]
    require(all(each.shape == shape for each, shape in shapes), "its arrays do not fit together")
    require(found["data"].tobytes() == digest([X, y]), "it is about other data")
    numbers = [W, b, v, lam, ceiling, curvatures, C]
    require(all((np.abs(each) <= RANGE).all() for each in numbers), "a number is too large, or none")
    sized = ((lam == 0) | (lam >= 1 / RANGE)).all()  # half of a denormal would be rounded
    require(sized and lam.any() and ceiling > 0, "λ and the ceiling must be positive")
    require(np.isin(sides, (-1, 1)).all(), "a side is none")
    require(np.isin(signs, (-1, 0, 1)).all() and np.isin(leaves, (-1, 0, 1)).all(), "a sign is none")
    require(((owners >= 0) & (owners < count)).all(), "a leaf has no point")
    biases = bool(found["biases"][0])
    require((biases or not b.any()) and not np.any(found.get("c", 0)), "the network has a bias that takes no part")
    X, W = (np.column_stack(pair) if biases else pair[0] for pair in ((X, np.ones(n)), (W, b)))
    examples = Examples(X, y, lam)
    points = _points(examples, sides.tolist(), signs, curvatures, C)
    return Proof(examples, W, v, float(ceiling[0]), points, owners.tolist(), leaves, seconds)


def _points(examples: Examples, sides: list[int], signs: NDArray[np.int8], y: Array, C: Array) -> list[Point]:
    """One after the other, in y and, row by row, in C."""
    points, at, row = [], 0, 0
    for side, fixed in zip(sides, signs, strict=True):
        own = examples.own(side)
        f = int((own & (fixed == 0)).sum())
        r = int((own & (fixed != 0)).sum() + examples.own(-side).sum())
        part = C[row : row + r * (f + 1)]
        require(len(part) == r * (f + 1) and at + f <= len(y), "y or C is too short")
        points.append(Point(side, fixed, y[at : at + f], part.reshape(r, f + 1)))
        at, row = at + f, row + r * (f + 1)
    require((at, row) == (y.size, C.size), "y or C is too long")
    return points
