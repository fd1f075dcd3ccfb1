"""Frei, Vardi, Bartlett, Srebro: The Double-Edged Sword of Implicit Bias (2023)."""

from brittle.theorems.base import Theorem
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
from brittle.theorems.frei2023.examples import NoNoise, PerturbationScales, QuarterPower, Regimes
from brittle.theorems.frei2023.lemmas import (
    ClusterSumsAreSmall,
    FreshOnesAreOrdinary,
    FreshOnesHaveACluster,
    LemmaD3,
    LemmaD4,
    LemmaD5,
    LemmaD6,
    LemmaD7,
    LemmaD8,
    LemmaD9,
    OrdinaryOnesAreCorrect,
    OutputChangesFast,
    OutputsAreBounded,
    OwnSumsAreLarge,
)
from brittle.theorems.frei2023.message import Message
from brittle.theorems.frei2023.other_clusters import AnisotropicNoise, LeftOut, MoreNoise, SubGaussianNoise
from brittle.theorems.frei2023.remarks import LinearModelIsFragile, NearestNeighbourIsRobust
from brittle.theorems.frei2023.statements import (
    FlowOnClustersFindsKKT,
    Generalises,
    NearlyNotRobust,
    NotRobust,
    RobustClusterNetworkExists,
)

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
    LemmaD3(),
    LemmaD4(),
    LemmaD5(),
    LemmaD6(),
    LemmaD7(),
    LemmaD8(),
    LemmaD9(),
    OutputChangesFast(),
    NearestNeighbourIsRobust(),
    LinearModelIsFragile(),
    AnisotropicNoise(),
    SubGaussianNoise(),
    MoreNoise(),
    LeftOut(),
)
