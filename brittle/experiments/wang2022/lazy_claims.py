"""What wang2022 says about the shortest gradient step, beside what was measured."""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import stdev

import scipy

from brittle.experiments.base import Claim
from brittle.experiments.cell import Point
from brittle.experiments.powers import CONFIDENCE, exponent
from brittle.experiments.summary import distinct, mean, undecided, values, where
from brittle.theorems.scaling import fitted

FROM = 100  # the smallest d of the fits: d = 25 is not yet on the line
NARROWEST, WIDEST = 1000, 100_000  # of the paper's networks
WIDTH = 0.15  # how far an interval may reach over the claimed exponent and still decide; also what "roughly" allows
MEASURES = {
    "relative_size": (r"$\|\delta\|/\|x\|$", -0.5),
    "gradient": (r"$\|\nabla f\|$", 0.5),
    "step": (r"$\eta$", -1.0),
}
WORDS = {"relative_size": "‖δ‖/‖x‖", "gradient": "‖∇f‖", "step": "η", "relative_step": "η/‖x‖", "output": "|f|"}


def means(points: Sequence[Point], name: str, least: int = 0) -> list[tuple[int, float]]:
    """The mean at each dimension, from the least on."""
    dims = [d for d in distinct(points, "dim") if d >= least]
    return [(d, mean(values(where(points, dim=d), name))) for d in dims]


def fitted_exponent(points: Sequence[Point], name: str) -> str:
    """The exponent of d in words, over large dimensions if there are enough of them."""
    found = means(points, name, FROM) if len(means(points, name, FROM)) >= 3 else means(points, name)
    if len(found) < 3:
        return "unknown"
    line = fitted(name, "d", 0.0, *zip(*found, strict=True))
    return f"d^({line.fitted:+.2f} ± {line.standard_error:.2f})"


def _slope_text(name: str) -> str:
    claimed = MEASURES["step" if name == "relative_step" else name][1]
    said = f"roughly Ω(d^{claimed:g})" if name == "gradient" else f"O(d^{claimed:g})"
    wrong = f"below {claimed - WIDTH:g}" if name == "gradient" else f"above {claimed:g}"
    reading = f"refuted where all of the exponent's 95 % interval over d ≥ {FROM} is {wrong}"
    return f"{WORDS[name]} is {said} (read as: {reading})"


def no_slope(name: str) -> Claim:
    """The claim about an exponent, where there are no points."""
    return undecided(_slope_text(name))


def slope(points: Sequence[Point], name: str, width: int) -> Claim:
    """The exponent of d at one width over all networks, judged from the side on which the claim has it."""
    text, claimed = f"m = {width}: {_slope_text(name)}", MEASURES["step" if name == "relative_step" else name][1]
    some = [point for point in points if point["dim"] >= FROM and point[name] is not None]
    power = exponent(name, "d", values(some, "dim"), values(some, name))
    if power is None:
        return Claim(text, f"{fitted_exponent(points, name)} on smaller dimensions", None)
    if name == "gradient":
        return Claim(text, str(power), power.at_least(claimed - WIDTH, WIDTH))
    return Claim(text, str(power), power.at_most(claimed, WIDTH))


def test_error(points: Sequence[Point], smallest: int) -> Claim:
    """One network that is as wide as the paper's can refute it; only the paper's sizes, from the `smallest` d to its
    largest width, can confirm it."""
    text = "every network has a test error below 1 %"
    if not points:
        return undecided(text)
    wide = [point for point in points if point["width"] >= NARROWEST] or points
    errors, widths, dims = (values(wide, name) for name in ("error", "width", "dim"))
    measured = f"at most {max(errors):.2%}, {mean(errors):.2%} on average, m ≥ {min(widths):g}"
    if wide[0]["width"] >= NARROWEST and max(errors) >= 0.01:
        return Claim(text, measured, False)
    if min(dims) <= smallest and max(widths) >= WIDEST:
        return Claim(text, measured, True)
    there = f"d ≥ {min(dims):g} and m ≤ {max(widths):g}, the paper's d ≥ {smallest} and m ≤ {WIDEST}"
    return Claim(text, f"{measured}; not decided at this size: {there}", None)


def grows(points: Sequence[Point], name: str) -> list[Claim]:
    """From each radius to the next, over the places where another network comes out.

    One that never reached the edge of its ball is the same network in every larger ball. Where the networks are
    narrower than the paper's, whose balls are smaller, a fall refutes nothing.
    """
    text = f"{WORDS[name]} grows with C0"
    claims = []
    for small, large in pairwise(distinct(points, "radius")):
        pairs = [
            (before, after)
            for before in where(points, radius=small)
            for after in where(points, radius=large, dim=before["dim"], seed=before["seed"])
        ]
        other = [pair for pair in pairs if pair[0]["left"]]
        step = f"{text}, from {small:g} to {large:g} (read as: the 95 % interval of its mean factor lies above 1)"
        if not other:
            claims.append(Claim(step, f"not decided: the same network in all {len(pairs)} places", None))
            continue
        lower, higher = (mean([pair[i][name] for pair in other]) for i in (0, 1))
        same = f"; the other {len(pairs) - len(other)} are the same network" if len(other) < len(pairs) else ""
        measured = f"{lower:.4g} to {higher:.4g} in {len(other)} of {len(pairs)} places{same}"
        change, verdict = _factor([math.log(after[name] / before[name]) for before, after in other])
        width = max(after["width"] for _, after in other)
        if verdict is False and width < WIDEST:
            change, verdict = f"{change}; not decided at this size: m = {width:g}, the paper's {WIDEST}", None
        claims.append(Claim(step, f"{measured}; {change}", verdict))
    return claims or [undecided(text)]


def _factor(logarithms: Sequence[float]) -> tuple[str, bool | None]:
    """The mean factor with its 95 % interval by Student's law, and whether that lies above 1; None where it holds 1."""
    count = len(logarithms)
    if count < 2:
        return "not decided: one network has no interval", None
    half = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)) * stdev(logarithms) / math.sqrt(count)
    middle = mean(logarithms)
    ends = f"95 % in [{math.exp(middle - half):.3g}, {math.exp(middle + half):.3g}]"
    return f"factor {math.exp(middle):.3g}, {ends}", None if abs(middle) <= half else middle > 0


def as_coded(points: Sequence[Point]) -> list[str]:
    """The same exponents with what the paper's own code does."""
    some = where(points, setting="code")
    if not some:
        return []
    fits = ", ".join(f"{WORDS[name]} ~ {fitted_exponent(some, name)}" for name in MEASURES)
    return [
        f"As in the paper's own code (first network outside the ball, misclassified as 0), m = "
        f"{some[0]['width']}: {fits}."
    ]
