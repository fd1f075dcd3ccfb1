"""One look for every picture: quiet axes, colours that survive colour blindness and grey print."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import permutations, product
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LightSource
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

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
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> bt.plot.save(bt.plot.ray(network, data), "ray.svg").name
        'ray.svg'
    """
    path = Path(path)
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(path.suffix[1:])
    with house_style(), replacing(path) as stream:
        figure.savefig(stream, format=path.suffix[1:], dpi=dpi, metadata=metadata)
    return path


# Decision boundaries: the zero line of a network in the plane, its zero surface in space.


POSITIVE, NEGATIVE = COLOURS[0], COLOURS[1]
SURFACE = "#9AA5B1"
Array = Sequence[Any] | np.ndarray


def draw_boundary(axes: Axes, x: Array, y: Array, values: Array, examples: Array, labels: Array) -> None:
    """values[i][j] = N(x[j], y[i]) by its sign, the zero line, and the examples (n, 2) by their labels."""
    x, y, values = np.asarray(x, float), np.asarray(y, float), np.asarray(values, float)
    extreme = max(float(np.abs(values).max()), 1e-300)
    axes.contourf(x, y, values, levels=[-extreme, 0, extreme], colors=[NEGATIVE, POSITIVE], alpha=0.18)
    axes.contour(x, y, values, levels=[0.0], colors="black", linewidths=1.2)
    examples, labels = np.asarray(examples, float), np.asarray(labels, float)
    for sign, colour, marker in ((1, POSITIVE, "o"), (-1, NEGATIVE, "s")):
        some = examples[labels == sign]
        axes.plot(some[:, 0], some[:, 1], marker, color=colour, markeredgecolor="white", markersize=6)
    axes.set_aspect("equal")
    axes.grid(False)


def draw_surface(axes: Any, x: Array, y: Array, z: Array, values: Array, examples: Array, labels: Array) -> None:
    """values[i][j][k] = N(x[i], y[j], z[k]): the zero surface, and the examples (n, 3) by their labels."""
    grid = [np.asarray(each, float) for each in (x, y, z)]
    triangles = zero_surface(np.asarray(values, float), *grid)
    sides = triangles[:, 1:] - triangles[:, :1]
    triangles = triangles[np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1) > 0]  # a point has no shade
    if len(triangles):
        surface = Poly3DCollection(
            triangles, facecolors=SURFACE, alpha=0.55, shade=True, lightsource=LightSource(315, 45)
        )
        surface.set_rasterized(True)  # thousands of triangles make an SVG that no browser likes
        axes.add_collection3d(surface)
    examples, labels = np.asarray(examples, float), np.asarray(labels, float)
    for sign, colour, marker in ((1, POSITIVE, "o"), (-1, NEGATIVE, "s")):
        some = examples[labels == sign]
        axes.plot(*some.T, marker, color=colour, markeredgecolor="white", markersize=5, zorder=10)
    axes.set(xlim=grid[0][[0, -1]], ylim=grid[1][[0, -1]], zlim=grid[2][[0, -1]])
    axes.set(xlabel="$x_1$", ylabel="$x_2$", zlabel="$x_3$")


def zero_surface(values: np.ndarray, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Triangles (t, 3, 3) of the zero surface of values (x, y, z), linear on each of a cube's six tetrahedra.

    A tetrahedron has a path of cube edges from one corner to the opposite one; it is cut in a triangle where one
    corner's sign differs from the others', in a quadrilateral where two do.
    """
    X = np.stack(np.meshgrid(x, y, z, indexing="ij"), -1)
    parts = [np.zeros((0, 3, 3))]
    for order in permutations(range(3)):
        corners = [np.zeros(3, int)]
        for axis in order:
            corners.append(corners[-1] + np.eye(3, dtype=int)[axis])
        at = np.stack([_shifted(X, corner).reshape(-1, 3) for corner in corners], 1)
        value = np.stack([_shifted(values, corner).reshape(-1) for corner in corners], 1)
        parts += _cut(at, value)
    return np.concatenate(parts)


def _shifted(grid: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """The given corner of every cube."""
    return grid[tuple(slice(step, size - 1 + step) for step, size in zip(corner, grid.shape, strict=False))]


def _cut(at: np.ndarray, value: np.ndarray) -> list[np.ndarray]:
    """Tetrahedra at (t, 4, 3) with values (t, 4), pattern by pattern of their signs."""
    positive, parts = value > 0, []
    for pattern in product((False, True), repeat=4):
        if sum(pattern) not in (1, 2, 3):
            continue
        some = (positive == np.array(pattern)).all(1)
        if not some.any():
            continue
        inside = [corner for corner in range(4) if pattern[corner]]
        outside = [corner for corner in range(4) if not pattern[corner]]
        ends = [(a, b) for a in inside for b in outside]
        cuts = [_crossing(at[some], value[some], a, b) for a, b in ends]
        # the four cuts ac, ad, bc, bd go round as ac, ad, bd, bc
        rounds = [(0, 1, 2)] if len(cuts) == 3 else [(0, 1, 3), (0, 3, 2)]
        up = at[some][:, inside].mean(1) - at[some][:, outside].mean(1)
        parts += [_facing(np.stack([cuts[i] for i in each], 1), up) for each in rounds]
    return parts


def _facing(triangles: np.ndarray, up: np.ndarray) -> np.ndarray:
    """The triangles with their corners in such an order that their normals point up; light falls on one side."""
    sides = triangles[:, 1:] - triangles[:, :1]
    down = (np.cross(sides[:, 0], sides[:, 1]) * up).sum(1) < 0
    triangles[down] = triangles[down][:, ::-1]
    return triangles


def _crossing(at: np.ndarray, value: np.ndarray, a: int, b: int) -> np.ndarray:
    share = value[:, a] / (value[:, a] - value[:, b])
    point: np.ndarray = at[:, a] + share[:, None] * (at[:, b] - at[:, a])
    return point
