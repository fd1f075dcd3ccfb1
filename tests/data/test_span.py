"""Sampling in the span has the law of sampling all d coordinates; and a wrong law is noticed.

Every comparison is a Kolmogorov-Smirnov test at fixed seeds. The level is 1e-4: with about a hundred comparisons a
right sampler fails one in a hundred choices of seeds, while every wrong one tried here ends below 1e-6.
"""

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import digamma

from brittle.data import Clusters, Gaussian, Sphere, clusters, span
from tests.cases import SETTINGS
from tests.data.truths import by_name

LEVEL = 1e-4
RANDOM = [row for row in SETTINGS if row[1].in_span_offered and not row[1].finite and row[0] != "orthogonal"]


def statistics(setting, repeats: int, seed: int, in_span: bool) -> np.ndarray:
    """(repeats, 7) functions of the Gram matrix of four training and two test points."""
    rng = torch.Generator().manual_seed(seed)
    return np.array([gram_statistics(setting.sample(4, rng, test=2, in_span=in_span)) for _ in range(repeats)])


def gram_statistics(data) -> list[float]:
    X = torch.cat([data.X, data.X_test])
    gram = X @ X.T
    values = torch.linalg.eigvalsh(gram)
    entries = [gram[0, 0], gram[5, 5], gram[0, 1], gram[3, 4], gram[4, 5], values[-1], values[0]]
    return [float(f"{entry.item():.6g}") for entry in entries]  # equal norms differ in the last digits


def agreement(first: np.ndarray, second: np.ndarray) -> float:
    """The smallest p-value of the comparisons, column by column."""
    return min(stats.ks_2samp(a, b).pvalue for a, b in zip(first.T, second.T, strict=True))


@pytest.mark.parametrize("setting", by_name(RANDOM))
def test_both_samplers_have_one_law(setting):
    assert agreement(statistics(setting, 200, 1, False), statistics(setting, 200, 2, True)) > LEVEL


def test_the_comparison_notices_one_dimension_more():
    right, wrong = Gaussian(8, variance=1.0), Gaussian(7, variance=1.0)
    assert agreement(statistics(right, 300, 1, False), statistics(right, 300, 2, True)) > LEVEL
    assert agreement(statistics(right, 300, 1, False), statistics(wrong, 300, 2, True)) < 1e-6


@pytest.mark.parametrize("shift", [-2, 2])
def test_the_comparison_notices_wrong_degrees_of_freedom_beside_the_means(shift, monkeypatch):
    setting = Clusters(12, clusters=3, noise=2.0)
    right = statistics(setting, 300, 1, False)
    assert agreement(right, statistics(setting, 300, 2, True)) > LEVEL
    factor = clusters.bartlett
    monkeypatch.setattr(clusters, "bartlett", lambda count, dim, rng: factor(count, dim + shift, rng))
    assert agreement(right, statistics(setting, 300, 2, True)) < 1e-6


def log_determinants(count: int, dim: int, repeats: int, rng: torch.Generator) -> np.ndarray:
    factors = [span.bartlett(count, dim, rng) for _ in range(repeats)]
    return np.array([2 * factor.diagonal().log().sum().item() for factor in factors])


def test_the_log_determinant_has_its_exact_mean_and_variance(rng):
    """ln det of a Wishart matrix is a sum of independent ln χ² variables with d, d-1, ... degrees of freedom."""
    count, dim, repeats = 6, 12, 2000
    degrees = dim - np.arange(count)
    mean = (digamma(degrees / 2) + np.log(2)).sum()
    variance = stats.loggamma.var(degrees / 2).sum()
    seen = log_determinants(count, dim, repeats, rng)
    error = (variance / repeats) ** 0.5
    assert abs(seen.mean() - mean) < 4 * error
    assert abs(seen.var() / variance - 1) < 0.2
    wrong = log_determinants(count, dim + 1, repeats, rng)
    assert abs(wrong.mean() - mean) > 10 * error


@pytest.mark.parametrize("dim", [5, 50, 10**9])
def test_angles_on_the_sphere_have_the_beta_law(dim, rng):
    """(1 + cos)/2 ~ Beta((d-1)/2, (d-1)/2), the last pair of rows as well as the first."""
    cosines = []
    for _ in range(500):
        data = Sphere(dim, radius=1.0).sample(3, rng, test=2, in_span=True)
        cosines.append([(data.X[0] @ data.X[1]).item(), (data.X[2] @ data.X_test[1]).item()])
    law = stats.beta((dim - 1) / 2, (dim - 1) / 2, loc=-1, scale=2) if dim < 10**6 else stats.norm(0, dim**-0.5)
    for column in np.array(cosines).T:
        assert stats.kstest(column, law.cdf).pvalue > LEVEL
        assert stats.kstest(column * 1.5, law.cdf).pvalue < LEVEL


@pytest.mark.parametrize("dim", [40, 10**6, 10**9])
def test_distances_from_the_means_have_the_chi_squared_law(dim, rng):
    """‖x - μ‖² ~ σ²χ²_d although only k coordinates are drawn one by one."""
    data = Clusters(dim, clusters=3, noise=0.5, random_means=True).sample(400, rng, test=100, in_span=True)
    residual = torch.cat([data.X - data.truth.means[data.truth.cluster]])
    scores = (residual.square().sum(1) / 0.25 - dim) / (2 * dim) ** 0.5
    law = stats.chi2(dim, loc=-dim / (2 * dim) ** 0.5, scale=(2 * dim) ** -0.5) if dim < 10**5 else stats.norm()
    assert stats.kstest(scores.numpy(), law.cdf).pvalue > LEVEL
    assert stats.kstest(scores.numpy() + 0.5, law.cdf).pvalue < LEVEL


def test_chi_variables_with_huge_degrees_of_freedom_are_exact(rng):
    degrees = torch.full((3000,), 10**9)
    scores = (span._chi(degrees, rng).square() - 1e9) / (2e9) ** 0.5
    assert stats.kstest(scores.numpy(), stats.norm().cdf).pvalue > LEVEL


def test_more_points_than_dimensions_need_no_more_columns(rng):
    data = Sphere(4).sample(9, rng, in_span=True)
    assert data.X.shape == (9, 4)
    assert not data.in_span
    assert Clusters(6, clusters=4).sample(30, rng, in_span=True).columns == 6


def test_a_random_rotation_is_uniform(rng):
    """Each entry of a column has the law of a coordinate on the sphere; without the sign of R it is never positive."""
    entries = np.array([span.orthonormal(4, 2, rng).numpy() for _ in range(1500)])
    law = stats.beta(1.5, 1.5, loc=-1, scale=2)
    for row, column in np.ndindex(4, 2):
        assert stats.kstest(entries[:, row, column], law.cdf).pvalue > LEVEL
