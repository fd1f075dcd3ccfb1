"""What an audit is going to do, from the sizes and the budget alone, before anything is measured."""

from dataclasses import dataclass

from brittle.auditing.costs import BYTES, RATE, Costs, largest, spectrum
from brittle.auditing.geometry import MOST_PAIRED
from brittle.common.result import Result
from brittle.networks import Network
from brittle.settings import Data

# Shares of the budget. What a part leaves unspent goes to those after it, and in the end to the proofs.
GEOMETRY, ATTACKS, THEOREMS, REMEDIES, PROOFS = 0.10, 0.25, 0.10, 0.40, 0.15
JUDGING = 0.03  # margins of training examples, and as much for accuracies of held-out ones
MEASURING = 0.5  # of the remedies' share: attacks on what they made
TRAINS = 100  # gradients that a remedy needs to have any effect: where they are too dear, their share buys examples
FEWEST = 6  # examples: an interval for the median needs as many
LARGEST_GRAM = 10_000  # examples whose pairwise products the theorems may ask for: 800 MB
LARGEST_KKT = 5_000_000  # examples times width for which the distance from a KKT point is measured


@dataclass(frozen=True)
class Plan(Result):
    """How much work goes where; `budget` and every share are in seconds of the nominal machine.

    `examples` are attacked, before and after every remedy; `geometry_rows` is from how many rows (of the data, or of
    random sums of them) the data's span is found, `paired` of how many examples the angles are measured, `judged` on
    how many training or held-out examples accuracies and margins are. `theorems` and
    `kkt` say whether the theorems and the distance from a KKT point are measured. `remedies` is how many are tried.
    `remedy_work` is what each of them has at least, `proof_work` what certificates have.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> plan = bt.auditing.planned(bt.networks.orthogonal_kkt(data.X, data.y).network, data, budget=10)
        >>> plan.examples, plan.theorems
        (6, True)
    """

    budget: float
    examples: int
    geometry_rows: int
    paired: int
    judged: int
    theorems: bool
    kkt: bool
    remedies: int
    remedy_work: float
    proof_work: float

    @classmethod
    def of(cls, network: Network, data: Data, available: int, budget: float, wanted: int, remedies: int) -> "Plan":
        """`available` examples may be audited, `wanted` is how many of them at most."""
        cost, most = Costs.of(network), min(wanted, available)
        held_out = 0 if data.y_test is None else len(data.y_test)
        rows = cls._rows(data, budget)
        once = cost.attack() + 2 * cost.attack(rank=min(rows, data.columns)) + 4 * cost.ray()
        if remedies and TRAINS * cost.gradient(len(data)) <= REMEDIES * budget / remedies:
            again = MEASURING * REMEDIES * budget / remedies
            affordable = min(ATTACKS * budget / once, again / cost.attack())
        else:
            affordable = (ATTACKS + MEASURING * REMEDIES) * budget / once
        width = cost.widths[0] if cost.two_layer else 0
        kkt = 20 * len(data) * width * data.columns / RATE <= THEOREMS * budget
        return cls(
            budget=budget,
            examples=max(min(FEWEST, most), min(most, int(affordable))),
            geometry_rows=rows,
            paired=max(2, min(MOST_PAIRED, len(data), int((0.02 * budget * RATE / data.columns) ** 0.5))),
            judged=largest(max(len(data), held_out), cost.judging, JUDGING * budget),
            theorems=len(data) <= LARGEST_GRAM and theorem_work(data) <= THEOREMS * budget,
            kkt=kkt and 0 < len(data) * width <= LARGEST_KKT,
            remedies=remedies,
            remedy_work=REMEDIES * budget / remedies if remedies else 0.0,
            proof_work=PROOFS * budget,
        )

    def geometry_work(self, data: Data) -> float:
        return spectrum(self.geometry_rows, data.columns) + 8 * data.X.numel() / BYTES

    @staticmethod
    def _rows(data: Data, budget: float) -> int:
        """All of them, or as many random sums of them as the share allows, once every number was read."""
        whole = spectrum(len(data), data.columns)
        if whole <= GEOMETRY * budget:
            return len(data)
        work = GEOMETRY * budget - 8 * data.X.numel() / BYTES
        most = min(len(data), 4 * data.columns)
        return largest(most, lambda rows: spectrum(rows, data.columns), max(work, 0.02 * budget))


def limit_work(data: Data, examples: int) -> float:
    """All distances from so many examples to the data."""
    return 2.0 * examples * data.X.numel() / RATE


def theorem_work(data: Data) -> float:
    """A few products of all pairs of examples."""
    return 6 * len(data) ** 2 * data.columns / RATE


def largest_margin_work(data: Data) -> float:
    """A relaxation over all sign patterns of either class."""
    return 0.02 + 6e-8 * len(data) ** 3
