"""Frei, Vardi, Bartlett, Srebro: The Double-Edged Sword of Implicit Bias (2023)."""

from brittle.theorems.base import Theorem
from brittle.theorems.frei2023.approximate import NearlyNotRobust
from brittle.theorems.frei2023.assumption import Assumption, LinearlySeparable, OrdinaryTrainingSet
from brittle.theorems.frei2023.convergence import FlowOnClustersFindsKKT
from brittle.theorems.frei2023.examples import NoNoise, PerturbationScales, QuarterPower, Regimes
from brittle.theorems.frei2023.lemmas import (
    ClusterSumsAreSmall,
    DirectionOfEveryNeuron,
    FreshOnesAreOrdinary,
    InputsNotVeryNegative,
    NeuronsAreOpened,
    OrdinaryOnesAreCorrect,
    OutputsAreBounded,
    OwnSumsAreLarge,
    RoomIsPositive,
)
from brittle.theorems.frei2023.statements import Generalises, NotRobust, RobustClusterNetworkExists

THEOREMS: tuple[Theorem, ...] = (
    FlowOnClustersFindsKKT(),
    Assumption(),
    LinearlySeparable(),
    OrdinaryTrainingSet(),
    Generalises(),
    RobustClusterNetworkExists(),
    NotRobust(),
    NearlyNotRobust(),
    PerturbationScales(),
    Regimes(),
    QuarterPower(),
    NoNoise(),
    ClusterSumsAreSmall(),
    OwnSumsAreLarge(),
    OrdinaryOnesAreCorrect(),
    FreshOnesAreOrdinary(),
    OutputsAreBounded(),
    InputsNotVeryNegative(),
    DirectionOfEveryNeuron(),
    RoomIsPositive(),
    NeuronsAreOpened(),
)
