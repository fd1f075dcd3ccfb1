"""A KKT point of the max-margin problem from any network that classifies the data, without training."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from brittle.common.ending import Ending
from brittle.common.errors import require_positive
from brittle.common.kinds import kinds_checked
from brittle.common.progress import Progress, Watch, silent
from brittle.common.result import Result
from brittle.margin.examples import Examples, gather
from brittle.margin.kkt import KKTResidual, homogeneous, require_classified, residual
from brittle.margin.neurons import Neurons
from brittle.margin.working_set import WorkingSetMethod
from brittle.networks import TwoLayer
from brittle.settings import Data


@dataclass(frozen=True, eq=False)
class KKTPoint(Result):
    """A KKT point that a start led to; another start may lead to another.

    network: scaled to min q = 1
    residual: measured from the weights alone
    status: SOLVED, or INACCURATE if the residual exceeds the tolerance
    rounds: convex programs that were solved
    steps: interior-point steps in all of them
    seconds: from the call to the answer

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> start = bt.networks.PyTorch().draw(6, width=20, rng=torch.Generator().manual_seed(0))
        >>> trained = bt.training.Flow(until=bt.training.LogLoss(-3)).train(start, data).network
        >>> point = bt.margin.solve(trained, data)
        >>> point.status, point.residual.stationarity < 1e-9, point.neurons < 20
        (<Ending.SOLVED: 'solved'>, True, True)
    """

    network: TwoLayer
    residual: KKTResidual
    status: Ending
    rounds: int
    steps: int
    seconds: float

    @property
    def neurons(self) -> int:
        """The network's width."""
        return self.network.width

    @property
    def multipliers(self) -> Tensor:
        """λ (n,), for the network as it is."""
        return self.residual.multipliers

    @property
    def normalised_margin(self) -> float:
        """γ = min q / ‖θ‖²."""
        return self.residual.normalised_margin

    def content(self) -> dict[str, Any]:
        """Everything but the weights, which belong in a network file."""
        return {
            **self.residual.content(),
            "neurons": self.neurons,
            "status": self.status,
            "advice": self.status.advice,
            "rounds": self.rounds,
            "steps": self.steps,
            "seconds": self.seconds,
        }


@kinds_checked
def solve(
    network: TwoLayer,
    data: Data,
    *,
    biases: bool = True,
    tolerance: float = 1e-9,
    pricing: float = 0.05,
    watch: Watch = silent,
) -> KKTPoint:
    """A KKT point near the activation patterns of the given network.

    `tolerance` is on stationarity and complementarity; `pricing` is how much a left-out pattern may violate the dual
    (smaller: a larger margin over the patterns, more time).

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> start = bt.networks.PyTorch().draw(6, width=20, rng=torch.Generator().manual_seed(0))
        >>> trained = bt.training.Flow(until=bt.training.LogLoss(-3)).train(start, data).network
        >>> point = bt.margin.solve(trained, data)
        >>> bt.margin.residual(point.network, data).stationarity < 1e-9
        True
    """
    require_positive("tolerance", tolerance)
    require_positive("pricing", pricing)
    began = time.perf_counter()
    X, weights = homogeneous(network, data, biases)
    examples = gather(X, data.y)
    require_classified(weights.margins(X, data.y))
    solution = WorkingSetMethod(examples, weights, pricing, watch).run()
    start = Neurons.of(weights).nonzero()
    point = as_network(solution.neurons, examples, biases) or as_network(start, examples, biases)
    assert point is not None
    watch(Progress(0.95, "measuring the residual"))
    measured = residual(point, data, biases=biases)
    solved = max(measured.stationarity, measured.complementarity) <= tolerance
    status = Ending.SOLVED if solved else Ending.INACCURATE
    return KKTPoint(point, measured, status, solution.programs, solution.steps, time.perf_counter() - began)


def as_network(neurons: Neurons, examples: Examples, biases: bool) -> TwoLayer | None:
    """The neurons with balanced weights, scaled to min q = 1; None if they classify wrongly."""
    least = float(examples.margins(neurons).min())
    if not least > 0:
        return None
    W, v = neurons.balanced(least)
    if biases:
        return TwoLayer(W[:, :-1].contiguous(), W[:, -1].contiguous(), v)
    return TwoLayer(W, torch.zeros_like(v), v)


@kinds_checked
def solve_many(
    networks: Iterable[TwoLayer],
    data: Data,
    *,
    biases: bool = True,
    tolerance: float = 1e-9,
    pricing: float = 0.05,
    watch: Watch = silent,
) -> tuple[KKTPoint, ...]:
    """The distinct KKT points that networks lead to, the largest normalised margin first; options as for `solve`.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> rng, data = torch.Generator().manual_seed(0), bt.settings.Orthogonal(6).sample(6)
        >>> flow = bt.training.Flow(until=bt.training.LogLoss(-3))
        >>> starts = [flow.train(bt.networks.PyTorch().draw(6, 20, rng), data).network for _ in range(2)]
        >>> points = bt.margin.solve_many(starts, data)
        >>> points[0].normalised_margin >= points[-1].normalised_margin
        True
    """
    points: list[KKTPoint] = []
    for network in networks:
        point = solve(network, data, biases=biases, tolerance=tolerance, pricing=pricing, watch=watch)
        if not any(same(point.network, other.network) for other in points):
            points.append(point)
    return tuple(sorted(points, key=lambda point: -point.normalised_margin))


def same(one: TwoLayer, other: TwoLayer, tolerance: float = 1e-6) -> bool:
    """Whether two networks have the same neurons in some order."""
    if one.width != other.width:
        return False
    rows = [torch.cat([network.W, network.b[:, None], network.v[:, None]], 1) for network in (one, other)]
    distances = torch.cdist(rows[0], rows[1], compute_mode="donot_use_mm_for_euclid_dist")
    size = float(rows[0].norm())
    nearest = distances.min(1)
    return bool((nearest.values <= tolerance * size).all()) and len(torch.unique(nearest.indices)) == one.width
