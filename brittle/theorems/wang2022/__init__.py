"""Adversarial Robustness is at Odds with Lazy Training."""

from brittle.theorems.base import Theorem
from brittle.theorems.wang2022.attack import Cone, OneStepWithoutConstants
from brittle.theorems.wang2022.change import (
    GradientChange,
    PrintedCountingStep,
    PrintedFixedDirection,
    SoundCountingStep,
    SoundFixedDirection,
)
from brittle.theorems.wang2022.gradient import PrintedLongGradient, SoundLongGradient, SubsetOfFlips
from brittle.theorems.wang2022.neurons import FewUnstable, PrintedUnstable, RareCrossing, RareCrossingNearby
from brittle.theorems.wang2022.output import BoundedOutput
from brittle.theorems.wang2022.sweep import NoRobustLazyNetwork, OneStepFlips

THEOREMS: tuple[Theorem, ...] = (
    OneStepFlips(),
    OneStepWithoutConstants(),
    NoRobustLazyNetwork(),
    Cone(),
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
    PrintedCountingStep(),
    SoundCountingStep(),
)
