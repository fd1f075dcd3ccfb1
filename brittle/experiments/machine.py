"""How fast this machine is, so that costs known from another one can be told in its own seconds."""

import time

import torch

from brittle.common.threads import one_thread

REFERENCE = 73.0  # float64 GFLOP/s of one core of the machine on which `Experiment.cost` was measured
SIDE = 384


def gigaflops(repeats: int = 5) -> float:
    """float64 matrix products per second on one thread, the fastest of a few: about a tenth of a second."""
    A = torch.ones(SIDE, SIDE, dtype=torch.float64)
    with one_thread():
        A @ A
        return 2 * SIDE**3 / min(_seconds(A) for _ in range(repeats)) / 1e9


def slowness() -> float:
    """How many seconds here are one second of the reference."""
    return REFERENCE / gigaflops()


def _seconds(A: torch.Tensor) -> float:
    begun = time.perf_counter()
    A @ A
    return time.perf_counter() - begun
