"""What is trained or audited."""

from brittle.networks.base import Network
from brittle.networks.initialisation import Initialisation, Kaiming, Lazy, PyTorch
from brittle.networks.two_layer import TwoLayer

__all__ = ["Initialisation", "Kaiming", "Lazy", "Network", "PyTorch", "TwoLayer"]
