"""Adversarial Robustness is at Odds with Lazy Training."""

from brittle.theorems.base import Theorem
from brittle.theorems.wang2022.attack import Cone, OneStepWithoutConstants
from brittle.theorems.wang2022.ball import BoundedOutput, BoundedOutputWide
from brittle.theorems.wang2022.change import (
    GradientChange,
    PrintedCountingStep,
    PrintedFixedDirection,
    SmallChange,
    SoundCountingStep,
    SoundFixedDirection,
    UniformChange,
)
from brittle.theorems.wang2022.gradient import (
    PrintedLongGradient,
    PrintedQuarterRoot,
    QuarterRoot,
    SoundLongGradient,
    SubsetOfFlips,
)
from brittle.theorems.wang2022.neurons import FewUnstable, PrintedUnstable, RareCrossing, RareCrossingNearby
from brittle.theorems.wang2022.sweep import NoRobustLazyNetwork, OneStepFlips
from brittle.theorems.wang2022.tools import (
    Bernstein,
    Chernoff,
    LipschitzOfGaussians,
    PrintedChiSquare,
    PrintedMoments,
    SoundChiSquare,
    SoundMoments,
)

THEOREMS: tuple[Theorem, ...] = (
    OneStepFlips(),
    OneStepWithoutConstants(),
    NoRobustLazyNetwork(),
    Cone(),
    BoundedOutputWide(),
    QuarterRoot(),
    PrintedQuarterRoot(),
    Bernstein(),
    SoundMoments(),
    PrintedMoments(),
    SoundChiSquare(),
    PrintedChiSquare(),
    Chernoff(),
    LipschitzOfGaussians(),
    FewUnstable(),
    PrintedUnstable(),
    BoundedOutput(),
    RareCrossing(),
    RareCrossingNearby(),
    PrintedLongGradient(),
    SoundLongGradient(),
    SubsetOfFlips(),
    PrintedFixedDirection(),
    SoundFixedDirection(),
    GradientChange(),
    UniformChange(),
    SmallChange(),
    PrintedCountingStep(),
    SoundCountingStep(),
)
