"""Small pictures as SVG inside the page: their colours are those of the page, by day, by night and on paper."""

import base64
import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

NOTHING, INFINITE = "–", "∞"
SMALLEST, LARGEST = 1e-3, 1e6  # numbers beyond these are written with powers of ten
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: Any, digits: int = 4) -> str:
    """A number with so many significant digits, without zeros at its end; words for what is none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NOTHING
    if not isinstance(value, float):
        return str(value)
    if math.isinf(value):
        return INFINITE if value > 0 else f"-{INFINITE}"
    size = abs(value)
    if size == 0:
        return "0"
    exponent = int(f"{size:.{digits - 1}e}".partition("e")[2])
    if SMALLEST <= size < LARGEST:
        return _fixed(value, max(0, digits - 1 - exponent))
    mantissa, power = f"{value:.{digits - 1}e}".split("e")
    shown = {"1": "", "-1": "-"}.get(short := _short(mantissa), f"{short}·")
    return f"{shown}10{str(int(power)).translate(RAISED)}"


def times(value: float | None) -> str:
    """A factor, always with two digits behind the point."""
    if value is None or math.isnan(value):
        return NOTHING
    plain = 0.01 <= abs(value) < LARGEST
    return f"×{Decimal(value).quantize(Decimal('0.01'), ROUND_HALF_UP) if plain else number(value, 2)}"


def share(value: float | None, digits: int = 1) -> str:
    """A part of one, in per cent with so many digits behind the point; less than one per cent with two that count."""
    if value is None or math.isnan(value):
        return NOTHING
    percent = 100 * value
    plain = 1 <= abs(percent) < LARGEST
    return f"{_fixed(percent, digits) if plain else number(percent, 2)}%"


def _fixed(value: float, places: int) -> str:
    """Rounded half away from zero, as browsers round."""
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    text = _short(f"{rounded:f}")
    return "0" if text == "-0" else text


def _short(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


# Where the pages' templates come from; every string that they show is escaped.


ENVIRONMENT = Environment(
    loader=PackageLoader("brittle.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters |= {"number": number, "share": share, "times": times}


def source(*names: str) -> Markup:
    """Files of the templates' folder as they are, one after the other: a style sheet, or a script."""
    folder = files("brittle.report") / "templates"
    return Markup("\n".join((folder / name).read_text(encoding="utf-8") for name in names))


def digest(text: str) -> str:
    """What a content security policy calls an inline style or script that may be used."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def tag(name: str, *inside: Any, **attributes: Any) -> Markup:
    """One element; `class_` is its class, an underscore in a name is a hyphen, None leaves an attribute out."""
    words = [
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _value(value))
        for key, value in attributes.items()
        if value is not None
    ]
    body = Markup("").join(escape(each) for each in inside)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), Markup("").join(words), body)


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def picture(width: float, height: float, words: str, *inside: Any) -> Markup:
    """A drawing of this size that scales with the page; `words` for those who do not see it."""
    view = f"0 0 {width:g} {height:g}"
    return tag(
        "svg",
        tag("title", words),
        *inside,
        viewBox=view,
        role="img",
        class_="chart",
        preserveAspectRatio="xMinYMin meet",
    )


def text(x: float, y: float, words: str, class_: str = "", anchor: str = "start") -> Markup:
    return tag("text", words, x=x, y=y, class_=class_ or None, text_anchor=None if anchor == "start" else anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def bar(x: float, y: float, width: float, height: float, class_: str, tip: str = "") -> Markup:
    """A rectangle; `tip` is shown when it is pointed at."""
    size = {"width": max(0.0, width), "height": max(0.0, height)}
    return tag("rect", *([tag("title", tip)] if tip else []), x=x, y=y, **size, class_=class_)


def curve(points: Iterable[tuple[float, float]], class_: str, closed: bool = False) -> Markup:
    path = "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in points) + ("Z" if closed else "")
    return tag("path", d=path, class_=class_)


@dataclass(frozen=True)
class Axis:
    """Numbers from `low` to `high` on pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0
        return self.start + share * (self.end - self.start)

    def clipped(self, value: float) -> float:
        return self(min(self.high, max(self.low, value)))

    @property
    def ticks(self) -> list[float]:
        return ticks(self.low, self.high)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers between the ends, about so many."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [place * step for place in range(first, math.floor(high / step + 1e-9) + 1)]


def bottom_axis(axis: Axis, y: float, words: str, top: float | None = None) -> Markup:
    """Ticks with their numbers below y, and lines up to `top`."""
    marks = []
    for value in axis.ticks:
        x = axis(value)
        marks += [line(x, y if top is None else top, x, y, "grid"), text(x, y + 15, number(value, 3), "tick", "middle")]
    named = text((axis.start + axis.end) / 2, y + 32, words, "axis", "middle")
    return Markup("").join([*marks, line(axis.start, y, axis.end, y, "base"), named])


def left_axis(axis: Axis, x: float, words: str, right: float, form: Any = number) -> Markup:
    """The same for heights, with lines to the `right`."""
    marks = []
    for value in axis.ticks:
        y = axis(value)
        marks += [line(x, y, right, y, "grid"), text(x - 6, y + 4, form(value), "tick", "end")]
    return Markup("").join([*marks, text(x - 6, axis.end - 12, words, "axis", "start")])


def density(values: Sequence[float], axis: Axis, points: int = 80) -> list[tuple[float, float]]:
    """A smooth histogram of positive values: (value, height from 0 to 1); nothing is smeared to the left of 0."""
    if len(values) < 2:
        return []
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((each - mean) ** 2 for each in values) / len(values))
    width = max(0.8 * spread * len(values) ** -0.2, 1e-3 * (axis.high - axis.low), 1e-300)
    places = [axis.low + (axis.high - axis.low) * step / (points - 1) for step in range(points)]
    mirrored = [*values, *(-each for each in values)]
    heights = [sum(math.exp(-0.5 * ((place - each) / width) ** 2) for each in mirrored) for place in places]
    top = max(heights) or 1.0
    return [(place, height / top) for place, height in zip(places, heights, strict=True)]
