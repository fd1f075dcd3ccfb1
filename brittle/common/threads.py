"""Threads: PyTorch has its own, and NumPy's and SciPy's linear algebra others that it does not know of."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def one_thread() -> Iterator[None]:
    """For small matrices, where threads only wait for each other, and for results that must not depend on them."""
    with one_torch_thread(), one_blas_thread():
        yield


@contextmanager
def one_torch_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def threads_are_chosen() -> bool:
    """Whether somebody said how many threads PyTorch is to use: in the environment, or by `torch.set_num_threads`.

    A number that is also what PyTorch chooses by itself cannot be told from it.
    """
    import torch

    cores = os.cpu_count() or 1
    return any(name in os.environ for name in VARIABLES) or torch.get_num_threads() not in {cores, cores // 2, 1}


@contextmanager
def one_thread_unless_chosen() -> Iterator[None]:
    """For many small computations: beside other work, threads that wait for each other take many times as long."""
    with nullcontext() if threads_are_chosen() else one_torch_thread():
        yield


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """NumPy's and SciPy's; PyTorch keeps its own."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield
