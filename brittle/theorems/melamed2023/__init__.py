"""Adversarial Examples Exist in Two-Layer ReLU Networks for Low Dimensional Linear Subspaces."""

from brittle.theorems.base import Theorem
from brittle.theorems.melamed2023.concentration import (
    LongSum,
    LongVector,
    ProductOfGaussians,
    ProductWithFixed,
    ShortSum,
    ShortVector,
)
from brittle.theorems.melamed2023.gradient import (
    ConstantGradient,
    LargeGradient,
    LargeGradientFromStart,
    Regularised,
    SmallGradient,
    StronglyRegularised,
    TinyStart,
)
from brittle.theorems.melamed2023.invariance import (
    AffinePlane,
    FrozenOffSubspace,
    LawOfTheStart,
    RotatedPerturbation,
    RotationInvariance,
    RotationWithDecay,
)
from brittle.theorems.melamed2023.margin_remark import PrintedSlope, StalledMargin
from brittle.theorems.melamed2023.universal import SmallUniversalPerturbation, SubspacePerturbation

THEOREMS: tuple[Theorem, ...] = (
    StalledMargin(),
    PrintedSlope(),
    LargeGradient(),
    LargeGradientFromStart(),
    ConstantGradient(),
    SubspacePerturbation(),
    SmallUniversalPerturbation(),
    SmallGradient(),
    TinyStart(),
    Regularised(),
    StronglyRegularised(),
    RotationInvariance(),
    RotatedPerturbation(),
    RotationWithDecay(),
    LawOfTheStart(),
    FrozenOffSubspace(),
    ShortVector(),
    ShortSum(),
    LongVector(),
    ProductWithFixed(),
    ProductOfGaussians(),
    LongSum(),
    AffinePlane(),
)
