"""What vardi2022 says about one direction for every example, beside what was measured."""

from collections.abc import Sequence

from brittle.common.progress import duration
from brittle.experiments.base import Claim, Seconds
from brittle.experiments.cell import Point
from brittle.experiments.summary import distinct, mean, relative_spread, share, undecided, values, where


def far_below(points: Sequence[Point]) -> list[Claim]:
    """c against √d, at loss 1e-30 and at KKT points."""
    text = "c is far below √d (read as: over seeds at most ¾√d in every place, at most ½√d on average over places)"
    claims = []
    for at, name in (("flow", "at loss 1e-30"), ("kkt", "at KKT points")):
        groups = [group for group in _groups(where(points, at=at)) if values(group, "ratio")]
        if not groups:
            continue
        ratios = [mean(values(group, "ratio")) for group in groups]
        highest, one = max(zip(ratios, (group[0] for group in groups), strict=True), key=lambda pair: pair[0])
        place = f"d = {one['dim']}, α = {one['alpha']:g}, width {one['width']}"
        measured = f"c/√d at most {highest:.3f} ({place}), {mean(ratios):.3f} on average"
        claims.append(Claim(f"{name}, {text}", measured, highest <= 0.75 and mean(ratios) <= 0.5))
    return claims or [undecided(text)]


def universal(points: Sequence[Point]) -> list[Claim]:
    """Whether some size flips all examples on the margin, in every network."""
    text = "one direction flips every example on the margin at once"
    if not points:
        return [undecided(text)]
    flipped = [point.get("size") is not None for point in points]
    return [Claim(text, f"in {share(flipped)} networks", all(flipped))]


def at_least(text: str, points: Sequence[Point], threshold: float) -> Claim:
    """Judged on means over seeds, as the paper's plot shows them."""
    if not points:
        return undecided(text)
    groups = _groups(points)
    means = [mean(values(group, "share_on_margin")) for group in groups]
    lowest = min(range(len(means)), key=means.__getitem__)
    one, single = groups[lowest][0], min(values(points, "share_on_margin"))
    place = f"d = {one['dim']}, α = {one['alpha']:g}"
    return Claim(
        text, f"lowest mean {means[lowest]:.1%} ({place}), lowest network {single:.1%}", min(means) >= threshold - 1e-9
    )


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


def _groups(points: Sequence[Point]) -> list[list[Point]]:
    """The seeds of each cell together."""
    names = ("at", "alpha", "width", "dim")
    keys = dict.fromkeys(tuple(point[name] for name in names) for point in points)
    return [where(points, **dict(zip(names, key, strict=True))) for key in keys]
