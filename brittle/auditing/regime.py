"""Which regime of training made this network: near its initialisation, at a KKT point, or in between."""

from dataclasses import dataclass

from brittle.common.errors import required
from brittle.common.result import Result
from brittle.margin import residual
from brittle.networks import Layered, TwoLayer
from brittle.theorems import Instance

LAZY_RADIUS = 40.0  # the largest C0 that wang2022 trains with
LAZY_MOVE = 0.5  # a neuron that keeps its direction to within 30 degrees
KKT_RESIDUAL = 1e-3
LARGEST_KKT = 5_000_000  # examples times width for which the residual is measured


@dataclass(frozen=True)
class TrainingRegime(Result):
    """`name` is lazy, kkt, rich, untrained or unknown; a measure that does not apply is None."""

    name: str
    sentence: str
    accuracy: float
    smallest_margin: float
    median_margin: float
    share_on_margin: float
    largest_move: float | None  # max_s ‖w_s - w_s(0)‖
    lazy_constant: float | None  # C0: the same times √width
    relative_move: float | None  # ‖W - W(0)‖ / ‖W(0)‖
    kkt_residual: float | None
    normalised_margin: float | None


def training_regime(instance: Instance) -> TrainingRegime:
    """What made the network of this instance."""
    data, network = instance.data, required(instance.network, "a regime is that of a network: give one")
    margins = network.margins(data.X, data.y).double()
    smallest = float(margins.min())
    layered = network if isinstance(network, Layered) else None
    width = None if layered is None else layered.shape[1]
    move, relative = _moves(layered)
    constant = None if move is None or width is None else move * width**0.5
    kkt, gamma = _kkt(instance, smallest)
    name, sentence = _name(smallest, constant, relative, kkt)
    return TrainingRegime(
        name=name,
        sentence=sentence,
        accuracy=float((margins > 0).double().mean()),
        smallest_margin=smallest,
        median_margin=float(margins.median()),
        share_on_margin=float((margins <= 1.1 * smallest).double().mean()) if smallest > 0 else 0.0,
        largest_move=move,
        lazy_constant=constant,
        relative_move=relative,
        kkt_residual=kkt,
        normalised_margin=gamma,
    )


def _moves(network: Layered | None) -> tuple[float | None, float | None]:
    if network is None or network.start is None:
        return None, None
    W, W0 = network.weights[0], network.start.weights[0]
    change = (W - W0).double()
    start = float(W0.double().norm())
    return float(change.norm(dim=1).max()), float(change.norm()) / start if start > 0 else None


def _kkt(instance: Instance, smallest: float) -> tuple[float | None, float | None]:
    """Distance from a KKT point, for networks and sizes that it is defined and affordable for.

    Biases that are all zero are no parameters here, where the theorems are about networks with biases.
    """
    network, data = instance.network, instance.data
    if not isinstance(network, TwoLayer) or not network.homogeneous or smallest <= 0 or not data.binary:
        return None, None
    gamma = smallest / float(network.squared_norm)
    if len(data) * network.width > LARGEST_KKT:
        return None, gamma
    biases = bool((network.b != 0).any())
    measured = instance.conditions if biases else residual(network, data, biases=False)
    return measured.stationarity, gamma


def _name(smallest: float, constant: float | None, relative: float | None, kkt: float | None) -> tuple[str, str]:
    if kkt is not None and kkt <= KKT_RESIDUAL:
        return "kkt", f"The weights are a KKT point of the max-margin problem (residual {kkt:.1e})."
    if relative == 0:
        return "untrained", "The first layer is where it started."
    if relative is not None and constant is not None and relative <= LAZY_MOVE and constant <= LAZY_RADIUS:
        return "lazy", (
            f"Every neuron stayed within {constant:.3g}/√width of its start and the first layer moved by "
            f"{relative:.1%}: the lazy regime."
        )
    far = "" if kkt is None else f" It is far from a KKT point (residual {kkt:.2g})."
    if relative is not None:
        return "rich", f"The first layer moved by {relative:.1%} of its initial size: it learned features.{far}"
    if smallest <= 0:
        return "unknown", "Some training examples are misclassified and the initialisation is not known."
    return "unknown", f"The initialisation is not known; give it to tell the regimes apart.{far}"
