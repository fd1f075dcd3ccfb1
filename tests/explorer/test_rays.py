"""The margin along a ray: every kink in its place, for any kind of layered network."""

import bisect

import pytest
import torch

import brittle as bt
from brittle.explorer.walk import profile
from tests.explorer.test_plane import close


def drawn(kind, seed):
    rng = torch.Generator().manual_seed(seed)
    if kind == "two layers":
        return bt.networks.TorchLinearInit().draw(5, 60, rng), torch.tensor(1.0, dtype=torch.float64)
    return bt.networks.TorchLinearInit().draw_deep(5, (25, 20), rng, outputs=4), torch.tensor(2)


def between(found, t):
    """The broken line at t."""
    k = min(max(bisect.bisect_right(found.sizes, t) - 1, 0), len(found.sizes) - 2)
    a, b = found.sizes[k], found.sizes[k + 1]
    return found.values[k] + (found.values[k + 1] - found.values[k]) * (t - a) / (b - a)


@pytest.mark.parametrize("kind", ["two layers", "three layers, four classes"])
@pytest.mark.parametrize("seed", range(4))
def test_the_broken_line_is_the_margin(kind, seed):
    network, y = drawn(kind, seed)
    rng = torch.Generator().manual_seed(100 + seed)
    x, u = torch.randn(2, 5, generator=rng, dtype=torch.float64)
    found = profile(network, x, y, u / u.norm(), 8.0)
    assert found.exact
    assert found.kinks >= 3
    assert found.sizes == sorted(found.sizes)
    steps = torch.linspace(0, 8, 301, dtype=torch.float64)
    margins = network.margins(x + steps[:, None] * u / u.norm(), y.expand(301))
    assert close([between(found, t) for t in steps.tolist()], margins)


def test_a_black_box_is_sampled():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double()
    network = bt.networks.as_network(module)
    x = torch.zeros(3, dtype=torch.float64)
    found = profile(network, x, torch.tensor(1.0, dtype=torch.float64), torch.eye(3, dtype=torch.float64)[0], 1.0)
    assert not found.exact
    assert found.values[0] == pytest.approx(float(network.logits(x[None])), abs=1e-12)
