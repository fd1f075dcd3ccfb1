"""What costs more proves at least as much, even where it is cut short."""

import numpy as np
import pytest
import torch

from benchmarks.fuzz import layered, ordinary
from brittle.certificates import Dual, Exact
from brittle.data import Data
from brittle.networks import Convolution, Deep, Dense

GAP = 1e-6  # what `Exact` leaves on purpose
CUT = Exact(gap=GAP, nodes=1)
ROUNDING = 1e-9


def _proved(method, network, data, cap):
    return method.bound(network, data, cap=cap).lower


@pytest.mark.parametrize("seed", [1, 7, 15, 22, 33, 53, 93, 101])
def test_in_two_layers_a_refined_dual_and_a_tree_that_is_cut_prove_no_less_than_the_dual(seed):
    network, data = ordinary.draw(np.random.default_rng(seed))
    data = data.take(torch.arange(8))
    quick = _proved(Dual(), network, data, 1e3)
    assert (quick > 0).any()
    assert (_proved(Dual(refined=True), network, data, 1e3) >= quick * (1 - ROUNDING)).all()
    assert (_proved(CUT, network, data, 1e3) >= quick * (1 - 2 * GAP)).all()


@pytest.mark.parametrize("kind", ["depth 3", "depth 5", "depth 4, classes", "convolution, classes", "whole numbers"])
def test_in_more_layers_a_tree_that_is_cut_proves_no_less_than_the_dual(kind):
    network, data, _ = layered.draw(np.random.default_rng(3), layered.KINDS[kind])
    assert (_proved(CUT, network, data, 3.0) >= _proved(Dual(), network, data, 3.0) * (1 - 2 * GAP)).all()


def test_where_the_interior_point_has_no_time_the_dual_holds():
    rng = np.random.default_rng(0)
    kernel, W, v = rng.normal(size=(6, 1, 3, 3)) / 3, rng.normal(size=(20, 6 * 64)) / 20, rng.normal(size=(3, 20)) / 4
    picture = Convolution(*map(torch.from_numpy, (kernel, np.zeros(6))), (1, 8, 8), padding=(1, 1))
    layers = (picture, *(Dense(torch.from_numpy(each), torch.zeros(len(each)).double()) for each in (W, v)))
    network, X = Deep(layers), torch.from_numpy(rng.normal(size=(2, 64)))
    data = Data(X, network.logits(X).argmax(1))
    quick, hurried = (method.bound(network, data) for method in (Dual(), Exact(seconds=1e-3)))
    assert (quick.lower > 0).all()
    assert (hurried.lower >= quick.lower * (1 - 2 * GAP)).all()
