"""The page's own pictures of an audit. Bars are drawn in per cent of their width, so that their words never shrink."""

import math

from markupsafe import Markup
from torch import Tensor

from brittle.auditing import Audit
from brittle.auditing.found import Mechanism, TheoremRow
from brittle.auditing.treatment import HELPS, RemedyResult
from brittle.report.remedy_chart import rank_remedies
from brittle.report.svg import (
    Axis,
    bar,
    bottom_axis,
    curve,
    density,
    left_axis,
    line,
    number,
    picture,
    share,
    tag,
    text,
    times,
)
from brittle.theorems import Comparison, Relation

WIDTH, HEIGHT = 460.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 448.0, 26.0, 208.0
BINS = 18
DECADES = 6  # of a slack bar
BEYOND = 1.02
FAR = 3.0  # times the longest radius: a limit that is farther away is not drawn in its place


def _percent(value: float) -> str:
    return f"{100 * value:.3f}%"


def strip(height: int, words: str, *inside: Markup, class_: str = "bars") -> Markup:
    """A drawing as wide as its place, of a fixed height."""
    return tag("svg", tag("title", words), *inside, width="100%", height=height, role="img", class_=class_)


def hatching() -> Markup:
    """What open parts are filled with, once for the whole page."""
    stroke = tag("path", d="M-2,2 l4,-4 M0,8 l8,-8 M6,10 l4,-4", class_="hatchline")
    ground = tag("rect", width=8, height=8, class_="hatchground")
    size = {"width": 8, "height": 8, "patternUnits": "userSpaceOnUse"}
    pattern = tag("pattern", ground, stroke, id="hatch", **size)
    return tag("svg", tag("defs", pattern), width=0, height=0, class_="defs", aria_hidden="true")


def gauge(audit: Audit, best: RemedyResult | None) -> Markup:
    """The share of what the data allow: proved solid, open hatched; where the best remedy would bring it."""
    limit = audit.limit
    assert limit is not None
    after = None if best is None else best.share_after
    most = max(1.0, limit.share, after or 0.0) * (BEYOND if max(limit.share, after or 0.0) > 1 else 1.0)
    proved, attacked = min(limit.proved_share or 0.0, limit.share) / most, limit.share / most
    parts = [
        tag("rect", x=0, y=18, width="100%", height=34, rx=6, class_="rest"),
        tag("rect", x=0, y=18, width=_percent(attacked), height=34, rx=6, class_="open"),
        tag("rect", x=0, y=18, width=_percent(proved), height=34, rx=6, class_="proved"),
        _labelled(attacked, 12, f"{share(limit.share, 0)} now", "now"),
        tag("line", x1=_percent(1 / most), x2=_percent(1 / most), y1=14, y2=56, class_="limit"),
    ]
    words = f"{share(limit.share, 0)} of what the data allow, {share(limit.proved_share, 0)} proved."
    if best is not None and after is not None and math.isfinite(after):
        ends = {"x1": _percent(attacked), "x2": _percent(after / most), "y1": 35, "y2": 35}
        parts += [
            tag("line", **ends, class_="gain"),
            tag("circle", cx=_percent(after / most), cy=35, r=5, class_="gain"),
            _labelled(after / most, 68, f"{share(after, 0)} with {best.name}", "gain"),
        ]
        words += f" {share(after, 0)} with {best.name}."
    return strip(74, words, *parts, class_="bars gauge")


def _labelled(place: float, y: float, words: str, class_: str) -> Markup:
    anchor = "end" if place > 0.5 else "start" if place < 0.15 else "middle"
    return tag("text", words, x=_percent(min(1.0, place)), y=y, text_anchor=anchor, class_=f"label {class_}")


def _finite(norms: Tensor) -> list[float]:
    return [each for each in norms.tolist() if math.isfinite(each)]


def histogram(audit: Audit) -> Markup:
    """How far the examples are from a flip, the median, and what the data allow."""
    weak, limit = audit.vulnerability, audit.limit
    values = _finite(weak.free.norms)
    allowed = None if limit is None else limit.median
    largest = max([*values, 0.0])
    within = allowed is not None and (largest == 0 or allowed <= FAR * largest)
    most = 1.04 * (max(largest, allowed or 0.0) if within else largest) or 1.0
    right = 322.0
    across, counts = Axis(0.0, most, 8.0, right), [0] * BINS
    for each in values:
        counts[min(BINS - 1, int(BINS * each / most))] += 1
    up = Axis(0.0, float(max([*counts, 1])), BOTTOM, 48.0)
    kind, width = "proved" if _tight(audit) else "open", (right - 8) / BINS - 2
    bars = []
    for place, count in enumerate(counts):
        low, high = most * place / BINS, most * (place + 1) / BINS
        tip = f"{count} examples from {number(low, 3)} to {number(high, 3)}"
        bars.append(bar(across(low) + 1, up(count), width, BOTTOM - up(count), kind, tip))
    limits = (
        Markup("")
        if allowed is None
        else _mark(across, allowed, 18, f"data allow {number(allowed, 3)}{' →' if allowed > most else ''}", "limit")
    )
    marks = _mark(across, weak.free.median, 40, f"median {number(weak.free.median, 3)}", "now")
    words = f"Histogram of the distance to a flip; the median is {number(weak.free.median, 3)}."
    return picture(330.0, HEIGHT, words, *bars, bottom_axis(across, BOTTOM, "distance to a flip"), limits, marks)


def _tight(audit: Audit) -> bool:
    """Whether most radii are proved to be what the attack says."""
    proofs = audit.vulnerability.certified
    return proofs is not None and 2 * proofs.counts["exact"] >= len(audit.vulnerability.free.norms)


def _mark(across: Axis, value: float, y: float, words: str, class_: str) -> Markup:
    if not math.isfinite(value):
        return Markup("")
    x = across.clipped(value)
    anchor = "end" if x > across.start + 8 * len(words) else "start"
    label = text(x + (-5 if anchor == "end" else 5), y, words, f"label {class_}", anchor)
    return line(x, y - 10, x, BOTTOM, class_) + label


def mechanism_bar(row: Mechanism) -> Markup:
    """How strongly a cause shows, and from where on it is named."""
    filled = row.strength or 0.0
    parts = [
        tag("rect", x=0, y=5, width="100%", height=14, rx=4, class_="rest"),
        tag("rect", x=0, y=5, width=_percent(filled), height=14, rx=4, class_="named" if row.named else "unnamed"),
        tag("line", x1=_percent(row.mark), x2=_percent(row.mark), y1=1, y2=23, class_="limit"),
    ]
    return strip(24, f"{row.name}: {share(row.strength)} of the scale, named from {share(row.mark)} on.", *parts)


def two_distributions(audit: Audit) -> Markup | None:
    """Radii anywhere, on the data's subspace and off it, one above the other."""
    weak = audit.vulnerability
    if weak.on is None:
        return None
    rows = [("anywhere", weak.free), ("on the data's subspace only", weak.on)]
    values = [_finite(radii.norms) for _, radii in rows]
    most = max([each for row in values for each in row] or [1.0]) * 1.04
    across, parts = Axis(0.0, most, 8.0, RIGHT), []
    for place, ((name, radii), some) in enumerate(zip(rows, values, strict=True)):
        ground = 92.0 + 100 * place
        hill = [(across(x), ground - 62 * height) for x, height in density(some, across)]
        parts += [curve([(8.0, ground), *hill, (RIGHT, ground)], f"hill hill{place}", closed=True)] if hill else []
        parts += [line(8, ground, RIGHT, ground, "base"), text(RIGHT, ground - 62, name, "label", "end")]
        if math.isfinite(radii.median):
            x = across.clipped(radii.median)
            parts += [
                line(x, ground - 66, x, ground, "now"),
                text(x + 5, ground - 68, number(radii.median, 3), "label now"),
            ]
    medians = [number(radii.median, 3) for _, radii in rows]
    words = f"Distances to a flip: median {medians[0]} anywhere, {medians[1]} on the subspace."
    return picture(WIDTH, HEIGHT - 14, words, *parts, bottom_axis(across, 192.0, "distance to a flip"))


def one_direction(audit: Audit) -> Markup:
    """The share of examples that one direction flips, by its size."""
    ways = audit.vulnerability.universal
    most = max([float(one.sizes.max()) for one in ways] or [1.0])
    across, up, parts = Axis(0.0, most, LEFT, RIGHT), Axis(0.0, 1.0, BOTTOM, TOP), []
    for place, one in enumerate(ways):
        points = [(across(x), up(y)) for x, y in zip(one.sizes.tolist(), one.shares.tolist(), strict=True)]
        label = text(
            RIGHT - 6, BOTTOM - 14 - 18 * (len(ways) - 1 - place), f"from the {one.name}", f"label way{place}", "end"
        )
        parts += [curve(points, f"way way{place}"), label]
    words = "; ".join(
        f"from the {one.name}: half at {number(one.half, 3)}, all at {number(one.smallest, 3)}" for one in ways
    )
    axes = (
        left_axis(up, LEFT, "examples flipped", RIGHT, lambda value: share(value, 0)),
        bottom_axis(across, BOTTOM, "size of the one direction"),
    )
    return picture(
        WIDTH, HEIGHT, f"Share of the examples flipped by one direction, by its size; {words}.", *axes, *parts
    )


def remedy_bars(audit: Audit) -> Markup:
    """The median radius after each remedy that was applied, beside now."""
    now = audit.vulnerability.free.median
    tried = [each for each in rank_remedies(audit) if each.applied]
    values = [each.radius_after for each in tried if math.isfinite(each.radius_after)]
    most = max([*values, now if math.isfinite(now) else 0.0, 1e-12]) * 1.15
    height = 34 * max(1, len(tried)) + 18
    bars = [_remedy_bar(34 * place, each, most) for place, each in enumerate(tried)]
    names = [_remedy_name(34 * place, each) for place, each in enumerate(tried)]
    words = "; ".join(f"{each.name} {number(each.radius_after, 3)}" for each in tried)
    told = f"Median distance to a flip after each remedy, now {number(now, 3)}: {words}."
    return strip(height, told, *bars, _now(now, now / most, len(tried)), *names)


def _remedy_bar(y: float, remedy: RemedyResult, most: float) -> Markup:
    reached = min(remedy.radius_after, most) / most
    kind = "helped" if remedy.factor >= HELPS or math.isnan(remedy.factor) else "hurt"  # NaN: it was 0 before
    return tag("rect", x=0, y=y + 17, width=_percent(reached), height=10, rx=3, class_=kind)


def _remedy_name(y: float, remedy: RemedyResult) -> Markup:
    factor = "" if math.isnan(remedy.factor) else f" ({times(remedy.factor)})"
    reached = {"x": "100%", "y": y + 12, "text_anchor": "end", "class_": "label"}
    return tag("text", remedy.name, x=0, y=y + 12, class_="label") + tag(
        "text", f"{number(remedy.radius_after, 3)}{factor}", **reached
    )


def _now(value: float, place: float, count: int) -> Markup:
    """Where the network is now, marked on so many bars and not through their names."""
    if not math.isfinite(value):
        return Markup("")
    across = {"x1": _percent(place), "x2": _percent(place), "class_": "now"}
    marks = [tag("line", y1=34 * row + 15, y2=34 * row + 31, **across) for row in range(count)]
    return Markup("").join(marks) + _labelled(place, 34 * count + 16, f"now {number(value, 3)}", "now")


def slack_bar(row: Comparison) -> Markup:
    """How far a measured value is from its threshold, by powers of ten."""
    parts = [
        tag("rect", x=0, y=5, width="100%", height=14, rx=4, class_="rest"),
        tag("rect", x=0, y=5, width=_percent(max(0.03, 1 - miss(row) / DECADES)), height=14, rx=4, class_="hurt"),
        tag("line", x1="99.6%", x2="99.6%", y1=1, y2=23, class_="limit"),
    ]
    return strip(
        24, f"{row.name}: {number(row.value)} where {row.relation.value} {number(row.threshold)} is needed.", *parts
    )


def miss(row: Comparison) -> float:
    """Powers of ten between the value and its threshold, up to DECADES; 0 where the hypothesis holds."""
    if row.holds:
        return 0.0
    ends = (row.value, row.threshold) if row.relation is Relation.AT_MOST else (row.threshold, row.value)
    above, below = ends
    if not (above > 0 and math.isfinite(above)):
        return float(DECADES)
    return min(float(DECADES), math.log10(above / below)) if below > 0 else float(DECADES)


def nearest_miss(rows: tuple[TheoremRow, ...]) -> TheoremRow | None:
    """Of the theorems that do not apply the one with the fewest hypotheses that fail, and by the least."""
    some = [row for row in rows if not row.applies and row.hypotheses]
    return min(
        some,
        key=lambda row: (sum(not each.holds for each in row.hypotheses), sum(map(miss, row.hypotheses))),
        default=None,
    )
