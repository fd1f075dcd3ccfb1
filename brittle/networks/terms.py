"""Linear maps while a network is put together: the identity, a convolution, a full matrix or a sparse one.

They stay what they are as long as possible, because a convolution is quicker than its matrix and keeps its kernel.
"""

import math
import weakref
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from brittle.common.limits import LARGEST_HELD, LARGEST_MADE
from brittle.networks.affine import Convolution

ENTRY = 16  # bytes of one in a sparse map, its place included
CALL = 1000  # entries that would take as long as a call on none
LARGEST_ENTRIES = 2**24  # numbers that are not 0 in one map
Array = NDArray[np.float64]
Places = NDArray[np.int64]
Term = Any  # None for the identity, Convolution without offset, Array (full) or scipy's csr_array


class OpaqueError(Exception):
    """Why something is no network of affine maps and ReLUs of a size that can be written down."""


class Allowance:
    """What writing one graph as layers may still take: bytes of maps that are held at once, and entries in all."""

    def __init__(self) -> None:
        self.held, self.made = 0, 0
        self._known = set[int]()

    def work(self, count: int) -> None:
        """Count work before it is done, as entries that are computed."""
        self.made += count + CALL
        if self.made > LARGEST_MADE:
            raise OpaqueError(f"it would take more than {LARGEST_MADE} entries to put together")

    def room(self, size: int) -> None:
        """Refuse `size` more bytes if they are too many beside those that are held."""
        if self.held + size > LARGEST_HELD:
            raise OpaqueError(f"it would hold more than {LARGEST_HELD} bytes at once while it is put together")

    def keep(self, size: int) -> None:
        """Count bytes that are held to the end."""
        self.room(size)
        self.held += size

    def hold(self, term: Term) -> None:
        """Count the bytes of a map that was made for as long as it lives."""
        size = _bytes(term)
        if size and id(term) not in self._known:
            self._known.add(id(term))
            self.held += size
            weakref.finalize(term, self._release, id(term), size).atexit = False

    def _release(self, place: int, size: int) -> None:
        self._known.discard(place)
        self.held -= size


ALLOWANCE: ContextVar[Allowance] = ContextVar("allowance")


def _bytes(term: Term) -> int:
    if isinstance(term, np.ndarray):
        return term.nbytes
    if term is None or isinstance(term, Convolution):
        return 0
    return sum(getattr(term, name).nbytes for name in ("data", "indices", "indptr", "offsets") if hasattr(term, name))


def require_entries(count: int, work: int = 0, each: int = ENTRY) -> None:
    """Refuse a map of so many entries, of so many bytes each, before it is made with so much work besides."""
    if count > LARGEST_ENTRIES:
        raise OpaqueError(f"a layer would have {count} entries, and {LARGEST_ENTRIES} are the most")
    allowance = ALLOWANCE.get(None)
    if allowance is not None:
        allowance.work(count + work)
        allowance.room(each * count)


def keep_layer(count: int) -> None:
    """Count a layer of so many entries, which is held to the end."""
    require_entries(count)
    allowance = ALLOWANCE.get(None)
    if allowance is not None:
        allowance.keep(ENTRY * count)


def count_term(term: Term) -> Term:
    """The map itself, counted among those that are held."""
    allowance = ALLOWANCE.get(None)
    if allowance is not None:
        allowance.hold(term)
    return term


def entries(term: Term, size: int) -> Any:
    """The map as a sparse matrix; `size` is the number of inputs of an identity."""
    if term is None:
        require_entries(size)
        return count_term(sparse.eye_array(size, format="csr"))
    if isinstance(term, Convolution):
        return count_term(_convolution_entries(term))
    if not isinstance(term, np.ndarray):
        return sparse.csr_array(term)
    require_entries(int(np.count_nonzero(term)))
    return count_term(sparse.csr_array(term))


def product(outer: Term, inner: Term) -> Term:
    """outer·inner"""
    if inner is None or outer is None:
        return outer if inner is None else inner
    if isinstance(outer, Convolution) or isinstance(inner, Convolution):
        size = inner.outputs if isinstance(inner, Convolution) else inner.shape[0]
        outer = outer if isinstance(outer, np.ndarray) else entries(outer, size)
        inner = inner if isinstance(inner, np.ndarray) else entries(inner, size)
    if isinstance(outer, np.ndarray) or isinstance(inner, np.ndarray):
        require_entries(outer.shape[0] * inner.shape[1], _effort(outer, inner))
        return count_term(np.asarray((inner.T @ outer.T).T if isinstance(outer, np.ndarray) else outer @ inner))
    require_entries(int(np.diff(inner.indptr)[outer.indices].sum()))
    return count_term(outer @ inner)


def _effort(outer: Term, inner: Term) -> int:
    """Of a product with full matrices, as entries that would take as long."""
    if isinstance(outer, np.ndarray) and isinstance(inner, np.ndarray):
        return int(outer.size * inner.shape[1]) // 32
    nonzero, others = (inner.nnz, outer.shape[0]) if isinstance(outer, np.ndarray) else (outer.nnz, inner.shape[1])
    return int(nonzero) * int(others) // 4


def scale_outputs(term: Term, factors: Array) -> Term:
    """Every output times its own factor."""
    if isinstance(term, Convolution):
        channels = factors.reshape(len(term.kernel), -1)
        if (channels == channels[:, :1]).all():
            column = torch.from_numpy(channels[:, 0].copy())
            return term.with_parameters(term.kernel * column[:, None, None, None], term.bias)
        term = entries(term, 0)
    if term is None:
        return count_term(sparse.diags_array(factors, format="csr"))
    require_entries(term.size if isinstance(term, np.ndarray) else term.nnz)
    if isinstance(term, np.ndarray):
        return count_term(term * factors[:, None])
    values = count_term(term.data * np.repeat(factors, np.diff(term.indptr)))
    return sparse.csr_array((values, term.indices, term.indptr), shape=term.shape)  # the places are shared


def take_outputs(term: Term, places: Places, size: int) -> Term:
    """The outputs at these places, 0 at -1; `size` is the number of all outputs."""
    if len(places) == size and (places == np.arange(size)).all():
        return term
    if isinstance(term, np.ndarray):
        require_entries(len(places) * term.shape[1])
        return count_term(np.where((places >= 0)[:, None], term[places], 0.0))
    return product(selection(places, size), term)


def selection(places: Places, size: int) -> Any:
    """The map from `size` numbers to those at these places."""
    require_entries(len(places))
    rows = np.flatnonzero(places >= 0)
    ones = np.ones(len(rows))
    return sparse.csr_array((ones, (rows, places[rows])), shape=(len(places), size))


def total(first: Term, second: Term, size: int) -> Term:
    full = isinstance(first, np.ndarray) or isinstance(second, np.ndarray)
    first, second = (each if isinstance(each, np.ndarray) else entries(each, size) for each in (first, second))
    require_entries(sum(each.size if isinstance(each, np.ndarray) else each.nnz for each in (first, second)))
    return count_term(np.asarray(first + second) if full else (first + second).tocsr())


def stack_terms(parts: list[Term | int], size: int) -> Any:
    """One map above the other; a number stands for so many rows of 0."""
    blocks = [sparse.csr_array((part, size)) if isinstance(part, int) else entries(part, size) for part in parts]
    require_entries(sum(block.nnz for block in blocks))
    return count_term(sparse.vstack(blocks, format="csr"))


def is_nonnegative(term: Term) -> bool:
    if term is None:
        return True
    if isinstance(term, Convolution):
        return bool((term.kernel >= 0).all())
    return bool(((term if isinstance(term, np.ndarray) else term.data) >= 0).all())


def columns(term: Term, size: int) -> Places:
    """The inputs that count."""
    if term is None or isinstance(term, Convolution):
        return np.arange(size)
    if isinstance(term, np.ndarray):
        return np.flatnonzero(term.any(0))
    require_entries(term.nnz)
    return np.unique(term.indices[term.data != 0]).astype(np.int64)


def windows(length: int, count: int, size: int, stride: int, padding: int, dilation: int) -> Places:
    """(count, size): the places of one axis that each window sees, -1 outside of it."""
    places = np.arange(count)[:, None] * stride - padding + dilation * np.arange(size)[None]
    return np.where((places >= 0) & (places < length), places, -1).astype(np.int64)


def joint(rows: Places, across: Places, width: int) -> Places:
    """(h, w, kh, kw): the places in a plane whose axes have these windows, -1 outside of it."""
    inside = (rows >= 0)[:, None, :, None] & (across >= 0)[None, :, None, :]
    return np.where(inside, rows[:, None, :, None] * width + across[None, :, None, :], -1)


def _convolution_entries(convolution: Convolution) -> Any:
    kernel = convolution.kernel.numpy()
    channels, per_group, *sizes = kernel.shape
    _, height, width = convolution.image
    _, *counts = convolution.result
    options = (convolution.stride, convolution.padding, convolution.dilation)
    require_entries(channels * per_group * math.prod(counts) * math.prod(sizes), each=2 * ENTRY)
    axes = zip((height, width), counts, sizes, *options, strict=True)
    rows, across = (windows(*axis) for axis in axes)
    plane = joint(rows, across, width).reshape(math.prod(counts), -1)  # (outputs, window)
    group = np.arange(channels) // (channels // convolution.groups)
    inputs = group[:, None] * per_group + np.arange(per_group)[None]  # (channels, per group)
    # (channels, outputs of a plane, per group, window)
    first, inside = (inputs * (height * width)).astype(np.int32), plane.astype(np.int32)
    places = first[:, None, :, None] + inside[None, :, None, :]
    values = np.broadcast_to(kernel.reshape(channels, 1, per_group, -1), places.shape)
    kept = np.broadcast_to((plane >= 0)[None, :, None, :], places.shape)
    counts_of_rows = np.tile((plane >= 0).sum(1) * per_group, channels)
    starts = np.concatenate([[0], np.cumsum(counts_of_rows)])
    shape = (convolution.outputs, convolution.inputs)
    return sparse.csr_array((values[kept], places[kept], starts), shape=shape)
