"""Numbers on a coarse grid, so that another processor's last bit makes no other instance."""

import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor

from brittle.networks import Layered
from brittle.settings import Data

WEIGHT_BITS = 12  # of the largest weight of a layer
INPUT_BITS = 20  # of the largest feature
KNOWN = "digests.json"


def on_grid(values: Tensor, bits: int) -> Tensor:
    """Multiples of 2^-bits times the power of two above the largest."""
    largest = float(values.abs().max())
    if largest == 0:
        return values.double()
    step = 2.0 ** (torch.tensor(largest).log2().ceil().item() - bits)
    return (values.double() / step).round() * step


def frozen_network(network: Layered) -> Layered:
    """The network with its weights and biases on the grid, layer by layer."""
    network = network.to(torch.float64)
    parts = [
        layer.with_parameters(*(on_grid(each, WEIGHT_BITS) for each in layer.parameters)) for layer in network.layers
    ]
    return network.with_layers(parts)


def frozen_data(X: Tensor, y: Tensor) -> Data:
    """Examples on the grid."""
    return Data(on_grid(X, INPUT_BITS), y)


def digest(network: Layered, data: Data) -> str:
    """SHA-256 of all parameters, examples and labels as little-endian float64, in this order."""
    digest = hashlib.sha256()
    for array in (*(each for layer in network.layers for each in layer.parameters), data.X, data.y):
        digest.update(array.double().contiguous().numpy().astype("<f8").tobytes())
    return digest.hexdigest()


@cache
def known_digests() -> dict[str, str]:
    """The digest of every problem as it was first built."""
    content: dict[str, Any] = json.loads((files("brittle.truth") / KNOWN).read_text())
    return content
