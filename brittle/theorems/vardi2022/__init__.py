"""Vardi, Yehudai, Shamir: Gradient Methods Provably Converge to Non-Robust Networks (2022)."""

from brittle.theorems.base import Theorem
from brittle.theorems.vardi2022.approximate import NearlyUniversal
from brittle.theorems.vardi2022.convergence import FlowFindsKKT
from brittle.theorems.vardi2022.example import Lengths
from brittle.theorems.vardi2022.existence import RobustNetworkExists, SmallerNormIsFragile, SphereIsNearlyOrthogonal
from brittle.theorems.vardi2022.lemmas import (
    AllOnTheMargin,
    DirectionOfEveryNeuron,
    InputsNotVeryNegative,
    MultiplierSums,
    NegativeOnesCross,
    NeuronsAreOpened,
    OtherNeuronsPull,
    OwnNeuronsFall,
    PerturbationIsShort,
    PositiveOnesCross,
    RoomIsPositive,
)
from brittle.theorems.vardi2022.remarks import PerturbationTransfers, UnequalNorms, WidthTwoSuffices
from brittle.theorems.vardi2022.universal import UniversalPerturbation, UniversalPerturbationOnTheMargin

THEOREMS: tuple[Theorem, ...] = (
    FlowFindsKKT(),
    RobustNetworkExists(),
    SphereIsNearlyOrthogonal(),
    UniversalPerturbation(),
    UniversalPerturbationOnTheMargin(),
    NearlyUniversal(),
    Lengths(),
    SmallerNormIsFragile(),
    AllOnTheMargin(),
    MultiplierSums(),
    InputsNotVeryNegative(),
    DirectionOfEveryNeuron(),
    RoomIsPositive(),
    NeuronsAreOpened(),
    PositiveOnesCross(),
    NegativeOnesCross(),
    PerturbationIsShort(),
    OwnNeuronsFall(),
    OtherNeuronsPull(),
    WidthTwoSuffices(),
    PerturbationTransfers(),
    UnequalNorms(),
)
