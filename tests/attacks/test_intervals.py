"""Overlaps of intervals against brute force on whole numbers."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from brittle.attacks import FlipIntervals

PAIRS = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6)), max_size=3)


def intervals(rows):
    """Disjoint open intervals of each ray from gaps and lengths."""
    flat = []
    for ray, pairs in enumerate(rows):
        at = 0
        for gap, length in pairs:
            flat.append((ray, at + gap, at + gap + length))
            at += gap + length + 1
    table = torch.tensor(flat, dtype=torch.float64).reshape(-1, 3)
    return FlipIntervals(len(rows), table[:, 0].long(), table[:, 1], table[:, 2])


def flipped(found, t):
    return len(set(found.ray[(found.start < t) & (t < found.stop)].tolist()))


@given(st.lists(PAIRS, min_size=1, max_size=5))
def test_the_first_widest_overlap(rows):
    found = intervals(rows)
    halves = [k + 0.5 for k in range(60)]
    counts = [flipped(found, t) for t in halves]
    most, start, stop = found.widest_overlap()
    assert most == max(counts)
    if most:
        assert start == halves[counts.index(most)] - 0.5
        assert flipped(found, (start + stop) / 2) == most
    assert (found.overlap()[0] < torch.inf) == (max(counts) == len(rows))


@given(st.lists(PAIRS, min_size=1, max_size=5))
def test_share_counts_the_rays_that_are_flipped(rows):
    found = intervals(rows)
    sizes = torch.arange(0, 30, dtype=torch.float64) + 0.5
    expected = torch.tensor([flipped(found, t) / len(rows) for t in sizes.tolist()], dtype=torch.float64)
    torch.testing.assert_close(found.share(sizes), expected)


def test_an_interval_that_ends_where_another_begins_does_not_overlap_it():
    touching = FlipIntervals(
        2, torch.tensor([0, 1]), torch.tensor([0.0, 1.0]).double(), torch.tensor([1.0, torch.inf]).double()
    )
    assert touching.widest_overlap() == (1, 0.0, 1.0)
    assert touching.overlap() == (torch.inf, torch.inf)
