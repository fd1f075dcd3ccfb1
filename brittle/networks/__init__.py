"""What is trained or audited."""

from brittle.networks.adapter import Adapter, as_network
from brittle.networks.base import Network
from brittle.networks.deep import Deep
from brittle.networks.initialisation import Initialisation, Kaiming, Lazy, PyTorch
from brittle.networks.store import load_network, save_network
from brittle.networks.two_layer import TwoLayer

__all__ = [
    "Adapter",
    "Deep",
    "Initialisation",
    "Kaiming",
    "Lazy",
    "Network",
    "PyTorch",
    "TwoLayer",
    "as_network",
    "load_network",
    "save_network",
]
