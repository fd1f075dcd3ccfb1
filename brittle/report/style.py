"""One look for every picture: quiet axes, colours that survive colour blindness and grey print."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler

from brittle.common.files import replacing

# Okabe and Ito's palette, the darker ones first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
RULES: Any = {
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "font.size": 10,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "brittle",  # the same picture gives the same file
}


@contextmanager
def house_style() -> Iterator[None]:
    with mpl.rc_context(RULES):
        yield


class Drawing(Figure):
    """A figure that notebooks show, although it was drawn without pyplot."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        with house_style():
            self.savefig(stream, format="png", dpi=100)
        return stream.getvalue()


def panels(columns: int = 1, rows: int = 1, width: float = 4.6, height: float = 3.4) -> tuple[Figure, list[Axes]]:
    """A figure with a row of panels, drawn without any global state."""
    with house_style():
        figure = Drawing(figsize=(width * columns, height * rows))
        axes = figure.subplots(rows, columns, squeeze=False)
    return figure, list(axes.flat)


def save(figure: Figure, path: str | Path, dpi: int = 150) -> Path:
    """PNG, SVG or PDF by the path's ending; written whole or not at all, without a date inside.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> bt.plot.save(bt.plot.ray(network, data), "ray.svg").name
        'ray.svg'
    """
    path = Path(path)
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(path.suffix[1:])
    with house_style(), replacing(path) as stream:
        figure.savefig(stream, format=path.suffix[1:], dpi=dpi, metadata=metadata)
    return path
