"""Fewer classes, fewer pixels, one norm, fewer components: against other libraries and by their definitions."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from sklearn.decomposition import PCA

from brittle import InputError
from brittle.data import (
    Clusters,
    Data,
    DataInfo,
    Digits,
    Grid25,
    Line7,
    Sphere,
    Subspace,
    compute_explained_variance,
    downsample,
    principal,
    two_classes,
    unit_norm,
)
from tests.data.truths import check_truth


@pytest.fixture(scope="module")
def digits() -> Data:
    return Digits().sample(300, torch.Generator().manual_seed(0), test=50)


@pytest.mark.parametrize("side", [3, 5, 8])
def test_pictures_shrink_as_in_pillow(digits, side):
    """Pillow's bilinear resize widens its filter when it shrinks, which is what antialiasing means."""
    small = downsample(digits, side)
    assert small.X.shape == (300, side * side)
    assert small.truth.image == (side, side)
    assert small.dim == side * side
    for seen, original in zip(small.X_test[:5], digits.X_test[:5], strict=True):
        picture = Image.fromarray(original.view(8, 8).float().numpy()).resize((side, side), Image.BILINEAR)
        assert np.allclose(seen.numpy(), np.asarray(picture).ravel(), atol=1e-6)


def test_without_antialiasing_the_pictures_would_differ(digits):
    plain = torch.nn.functional.interpolate(digits.X.view(-1, 1, 8, 8), size=(3, 3), mode="bilinear").flatten(1)
    assert (plain - downsample(digits, 3).X).abs().max() > 0.1


def test_colours_stay_apart():
    X = torch.cat([torch.zeros(1, 16), torch.ones(1, 16), torch.full((1, 16), 2.0)], 1)
    data = Data(X, torch.tensor([0]), truth=DataInfo(image=(3, 4, 4)))
    assert downsample(data, 2).X.tolist() == [[0.0] * 4 + [1.0] * 4 + [2.0] * 4]


def test_only_pictures_shrink(rng):
    with pytest.raises(InputError, match="not pictures"):
        downsample(Sphere(9).sample(3, rng), 2)


@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 2**31))
def test_every_norm_becomes_one(rows, columns, seed):
    X = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)).double() * 100
    data = unit_norm(Data(X, torch.ones(rows)))
    assert torch.allclose(data.X.norm(dim=1), torch.ones(rows).double())
    assert (data.X * X).sum(1).min() > 0
    check_truth(data)


def test_unit_norm_keeps_a_linear_subspace_and_drops_an_affine_one(rng):
    check_truth(unit_norm(Subspace(9, 4).sample(6, rng, test=2)))
    assert unit_norm(Subspace(9, 4).sample(6, rng)).truth.codimension == 4
    assert unit_norm(Grid25().sample()).truth.basis is None
    with pytest.raises(InputError, match="1 examples are zero"):
        unit_norm(Line7().sample())


@pytest.mark.parametrize("components", [1, 7, 30])
def test_projection_is_scikit_learns(digits, components):
    data = principal(digits, components)
    peer = PCA(components, svd_solver="full").fit(digits.X.numpy())
    for seen, original in ((data.X, digits.X), (data.X_test, digits.X_test)):
        expected = peer.inverse_transform(peer.transform(original.numpy()))
        assert np.allclose(seen.numpy(), expected, atol=1e-9)
    check_truth(data)
    assert data.truth.codimension == 64 - components


def test_only_the_training_examples_choose_the_components(digits):
    other = replace(digits, X_test=digits.X_test * 1000)
    assert torch.equal(principal(digits, 5).truth.basis, principal(other, 5).truth.basis)


def test_a_centred_projection_lies_on_a_linear_subspace(digits):
    data = principal(digits, 5, centred=True)
    check_truth(data)
    assert data.truth.offset is None
    assert data.X.mean(0).abs().max() < 1e-9


def test_components_of_data_in_their_span_have_no_explicit_complement(rng):
    data = principal(Clusters(10**6, clusters=3).sample(20, rng, in_span=True), 4)
    assert data.truth.codimension == 10**6 - 4
    assert data.truth.complement is None


@pytest.mark.parametrize("components", [0, 65])
def test_components_are_limited(digits, components):
    with pytest.raises(InputError, match="components is"):
        principal(digits, components)


def test_explained_variance_is_scikit_learns(digits):
    expected = PCA().fit(digits.X.numpy()).explained_variance_ratio_.cumsum()
    assert np.allclose(compute_explained_variance(digits).numpy(), expected)


def test_two_classes_are_kept_and_become_signs(digits):
    pair = two_classes(digits, (8, 3))
    assert len(pair) == int(((digits.y == 8) | (digits.y == 3)).sum())
    assert int((pair.y == -1).sum()) == int((digits.y == 8).sum())
    assert int((pair.y_test == 1).sum()) == int((digits.y_test == 3).sum())
    assert torch.equal(pair.X[pair.y == 1], digits.X[digits.y == 3])
    for classes, words in [
        ((3, 3), "two different"),
        ((3, "x"), "two different class numbers"),
        ((3, 12), "no examples of the class 12"),
    ]:
        with pytest.raises(InputError, match=words):
            two_classes(digits, classes)


def test_equal_examples_have_no_variance_to_explain():
    with pytest.raises(InputError, match="all examples are equal"):
        compute_explained_variance(Data(torch.ones(3, 2), torch.ones(3)))
