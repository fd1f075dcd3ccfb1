"""The findings in words that a person can act on."""

import math
from collections.abc import Sequence

from brittle.auditing.causes import Evidence, WeaknessShares
from brittle.auditing.geometry import Geometry, NearestNeighbourLimit
from brittle.auditing.pieces import median
from brittle.auditing.proofs import CertifiedExamples
from brittle.auditing.regime import TrainingRegime, of_largest
from brittle.auditing.treatment import AS_MUCH, HELPS, RemedyResult, as_good, best
from brittle.auditing.vulnerability import OneDirection, Radii, Vulnerability

COSTLY = 1.15  # a median radius that would be larger by this factor is a weakness worth naming
DOUBTS = 0.05  # share of doubtful labels: clean data have fewer
SETTLED = 0.25  # share of examples among others, at most: where it is more, labels do not follow the examples
WEAK_MARGIN = 0.2  # of the median margin, that a tenth of the examples do not reach
AS_GOOD = 0.7  # of the size at which one direction flips half of the examples: the median radius is at least that
NEARLY_ALL = 0.8  # of what the data allow: training for the radius itself reaches .62 to .92
SHOWN = 8  # rows that a sentence names
WEAK_BOUND = 0.1  # of the median attack: a proved median below says little
ONE_STEP = 1.1  # a gradient step this close to the shortest flip is as good as it


def complete(first: Radii, second: Radii | None) -> bool:
    """Whether both are there for every audited example: nothing is concluded from a part of them."""
    return second is not None and not first.partial and not second.partial


def off_subspace_cost(weak: Vulnerability) -> float | None:
    """How many times larger the median radius would be if perturbations had to stay on the data's subspace."""
    if weak.on is None or not complete(weak.free, weak.on) or not 0 < weak.free.median < math.inf:
        return None
    return weak.on.median / weak.free.median


def weaknesses(
    shape: Geometry,
    regime: TrainingRegime,
    weak: Vulnerability,
    reasons: WeaknessShares,
    tells: Evidence,
    limit: NearestNeighbourLimit | None,
) -> list[str]:
    """Each in one sentence: what lies in the data first, then in training, and last what most trained networks have."""
    return [sentence for sentence in causes(shape, regime, weak, reasons, tells, limit).values() if sentence]


def causes(
    shape: Geometry,
    regime: TrainingRegime,
    weak: Vulnerability,
    reasons: WeaknessShares,
    tells: Evidence,
    limit: NearestNeighbourLimit | None,
) -> dict[str, str]:
    """The sentence of every mechanism by its name, empty where it is none here."""
    return {
        "doubtful labels": _doubtful_labels(tells),
        "off-subspace weights": _off_subspace(shape, weak, reasons),
        "stopped early": _stopped_early(tells, regime),
        "lazy training": _lazy(regime, weak),
        "one direction": "" if little_is_left(limit) else _universal(weak, tells),
        "KKT point": _kkt(regime),
    }


def little_is_left(limit: NearestNeighbourLimit | None) -> bool:
    """Whether the network uses nearly all that the data allow."""
    return limit is not None and limit.share >= NEARLY_ALL


def _doubtful_labels(tells: Evidence) -> str:
    share = tells.doubtful_share
    if share < DOUBTS or tells.unsettled > SETTLED:
        return ""
    shown = ", ".join(map(str, tells.doubtful[:SHOWN].tolist())) + (", ..." if len(tells.doubtful) > SHOWN else "")
    gain = tells.allowed_gain
    allowed = "" if gain is None else f" Without them the data would allow {gain:.2f} times the median radius."
    return (
        f"Doubtful labels: {share:.0%} of the training examples (rows {shown}) have nearest neighbours that agree "
        f"on another class.{allowed}"
    )


def _stopped_early(tells: Evidence, regime: TrainingRegime) -> str:
    if tells.weakest_margins is None or tells.weakest_margins > WEAK_MARGIN:
        return ""
    return (
        f"Training stopped early: a tenth of the training examples have less than "
        f"{max(0.0, tells.weakest_margins):.0%} of the median margin, at an accuracy of {regime.accuracy:.1%}."
    )


def _lazy(regime: TrainingRegime, weak: Vulnerability) -> str:
    step, shortest = weak.gradient_step, weak.free
    if regime.name != "lazy" or not complete(step, shortest) or step.median > ONE_STEP * shortest.median:
        return ""
    return (
        f"Lazy training: a single gradient step of length {step.median:.3g} flips the median example, and training "
        f"moved the first layer by {regime.relative_move:.1%} of its initial size only."
    )


def _kkt(regime: TrainingRegime) -> str:
    if regime.name != "kkt":
        return ""
    share = regime.share_of_largest_margin
    proved = "" if share is None else f" {of_largest(share)}"
    return f"The network is at a KKT point of the max-margin problem, which one direction is known to flip.{proved}"


def _off_subspace(shape: Geometry, weak: Vulnerability, reasons: WeaknessShares) -> str:
    cost = off_subspace_cost(weak)
    if cost is None or cost < COSTLY:
        return ""
    assert weak.on is not None
    untouched = reasons.initial_share_of_weights_off
    origin = "" if untouched is None else f" {untouched:.0%} of these weights are still their initial values."
    return (
        f"Off-subspace weights: the data span {shape.rank} of {shape.columns} dimensions, and what the first layer "
        f"does in the other {shape.codimension} lowers the median radius "
        f"from {weak.on.median:.3g} to {weak.free.median:.3g}, a factor of {cost:.2f}.{origin}"
    )


def _universal(weak: Vulnerability, tells: Evidence) -> str:
    if tells.one_direction is None or tells.one_direction < AS_GOOD:
        return ""
    best = min(weak.universal, key=lambda one: one.half)
    toward = tells.toward_rivals
    where = "" if toward is None else f" Flips have a cosine of {toward:.2f} with the way to the nearest other class."
    return (
        f"One direction (from the {best.name}) flips half of the audited examples at size {best.half:.3g}, "
        f"{1 / tells.one_direction:.2f} times the median radius{_all(best, weak)}.{where}"
    )


def _all(best: OneDirection, weak: Vulnerability) -> str:
    """Where it flips every example."""
    if not best.smallest < math.inf:
        return ""
    return f", and every one at {best.smallest:.3g}, {best.smallest / weak.norm_of_examples:.0%} of the typical norm"


def write_verdict(
    weak: Vulnerability,
    limit: NearestNeighbourLimit | None,
    treatments: tuple[RemedyResult, ...],
    named: list[str],
    cut: Sequence[str],
) -> str:
    """One paragraph: how far from flipping, why, and what helps most; `cut` names what the time limit cut short."""
    hasty = f"Time limit reached during: {', '.join(cut)}. This verdict is not reproducible at this budget."
    parts = (
        _how_far(weak),
        describe_weak_bound(weak),
        _allowed(limit),
        _why(weak, limit, named, best(treatments) is not None),
        _what_helps(treatments),
        hasty if cut else "",
    )
    return " ".join(part for part in parts if part)


def _how_far(weak: Vulnerability) -> str:
    count, free = len(weak.free.norms), weak.free
    if not math.isfinite(free.median):
        if free.partial:
            return f"The attack on {_which(count, weak)} was cut short before it flipped half of them."
        return f"No perturbation was found that flips the median of {count} examples."
    if free.median == 0:
        wrong = int((free.norms == 0).sum())
        kind = "held-out" if weak.held_out else "training"
        return f"The network is wrong on {wrong} of the {count} {kind} examples that were audited."
    typical = free.median / weak.norm_of_examples if weak.norm_of_examples > 0 else math.nan
    return (
        f"The median of {_which(count, weak)} flips at distance {free.median:.3g} (95 % interval "
        f"{_between(free.interval)}), {typical:.1%} of its norm{_tie(weak.tied)}; {_proved(weak.certified, free)}"
    )


def describe_weak_bound(weak: Vulnerability) -> str:
    """Where what is proved is so far below what the attack needs that it is no answer; otherwise empty."""
    proofs = weak.certified
    if proofs is None or not len(proofs.rows):
        return ""
    flips = median(weak.kept.norms[proofs.rows])
    if not 0 < flips < math.inf or proofs.median_lower >= WEAK_BOUND * flips:
        return ""
    return (
        f"The bound is too weak for this network: it proves {proofs.median_lower / flips:.2g} of the radius that the "
        "attack finds, and the true one may lie anywhere between. Training for a provable radius (the remedy "
        "lipschitz-layers), fewer layers or no pooling between them would help; a larger budget alone would not."
    )


def _tie(tied: Radii | None) -> str:
    """Where the class is lost before it is another."""
    return "" if tied is None else f", and no class is ahead from {tied.median:.3g} on"


def _allowed(limit: NearestNeighbourLimit | None) -> str:
    """How much of what the data allow the network uses."""
    if limit is None or not math.isfinite(limit.share) or limit.share == 0:
        return ""
    if limit.share >= 1:
        return (
            f"That is {limit.share:.0%} of half the distance to the nearest example of another class (median "
            f"{limit.median:.3g}), all that the data allow: whatever one example has beyond that, its rival lacks."
        )
    return (
        f"That is {limit.share:.0%} of what the data allow, half the distance to the nearest example of another class "
        f"(median {limit.median:.3g})."
    )


def _which(count: int, weak: Vulnerability) -> str:
    kind = "held-out examples" if weak.held_out else "training examples"
    return f"all {count} {kind}" if count == weak.available else f"{count} of {weak.available} {kind}"


def _between(interval: tuple[float, float]) -> str:
    low, high = (f"{end:.3g}" if math.isfinite(end) else "∞" for end in interval)
    return f"{low} to {high}"


def _proved(certified: CertifiedExamples | None, free: Radii) -> str:
    if certified is None:
        return "this is an attack, without a proof that it takes as much."
    count, exact = len(certified.rows), certified.counts["exact"]
    known = f"; the radius of {exact} is known exactly" if exact else ""
    if count == len(free.norms):
        return f"half of them provably hold out to {certified.median_lower:.3g}{known}."
    flips = median(free.norms[certified.rows])
    return (
        f"of the {count} that there was work to certify, half provably hold out to {certified.median_lower:.3g}, where "
        f"the attack needs {flips:.3g}{known}."
    )


def _why(weak: Vulnerability, limit: NearestNeighbourLimit | None, named: list[str], helped: bool) -> str:
    if weak.free.median == 0 and not named:
        return ""
    if little_is_left(limit) and not named:
        return "" if helped else "Little is left to gain."
    sentences = list(named)
    cost = off_subspace_cost(weak)
    if cost is not None and cost < COSTLY:
        sentences.append(
            "Directions off the data's subspace are not the weak spot: "
            f"without them the median radius would be larger by a factor of {cost:.2f} only."
        )
    return " ".join(sentences) or "No single mechanism of the four papers explains it."


def _what_helps(treatments: tuple[RemedyResult, ...]) -> str:
    tried = [treatment for treatment in treatments if treatment.applied]
    if not tried:
        return describe_unaffordable(treatments)
    chosen = best(treatments)
    if chosen is None:
        return " ".join(filter(None, (little_help(tried), describe_unaffordable(treatments))))
    proved = "" if chosen.strict_after is None else f"; to a strict flip {chosen.strict_after:.3g}"
    if chosen.proved_before is not None and chosen.proved_after is not None:
        those = f"{chosen.proved_examples} of them" if chosen.fewer_proved else "them"
        proved += f"; proved for half of {those}: from {chosen.proved_before:.3g} to {chosen.proved_after:.3g}"
    gain = f"from {chosen.radius_before:.3g} to {chosen.radius_after:.3g} (times {chosen.factor:.2f}{proved})"
    return (
        f"Of the remedies that were tried, {chosen.name} helps most: {chosen.explains}, and the median radius of the "
        f"same examples goes {gain}, at a {chosen.judged_on} accuracy of {chosen.accuracy_after:.1%} "
        f"(before {chosen.accuracy_before:.1%}).{not_alone(treatments)}{_as_expected(treatments)}"
    )


def not_alone(treatments: tuple[RemedyResult, ...]) -> str:
    """Who else does as much as the best remedy, or was not tried: an advice is no more than that."""
    names, dear = as_good(treatments), describe_unaffordable(treatments)
    others = "" if not names else f" {join_words(names)} {'does' if len(names) == 1 else 'do'} about as much."
    return others + _farther(treatments) + (f" {dear}" if dear else "")


def _farther(treatments: tuple[RemedyResult, ...]) -> str:
    """The remedy that an attack alone would prefer to the best one, if there is one."""
    chosen, applied = best(treatments), [each for each in treatments if each.factor >= HELPS]
    longest = max(applied, key=lambda each: each.factor, default=None)
    if chosen is None or longest is None or AS_MUCH * longest.factor <= chosen.factor:
        return ""
    return f" By attack alone {longest.name} moves it farther (times {longest.factor:.2f})."


def join_words(names: list[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def little_help(tried: list[RemedyResult]) -> str:
    """Of those that were applied none surely helps; the best of them may do so by attack alone."""
    if tried[0].radius_before == 0:
        return _right_first(tried)
    longer = [each for each in tried if each.factor >= HELPS]
    if not longer:
        return "None of the remedies that were applied enlarges the radius by much without a loss of accuracy."
    longest = max(longer, key=lambda each: each.factor)
    before, after = longest.proved_before or 0.0, longest.proved_after or 0.0
    those = f" on {longest.proved_examples} of them" if longest.fewer_proved else ""
    return (
        f"{longest.name} moves the median radius from {longest.radius_before:.3g} to {longest.radius_after:.3g} by "
        f"attack (times {longest.factor:.2f}), but what is proved{those} goes from {before:.3g} to {after:.3g}: "
        "whether it helps is open."
    )


def _right_first(tried: list[RemedyResult]) -> str:
    """Of a network that is mostly wrong: there is no factor from 0, but training again may make it right."""
    begun = "A remedy keeps right answers right; this network first needs them."
    chosen = max(tried, key=lambda each: each.accuracy_after)
    if chosen.accuracy_after <= chosen.accuracy_before:
        return begun
    return (
        f"{begun} {chosen.name} reaches a {chosen.judged_on} accuracy of {chosen.accuracy_after:.1%} (before "
        f"{chosen.accuracy_before:.1%}) and a median radius of {chosen.radius_after:.3g}."
    )


def describe_unaffordable(treatments: tuple[RemedyResult, ...]) -> str:
    """How many remedies are not judged because the budget is too small for them; empty where there is none."""
    dear = sum(each.unaffordable for each in treatments)
    those = "all" if dear == len(treatments) else f"{dear} of the {len(treatments)}"
    return f"For {those} remedies this budget is too small: what they would do is not known." if dear else ""


def find_best_forecast(treatments: tuple[RemedyResult, ...]) -> RemedyResult | None:
    """Of what was forecast before anything was tried, the remedy with the best prospects; None if they were poor."""
    hopeful = [each for each in treatments if each.forecast is not None and each.forecast.high >= HELPS]
    return max(hopeful, key=lambda each: each.forecast.middle if each.forecast else 0.0, default=None)


def _as_expected(treatments: tuple[RemedyResult, ...]) -> str:
    hopeful = find_best_forecast(treatments)
    if hopeful is None or hopeful.forecast is None:
        return ""
    said = hopeful.forecast
    begun = f" Before any was tried, most was expected of {hopeful.name}, a factor of {said.low:.2f} to {said.high:.2f}"
    if said.found is None:
        return f"{begun}; it could not be applied."
    word = "as expected" if said.right else "less than that" if said.found < said.low else "more than that"
    return f"{begun}; it was {said.found:.2f}, {word}."
