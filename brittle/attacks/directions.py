"""The papers' directions z that flip many examples at once, applied as x - y·c·z/‖z‖.

Each takes the network and the examples that z is made for, and returns z (dim,) of any length.
"""

from collections.abc import Callable

from torch import Tensor

from brittle.common.errors import required
from brittle.geometry import unit_rows
from brittle.networks import Network, as_two_layer
from brittle.settings import Data

Direction = Callable[[Network, Data], Tensor]


def signed_examples(network: Network, data: Data) -> Tensor:
    """vardi2022: Σ_i y_i x_i over the margin set."""
    data.require_binary()
    return data.y @ data.X


def signed_means(network: Network, data: Data) -> Tensor:
    """frei2023: Σ_q y^(q) μ^(q) over the clusters."""
    truth = data.truth
    known = (truth.means, truth.mean_labels)
    means, labels = (required(each, "signed means need data with known cluster means") for each in known)
    return labels.to(means) @ means


def off_subspace_weights(network: Network, data: Data) -> Tensor:
    """melamed2023 5.1: Σ_j sign(v_j) Π w_j, Π the projection off the data's subspace."""
    network = as_two_layer(network, "the direction of the off-subspace weights")
    basis, complement = data.truth.basis, data.truth.complement
    weights = network.v.sign() @ network.W
    if complement is not None:
        return complement @ (complement.T @ weights)
    basis = required(basis, "off-subspace weights need data with a known subspace")
    return weights - basis @ (basis.T @ weights)


def signed_gradients(network: Network, data: Data) -> Tensor:
    """Σ_i y_i ∇(y_i N)(x_i)/‖·‖, the mean direction in which N rises."""
    data.require_binary()
    gradients = network.margin_gradients(data.X, data.y)
    return data.y @ unit_rows(gradients)


def falling_gradients(network: Network, data: Data) -> Tensor:
    """-Σ_i ∇margin(x_i)/‖·‖: for unsigned perturbations x + c·z/‖z‖, of any number of classes."""
    gradients = network.margin_gradients(data.X, data.y)
    return -unit_rows(gradients).sum(0)


DIRECTIONS: dict[str, Direction] = {
    "examples": signed_examples,
    "means": signed_means,
    "weights": off_subspace_weights,
    "gradients": signed_gradients,
    "falling": falling_gradients,
}
