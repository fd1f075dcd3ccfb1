"""Bases against closed forms and NumPy's rank."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from brittle.geometry import Basis, largest_product, rank_of, unit_rows

DOUBLE = torch.float64


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 8), dim=st.integers(1, 8), rank=st.integers(0, 8))
def test_a_basis_spans_the_rows_and_nothing_else(seed, rows, dim, rank):
    rng = torch.Generator().manual_seed(seed)
    left = torch.randn(rows, rank, generator=rng, dtype=DOUBLE)
    X = left @ torch.randn(rank, dim, generator=rng, dtype=DOUBLE)
    basis = Basis.spanning(X)
    assert basis.dim == min(rows, rank, dim) == np.linalg.matrix_rank(X.numpy(), tol=1e-9 * max(1, X.abs().max()))
    torch.testing.assert_close(basis.project(X), X)
    assert basis.off(X).abs().max() <= 1e-12 * (1 + X.abs().max())
    gram = basis.vectors.T @ basis.vectors
    torch.testing.assert_close(gram, torch.eye(basis.dim, dtype=DOUBLE))


def test_a_feature_that_is_always_zero_is_off_the_span_exactly():
    X = torch.tensor([[1.0, 0.0, 2.0], [3.0, 0.0, -1.0]], dtype=DOUBLE)
    assert (Basis.spanning(X).vectors[1] == 0).all()


def test_singular_values_below_the_tolerance_are_zero():
    assert rank_of(torch.tensor([1.0, 1e-9, 1e-11])) == 2
    assert rank_of(torch.zeros(3)) == 0


def test_unit_rows_keep_zeros():
    rows = unit_rows(torch.tensor([[3.0, 4.0], [0.0, 0.0]], dtype=DOUBLE))
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0]]


def test_the_largest_product_leaves_out_the_squares():
    assert largest_product(torch.tensor([[10.0, 0.0], [0.5, 1.0], [0.0, -3.0]], dtype=DOUBLE)) == pytest.approx(5.0)
    assert largest_product(torch.ones(1, 2, dtype=DOUBLE)) == 0
