"""Compression: the same outputs on the data, never a larger norm, never more neurons than patterns."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brittle.kkt import compress
from brittle.networks import TorchLinearInit, TwoLayer
from tests.kkt.reference import fitted, gaussian, generator


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 3), st.integers(1, 60))
def test_outputs_stay_and_the_norm_does_not_grow(seed, examples, dim, width):
    data = gaussian(examples + 1, dim, seed)
    network = TorchLinearInit().draw(dim, width, generator(seed))
    small = compress(network, data)
    torch.testing.assert_close(small.logits(data.X), network.logits(data.X), atol=1e-12, rtol=1e-9)
    assert float(small.squared_norm) <= float(network.squared_norm) * (1 + 1e-12)
    rows = (network.preactivations(data.X).T > 0).tolist()
    patterns = {(bool(v > 0), *row) for v, row in zip(network.v, rows, strict=True)}
    assert small.width == max(1, sum(any(pattern[1:]) for pattern in patterns))
    assert compress(small, data).width == small.width


def test_it_is_much_smaller_where_there_are_few_patterns():
    data = gaussian(3, 40, 0)
    network = fitted(data, 500, 0)
    assert compress(network, data).width <= 2 * (2**3 - 1)


def test_a_network_that_is_zero_on_the_data_becomes_one_zero_neuron():
    data = gaussian(4, 2, 0)
    network = TwoLayer(torch.zeros(5, 2), -torch.ones(5), torch.ones(5), torch.tensor(0.25))
    small = compress(network, data)
    assert small.width == 1
    assert float(small.squared_norm) == pytest.approx(0.25**2)
    assert (small.logits(data.X) == 0.25).all()
