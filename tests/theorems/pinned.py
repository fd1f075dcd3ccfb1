"""What tests of the papers' constants share: a threshold written by hand, and the side on which a value must lie."""

from collections.abc import Iterable

import pytest
import torch

from brittle.theorems import Comparison, Instance, Promise, Relation, Theorem


class least(float):
    """A threshold that a value must reach; a plain number is one that it must not exceed."""


def assert_pinned(found: Iterable[Promise | Comparison], by_hand: list[float]) -> None:
    """Thresholds and sides are those written by hand, in their order."""
    found = list(found)
    sides = [Relation.AT_LEAST if isinstance(threshold, least) else Relation.AT_MOST for threshold in by_hand]
    assert [each.relation for each in found] == sides
    assert all(each.tolerance <= 1e-3 for each in found)
    assert [each.threshold for each in found] == pytest.approx([float(each) for each in by_hand], rel=4e-13, abs=0)


def drawn(theorem: Theorem) -> Instance:
    """The theorem's own instance."""
    return theorem.default(torch.Generator().manual_seed(0))


def assert_as_in_the_paper(theorem: Theorem, supposed: list[float], promised: list[float]) -> None:
    """What the theorem supposes and promises of its own instance is what was written by hand."""
    instance = drawn(theorem)
    assert_pinned(theorem.bound(instance), promised)
    assert_pinned(theorem.hypotheses(instance), supposed)
