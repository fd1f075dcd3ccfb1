"""The exact radius of networks of any depth: an interior point over all layers, branch and bound, and a judge."""

from brittle.certificates.deep_exact.branch_and_bound import choose_search_radius, close_branch

__all__ = ["choose_search_radius", "close_branch"]
