"""Mathematics that several rooms share: no networks, no data sets."""

from brittle.geometry.least_distance import LeastDistance, least_distance

__all__ = ["LeastDistance", "least_distance"]
