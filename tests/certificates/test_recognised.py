"""Certificates of a normalised, pooled module with a skip connection: brute force and its own flips agree."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from brittle.attacks import MinimumNorm
from brittle.certificates import Dual, Exact, LinearRelaxation, Lipschitz
from brittle.data import Data
from brittle.networks import Folded, as_network
from tests.certificates.reference import brute_force_deep_radius

DOUBLE = torch.float64


class Small(nn.Module):
    """(1, 1, 2) to three logits, or with `wide` (1, 4, 4)."""

    def __init__(self, wide: bool = False) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 2 if wide else 1, (1, 3), padding=(0, 1)), nn.BatchNorm2d(2 if wide else 1)
        self.pool, self.last = nn.MaxPool2d((1, 2)), nn.Linear(16 if wide else 1, 3)

    def forward(self, X: Tensor) -> Tensor:
        out: Tensor = self.last(self.pool(torch.relu(self.norm(self.conv(X))) + X).flatten(1))
        return out


def problem(seed, wide=False, count=1):
    torch.manual_seed(seed)
    module, shape = Small(wide).double(), (1, 4, 4) if wide else (1, 1, 2)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    module.norm.running_mean.normal_()
    module.norm.running_var.uniform_(0.5, 2)
    network = as_network(module, shape)
    assert isinstance(network, Folded)
    X = torch.randn(count, network.dim, dtype=DOUBLE)
    return module.eval(), network, Data(X, module(X.reshape(count, *shape)).argmax(1))


@pytest.mark.parametrize("seed", range(2))
def test_the_exact_radius_is_that_of_brute_force(seed):
    _, network, data = problem(seed)
    radius = brute_force_deep_radius(network, data.X[0].numpy(), int(data.y[0]))
    found = Exact(gap=1e-3).bound(network, data, cap=10.0)
    if radius < 10:
        assert found.upper[0] == pytest.approx(radius, rel=2e-3)
    assert found.lower[0] <= radius * (1 + 1e-7)


def test_no_flip_of_the_module_is_nearer_than_a_certificate():
    """Flips are those of the module itself, not of the layers that were recognised."""
    module, network, data = problem(0, wide=True, count=6)
    attack = MinimumNorm().run(network, data)
    flipped = module((data.X + attack.perturbations).reshape(-1, 1, 4, 4)).argmax(1) != data.y
    assert torch.equal(flipped, attack.success)
    assert attack.success.any()
    rng = np.random.default_rng(0)
    for method in (Lipschitz(constant="spectral"), LinearRelaxation(), Dual(), Exact(gap=0.1, seconds=1.0)):
        lower = method.bound(network, data, cap=float(attack.norms.max())).lower
        assert (lower[attack.success] <= attack.norms[attack.success] * (1 + 1e-6)).all()
        assert bool((lower > 0).any())
        for _ in range(200):
            away = torch.from_numpy(rng.normal(size=data.X.shape))
            moved = data.X + 0.999 * lower[:, None] * away / away.norm(dim=1, keepdim=True)
            assert torch.equal(module(moved.reshape(-1, 1, 4, 4)).argmax(1), data.y)
