"""What is trained or audited."""

from brittle.common.parts import by_name
from brittle.networks.adapter import Adapter
from brittle.networks.affine import Affine, Convolution, Dense
from brittle.networks.base import Network
from brittle.networks.constructions import (
    Construction,
    clustered,
    linear_model,
    nearly_orthogonal,
    orthogonal_kkt,
    smaller_norm,
)
from brittle.networks.deep import Deep, as_layered, as_two_layer, best_of, get_layered
from brittle.networks.folded import Folded
from brittle.networks.initialisation import Initialisation, Kaiming, LazyInit, TorchLinearInit, redrawn
from brittle.networks.layered import Layered
from brittle.networks.nearest_neighbour import NearestNeighbour
from brittle.networks.recognise import Recognition, as_network, recognise
from brittle.networks.sparse import Sparse
from brittle.networks.store import load_network, read_network, save_network
from brittle.networks.two_layer import TwoLayer

PARTS = by_name((TorchLinearInit, Kaiming, LazyInit))  # initialisations

__all__ = [
    "PARTS",
    "Adapter",
    "Affine",
    "Construction",
    "Convolution",
    "Deep",
    "Dense",
    "Folded",
    "Initialisation",
    "Kaiming",
    "Layered",
    "LazyInit",
    "NearestNeighbour",
    "Network",
    "Recognition",
    "Sparse",
    "TorchLinearInit",
    "TwoLayer",
    "as_layered",
    "as_network",
    "as_two_layer",
    "best_of",
    "clustered",
    "get_layered",
    "linear_model",
    "load_network",
    "nearly_orthogonal",
    "orthogonal_kkt",
    "read_network",
    "recognise",
    "redrawn",
    "save_network",
    "smaller_norm",
]
