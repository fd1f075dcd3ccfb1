"""Every setting knows the truth about its data, explicit and in the span; and a false truth is noticed."""

from dataclasses import replace

import pytest
import torch

from brittle import InputError
from brittle.data import Clusters, Data, DataInfo, ImageSet, Setting, Sphere, Subspace, principal
from tests.cases import SETTINGS
from tests.data.truths import by_name, check_truth


def sampled(setting: Setting, rng: torch.Generator, in_span: bool = False) -> Data:
    try:
        if setting.finite:
            return setting.sample(None, rng, in_span=in_span)
        test = 0 if setting.name == "orthogonal" else 5
        return setting.sample(20, rng, test=test, in_span=in_span)
    except InputError as error:
        if isinstance(setting, ImageSet) and "brittle data fetch" in str(error):
            pytest.skip(f"these pictures are not there: {error}")
        raise


@pytest.mark.parametrize("setting", by_name(SETTINGS))
def test_the_truth_holds(setting, rng):
    data = sampled(setting, rng)
    check_truth(data)
    assert not data.in_span
    if not setting.finite:
        assert data.dim == setting.dim
        assert len(data) == 20


@pytest.mark.parametrize("setting", by_name(row for row in SETTINGS if row[1].in_span_offered))
def test_the_truth_holds_in_the_span(setting, rng):
    data = sampled(setting, rng, in_span=True)
    check_truth(data)
    assert data.columns <= data.dim
    assert data.dim == sampled(setting, rng).dim


@pytest.mark.parametrize(
    "setting",
    [
        Sphere(10**9),
        Clusters(10**9, clusters=4),
        Clusters(10**9, clusters=4, random_means=True),
        Clusters(10**9, clusters=4, cosine=0.2),
        Subspace(10**9, codimension=10**8),
        Subspace(10**9, codimension=10**8, inner=Clusters(9 * 10**8)),
    ],
)
def test_the_truth_holds_in_a_billion_dimensions(setting, rng):
    data = setting.sample(30, rng, test=10, in_span=True)
    check_truth(data)
    assert data.dim == 10**9
    assert data.columns <= 44


def changed(truth: DataInfo, field: str) -> DataInfo:
    value = getattr(truth, field)
    if field == "cluster":
        return replace(truth, cluster=(value + 1) % len(truth.means))
    if field == "mean_labels":
        return replace(truth, mean_labels=-value)
    if field in ("basis", "complement"):
        return replace(truth, **{field: value.roll(1, 0)})
    if field == "codimension":
        return replace(truth, codimension=value - 1)
    return replace(truth, **{field: value * 1.01 + (field == "coherence")})


FALSEHOODS = [
    (Sphere(50), ["radius"]),
    (Clusters(5000, clusters=4), ["coherence", "means", "mean_labels", "cluster"]),
    (Subspace(50, 30), ["basis", "complement", "codimension", "radius"]),
]


@pytest.mark.parametrize(("setting", "field"), [(setting, field) for setting, names in FALSEHOODS for field in names])
def test_a_false_truth_is_noticed(setting, field, rng):
    data = setting.sample(40, rng)
    check_truth(data)
    with pytest.raises(AssertionError):
        check_truth(replace(data, truth=changed(data.truth, field)))


@pytest.mark.parametrize("wrong", [0.9, 1.1])
def test_a_false_noise_is_noticed(wrong, rng):
    data = Clusters(500, noise=0.5).sample(100, rng)
    with pytest.raises(AssertionError):
        check_truth(replace(data, truth=replace(data.truth, noise=0.5 * wrong)))


def test_principal_components_leave_a_true_affine_subspace(rng):
    data = principal(Sphere(12).sample(30, rng, test=7), 4)
    check_truth(data)
    assert data.truth.codimension == 8
    moved = replace(data.truth, offset=data.truth.offset + 0.1)
    with pytest.raises(AssertionError):
        check_truth(replace(data, truth=moved))
