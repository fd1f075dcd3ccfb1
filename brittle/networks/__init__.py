"""What is trained or audited."""

from brittle.networks.adapter import Adapter, as_network
from brittle.networks.base import Network
from brittle.networks.constructions import (
    Construction,
    clustered,
    linear_model,
    nearly_orthogonal,
    orthogonal_kkt,
    smaller_norm,
)
from brittle.networks.deep import Deep
from brittle.networks.initialisation import Initialisation, Kaiming, Lazy, PyTorch
from brittle.networks.nearest_neighbour import NearestNeighbour
from brittle.networks.store import load_network, save_network
from brittle.networks.two_layer import TwoLayer

__all__ = [
    "Adapter",
    "Construction",
    "Deep",
    "Initialisation",
    "Kaiming",
    "Lazy",
    "NearestNeighbour",
    "Network",
    "PyTorch",
    "TwoLayer",
    "as_network",
    "clustered",
    "linear_model",
    "load_network",
    "nearly_orthogonal",
    "orthogonal_kkt",
    "save_network",
    "smaller_norm",
]
