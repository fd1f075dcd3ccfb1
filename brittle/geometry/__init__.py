"""Mathematics that several rooms share: no networks, no data sets."""

from brittle.geometry.least_distance import LeastDistance, least_distance
from brittle.geometry.vectors import Basis, into_ball, largest_product, nearest_rivals, rank_of, unit_rows

__all__ = [
    "Basis",
    "LeastDistance",
    "into_ball",
    "largest_product",
    "least_distance",
    "nearest_rivals",
    "rank_of",
    "unit_rows",
]
