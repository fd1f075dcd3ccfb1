"""Theorems on an instance: every hypothesis with its slack, and the promise where all of them hold."""

from collections.abc import Sequence
from typing import Any

from brittle.auditing.applicable import HEADLINES
from brittle.common.errors import InputError
from brittle.networks import Network
from brittle.settings import Data
from brittle.theorems import Comparison, Instance, Theorem, check_instance, find


def on_instance(data: Data, network: Network, theorems: Sequence[Theorem] = ()) -> list[dict[str, Any]]:
    """One entry for each theorem, the headlines unless others are given; what it cannot be asked about says why."""
    instance = Instance(data, network)
    return [entry(each, instance) for each in theorems or [find(name) for name in HEADLINES]]


def entry(theorem: Theorem, instance: Instance) -> dict[str, Any]:
    """The theorem's hypotheses on this instance and, where they hold, what it promises beside what was measured."""
    about = {"id": theorem.id, "claim": theorem.claim, "applies_to": theorem.applies_to}
    try:
        verdict = check_instance(theorem, instance)
    except InputError as error:
        return about | {"verdict": "not_applicable", "why": str(error), "hypotheses": [], "promises": []}
    return about | {
        "verdict": verdict.verdict.value,
        "why": verdict.advice,
        "hypotheses": [compared(each) for each in verdict.hypotheses],
        "promises": [compared(each) for each in verdict.bound],
    }


def compared(comparison: Comparison) -> dict[str, Any]:
    """A measured value beside its threshold; infinities become null, and `shown` keeps them."""
    shown = f"{comparison.value:.4g} {comparison.relation.value} {comparison.threshold:.4g}"
    return comparison.to_json() | {"shown": shown}
