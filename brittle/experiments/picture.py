"""What a figure shows, as plain numbers: an experiment says it, `report` draws it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Number = float | None  # None: nothing was measured there
Row = Sequence[Number]


@dataclass(frozen=True)
class PlotCurve:
    """y against x. `deviation` is drawn as bars; curves with the same `colour` belong together."""

    label: str  # for the legend; empty for none
    x: Row  # places
    y: Row  # values there
    deviation: Row | None = None  # of each value, drawn as a bar
    style: str = "line"  # line, dashed, dotted, points, plain (no marks)
    colour: int | None = None  # a number; None for the next one


@dataclass(frozen=True)
class Chart:
    """Curves over common axes; a scale is linear or log."""

    title: str  # above the panel
    x_label: str  # of the axis
    y_label: str  # of the axis
    curves: Sequence[PlotCurve]  # in the order of the legend
    x_scale: str = "linear"  # linear or log
    y_scale: str = "linear"  # linear or log
    y_range: tuple[float, float] | None = None  # None for what the curves need


@dataclass(frozen=True)
class Heat:
    """values[i][j] at (x[j], y[i]) as colour, between `low` and `high`; curves lie on top."""

    title: str  # above the panel
    x_label: str  # of the axis
    y_label: str  # of the axis
    x: Row  # places of the columns
    y: Row  # places of the rows
    values: Sequence[Row]  # one row for each y
    value_label: str = ""  # beside the scale of colours
    low: float | None = None  # the value of the first colour; None for the least
    high: float | None = None  # the value of the last colour; None for the largest
    curves: Sequence[PlotCurve] = ()  # on top
    x_scale: str = "linear"  # linear or log
    y_scale: str = "linear"  # linear or log


@dataclass(frozen=True)
class Histogram:
    """How often each value occurs, for one or several samples."""

    title: str  # above the panel
    x_label: str  # of the axis
    samples: Mapping[str, Sequence[float]]  # values by the names of the samples
    bins: int = 40  # how many
    marks: Mapping[str, float] = field(default_factory=dict)  # vertical lines by their names


@dataclass(frozen=True)
class BoundaryPicture:
    """N in the plane: values[i][j] = N(x[j], y[i]), its zero line, and examples (n, 2) with labels ±1."""

    title: str  # above the panel
    x: Row  # first coordinates
    y: Row  # second coordinates
    values: Sequence[Row]  # one row for each y
    examples: Sequence[Row]  # their coordinates
    labels: Row  # of the examples
    x_label: str = "$x_1$"  # of the axis
    y_label: str = "$x_2$"  # of the axis


@dataclass(frozen=True)
class Surface:
    """N in space: values[i][j][k] = N(x[i], y[j], z[k]), its zero surface, and examples (n, 3) with labels ±1."""

    title: str  # above the panel
    x: Row  # first coordinates
    y: Row  # second coordinates
    z: Row  # third coordinates
    values: Sequence[Sequence[Row]]  # one table for each x, one row for each y
    examples: Sequence[Row]  # their coordinates
    labels: Row  # of the examples
    elevation: float = 18.0  # degrees, from where it is seen
    azimuth: float = -60.0  # degrees


Panel = Chart | Heat | Histogram | BoundaryPicture | Surface


@dataclass(frozen=True)
class Picture:
    """Panels in rows of `columns`."""

    panels: Sequence[Panel]  # row by row
    columns: int = 3  # panels in a row
