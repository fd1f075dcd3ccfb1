"""Networks in float64: what is said about a flip is said in that precision."""

import torch

from brittle.common.errors import InputError
from brittle.networks import Deep, Network, TwoLayer
from brittle.networks.adapter import Adapter


def double(network: Network) -> Network:
    """The same function with its parameters in float64; a module that cannot be converted stays as it is."""
    if network.dtype == torch.float64:
        return network
    if isinstance(network, TwoLayer | Deep):
        return network.to(torch.float64)
    if not isinstance(network, Adapter):
        return network
    try:
        return Adapter(Adapter(network.inner, network.shape).inner.double(), network.shape)
    except InputError:  # it has a type of its own somewhere inside
        return network
