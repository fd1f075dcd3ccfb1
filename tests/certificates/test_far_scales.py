"""A relaxed solution of any scale may be tried as an attack."""

import math

import pytest
import torch
from torch import Tensor

from brittle.certificates import Certificate, Example, LowerBound, RadiusInterval
from brittle.data import Data
from brittle.networks import Network, TwoLayer


class Asking(Certificate):
    """Proves nothing, and asks for rays in directions that a careless norm turns into NaN."""

    name = "asking"

    def __init__(self, directions: Tensor) -> None:
        self.directions = directions

    def prepare(self, network: Network) -> LowerBound:
        def ask(example: Example, enclosure: RadiusInterval) -> RadiusInterval:
            return example.attacked(enclosure, self.directions)

        return ask


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_shortest_flip_is_found_along_a_direction_of_any_scale(scale):
    network = TwoLayer(
        torch.tensor([[1.0, 0.0]]).double(), torch.zeros(1).double(), torch.tensor([-1.0]).double(), -1.0
    )
    data = Data(torch.tensor([[2.0, 0.0]]), torch.tensor([-1.0]))
    lifted = TwoLayer(network.W, network.b, network.v, torch.tensor(1.0))  # 1 - φ(x_1): negative at x_1 = 2
    directions = torch.tensor([[-scale, 0.0], [math.nan, 0.0], [0.0, 0.0]], dtype=torch.float64)
    found = Asking(directions).bound(lifted, data)
    assert float(found.upper[0]) == pytest.approx(1.0)
    assert float(Asking(directions[1:]).bound(network, data).upper[0]) == math.inf
