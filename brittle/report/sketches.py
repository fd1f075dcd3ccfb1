"""A small drawing for every mechanism: what it looks like in the plane."""

from markupsafe import Markup

from brittle.report.svg import curve, line, tag


def _dot(x: float, y: float, class_: str = "one") -> Markup:
    return tag("circle", cx=x, cy=y, r=3.2, class_=class_)


def _arrow(x1: float, y1: float, x2: float, y2: float) -> Markup:
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    wings = [(x2 - 5 * ux + 2.6 * side * uy, y2 - 5 * uy - 2.6 * side * ux) for side in (1, -1)]
    return line(x1, y1, x2 - 3 * ux, y2 - 3 * uy, "push") + curve([(x2, y2), *wings], "tip", closed=True)


BOUNDARY = curve([(4, 26), (24, 22), (44, 24), (68, 18)], "boundary")
AROUND = ((-13, -7), (12, -9), (-10, 9), (14, 7), (1, -15))
BARELY = ((16, 19), (34, 18.5), (52, 6), (28, 5))
SKETCHES = {
    "doubtful labels": [_dot(36, 22, "two"), *(_dot(36 + x, 22 + y) for x, y in AROUND)],
    "off-subspace weights": [
        line(6, 34, 66, 34, "ground"),
        *(_dot(x, 34, "one" if x < 36 else "two") for x in (14, 26, 46, 58)),
        _arrow(26, 31, 22, 8),
    ],
    "stopped early": [BOUNDARY, *(_dot(x, y) for x, y in BARELY), _dot(48, 36, "two"), _dot(20, 36, "two")],
    "lazy training": [
        tag("circle", cx=36, cy=22, r=14, class_="ground"),
        _dot(36, 22, "start"),
        _arrow(36, 22, 43, 17),
    ],
    "one direction": [BOUNDARY, *(_dot(x, 10) + _arrow(x, 13, x + 4, 34) for x in (14, 32, 50))],
    "KKT point": [
        line(4, 22, 68, 22, "boundary"),
        line(4, 12, 68, 12, "ground"),
        line(4, 32, 68, 32, "ground"),
        *(_dot(x, 12) for x in (14, 34, 56)),
        *(_dot(x, 32, "two") for x in (22, 46)),
    ],
}


def sketch(name: str) -> Markup:
    """The drawing of a mechanism; it adds nothing to its words."""
    return tag("svg", *SKETCHES[name], viewBox="0 0 72 44", class_="sketch", aria_hidden="true")
