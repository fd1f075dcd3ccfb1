"""The papers' directions z that flip many examples at once, applied as x - y·c·z/‖z‖.

Each takes the network and the examples that z is made for, and returns z (dim,) of any length.
"""

from collections.abc import Callable

from torch import Tensor

from brittle.common.errors import required
from brittle.common.kinds import kinds_checked
from brittle.geometry import unit_rows
from brittle.networks import Network, as_two_layer
from brittle.settings import Data

Direction = Callable[[Network, Data], Tensor]


@kinds_checked
def signed_examples(network: Network, data: Data) -> Tensor:
    """vardi2022: Σ_i y_i x_i over the margin set.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(4).sample(4)
        >>> bt.attacks.signed_examples(bt.networks.orthogonal_kkt(data.X, data.y).network, data).tolist()
        [2.0, 2.0, -2.0, -2.0]
    """
    data.require_binary()
    return data.y @ data.X


@kinds_checked
def signed_means(network: Network, data: Data) -> Tensor:
    """frei2023: Σ_q y^(q) μ^(q) over the clusters.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.settings.Clusters(dim=9, clusters=3).sample(6, torch.Generator().manual_seed(0))
        >>> network = bt.networks.clustered(data.truth.means, data.truth.mean_labels).network
        >>> bt.attacks.signed_means(network, data).shape
        torch.Size([9])
    """
    truth = data.truth
    known = (truth.means, truth.mean_labels)
    means, labels = (required(each, "signed means need data with known cluster means") for each in known)
    return labels.to(means) @ means


@kinds_checked
def off_subspace_weights(network: Network, data: Data) -> Tensor:
    """melamed2023 5.1: Σ_j sign(v_j) Π w_j, Π the projection off the data's subspace.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.settings.Line7().sample()
        >>> start = bt.networks.Kaiming().draw(2, width=30, rng=torch.Generator().manual_seed(0))
        >>> z = bt.attacks.off_subspace_weights(start, data)
        >>> abs(float(z.double() @ data.X[0])) < 1e-9
        True
    """
    network = as_two_layer(network, "the direction of the off-subspace weights")
    basis, complement = data.truth.basis, data.truth.complement
    weights = network.v.sign() @ network.W
    if complement is not None:
        return complement @ (complement.T @ weights)
    basis = required(basis, "off-subspace weights need data with a known subspace")
    return weights - basis @ (basis.T @ weights)


@kinds_checked
def signed_gradients(network: Network, data: Data) -> Tensor:
    """Σ_i y_i ∇(y_i N)(x_i)/‖·‖, the mean direction in which N rises.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(4).sample(4)
        >>> bt.attacks.signed_gradients(bt.networks.orthogonal_kkt(data.X, data.y).network, data).shape
        torch.Size([4])
    """
    data.require_binary()
    gradients = network.margin_gradients(data.X, data.y)
    return data.y @ unit_rows(gradients)


@kinds_checked
def falling_gradients(network: Network, data: Data) -> Tensor:
    """-Σ_i ∇margin(x_i)/‖·‖: for unsigned perturbations x + c·z/‖z‖, of any number of classes.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        >>> network = bt.networks.as_network(module)
        >>> data = bt.settings.Data(torch.eye(4), [0, 1, 2, 0])
        >>> bt.attacks.falling_gradients(network, data).shape
        torch.Size([4])
    """
    gradients = network.margin_gradients(data.X, data.y)
    return -unit_rows(gradients).sum(0)


DIRECTIONS: dict[str, Direction] = {
    "examples": signed_examples,
    "means": signed_means,
    "weights": off_subspace_weights,
    "gradients": signed_gradients,
    "falling": falling_gradients,
}
