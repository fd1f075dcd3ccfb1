"""What a remedy is: it makes another network of one that was audited."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from torch import Generator, Tensor

from brittle.auditing.budget import WorkBudget
from brittle.auditing.costs import Costs, gradient_work
from brittle.auditing.pieces import draw_rows
from brittle.common.parts import check_fields
from brittle.common.result import Result
from brittle.data import Data
from brittle.networks import Layered, Network, as_layered
from brittle.training import Logistic, Snapshot
from brittle.training.normal_form import has_normal_form

EASIEST, HARDEST = -3.0, -70.0  # log-losses that a network is trained to again
TOLERANCE = 0.01  # of accuracy, that a remedy may cost


@dataclass(frozen=True, eq=False)
class RemedyContext:
    """A network with its data, the basis (columns, r) of the data's subspace if known, and its median radius.

    `frozen` says why it is not to be trained, if it came as a module with frozen parameters, `part` that the data are
    some of those that it was trained on.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> patient = bt.auditing.RemedyContext(network, data, basis=None, radius=1.0)
        >>> patient.judged_accuracy
        1.0
    """

    network: Network
    data: Data
    basis: Tensor | None
    radius: float
    frozen: str = ""
    part: bool = False

    def fewer(self, count: int, rng: Generator) -> "RemedyContext":
        """With so many random examples, of every label its share, and as many held-out ones at most."""
        data = self.data
        if count >= len(data):
            return self
        some = data.take(draw_rows(data.y, count, rng))
        if data.y_test is not None:
            some = some.take_test(draw_rows(data.y_test, count, rng))
        return replace(self, data=some, part=True)

    @property
    def layered(self) -> Layered:
        return as_layered(self.network, "the remedy")

    @property
    def log_loss(self) -> float:
        """Mean logistic loss, in the range that training again can reach."""
        return min(EASIEST, max(HARDEST, self.own_log_loss))

    @property
    def own_log_loss(self) -> float:
        """The same as it is."""
        return Logistic().total(self.network.margins(self.data.X, self.data.y).double())

    @cached_property
    def judged_accuracy(self) -> float:
        """On the examples that judge a remedy: the held-out ones, where there are any."""
        return measure_accuracy(self.network, self.data)

    @property
    def in_span(self) -> bool:
        """Whether it is trained on in coordinates of the data's span, where weights off it are gone.

        A part of the data spans less than all.
        """
        return not self.part and has_normal_form(self.network) and self.network.free_first_layer

    @property
    def projectable(self) -> bool:
        """Whether that removes anything: the data do not span all dimensions."""
        return self.in_span and self.basis is not None and self.basis.shape[1] < self.data.columns

    @property
    def costs_in_span(self) -> Costs:
        """Of the network as it is trained on: in coordinates of the data's span, where it can be."""
        cost = Costs.of(self.network)
        if self.basis is None or not self.in_span:
            return cost
        saved = 2.0 * cost.widths[0] * (cost.columns - self.basis.shape[1])
        return replace(cost, operations=cost.operations - saved)

    @property
    def gradient_work(self) -> float:
        """What one gradient on all examples costs, in the unit of a budget."""
        return gradient_work(self.network, self.data)


class Diagnostics(NamedTuple):
    """What is known before any remedy is tried, None where it is not.

    `share` is the median of the attacked radii over what the data allow, `on_subspace` how many times longer the median
    radius is if flips have to stay on the data's subspace.

    Examples:
        >>> from brittle.auditing import Diagnostics
        >>> Diagnostics(share=0.3, on_subspace=None).share
        0.3
    """

    share: float | None
    on_subspace: float | None


class RemedyOutput(NamedTuple):
    """A treated `network`, the `way` there, and whether it was `projected` on the data's subspace first.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> made = bt.auditing.RemedyOutput(bt.networks.nearly_orthogonal(data.X, data.y).network)
        >>> made.way, made.projected
        ((), False)
    """

    network: Network
    way: tuple[Snapshot, ...] = ()
    projected: bool = False


class Remedy(ABC):
    """Its fields are its parameters; `apply` is its verb and says why where it cannot be applied.

    Examples:
        >>> import brittle as bt
        >>> bt.auditing.PARTS["remove-off-subspace"].explains
        "first-layer weights off the data's subspace are set to zero; on the data nothing changes"
    """

    name: ClassVar[str]  # what the command line calls it
    explains: ClassVar[str]  # what it does
    trains: ClassVar[bool] = True  # the network that it is given, or another start of it
    reshapes: ClassVar[bool] = False  # whether it makes a network of other layers

    def __post_init__(self) -> None:
        check_fields(self)

    def examples(self, patient: RemedyContext, budget: WorkBudget) -> int:
        """How many of the training examples `apply` is to be given, for the work that the budget has left."""
        return len(patient.data)

    @abstractmethod
    def apply(self, patient: RemedyContext, rng: Generator, budget: WorkBudget) -> Network:
        """The treated network, within the work that the budget has left; InputError where the remedy does not apply.

        What was done is charged to the budget. A remedy that this work does not finish says so instead.
        """

    @property
    def tolerance(self) -> float:
        """The accuracy that it may cost."""
        return TOLERANCE

    def expected(self, signs: Diagnostics) -> tuple[float, float] | None:
        """The factor, from and to, by which it is expected to change the median radius; None for no opinion."""
        return None

    def made(self, patient: RemedyContext, rng: Generator, budget: WorkBudget) -> RemedyOutput:
        """What `apply` gives, with the way there."""
        return RemedyOutput(self.apply(patient, rng, budget))


def measure_accuracy(network: Network, data: Data) -> float:
    """On the held-out examples, or on those trained on where there are no others."""
    judges = data if data.X_test is None else data.test
    return network.accuracy(judges.X, judges.y)


# What a remedy is expected to do, said before it is tried, and whether that was right.


@dataclass(frozen=True)
class Forecast(Result):
    """The median radius is expected to change by a factor from `low` to `high`; `found` is what it did.

    `found` is None where the remedy was not applied.

    Examples:
        >>> from brittle.auditing import Forecast
        >>> Forecast(low=1.0, high=1.5).held_against(1.2).right
        True
    """

    low: float
    high: float
    found: float | None = None

    @property
    def right(self) -> bool | None:
        """Whether the factor was between the two."""
        return None if self.found is None else self.low <= self.found <= self.high

    @property
    def middle(self) -> float:
        """Of the two, as factors go."""
        return float((self.low * self.high) ** 0.5)

    def held_against(self, factor: float) -> "Forecast":
        return replace(self, found=factor)

    def content(self) -> dict[str, Any]:
        """With the word on whether it was right."""
        return {**super().content(), "right": self.right}


def forecast(remedy: Remedy, signs: Diagnostics) -> Forecast | None:
    """Before anything is tried; None where the remedy has no opinion."""
    expected = remedy.expected(signs)
    return None if expected is None else Forecast(*expected)
