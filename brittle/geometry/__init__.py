"""Mathematics that several rooms share: no networks, no data sets."""

from brittle.geometry.basis import Basis, rank_of
from brittle.geometry.least_distance import LeastDistance, least_distance
from brittle.geometry.rivals import nearest_rivals
from brittle.geometry.vectors import into_ball, largest_product, unit_rows

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
