"""What a figure shows, as plain numbers: an experiment says it, `report` draws it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Number = float | None  # None: nothing was measured there
Row = Sequence[Number]


@dataclass(frozen=True)
class Curve:
    """y against x. `deviation` is drawn as bars; curves with the same `colour` belong together."""

    label: str
    x: Row
    y: Row
    deviation: Row | None = None
    style: str = "line"  # line, dashed, dotted, points, plain (no marks)
    colour: int | None = None


@dataclass(frozen=True)
class Chart:
    """Curves over common axes; a scale is linear or log."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    x_scale: str = "linear"
    y_scale: str = "linear"
    y_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Heat:
    """values[i][j] at (x[j], y[i]) as colour, between `low` and `high`; curves lie on top."""

    title: str
    x_label: str
    y_label: str
    x: Row
    y: Row
    values: Sequence[Row]
    value_label: str = ""
    low: float | None = None
    high: float | None = None
    curves: Sequence[Curve] = ()
    x_scale: str = "linear"
    y_scale: str = "linear"


@dataclass(frozen=True)
class Histogram:
    """How often each value occurs, for one or several samples."""

    title: str
    x_label: str
    samples: Mapping[str, Sequence[float]]
    bins: int = 40
    marks: Mapping[str, float] = field(default_factory=dict)  # vertical lines


@dataclass(frozen=True)
class Boundary:
    """N in the plane: values[i][j] = N(x[j], y[i]), its zero line, and examples (n, 2) with labels ±1."""

    title: str
    x: Row
    y: Row
    values: Sequence[Row]
    examples: Sequence[Row]
    labels: Row
    x_label: str = "$x_1$"
    y_label: str = "$x_2$"


@dataclass(frozen=True)
class Surface:
    """N in space: values[i][j][k] = N(x[i], y[j], z[k]), its zero surface, and examples (n, 3) with labels ±1."""

    title: str
    x: Row
    y: Row
    z: Row
    values: Sequence[Sequence[Row]]
    examples: Sequence[Row]
    labels: Row
    elevation: float = 18.0  # degrees, from where it is seen
    azimuth: float = -60.0


Panel = Chart | Heat | Histogram | Boundary | Surface


@dataclass(frozen=True)
class Picture:
    """Panels in rows of `columns`."""

    panels: Sequence[Panel]
    columns: int = 3
