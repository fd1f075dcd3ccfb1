"""One direction for all examples: x - y·c·z/‖z‖, and the smallest c that flips them all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn

from brittle.attacks.base import Attack, AttackResult, AttackTarget, Attempt
from brittle.attacks.flips import flip_intervals
from brittle.attacks.pieces import EPSILON, FlipIntervals
from brittle.attacks.restriction import FREE, LIMIT, SUBSPACE, Restriction
from brittle.common.errors import require, require_value
from brittle.common.kinds import check_kinds
from brittle.common.parts import option
from brittle.data import Data
from brittle.geometry import unit_rows
from brittle.networks import Network, as_two_layer

Direction = Callable[[Network, Data], Tensor]


@check_kinds
def sum_signed_examples(network: Network, data: Data) -> Tensor:
    """vardi2022: Σ_i y_i x_i over the margin set.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> bt.attacks.sum_signed_examples(bt.networks.orthogonal_kkt(data.X, data.y).network, data).tolist()
        [2.0, 2.0, -2.0, -2.0]
    """
    data.require_binary()
    return data.y @ data.X


@check_kinds
def sum_signed_means(network: Network, data: Data) -> Tensor:
    """frei2023: Σ_q y^(q) μ^(q) over the clusters.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Clusters(dim=9, clusters=3).sample(6, torch.Generator().manual_seed(0))
        >>> network = bt.networks.clustered(data.truth.means, data.truth.mean_labels).network
        >>> bt.attacks.sum_signed_means(network, data).shape
        torch.Size([9])
    """
    truth = data.truth
    known = (truth.means, truth.mean_labels)
    means, labels = (require_value(each, "signed means need data with known cluster means") for each in known)
    return labels.to(means) @ means


@check_kinds
def sum_off_subspace_weights(network: Network, data: Data) -> Tensor:
    """melamed2023 5.1: Σ_j sign(v_j) Π w_j, Π the projection off the data's subspace.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Line7().sample()
        >>> start = bt.networks.Kaiming().draw(2, width=30, rng=torch.Generator().manual_seed(0))
        >>> z = bt.attacks.sum_off_subspace_weights(start, data)
        >>> abs(float(z.double() @ data.X[0])) < 1e-9
        True
    """
    network = as_two_layer(network, "the direction of the off-subspace weights")
    basis, complement = data.truth.basis, data.truth.complement
    weights = network.v.sign() @ network.W
    if complement is not None:
        return complement @ (complement.T @ weights)
    basis = require_value(basis, "off-subspace weights need data with a known subspace")
    return weights - basis @ (basis.T @ weights)


@check_kinds
def sum_signed_gradients(network: Network, data: Data) -> Tensor:
    """Σ_i y_i ∇(y_i N)(x_i)/‖·‖, the mean direction in which N rises.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> bt.attacks.sum_signed_gradients(bt.networks.orthogonal_kkt(data.X, data.y).network, data).shape
        torch.Size([4])
    """
    data.require_binary()
    gradients = network.margin_gradients(data.X, data.y)
    return data.y @ unit_rows(gradients)


@check_kinds
def sum_falling_gradients(network: Network, data: Data) -> Tensor:
    """-Σ_i ∇margin(x_i)/‖·‖: for unsigned perturbations x + c·z/‖z‖, of any number of classes.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        >>> network = bt.networks.as_network(module)
        >>> data = bt.data.Data(torch.eye(4), [0, 1, 2, 0])
        >>> bt.attacks.sum_falling_gradients(network, data).shape
        torch.Size([4])
    """
    gradients = network.margin_gradients(data.X, data.y)
    return -unit_rows(gradients).sum(0)


DIRECTIONS: dict[str, Direction] = {
    "examples": sum_signed_examples,
    "means": sum_signed_means,
    "weights": sum_off_subspace_weights,
    "gradients": sum_signed_gradients,
    "falling": sum_falling_gradients,
}


@dataclass(frozen=True, eq=False)
class UniversalResult(AttackResult):
    """smallest: the smallest c that flips every considered example at the same time, infinity where there is none.

    size: the c of `perturbations`, just beyond `smallest`, or where most are flipped if there is no `smallest`;
    z (dim,) unit vector; considered (n,) the examples that are to flip; lower: their largest first flip, a lower
    bound on `smallest`; intervals: where each of them is flipped along its ray.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> found = bt.attacks.Universal().run(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> found.curve(torch.tensor([0.0, 10.0])).tolist()
        [0.0, 1.0]
    """

    smallest: float
    size: float
    lower: float
    z: Tensor
    considered: Tensor
    intervals: FlipIntervals

    def curve(self, sizes: Tensor) -> Tensor:
        """The share of the considered examples that are flipped at each c."""
        return self.intervals.share(torch.as_tensor(sizes, dtype=torch.float64).reshape(-1))


@dataclass(frozen=True)
class Universal(Attack[UniversalResult]):
    """Moves every example along one direction, against its label.

    `direction`: a function of (network, examples), see `directions`, or a vector. `margin_slack`: consider only
    examples with margin up to 1 + margin_slack times the smallest (vardi2022 6: 0.1), None for all that are
    classified rightly. `signed=False` moves every example the same way, x + c·z/‖z‖: with two classes that can flip
    at most one of them once c is large, and with class numbers it is the only kind there is.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> found = bt.attacks.Universal().run(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> found.success.tolist(), round(found.smallest, 4)
        ([True, True, True, True], 1.0)
    """

    name: ClassVar = "universal"
    joint: ClassVar = True
    result: ClassVar[type[AttackResult]] = UniversalResult

    direction: Direction | Tensor = field(
        default=sum_signed_examples, metadata=option("What it is made of; examples unless given.", words=DIRECTIONS)
    )
    margin_slack: float | None = field(
        default=None, metadata=option("Only examples with margins up to 1 + this times the smallest.")
    )
    signed: bool = field(default=True, metadata=option("Against the label of each example, or all the same way."))
    subspace: Restriction = field(default=FREE, metadata=SUBSPACE)
    limit: float = field(default=torch.inf, metadata=LIMIT)

    def propose(self, target: AttackTarget) -> Attempt:
        require(target.data.binary or not self.signed, "a signed universal direction needs the labels -1 and 1")
        considered = self._considered(target)
        z = self._unit(target, considered)
        rays = -target.y[:, None] * z if self.signed else z.expand_as(target.X)
        X, y = target.X[considered], target.y[considered]
        intervals = flip_intervals(target.network, X, y, rays[considered], self.limit)
        most, start, stop = intervals.widest_overlap()
        reached = most == len(X)
        size = _all_beyond(target.network, X, y, rays[considered], start, stop, most) if most else 0.0
        return Attempt(
            rays * size,
            rays,
            {
                "smallest": (start if len(X) else 0.0) if reached else torch.inf,
                "size": size,
                "lower": float(intervals.first().max()) if len(X) else 0.0,
                "z": z,
                "considered": considered,
                "intervals": intervals,
            },
        )

    def _considered(self, target: AttackTarget) -> Tensor:
        margins = target.margins
        right = margins >= 0
        if self.margin_slack is None or not right.any():
            return right
        return right & (margins <= (1 + self.margin_slack) * margins[right].min())

    def _unit(self, target: AttackTarget, considered: Tensor) -> Tensor:
        """z/‖z‖, made for the considered examples; zero where there is no direction."""
        if isinstance(self.direction, Tensor):
            z = self.direction.double()
        elif considered.any():
            z = self.direction(target.network, target.data.take(considered)).double()
        else:
            z = torch.zeros(target.X.shape[1], dtype=torch.float64)
        shape = tuple(z.shape)
        require(shape == (target.X.shape[1],), f"direction has shape {shape}; ({target.X.shape[1]},) is needed")
        require(bool(z.isfinite().all()), "direction holds NaN or infinity")
        z = self.subspace.project(z)
        length = z.norm()
        return z / length if length > 0 else z


def _all_beyond(network: Network, X: Tensor, y: Tensor, rays: Tensor, start: float, stop: float, most: int) -> float:
    """The first size just above `start` at which `most` examples are measured as flipped, inside the interval."""
    unit = EPSILON * (start + float(X.norm(dim=1).max()))
    clear = -32 * EPSILON * network.margins(X, y).abs()
    size = start
    for doubling in range(34):
        if int((network.margins(X + size * rays, y) < clear).sum()) >= most:
            return size
        size = min(start + unit * 2.0**doubling, (start + stop) / 2)
    return size


@check_kinds
def transfer(
    direction: Tensor, networks: Sequence[Network | nn.Module], data: Data, margin_slack: float | None = None
) -> tuple[UniversalResult, ...]:
    """The same direction against other networks; `curve` of each result tells what a given size does there.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> makers = bt.networks.orthogonal_kkt, bt.networks.nearly_orthogonal
        >>> networks = [make(data.X, data.y).network for make in makers]
        >>> z = bt.attacks.Universal().run(networks[0], data).z
        >>> [each.success.all().item() for each in bt.attacks.transfer(z, networks, data)]
        [True, True]
    """
    attack = Universal(direction=direction, margin_slack=margin_slack)
    return tuple(attack.run(network, data) for network in networks)
