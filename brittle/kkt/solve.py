"""A KKT point of the max-margin problem from any network that classifies the data, without training."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from brittle.common.ending import Status
from brittle.common.errors import require, require_positive
from brittle.common.kinds import check_kinds
from brittle.common.progress import Progress, Watch, silent
from brittle.common.result import Result
from brittle.data import Data
from brittle.kkt.active_set_newton import Candidate, Slope
from brittle.kkt.examples import DistinctExamples, Neurons, find_columns, gather
from brittle.kkt.residual import Homogeneous, KKTResidual, homogeneous, require_classified, residual
from brittle.kkt.working_set import WorkingSetMethod, finish
from brittle.networks import TwoLayer


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
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.TorchLinearInit().draw(6, width=20, rng=torch.Generator().manual_seed(0))
        >>> trained = bt.training.Flow(until=bt.training.LogLoss(-3)).train(start, data).network
        >>> point = bt.kkt.solve(trained, data)
        >>> point.status, point.residual.stationarity < 1e-9, point.neurons < 20
        (<Status.SOLVED: 'solved'>, True, True)
    """

    network: TwoLayer
    residual: KKTResidual
    status: Status
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


@check_kinds
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
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.TorchLinearInit().draw(6, width=20, rng=torch.Generator().manual_seed(0))
        >>> trained = bt.training.Flow(until=bt.training.LogLoss(-3)).train(start, data).network
        >>> point = bt.kkt.solve(trained, data)
        >>> bt.kkt.residual(point.network, data).stationarity < 1e-9
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
    status = Status.SOLVED if solved else Status.INACCURATE
    return KKTPoint(point, measured, status, solution.programs, solution.steps, time.perf_counter() - began)


def as_network(neurons: Neurons, examples: DistinctExamples, biases: bool) -> TwoLayer | None:
    """The neurons with balanced weights, scaled to min q = 1; None if they classify wrongly."""
    least = float(examples.margins(neurons).min())
    if not least > 0:
        return None
    W, v = neurons.balanced(least)
    if biases:
        return TwoLayer(W[:, :-1].contiguous(), W[:, -1].contiguous(), v)
    return TwoLayer(W, torch.zeros_like(v), v)


@check_kinds
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
        >>> rng, data = torch.Generator().manual_seed(0), bt.data.Orthogonal(6).sample(6)
        >>> flow = bt.training.Flow(until=bt.training.LogLoss(-3))
        >>> starts = [flow.train(bt.networks.TorchLinearInit().draw(6, 20, rng), data).network for _ in range(2)]
        >>> points = bt.kkt.solve_many(starts, data)
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


# A KKT point followed while the examples move: the same active set first, and no program is solved again.


NEGLIGIBLE = 1e-9  # of the largest multiplier


def follow(point: KKTPoint, before: Data, after: Data, *, tolerance: float = 1e-9) -> KKTPoint | None:
    """The KKT point on `after` that Newton's method reaches from a `point` on `before`, the same examples elsewhere.

    None where it reaches none: examples moved too far, or the active set changed too much; `solve` finds one then.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> point = bt.kkt.solve(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> moved = bt.data.Data(1.001 * data.X, data.y)
        >>> found = bt.kkt.follow(point, data, moved)
        >>> found is None or found.residual.stationarity < 1e-9
        True
    """
    require_positive("tolerance", tolerance)
    same = before.X.shape == after.X.shape
    require(same, f"before has examples of shape {tuple(before.X.shape)} and after {tuple(after.X.shape)}")
    began, biases = time.perf_counter(), point.residual.biases
    old = homogeneous(point.network, before, biases)
    examples = gather(homogeneous(point.network, after, biases).X, after.y)
    if len(examples.X) < len(after) or not bool((before.y == after.y).all()):
        return None
    finished = finish(_candidate(old, point.residual, examples, after.y))
    if not finished.converged:
        return None
    network = as_network(finished.candidate.neurons.nonzero(), examples, biases)
    if network is None:
        return None
    measured = residual(network, after, biases=biases)
    if max(measured.stationarity, measured.complementarity) > tolerance:
        return None
    return replace(
        point,
        network=network,
        residual=measured,
        status=Status.SOLVED,
        rounds=0,
        steps=0,
        seconds=time.perf_counter() - began,
    )


def _candidate(old: Homogeneous, known: KKTResidual, examples: DistinctExamples, y: Tensor) -> Candidate:
    """Multipliers, lengths and slopes of the old point, in the units of the new examples.

    There u_g = μ_g Σ c_gi x̃_i/unit with c_gᵀKc_g = 1, so that μ_g = ‖u_g‖√unit and λ is √unit times what it was.
    """
    neurons = Neurons.of(old.weights)
    Z, root = old.X @ neurons.U.T, examples.unit**0.5
    columns = find_columns(Z, neurons.signs, y)
    slopes = torch.where(Z.T > 0, int(Slope.ON), int(Slope.OFF))
    lam = root * known.multipliers
    t = torch.where(slopes == Slope.ON, lam, 0.0)
    rows, which = known.kinks.T
    slopes[which, rows] = int(Slope.KINK)
    t[which, rows] = known.slopes * lam[rows]
    carried = lam > NEGLIGIBLE * lam.max()
    return Candidate(examples, columns, lam, root * neurons.U.norm(dim=1), t, carried, slopes)


# The same outputs on the data from fewer neurons.


@check_kinds
def compress(network: TwoLayer, data: Data) -> TwoLayer:
    """Merge neurons of one sign that are active on the same examples; drop those that are active on none.

    With u_j = |v_j| (w_j, b_j), neurons of one sign and one pattern add up: φ(Σ u_j·x̃) = Σ φ(u_j·x̃) on the data, and
    the balanced weights of the sum have squared norm 2‖Σ u_j‖ ≤ Σ_j v_j² + ‖(w_j, b_j)‖². Off the data the
    network changes.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.TorchLinearInit().draw(6, width=500, rng=torch.Generator().manual_seed(0))
        >>> small = bt.kkt.compress(start, data)
        >>> small.width < 500, torch.allclose(small.logits(data.X), start.logits(data.X))
        (True, True)
    """
    network.check(data.X)
    Z = network.preactivations(data.X)
    active = Z.T > 0
    used = torch.nonzero(active.any(1) & (network.v != 0))[:, 0]
    if not len(used):
        return TwoLayer(network.W[:1] * 0, network.b[:1] * 0, network.v[:1] * 0, network.c)
    rows = torch.cat([network.v[used, None] > 0, active[used]], 1)
    _, group = torch.unique(rows, dim=0, return_inverse=True)
    count = int(group.max()) + 1
    U = network.v[used].abs()[:, None] * torch.cat([network.W, network.b[:, None]], 1)[used]
    U = torch.zeros(count, U.shape[1], dtype=U.dtype).index_add_(0, group, U)
    signs = torch.zeros(count, dtype=U.dtype).index_copy_(0, group, network.v[used].sign())
    root = U.norm(dim=1).sqrt()
    W = U / root[:, None]
    return TwoLayer(W[:, :-1].contiguous(), W[:, -1].contiguous(), signs * root, network.c)
