"""What each part of an audit costs, in seconds of a nominal machine, from the sizes alone.

The nominal machine is one core of a laptop. The constants were measured once and are part of the definition of a
budget: a faster machine ends sooner and reaches the same verdict, a slower one later, up to the hard stop of `Budget`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from brittle.networks import Convolution, Layered, Network, TwoLayer
from brittle.settings import Data

RATE = 2e10  # floating-point operations per second in products of matrices
CALL = 1e-3  # a pass through a network, however small
SINGULAR = 1.5e-9  # of the larger side times the square of the smaller, for singular values and vectors
BYTES = 5e8  # read and hashed per second


@dataclass(frozen=True)
class Costs:
    """`operations` of one pass through the network for one example; its `columns`, `widths` and `rivals`."""

    operations: float
    columns: int
    widths: tuple[int, ...]  # of the hidden layers; none for a module whose layers are unknown
    rivals: int
    two_layer: bool

    @classmethod
    def of(cls, network: Network) -> "Costs":
        rivals = max(1, network.classes - 1)
        return cls(operations(network), network.dim, network.widths, rivals, isinstance(network, TwoLayer))

    def gradient(self, examples: int) -> float:
        """Of the loss in all parameters, or of the margins in x, on so many examples."""
        return CALL + 3 * self.operations * examples / RATE

    def attack(self, rank: int = 0) -> float:
        """The minimum-norm attack on one example, in a subspace of dimension `rank` or anywhere."""
        projected = 4.0 * self.columns * rank
        if self.two_layer:
            return 0.004 + 1.5e-8 * self.operations + 5e-9 * projected
        hidden = max(1, len(self.widths))
        return 0.006 * hidden + 2e-5 * sum(self.widths) + 4e-8 * self.operations + 1e-8 * projected

    def ray(self) -> float:
        """An exact search along one direction, for one example."""
        return 0.1 * self.attack()

    def dual(self) -> float:
        """The dual bound of one example.

        With one hidden layer the products of its weights are taken once, and each rival works with those of neurons.
        """
        if len(self.widths) == 1:
            pairs = self.widths[0] ** 2
            return 2 * pairs * self.columns / RATE + self.rivals * (0.03 + 6e-10 * pairs * min(self.columns, 333))
        return 0.012 * len(self.widths) + 4e-5 * sum(self.widths) + 2.5e-7 * self.operations

    def branch(self) -> float:
        """One branch of the exact certificate, for one rival of one example."""
        if len(self.widths) == 1:
            return 0.05 + 8e-10 * self.widths[0] ** 2 * self.columns
        unknowns = min(self.columns, self.widths[0]) + sum(self.widths)
        return 0.03 + max(2.5e-5 * unknowns**2, 1e-8 * unknowns**3)


def judging_work(network: Network, examples: int) -> float:
    """What one pass of so many examples costs."""
    return CALL + Costs.of(network).operations * examples / RATE


def gradient_work(network: Network, data: Data) -> float:
    """What one gradient of the loss on all examples costs, in the unit of a budget.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> bt.auditing.gradient_work(bt.networks.orthogonal_kkt(data.X, data.y).network, data) < 0.01  # seconds
        True
    """
    return Costs.of(network).gradient(len(data))


def operations(network: Network) -> float:
    """Multiplications and additions of one pass for one example; at least two for every parameter.

    Those of convolutions count twice, because they are half as quick.
    """
    parameters = sum(array.numel() for array in network.arrays.values())
    layers = network.layers if isinstance(network, Layered) else ()
    again = sum(layer.products for layer in layers if isinstance(layer, Convolution))
    return float(2 * max(network.products + again, parameters))


def spectrum(rows: int, columns: int) -> float:
    """Singular values and vectors of a matrix, and the values of its centred form."""
    return CALL + SINGULAR * max(rows, columns) * min(rows, columns) ** 2


def largest(rows: int, cost: Callable[[int], float], work: float) -> int:
    """The most rows, up to `rows` and one at least, whose cost, which grows with them, is no more than this work."""
    low, high = 1, rows
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cost(middle) <= work else (low, middle - 1)
    return low
