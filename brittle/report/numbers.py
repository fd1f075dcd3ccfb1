"""The one formatter of the pages; `templates/js/numbers.js` says the same in the browser, and a test compares them."""

import math
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

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
