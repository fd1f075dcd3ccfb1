"""Affine maps against their own matrix, and against PyTorch's layers."""

import pytest
import torch

from brittle.common.errors import InputError
from brittle.networks import Convolution, Dense
from tests.cases import MAPS

DOUBLE = torch.float64


@pytest.mark.parametrize(("name", "part"), MAPS, ids=[name for name, _ in MAPS])
def test_a_map_is_its_matrix_and_offset(name, part, rng):
    """Columns of A are what the unit vectors give."""
    units = torch.eye(part.inputs, dtype=DOUBLE)
    A = (part.apply(units) - part.apply(torch.zeros_like(units))).T
    torch.testing.assert_close(part.matrix, A)
    X, Z = (torch.randn(4, size, generator=rng, dtype=DOUBLE) for size in (part.inputs, part.outputs))
    torch.testing.assert_close(part.apply(X), X @ A.T + part.offset)
    torch.testing.assert_close(part.transpose(Z), Z @ A)
    torch.testing.assert_close(part.linear(X), X @ A.T)


@pytest.mark.parametrize(("name", "part"), MAPS, ids=[name for name, _ in MAPS])
def test_gradients_pass_through_a_map_twice(name, part, rng):
    X = torch.randn(2, part.inputs, generator=rng, dtype=DOUBLE, requires_grad=True)
    assert torch.autograd.gradcheck(part.apply, X)
    assert torch.autograd.gradgradcheck(lambda x: part.apply(x).square().sum(), X)


@pytest.mark.parametrize(("name", "part"), MAPS, ids=[name for name, _ in MAPS])
def test_the_trainable_copy_of_a_map_is_the_same_map(name, part, rng):
    X = torch.randn(4, part.inputs, generator=rng, dtype=DOUBLE)
    if part.structured:
        with pytest.raises(InputError, match="cannot be trained one by one"):
            part.module()
        return
    module = part.module()
    torch.testing.assert_close(module(X), part.apply(X))
    again = part.with_parameters(*(each.detach() for each in module.parameters()))
    torch.testing.assert_close(again.matrix, part.matrix)


@pytest.mark.parametrize(("name", "part"), MAPS, ids=[name for name, _ in MAPS])
def test_absolute_values_are_those_of_the_matrix(name, part):
    torch.testing.assert_close(part.absolute().matrix, part.matrix.abs())
    assert part.to(torch.float32).dtype == torch.float32


def test_a_convolution_is_that_of_pytorch(rng):
    layer = torch.nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2, dtype=DOUBLE)
    part = Convolution(layer.weight.detach(), layer.bias.detach(), (4, 8, 7), (2, 1), (1, 2), (1, 2), 2)
    X = torch.randn(3, 4, 8, 7, generator=rng, dtype=DOUBLE)
    torch.testing.assert_close(part.apply(X.flatten(1)).reshape(3, *part.result), layer(X))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Dense(torch.ones(3), torch.ones(3)), r"weight has shape \(3,\)"),
        (lambda: Dense(torch.ones(3, 2), torch.ones(2)), r"bias has shape \(2,\)"),
        (lambda: Dense(torch.ones(3, 2).long(), torch.ones(3)), "type torch.int64"),
        (lambda: Convolution(torch.ones(2, 3, 2, 2), torch.ones(2), (1, 4, 4)), "takes 3 channels"),
        (lambda: Convolution(torch.ones(2, 1, 5, 5), torch.ones(2), (1, 4, 4)), "does not fit into the image"),
        (lambda: Convolution(torch.ones(2, 2), torch.ones(2), (1, 4, 4)), r"kernel has shape \(2, 2\)"),
    ],
)
def test_maps_that_do_not_fit_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()
