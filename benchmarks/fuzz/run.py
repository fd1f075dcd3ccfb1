"""Many cases in turn, or in several processes."""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

import torch

from benchmarks.fuzz import deep, far, ordinary

Tally = TypeVar("Tally")


def run(cases: int, seed: int = 0, jobs: int = 1) -> ordinary.Tally:
    """Ordinary networks, at least so many cases."""
    total = ordinary.Tally()
    for tally in _examined(ordinary.examine, -(-cases // ordinary.POINTS), seed, jobs):
        total.add(tally)
    return total


def run_far(cases: int, seed: int = 0, jobs: int = 1) -> far.FarTally:
    """Networks at far scales, at least so many cases."""
    total = far.FarTally()
    for tally in _examined(far.examine, -(-cases // (far.POINTS * far.NETWORKS)), seed, jobs):
        total.add(tally)
    return total


def run_deep(cases: int, seed: int = 0, jobs: int = 1) -> deep.DeepTally:
    """Small deep networks against the enumeration of their regions, at least so many cases."""
    total = deep.DeepTally()
    for each in _examined(deep.examine, -(-cases // deep.POINTS), seed, jobs):
        total.add(each)
    return total


def _examined(examine: Callable[[int], Tally], batches: int, seed: int, jobs: int) -> Iterator[Tally]:
    seeds = range(seed * 10**7, seed * 10**7 + batches)
    if jobs == 1:
        yield from map(examine, seeds)
        return
    with ProcessPoolExecutor(jobs, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        yield from pool.map(examine, seeds, chunksize=10)
