"""What the ellipsoid of short flips leaves of a neuron's input: intervals on the two rays of the ReLU's graph.

The pair (h, z) of a neuron lies in an ellipse (·)ᵀG⁻¹(·) ≤ room around its values at the centre, and on the graph of φ:
on the ray h = z ≥ 0, or on h = 0 ≥ z. With G = [[a, b], [b, c]], v = a - 2b + c and m = h - z at the centre, the first
ray meets the ellipse in z + (c-b)m/v ± √(det G (v room - m²))/v, the second in z - (b/a)h ± √(det G (a room - h²))/a,
and a ray whose root is of a negative number does not meet it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from brittle.certificates.scales import Array

INFLATION = 1e-6  # of the diagonal of G: pays for its rounding, and keeps G away from singular
OUTWARD = 1e-8  # of √(c·room): more than rounding can move an end, with G as far from singular as that

TINY = 1e-20  # a neuron whose input is constant has zz = 0


class Ellipse(NamedTuple):
    """The rest of the Gram matrix and the centre of every neuron: hh, hz, zz, h, z (n,), and how far z may be off."""

    hh: Array
    hz: Array
    zz: Array
    h: Array
    z: Array
    slip: Array


def two_rays(ellipse: Ellipse, room: float, low: Array, high: Array) -> tuple[Array, Array]:
    """New ends of [low, high]; low > high where neither ray is left."""
    a, b, c = ellipse.hh * (1 + 3 * INFLATION), ellipse.hz, ellipse.zz * (1 + 3 * INFLATION) + TINY
    det = a * c - b * b  # at least 5e-6·ac, because the diagonal is inflated
    # The network's own z may differ from the form's: the centre moves by at most `slip` in the metric of G⁻¹.
    root = np.sqrt(room) + ellipse.slip * np.sqrt(a / det)
    room_each = root**2 * (1 + 2 * INFLATION)
    outward = OUTWARD * (root * np.sqrt(c) + np.abs(ellipse.z))
    m, v = ellipse.h - ellipse.z, a - 2 * b + c
    on_low, on_high, no_on = _ray(ellipse.z + (c - b) / v * m, det, v, m, room_each, outward)
    off_low, off_high, no_off = _ray(ellipse.z - b / a * ellipse.h, det, a, ellipse.h, room_each, outward)
    on_low, on_high = np.maximum(on_low, np.maximum(low, 0)), np.minimum(on_high, high)
    off_low, off_high = np.maximum(off_low, low), np.minimum(off_high, np.minimum(high, 0))
    no_on, no_off = no_on | (on_low > on_high), no_off | (off_low > off_high)
    new_low = np.where(no_off, on_low, off_low)
    new_high = np.where(no_on, off_high, on_high)
    return np.where(no_on & no_off, 1.0, new_low), np.where(no_on & no_off, -1.0, new_high)


def shadow(zz: Array, room: float, z: Array) -> Array:
    """How far z may be from its value at the centre, where it is settled."""
    return np.asarray(np.sqrt(room * zz) * (1 + 3 * INFLATION) + OUTWARD * np.abs(z))


def _ray(
    centre: Array, det: Array, spread: Array, away: Array, room: Array, outward: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Both ends of a ray's part in the ellipse, rounded outwards, and whether it is empty."""
    left = spread * room * (1 + OUTWARD) - away**2
    half = np.sqrt(det * np.maximum(left, 0)) / spread * (1 + OUTWARD)
    return centre - half - outward, centre + half + outward, left < 0
