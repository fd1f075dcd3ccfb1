"""The findings in words that a person can act on."""

import math
from typing import NamedTuple

from brittle.auditing.explanation import Explanation
from brittle.auditing.geometry import Geometry
from brittle.auditing.regime import TrainingRegime
from brittle.auditing.treatment import Treatment, best
from brittle.auditing.vulnerability import Radii, Vulnerability, median
from brittle.networks import Network

COSTLY = 1.15  # a median radius that would be larger by this factor is a weakness worth naming
SHORT = 0.5  # of the typical norm of an example: a shorter universal direction is adversarial
ONE_STEP = 1.1  # a gradient step this close to the shortest flip is as good as it


class Medians(NamedTuple):
    """Two median radii over the same `examples`, as many as both methods had time for."""

    first: float
    second: float
    examples: int


def compared(first: Radii, second: Radii) -> Medians:
    """Both methods take the audited examples in the same order."""
    reached = min(len(first.norms), len(second.norms))
    return Medians(median(first.norms[:reached]), median(second.norms[:reached]), reached)


def free_and_on(weak: Vulnerability) -> Medians | None:
    """Median radius anywhere and on the data's subspace."""
    return None if weak.on is None else compared(weak.free, weak.on)


def off_subspace_cost(weak: Vulnerability) -> float | None:
    """How many times larger the median radius would be if perturbations had to stay on the data's subspace."""
    medians = free_and_on(weak)
    if medians is None or not 0 < medians.first < math.inf:
        return None
    return medians.second / medians.first


def weaknesses(shape: Geometry, regime: TrainingRegime, weak: Vulnerability, reasons: Explanation) -> list[str]:
    """Each in one sentence, the costliest first."""
    found = []
    cost = off_subspace_cost(weak)
    if cost is not None and cost >= COSTLY:
        found.append(_off_subspace(cost, shape, weak, reasons))
    if universal := _universal(weak):
        found.append(universal)
    step = compared(weak.gradient_step, weak.free)
    if regime.name == "lazy" and step.first <= ONE_STEP * step.second:
        found.append(
            f"A single gradient step of length {step.first:.3g} flips the median of {step.examples} examples, "
            "as in the lazy regime."
        )
    if regime.name == "kkt":
        found.append("The network is at a KKT point of the max-margin problem, which one direction is known to flip.")
    return found


def _off_subspace(cost: float, shape: Geometry, weak: Vulnerability, reasons: Explanation) -> str:
    medians = free_and_on(weak)
    assert medians is not None
    untouched = reasons.initial_share_of_weights_off
    origin = "" if untouched is None else f" {untouched:.0%} of these weights are still their initial values."
    return (
        f"Off-subspace weights: the data span {shape.rank} of {shape.columns} dimensions, and what the first layer "
        f"does in the other {shape.codimension} lowers the median radius of {medians.examples} examples "
        f"from {medians.second:.3g} to {medians.first:.3g}, a factor of {cost:.2f}.{origin}"
    )


def _universal(weak: Vulnerability) -> str:
    shortest = min(weak.universal, key=lambda one: one.smallest)
    if not shortest.smallest < SHORT * weak.norm_of_examples:
        return ""
    share = shortest.smallest / weak.norm_of_examples
    return (
        f"One direction (from the {shortest.name}) flips every audited example at size {shortest.smallest:.3g}, "
        f"{share:.0%} of the typical norm {weak.norm_of_examples:.3g}."
    )


def written(
    network: Network,
    shape: Geometry,
    regime: TrainingRegime,
    weak: Vulnerability,
    reasons: Explanation,
    treatments: tuple[Treatment, ...],
    named: list[str],
) -> str:
    """One paragraph: how far from flipping, why, and what helps most."""
    return " ".join(part for part in (_how_far(weak), _why(weak, named), _what_helps(treatments)) if part)


def _how_far(weak: Vulnerability) -> str:
    typical = weak.free.median / weak.norm_of_examples if weak.norm_of_examples > 0 else math.nan
    if not math.isfinite(weak.free.median):
        return "No perturbation was found that flips the median example."
    count = len(weak.free.norms)
    text = f"The median of {count} examples flips at distance {weak.free.median:.3g}, {typical:.1%} of its norm"
    if weak.certified is None:
        return f"{text} (an attack; no proof that it takes as much)."
    proved = weak.certified
    if len(proved.rows) == count:
        return f"{text}; half of them provably hold out to {proved.median_lower:.3g}."
    flips = median(weak.free.norms[proved.rows])
    return (
        f"{text}; of the {len(proved.rows)} that there was time to certify, half provably hold out to "
        f"{proved.median_lower:.3g}, where the attack needs {flips:.3g}."
    )


def _why(weak: Vulnerability, named: list[str]) -> str:
    sentences = list(named)
    cost = off_subspace_cost(weak)
    if cost is not None and cost < COSTLY:
        sentences.append(
            "Directions off the data's subspace are not the weak spot: "
            f"without them the median radius would be larger by a factor of {cost:.2f} only."
        )
    return " ".join(sentences) or "No single mechanism of the four papers explains it."


def _what_helps(treatments: tuple[Treatment, ...]) -> str:
    tried = [treatment for treatment in treatments if treatment.applied]
    if not tried:
        return ""
    chosen = best(treatments)
    if chosen is None:
        return "None of the remedies that were tried enlarges the radius by much without a loss of accuracy."
    return (
        f"Of the remedies that were tried, {chosen.name} helps most: {chosen.explains}, and the median radius goes "
        f"from {chosen.radius_before:.3g} to {chosen.radius_after:.3g} (times {chosen.factor:.2f}) at an accuracy of "
        f"{chosen.accuracy_after:.1%} (before {chosen.accuracy_before:.1%})."
    )
