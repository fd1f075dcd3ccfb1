"""What vardi2022 says about one direction for every example, beside what was measured."""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Literal, NamedTuple

from brittle.common.progress import duration
from brittle.experiments.base import Claim, Seconds
from brittle.experiments.cell import Point
from brittle.experiments.powers import exponent
from brittle.experiments.summary import distinct, mean, relative_spread, share, undecided, values, where

ENDS = {"flow": "at loss 1e-30", "kkt": "at KKT points"}
SMALLEST = 100  # the paper's smallest d


def falls(points: Sequence[Point]) -> list[Claim]:
    """c/√d by d at every sample size, with its exponent over all networks."""
    claims = []
    for at, alpha in product(ENDS, distinct(points, "alpha")):
        some = [point for point in where(points, at=at, alpha=alpha) if point["ratio"] is not None]
        if not some:
            continue
        text = f"{ENDS[at]}, n = d^{alpha:g}: c/√d falls with d (read as: so does its fitted power of d)"
        by_dim = ", ".join(f"{mean(values(where(some, dim=d), 'ratio')):.3f} at {d}" for d in distinct(some, "dim"))
        power = exponent("c/√d", "d", values(some, "dim"), values(some, "ratio"))
        if power is None:
            claims.append(Claim(text, by_dim, None))
        else:
            claims.append(Claim(text, f"{by_dim}: {power}", power.below(0)))
    return claims or [undecided("c/√d falls with d")]


def below_root(points: Sequence[Point]) -> list[Claim]:
    """c against √d, and from which dimension on it is below at every sample size."""
    claims = []
    for at, name in ENDS.items():
        text = f"{name}, c is below √d (read as: in the mean over seeds, at every d ≥ {SMALLEST} and sample size)"
        found = {alpha: _ratios(where(points, at=at, alpha=alpha)) for alpha in distinct(points, "alpha")}
        told = [f"{_from(ratios)} at n = d^{alpha:g}" for alpha, ratios in found.items() if ratios]
        judged = [ratio for ratios in found.values() for d, ratio in ratios.items() if d >= SMALLEST]
        if told:
            highest = f", at most {max(judged):.3f}√d there" if judged else ""
            holds = max(judged) < 1 if judged else None
            claims.append(Claim(text, f"below from {', '.join(told)}{highest}", holds))
    return claims or [undecided("c is below √d")]


def _ratios(points: Sequence[Point]) -> dict[int, float]:
    """The mean of c/√d at each d; infinite where some network is flipped at no size."""
    dims = distinct(points, "dim")
    return {d: mean([math.inf if p["ratio"] is None else p["ratio"] for p in where(points, dim=d)]) for d in dims}


def _from(ratios: Mapping[int, float]) -> str:
    """The first of the measured dimensions from which on the ratio is below one."""
    above = [d for d, ratio in ratios.items() if ratio >= 1]
    after = [d for d in ratios if d > max(above, default=0)]
    return f"d = {min(after)}" if after else f"no d ≤ {max(ratios)}"


def universal(points: Sequence[Point]) -> list[Claim]:
    """Whether some size flips all examples on the margin, in every network."""
    text = "one direction flips every example on the margin at once"
    if not points:
        return [undecided(text)]
    flipped = [point.get("size") is not None for point in points]
    return [Claim(text, f"in {share(flipped)} networks", all(flipped))]


def at_least(text: str, points: Sequence[Point], threshold: float) -> Claim:
    """Judged on means over seeds at the paper's dimensions, as its plot shows them; smaller ones are told of."""
    if not points:
        return undecided(text)
    shares = {key: mean(values(group, "share_on_margin")) for key, group in _groups(points).items()}
    judged = {key: share for key, share in shares.items() if key.dim >= SMALLEST}
    told = [f"lowest mean {_lowest(judged)}" if judged else f"no d ≥ {SMALLEST}"]
    if len(judged) < len(shares):
        told.append(f"below d = {SMALLEST} {_lowest({key: shares[key] for key in shares.keys() - judged.keys()})}")
    told.append(f"lowest network {min(values(points, 'share_on_margin')):.1%}")
    return Claim(text, ", ".join(told), min(judged.values()) >= threshold - 1e-9 if judged else None)


def _lowest(shares: "Mapping[Place, float]") -> str:
    place = min(shares, key=lambda key: shares[key])
    return f"{shares[place]:.1%} (d = {place.dim}, α = {place.alpha:g})"


def spread(points: Sequence[Point]) -> float:
    """How far the mean of some width is from the mean of all, relatively."""
    return relative_spread([mean(values(where(points, width=width), "size")) for width in distinct(points, "width")])


def recipe_remark(points: Sequence[Point], seconds: Seconds) -> list[str]:
    """What the paper's schedule would have taken."""
    trained = where(points, at="flow")
    if not trained:
        return []
    iterations = mean(values(trained, "recipe_iterations"))
    evaluations = mean(values(trained, "gradient_evaluations"))
    return [
        f"The paper's own schedule would take about {iterations:,.0f} iterations for each network, where flow took "
        f"{evaluations:,.0f} gradient evaluations: {duration(seconds['recipe'])} for these {len(trained)} networks on "
        f"one core, timed on a few of its iterations in each cell. All cells here took {duration(seconds['cells'])}."
    ]


class Place(NamedTuple):
    """What the seeds of one place have in common."""

    at: str
    alpha: float
    width: int
    dim: int


def _groups(points: Sequence[Point]) -> dict[Place, list[Point]]:
    """The seeds of each place together."""
    places = dict.fromkeys(Place(*(point[name] for name in Place._fields)) for point in points)
    return {place: where(points, **place._asdict()) for place in places}


def similar(points: Sequence[Point], name: str) -> list[Claim]:
    """One variant of section 6 beside the setting of the figures, on means over seeds at the same places."""
    usual = where(points, law="sphere", loss="exponential")
    law, loss = VARIANTS[name]
    other = where(points, law=law, loss=loss)
    texts = (
        f"{name}: similar c/‖x‖ (read as: means over seeds within 10 %)",
        f"{name}: a similar share on the margin (read as: means over seeds within 5 points)",
    )
    pairs = [(place, group, _groups(other).get(place, [])) for place, group in _groups(usual).items()]
    pairs = [pair for pair in pairs if pair[2]]
    if not pairs:
        return [undecided(text) for text in texts]
    sizes = [(place, mean(values(a, "ratio")), mean(values(b, "ratio"))) for place, a, b in pairs]
    shares = [(p, mean(values(a, "share_on_margin")), mean(values(b, "share_on_margin"))) for p, a, b in pairs]
    place, before, after = max(sizes, key=lambda each: abs(each[2] / each[1] - 1))
    here, first, second = max(shares, key=lambda each: abs(each[2] - each[1]))
    return [
        Claim(
            texts[0],
            f"farthest {after:.4f} against {before:.4f} ({_words(place)})",
            abs(after / before - 1) <= 0.1,
        ),
        Claim(texts[1], f"farthest {second:.1%} against {first:.1%} ({_words(here)})", abs(second - first) <= 0.05),
    ]


def _words(place: Place) -> str:
    return f"d = {place.dim}, α = {place.alpha:g}"


Law = Literal["sphere", "gaussian"]
LossName = Literal["exponential", "logistic"]
VARIANTS: dict[str, tuple[Law, LossName]] = {
    "logistic loss": ("sphere", "logistic"),
    "Gaussian examples N(0, I/d)": ("gaussian", "exponential"),
}
