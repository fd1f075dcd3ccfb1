"""What wang2022 says about the shortest gradient step, beside what was measured."""

from collections.abc import Sequence
from itertools import pairwise

from brittle.experiments.base import Claim
from brittle.experiments.cell import Point
from brittle.experiments.summary import distinct, mean, undecided, values, where
from brittle.theorems.scaling import fitted

FROM = 100  # the smallest d of the fits: d = 25 is not yet on the line
NARROWEST, WIDEST = 1000, 100_000  # of the paper's networks
TOLERANCE = 0.15  # how far an exponent may be from the claimed one to be called roughly equal
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
    return f"{WORDS[name]} ~ d^({claimed:+g}) (read as: the exponent over d ≥ {FROM} is within {TOLERANCE} of it)"


def no_slope(name: str) -> Claim:
    """The claim about an exponent, where there are no points."""
    return undecided(_slope_text(name))


def slope(points: Sequence[Point], name: str, width: int) -> Claim:
    """The exponent of d at one width, beside the claimed one."""
    text, claimed = f"m = {width}: {_slope_text(name)}", MEASURES["step" if name == "relative_step" else name][1]
    found = means(points, name, FROM)
    if len(found) < 3:
        return Claim(text, f"{fitted_exponent(points, name)} on smaller dimensions", None)
    line = fitted(name, "d", claimed, *zip(*found, strict=True))
    measured = f"{line.fitted:+.3f} ± {line.standard_error:.3f}"
    return Claim(text, measured, abs(line.fitted - claimed) <= TOLERANCE)


def test_error(points: Sequence[Point]) -> Claim:
    """The largest error of the networks that are as wide as the paper's."""
    text = "every network has a test error below 1 %"
    if not points:
        return undecided(text)
    wide = [point for point in points if point["width"] >= NARROWEST] or points
    errors, decided = values(wide, "error"), wide[0]["width"] >= NARROWEST
    measured = f"at most {max(errors):.2%}, {mean(errors):.2%} on average, m ≥ {min(values(wide, 'width')):g}"
    return Claim(text, measured, max(errors) < 0.01 if decided else None)


def grows(points: Sequence[Point], name: str) -> Claim:
    """On means over seeds and then over dimensions, from the smallest radius to the largest."""
    text = f"{WORDS[name]} grows with C0 (read as: the means over all d rise from each C0 to the next)"
    found = [
        (radius, mean([value for _, value in means(where(points, radius=radius), name)]))
        for radius in distinct(points, "radius")
    ]
    if len(found) < 2:
        return undecided(text)
    rises = all(after[1] > before[1] for before, after in pairwise(found))
    return Claim(text, ", ".join(f"{value:.4g} at {radius:g}" for radius, value in found), rises)


def as_coded(points: Sequence[Point]) -> list[str]:
    """The same exponents with what the paper's own code does."""
    some = where(points, setting="code")
    if not some:
        return []
    fits = ", ".join(f"{WORDS[name]} ~ {fitted_exponent(some, name)}" for name in MEASURES)
    return [
        f"As in the paper's own code (biases, first network outside the ball, misclassified as 0), m = "
        f"{some[0]['width']}: {fits}."
    ]
