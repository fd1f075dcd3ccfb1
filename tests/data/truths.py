"""What the fields of `DataInfo` claim, measured on the data."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch

from brittle import InputError
from brittle.data import Data, Setting, load_data

Known = TypeVar("Known")


def by_name(rows: Iterable[tuple[str, Setting]]) -> list[Any]:
    return [pytest.param(setting, id=name) for name, setting in rows]


def read_or_refused(path: Path) -> str:
    """`read`, or the one line that says why not; any other end is a failure."""
    try:
        load_data(path)
    except InputError as error:
        message = str(error)
    else:
        return "read"
    assert message.startswith(str(path))
    assert "\n" not in message
    return message


def check_truth(data: Data) -> None:
    """Raises AssertionError where the data contradict what their setting says of them."""
    truth = data.truth
    everything = data.X if data.X_test is None else torch.cat([data.X, data.X_test])
    if truth.radius is not None:
        assert_close(everything.norm(dim=1), torch.full((len(everything),), truth.radius, dtype=torch.float64))
    if truth.means is not None:
        check_clusters(data)
    elif truth.coherence is not None:
        assert_attained(everything, truth.coherence)
    elif truth.noise is not None:
        assert_chi_squared(everything, truth.noise, data.dim - (truth.codimension or 0))
    if truth.basis is not None:
        check_subspace(data, everything)
    if truth.image is not None:
        assert torch.tensor(truth.image).prod() == data.columns


def known(value: Known | None) -> Known:
    assert value is not None
    return value


def check_clusters(data: Data) -> None:
    truth = data.truth
    means, labels = known(truth.means), known(truth.mean_labels)
    cluster, noise = known(truth.cluster), known(truth.noise)
    inside = data.dim - (truth.codimension or 0)
    assert_close(means.norm(dim=1), torch.full((len(means),), inside**0.5, dtype=torch.float64))
    assert_attained(means, known(truth.coherence))
    assert set(labels.tolist()) == {-1.0, 1.0}
    assert torch.equal(data.y, labels[cluster])
    assert_chi_squared(data.X - means[cluster], noise, inside)
    if data.X_test is not None:
        cluster_test = known(truth.cluster_test)
        assert torch.equal(known(data.y_test), labels[cluster_test])
        assert_chi_squared(data.X_test - means[cluster_test], noise, inside)


def check_subspace(data: Data, X: torch.Tensor) -> None:
    truth = data.truth
    basis, complement = known(truth.basis), truth.complement
    assert_close(basis.T @ basis, torch.eye(basis.shape[1]))
    X = X if truth.offset is None else X - truth.offset
    assert_close(X @ basis @ basis.T, X)
    if not data.in_span:
        assert truth.codimension == data.dim - basis.shape[1]
    if complement is not None:
        both = torch.cat([basis, complement], 1)
        assert both.shape == (data.dim, data.dim)
        assert_close(both.T @ both, torch.eye(data.dim))


def assert_attained(vectors: torch.Tensor, coherence: float) -> None:
    """The largest inner product of two different ones is `coherence`."""
    gram = (vectors @ vectors.T).fill_diagonal_(0)
    assert_close(gram.abs().max(), torch.tensor(coherence, dtype=torch.float64), scale=vectors.square().sum(1).max())


def assert_chi_squared(noise: torch.Tensor, deviation: float, dim: int) -> None:
    """‖ξ‖² is σ² times a χ² variable with `dim` degrees of freedom: within six standard deviations of its mean."""
    share = noise.square().sum(1).mean() / (deviation**2 * dim)
    assert abs(share - 1) < 6 * (2 / (dim * len(noise))) ** 0.5


def assert_close(value: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor | None = None) -> None:
    scale = expected.abs().max().clamp(min=1) if scale is None else scale
    assert (value - expected.double()).abs().max() <= 1e-9 * scale
