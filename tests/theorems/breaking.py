"""What tests of theorems share: instances on which exactly one hypothesis fails."""

from collections.abc import Callable, Mapping

from brittle.theorems import Instance, Theorem, check_instance

Broken = Mapping[str, Callable[[], Instance]]


def failed(theorem: Theorem, instance: Instance) -> list[str]:
    return check_instance(theorem, instance).failed


def names(theorem: Theorem, instance: Instance) -> set[str]:
    return {hypothesis.name for hypothesis in theorem.hypotheses(instance)}
