"""Threads: PyTorch has its own, and NumPy's and SciPy's linear algebra others that it does not know of."""

from collections.abc import Iterator
from contextlib import contextmanager


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


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """NumPy's and SciPy's; PyTorch keeps its own."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield
