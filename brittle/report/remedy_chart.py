"""Radius against accuracy: where the network is now, where every remedy would bring it, and the way there."""

import math
from dataclasses import dataclass, replace

from markupsafe import Markup

from brittle.auditing import Audit
from brittle.auditing.curve import CurvePoint
from brittle.auditing.treatment import RemedyResult, best
from brittle.report.svg import Axis, curve, left_axis, line, number, picture, share, tag, text, times

WIDTH, HEIGHT = 640.0, 330.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 480.0, 34.0, 282.0
NARROW_WIDTH, NARROW_RIGHT = 380.0, 330.0
Z = 1.96  # of a 95 % interval
APART = 15.0  # pixels between two names


@dataclass(frozen=True)
class ChartPoint:
    """A network in the picture: its name, accuracy, radius, and the radius' interval."""

    name: str
    accuracy: float
    radius: float
    interval: tuple[float, float]


def remedy_chart(audit: Audit, narrow: bool = False) -> Markup | None:
    """None where no remedy was applied; `narrow` names the remedies by their numbers, from the best on."""
    tried = [each for each in rank_remedies(audit) if each.applied and math.isfinite(each.radius_after)]
    if not tried or not math.isfinite(audit.vulnerability.free.median):
        return None
    judges = len(audit.data if audit.data.X_test is None else audit.data.test)
    now = ChartPoint(
        "now", tried[0].accuracy_before, audit.vulnerability.free.median, audit.vulnerability.free.interval
    )
    places = [ChartPoint(each.name, each.accuracy_after, each.radius_after, each.interval_after) for each in tried]
    right = NARROW_RIGHT if narrow else RIGHT
    across, up = _axes([now, *places], tried, judges, right)
    chosen = best(audit.remedies)
    parts = [_whiskers(place, judges, across, up) for place in (now, *places)]
    ways = [each for each in tried if len(_points(each)) > 1]
    parts += [_way(each, each is ways[0], across, up) for each in ways]
    parts += [_arrow(now, place, across, up) for place in places if chosen and place.name == chosen.name]
    parts += [_dot(place, across, up, "gain" if chosen and place.name == chosen.name else "other") for place in places]
    parts += [_dot(now, across, up, "now"), *_names([now, *places], across, up, narrow)]
    words = "; ".join(f"{each.name}: {number(each.radius, 3)} at {share(each.accuracy)}" for each in (now, *places))
    axes = (
        left_axis(up, LEFT, "median distance to a flip", right, lambda value: number(value, 3)),
        _accuracy_axis(across, f"{tried[0].judged_on} accuracy"),
    )
    return picture(
        NARROW_WIDTH if narrow else WIDTH, HEIGHT, f"Median radius against accuracy: {words}.", *axes, *parts
    )


def rank_remedies(audit: Audit) -> list[RemedyResult]:
    """The best one first, then by how far they move the median; those that could not be applied last."""
    chosen = best(audit.remedies)
    return sorted(
        audit.remedies, key=lambda each: (not each.applied, each is not chosen, -each.factor if each.applied else 0.0)
    )


def wilson(accuracy: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share of so many examples."""
    middle = (accuracy + Z**2 / (2 * count)) / (1 + Z**2 / count)
    half = Z / (1 + Z**2 / count) * math.sqrt(accuracy * (1 - accuracy) / count + Z**2 / (4 * count**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def _axes(places: list[ChartPoint], tried: list[RemedyResult], judges: int, right: float) -> tuple[Axis, Axis]:
    accuracies = [end for place in places for end in wilson(place.accuracy, judges)]
    radii = [end for place in places for end in (place.radius, *place.interval) if math.isfinite(end)]
    way = [point for each in tried for point in _points(each)]
    accuracies += [point.accuracy for point in way]
    radii += [point.radius for point in way]
    low, bottom, top = min(accuracies), min(radii), max(radii)
    floor = 0.0 if bottom < top / 2 else bottom - 0.25 * (top - bottom)
    return (
        Axis(low - 0.05 * (1 - low), 1 + 0.02 * (1 - low), LEFT, right),
        Axis(floor, top + 0.08 * (top - floor), BOTTOM, TOP),
    )


def _points(remedy: RemedyResult) -> list[CurvePoint]:
    """The networks that can be had on the way of a remedy that asks for more and more.

    They were attacked on some of the examples: their radii are brought to the median of all, so that the way begins
    where the network is now.
    """
    if remedy.curve is None:
        return []
    first = remedy.curve.points[0].radius
    scale = remedy.radius_before / first if first > 0 and math.isfinite(first) else 1.0
    return [replace(point, radius=scale * point.radius) for point in remedy.curve.points if point.radius < math.inf]


def _way(remedy: RemedyResult, shown: bool, across: Axis, up: Axis) -> Markup:
    """The networks on the way of one remedy; of several only one is shown at a time."""
    points = _points(remedy)
    places = [(across(point.accuracy), up(point.radius)) for point in points]
    dots = [
        tag(
            "circle", tag("title", _told(remedy, point)), cx=x, cy=y, r=4.0, class_="way", tabindex=0, role="button",
            data_remedy=remedy.name, data_kappa=point.kappa,
        )
        for point, (x, y) in zip(points, places, strict=True)
        if point.role == "way"
    ]  # fmt: skip
    kind = "course shown" if shown else "course"
    return tag("g", curve(places, "kappa"), *dots, class_=kind, data_course=remedy.name)


def _told(remedy: RemedyResult, point: CurvePoint) -> str:
    asked = "" if point.kappa is None else f", κ = {number(point.kappa, 2)}"
    before, examples = remedy.radius_before, 0 if remedy.curve is None else remedy.curve.examples
    reached = times(point.radius / before) if before > 0 else f"radius {number(point.radius, 3)}"
    return f"{remedy.name}{asked}: {reached} on {examples} examples, at {share(point.accuracy)}"


def _whiskers(place: ChartPoint, judges: int, across: Axis, up: Axis) -> Markup:
    """What the examples leave open of the accuracy and of the median."""
    low, high = wilson(place.accuracy, judges)
    x, y = across(place.accuracy), up(place.radius)
    bottom, top = (end if math.isfinite(end) else place.radius for end in place.interval)
    return line(across(low), y, across(high), y, "whisker") + line(x, up(bottom), x, up(top), "whisker")


def _arrow(now: ChartPoint, then: ChartPoint, across: Axis, up: Axis) -> Markup:
    start, end = (across(now.accuracy), up(now.radius)), (across(then.accuracy), up(then.radius))
    length = math.hypot(end[0] - start[0], end[1] - start[1])
    if length < 16:
        return Markup("")
    ux, uy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    tip = end[0] - 8 * ux, end[1] - 8 * uy
    wings = [(tip[0] - 9 * ux + 4 * side * uy, tip[1] - 9 * uy - 4 * side * ux) for side in (1, -1)]
    return line(*start, tip[0] - 6 * ux, tip[1] - 6 * uy, "arrow") + curve([tip, *wings], "arrowhead", closed=True)


def _dot(place: ChartPoint, across: Axis, up: Axis, class_: str) -> Markup:
    told = f"{place.name}: radius {number(place.radius, 3)} at {share(place.accuracy)}"
    return tag(
        "circle",
        tag("title", told),
        cx=across(place.accuracy),
        cy=up(place.radius),
        r=6.0,
        class_=f"dot {class_}",
        tabindex=0,
    )


def _names(places: list[ChartPoint], across: Axis, up: Axis, narrow: bool) -> list[Markup]:
    """Beside the picture, so far apart that they can be read, each with a line to its place."""
    order = sorted(places, key=lambda place: up(place.radius))
    heights = [up(place.radius) for place in order]
    for row in range(1, len(heights)):
        heights[row] = max(heights[row], heights[row - 1] + APART)
    over = max(0.0, heights[-1] - BOTTOM)
    heights = [height - over for height in heights]
    for row in range(len(heights) - 2, -1, -1):
        heights[row] = min(heights[row], heights[row + 1] - APART)
    words = {place.name: str(number) if narrow and number else place.name for number, place in enumerate(places)}
    return [
        line(across(place.accuracy) + 7, up(place.radius), across.end + 8, height, "leader")
        + text(across.end + 12, height + 4, words[place.name], "label now" if place.name == "now" else "label")
        for place, height in zip(order, heights, strict=True)
    ]


def _accuracy_axis(across: Axis, words: str) -> Markup:
    marks = [
        line(across(value), TOP, across(value), BOTTOM, "grid")
        + text(across(value), BOTTOM + 15, share(value), "tick", "middle")
        for value in across.ticks
        if value <= 1
    ]
    named = text((LEFT + across.end) / 2, BOTTOM + 34, words, "axis", "middle")
    return Markup("").join([*marks, line(LEFT, BOTTOM, across.end, BOTTOM, "base"), named])
