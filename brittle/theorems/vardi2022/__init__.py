"""Vardi, Yehudai, Shamir: Gradient Methods Provably Converge to Non-Robust Networks (2022)."""

from brittle.theorems.base import Theorem
from brittle.theorems.vardi2022.convergence import FlowFindsKKT
from brittle.theorems.vardi2022.existence import RobustNetworkExists, SmallerNormIsFragile, SphereIsNearlyOrthogonal
from brittle.theorems.vardi2022.lemmas import (
    AllOnTheMargin,
    LemmaC3,
    LemmaC4,
    LemmaC5,
    LemmaC6,
    LemmaC7,
    LemmaC8,
    LemmaC9,
    MultiplierSums,
    OtherNeuronsPull,
    OwnNeuronsFall,
)
from brittle.theorems.vardi2022.remarks import PerturbationTransfers, UnequalNorms, WidthTwoSuffices
from brittle.theorems.vardi2022.universal import (
    Lengths,
    NearlyUniversal,
    UniversalPerturbation,
    UniversalPerturbationOnTheMargin,
)

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
    LemmaC3(),
    LemmaC4(),
    LemmaC5(),
    LemmaC6(),
    LemmaC7(),
    LemmaC8(),
    LemmaC9(),
    OwnNeuronsFall(),
    OtherNeuronsPull(),
    WidthTwoSuffices(),
    PerturbationTransfers(),
    UnequalNorms(),
)
