"""Frei, Vardi, Bartlett, Srebro: The Double-Edged Sword of Implicit Bias (2023)."""

from brittle.theorems.base import Theorem
from brittle.theorems.frei2023.approximate import NearlyNotRobust
from brittle.theorems.frei2023.assumption import Assumption, LinearlySeparable, OrdinaryTrainingSet
from brittle.theorems.frei2023.concentration import (
    AcrossClusters,
    LengthOfAnExample,
    NoClusterIsLeftOut,
    NoiseIsShort,
    NoiseLeansLittle,
    NoiseLeansLittleOnMeans,
    NoisesAreNearlyOrthogonal,
    WithinACluster,
)
from brittle.theorems.frei2023.convergence import FlowOnClustersFindsKKT
from brittle.theorems.frei2023.examples import NoNoise, PerturbationScales, QuarterPower, Regimes
from brittle.theorems.frei2023.lemmas import (
    ClusterSumsAreSmall,
    DirectionOfEveryNeuron,
    FreshOnesAreOrdinary,
    FreshOnesHaveACluster,
    InputsNotVeryNegative,
    NegativeOnesCross,
    NeuronsAreOpened,
    OrdinaryOnesAreCorrect,
    OutputChangesFast,
    OutputsAreBounded,
    OwnSumsAreLarge,
    PerturbationIsShort,
    PositiveOnesCross,
    RoomIsPositive,
)
from brittle.theorems.frei2023.message import Message
from brittle.theorems.frei2023.other_clusters import AnisotropicNoise, LeftOut, MoreNoise, SubGaussianNoise
from brittle.theorems.frei2023.remarks import LinearModelIsFragile, NearestNeighbourIsRobust
from brittle.theorems.frei2023.statements import Generalises, NotRobust, RobustClusterNetworkExists

THEOREMS: tuple[Theorem, ...] = (
    FlowOnClustersFindsKKT(),
    Assumption(),
    LinearlySeparable(),
    OrdinaryTrainingSet(),
    Generalises(),
    RobustClusterNetworkExists(),
    NotRobust(),
    Message(),
    NearlyNotRobust(),
    PerturbationScales(),
    Regimes(),
    QuarterPower(),
    NoNoise(),
    NoiseIsShort(),
    NoiseLeansLittle(),
    NoisesAreNearlyOrthogonal(),
    NoiseLeansLittleOnMeans(),
    AcrossClusters(),
    WithinACluster(),
    LengthOfAnExample(),
    NoClusterIsLeftOut(),
    ClusterSumsAreSmall(),
    OwnSumsAreLarge(),
    OrdinaryOnesAreCorrect(),
    FreshOnesAreOrdinary(),
    FreshOnesHaveACluster(),
    OutputsAreBounded(),
    InputsNotVeryNegative(),
    DirectionOfEveryNeuron(),
    RoomIsPositive(),
    NeuronsAreOpened(),
    PositiveOnesCross(),
    NegativeOnesCross(),
    PerturbationIsShort(),
    OutputChangesFast(),
    NearestNeighbourIsRobust(),
    LinearModelIsFragile(),
    AnisotropicNoise(),
    SubGaussianNoise(),
    MoreNoise(),
    LeftOut(),
)
