"""What tests of the papers' constants share: a threshold written by hand, and the side on which a value must lie."""

from collections.abc import Iterable

import pytest

from brittle.theorems import Comparison, Promise, Relation


class least(float):
    """A threshold that a value must reach; a plain number is one that it must not exceed."""


def assert_pinned(found: Iterable[Promise | Comparison], by_hand: list[float]) -> None:
    """Thresholds and sides are those written by hand, in their order."""
    found = list(found)
    sides = [Relation.AT_LEAST if isinstance(threshold, least) else Relation.AT_MOST for threshold in by_hand]
    assert [each.relation for each in found] == sides
    assert all(each.tolerance <= 1e-3 for each in found)
    assert [each.threshold for each in found] == pytest.approx([float(each) for each in by_hand], rel=4e-13, abs=0)
