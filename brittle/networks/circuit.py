"""Sums of affine maps of ReLUs of such sums, and how they become layers.

A block is a vector of ReLUs, or the input; an expression is an affine function of blocks. The level of a block is the
number of ReLUs on the longest way to it. Layer l holds the blocks of level l and, beside them, whatever an expression
of a later layer needs of earlier ones: a ReLU is left alone by another one, and the input is carried as two parts,
x = φ(x) - φ(-x).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from scipy import sparse

from brittle.networks.affine import Affine, Convolution, Dense
from brittle.networks.sparse import Sparse
from brittle.networks.terms import (
    Array,
    OpaqueError,
    Places,
    Term,
    columns,
    count_term,
    entries,
    is_nonnegative,
    keep_layer,
    product,
    require_entries,
    scale_outputs,
    stack_terms,
    take_outputs,
    total,
)

LARGEST_NEURONS = 2**17  # of all layers together
LARGEST_DEPTH = 256
SPARSE = 0.25  # the share of entries that are not 0, below which a matrix is sparse
INPUT = 0


@dataclass(frozen=True, eq=False)
class Expression:
    """Σ terms[block]·block + offset, with the `shape` that one example has.

    `plain` where it is a linear layer or a convolution of one block, perhaps with folded factors and shifts.
    """

    shape: tuple[int, ...]
    terms: dict[int, Term]
    offset: Array
    plain: bool = False

    @property
    def size(self) -> int:
        return len(self.offset)

    def shaped(self, shape: Sequence[int]) -> "Expression":
        return replace(self, shape=tuple(shape))

    def shifted(self, offset: Array) -> "Expression":
        return replace(self, offset=self.offset + offset)

    def times(self, factors: Array) -> "Expression":
        terms = {block: scale_outputs(term, factors) for block, term in self.terms.items()}
        return replace(self, terms=terms, offset=self.offset * factors)

    def taken(self, places: Places, shape: Sequence[int]) -> "Expression":
        """The numbers at these places, 0 at -1."""
        terms = {block: take_outputs(term, places, self.size) for block, term in self.terms.items()}
        offset = np.where(places >= 0, self.offset[places], 0.0)
        same = len(places) == self.size and bool((places == np.arange(self.size)).all())
        return Expression(tuple(shape), terms, offset, self.plain and same)

    def mapped(self, outer: Term, offset: Array, shape: Sequence[int], plain: bool = False) -> "Expression":
        """`outer` of it; `offset` is that of the result."""
        terms = {block: product(outer, term) for block, term in self.terms.items()}
        alone = [term is None for term in self.terms.values()] == [True]
        return Expression(tuple(shape), terms, offset, plain and alone)


@dataclass(frozen=True, eq=False)
class ReluBlock:
    """ReLUs of an expression, which the input has not."""

    size: int
    level: int
    inner: Expression | None


@dataclass(eq=False)
class Circuit:
    """The blocks so far, the input first."""

    blocks: list[ReluBlock] = field(default_factory=list)
    neurons: int = 0  # in all blocks but the input

    def input(self, shape: Sequence[int]) -> Expression:
        self.blocks.append(ReluBlock(int(np.prod(shape)), 0, None))
        return self._whole(INPUT, shape)

    def relu(self, inner: Expression) -> Expression:
        if self.is_nonnegative(inner):
            return inner
        if not inner.terms:
            return replace(inner, offset=np.maximum(inner.offset, 0))
        return self._added(inner)

    def sum(self, first: Expression, second: Expression) -> Expression:
        """Of one shape."""
        level = max(self.level(first), self.level(second))
        first, second = self.lifted(first, level), self.lifted(second, level)
        terms = dict(first.terms)
        for block, term in second.terms.items():
            terms[block] = total(terms[block], term, self.blocks[block].size) if block in terms else term
        return Expression(first.shape, terms, first.offset + second.offset)

    def joined(self, parts: Sequence[Expression]) -> Expression:
        """One below the other."""
        level = max(self.level(part) for part in parts)
        parts = [self.lifted(part, level) for part in parts]
        offset = np.concatenate([part.offset for part in parts])
        used = sorted({block for part in parts for block in part.terms})
        terms = {
            block: stack_terms([part.terms.get(block, part.size) for part in parts], self.blocks[block].size)
            for block in used
        }
        return Expression((len(offset),), terms, offset)

    def lifted(self, inner: Expression, level: int) -> Expression:
        """The same as ReLUs of its own, where it is needed above its level and that takes fewer neurons."""
        if self.level(inner) >= level:
            return inner
        carried = sum(
            (2 if block == INPUT else 1) * len(columns(term, self.blocks[block].size))
            for block, term in inner.terms.items()
        )
        own = inner.size if self.is_nonnegative(inner) else 2 * inner.size
        return self.pinned(inner) if own < carried else inner

    def pinned(self, inner: Expression) -> Expression:
        """v as φ(v) - φ(-v), or as φ(v) where it cannot be negative."""
        if self.is_nonnegative(inner):
            return self._added(inner)
        both = self.relu(self.joined([inner, inner.times(np.full(inner.size, -1.0))]))
        one = sparse.eye_array(inner.size, format="csr")
        return both.mapped(sparse.hstack([one, -one], format="csr"), np.zeros(inner.size), inner.shape)

    def is_nonnegative(self, inner: Expression) -> bool:
        signs = all(block != INPUT and is_nonnegative(term) for block, term in inner.terms.items())
        return signs and bool((inner.offset >= 0).all())

    def level(self, inner: Expression) -> int:
        return max((self.blocks[block].level for block in inner.terms), default=0)

    def layers(self, output: Expression) -> tuple[list[Affine], bool]:
        """The affine maps in float64, and whether all are plain."""
        if not output.terms:
            raise OpaqueError("its output does not depend on the input")
        if self.level(output) > 0:
            return self._assembled(output)
        both = self.pinned(replace(output, offset=np.zeros(output.size))).shifted(output.offset)
        return self._assembled(both)[0], output.plain

    def _assembled(self, output: Expression) -> tuple[list[Affine], bool]:
        states = _states(self, output)
        layers = [_layer(self, before, after) for before, after in pairwise(states)]
        last = _layer(self, states[-1], _LayerState((output,), (), {}, 0))
        return [layer for layer, _ in (*layers, last)], all(plain for _, plain in (*layers, last))

    def _added(self, inner: Expression) -> Expression:
        """ReLUs of the expression as one more block."""
        level = self.level(inner) + 1
        self.neurons += inner.size
        _require_room(self.neurons)
        if level >= LARGEST_DEPTH:
            raise OpaqueError(f"it would take more than {LARGEST_DEPTH} layers")
        self.blocks.append(ReluBlock(inner.size, level, inner))
        return self._whole(len(self.blocks) - 1, inner.shape)

    def _whole(self, block: int, shape: Sequence[int]) -> Expression:
        return Expression(tuple(shape), {block: None}, np.zeros(self.blocks[block].size))


@dataclass(frozen=True, eq=False)
class _LayerState:
    """What a layer holds: the `inner` expressions of its own ReLUs, and the columns of earlier blocks that are carried.

    `places[block]` are where the numbers of a block stand, (1, size), or those of its two parts, (2, size); -1 where
    they are not held.
    """

    inner: tuple[Expression, ...]
    carried: tuple[tuple[int, Places], ...]
    places: dict[int, Places]
    size: int


def _states(circuit: Circuit, output: Expression) -> list[_LayerState]:
    """The input and every hidden layer."""
    top = circuit.level(output)
    used = _used(circuit, output, top)
    size = circuit.blocks[INPUT].size
    states = [_LayerState((), (), {INPUT: np.arange(size)[None]}, size)]
    neurons = 0
    for level in range(1, top + 1):
        own = [place for place, block in enumerate(circuit.blocks) if block.level == level and place in used]
        carried = [
            (block, np.flatnonzero(last > level))
            for block, last in used.items()
            if circuit.blocks[block].level < level and (last > level).any()
        ]
        states.append(_state(circuit, own, carried))
        neurons += states[-1].size
        _require_room(neurons)
    return states


def _require_room(neurons: int) -> None:
    if neurons > LARGEST_NEURONS:
        raise OpaqueError(f"it would take more than {LARGEST_NEURONS} neurons")


def _state(circuit: Circuit, own: list[int], carried: list[tuple[int, Places]]) -> _LayerState:
    places, size = {}, 0
    for block in own:
        count = circuit.blocks[block].size
        places[block] = np.arange(size, size + count)[None]
        size += count
    for block, held in carried:
        parts = 2 if block == INPUT else 1
        where = np.full((parts, circuit.blocks[block].size), -1)
        where[:, held] = np.arange(size, size + parts * len(held)).reshape(parts, -1)
        places[block], size = where, size + parts * len(held)
    inner = [circuit.blocks[block].inner for block in own]
    return _LayerState(tuple(each for each in inner if each is not None), tuple(carried), places, size)


def _used(circuit: Circuit, output: Expression, top: int) -> dict[int, Places]:
    """For every block that counts: the last layer, the output's being top + 1, that each of its numbers goes into."""
    used: dict[int, Places] = {}

    def use(inner: Expression, level: int) -> None:
        for block, term in inner.terms.items():
            size = circuit.blocks[block].size
            last = used.setdefault(block, np.zeros(size, dtype=np.int64))
            needed = columns(term, size)
            last[needed] = np.maximum(last[needed], level)

    use(output, top + 1)
    for place in reversed(range(len(circuit.blocks))):
        block = circuit.blocks[place]
        if place in used and block.inner is not None:
            use(block.inner, block.level)
    return used


def _layer(circuit: Circuit, before: _LayerState, after: _LayerState) -> tuple[Affine, bool]:
    """From one state to the next, and whether it is plain."""
    if len(after.inner) == 1 and not after.carried:
        simple = _simple_layer(before, after.inner[0])
        if simple is not None:
            return simple
    offsets = [each.offset for each in after.inner]
    matrix = _stacked_rows(circuit, before, after)
    offset = np.concatenate([*offsets, np.zeros(matrix.shape[0] - sum(map(len, offsets)))])
    return _of_entries(matrix, offset), False


def _stacked_rows(circuit: Circuit, before: _LayerState, after: _LayerState) -> Any:
    rows = [_rows(circuit, before, each) for each in after.inner]
    for block, held in after.carried:
        rows += _carried_rows(before, block, held)
    require_entries(sum(each.nnz for each in rows))
    return count_term(sparse.vstack(rows, format="csr")) if len(rows) > 1 else rows[0]


def _simple_layer(before: _LayerState, inner: Expression) -> tuple[Affine, bool] | None:
    """A map of one block that is all there is before it."""
    if len(inner.terms) != 1:
        return None
    ((block, term),) = inner.terms.items()
    if not np.array_equal(before.places.get(block, ()), np.arange(before.size)[None]):
        return None
    if isinstance(term, Convolution):
        layer = _with_offset(term, inner.offset)
        return layer, inner.plain and not layer.structured
    if isinstance(term, np.ndarray):
        keep_layer(term.size)
        return Dense(torch.from_numpy(np.ascontiguousarray(term)), torch.from_numpy(inner.offset)), inner.plain
    return _of_entries(entries(term, before.size), inner.offset), False


def _with_offset(convolution: Convolution, offset: Array) -> Convolution:
    channels = offset.reshape(len(convolution.kernel), -1)
    uniform = bool((channels == channels[:, :1]).all())
    return convolution.with_parameters(
        convolution.kernel, torch.from_numpy(channels[:, 0].copy() if uniform else offset)
    )


def _of_entries(matrix: Any, offset: Array) -> Affine:
    if matrix.nnz < SPARSE * matrix.shape[0] * matrix.shape[1]:
        keep_layer(matrix.nnz)
        return Sparse.of(matrix, offset)
    keep_layer(matrix.shape[0] * matrix.shape[1])
    return Dense(torch.from_numpy(matrix.toarray()), torch.from_numpy(offset))


def _rows(circuit: Circuit, before: _LayerState, inner: Expression) -> Any:
    """The rows of an expression, in the places where the state holds its blocks."""
    shape = (inner.size, before.size)
    matrix = sparse.csr_array(shape)
    for block, term in inner.terms.items():
        part = entries(term, circuit.blocks[block].size)
        if not part.data.all():  # where all is 0, the block is not even held
            part = part.copy()
            part.eliminate_zeros()
        for sign, where in zip((1.0, -1.0), before.places[block] if part.nnz else (), strict=False):
            require_entries(part.nnz + matrix.nnz)
            data = part.data if sign > 0 else -part.data
            placed = sparse.csr_array((data, where.astype(np.int32)[part.indices], part.indptr), shape=shape)
            matrix = count_term(matrix + placed if matrix.nnz else placed)
    return matrix


def _carried_rows(before: _LayerState, block: int, held: Places) -> list[Any]:
    """Identities; the two parts of the input are made in the first layer and left alone afterwards."""
    where = before.places[block][:, held]
    ones = np.ones(len(held))
    signs = (1.0, -1.0) if block == INPUT and len(where) == 1 else (1.0,) * len(where)
    sources = np.broadcast_to(where, (len(signs), len(held)))
    shape = (len(held), before.size)
    return [
        sparse.csr_array((sign * ones, (np.arange(len(held)), source)), shape=shape)
        for sign, source in zip(signs, sources, strict=True)
    ]
