"""Pictures from plain numbers: every kind of panel, the zero surface, tables and pages."""

from collections import Counter

import numpy as np
import pytest
from matplotlib.colors import to_hex

from brittle.experiments.base import Claim, FigureResult
from brittle.experiments.picture import BoundaryPicture, Chart, Heat, Histogram, Picture, PlotCurve, Surface
from brittle.report.figures import contents, draw, page, reproduction, table
from brittle.report.style import save, zero_surface

GRID = list(np.linspace(-1.5, 1.5, 13))
CIRCLE = [[x * x + y * y - 1 for x in GRID] for y in GRID]
BALL = [[[x * x + y * y + z * z - 1 for z in GRID] for y in GRID] for x in GRID]
EXAMPLES, LABELS = [[0.0, 0.0], [1.4, 0.0]], [-1.0, 1.0]
PANELS = [
    Chart(
        "curves",
        "x",
        "y",
        [PlotCurve("a", [1, 2], [1.0, None], [0.1, None]), PlotCurve("", [1, 2], [2, 3], style="dashed")],
    ),
    Chart(
        "logarithms", "x", "y", [PlotCurve("b", [1, 10], [1, 100], style="dotted", colour=6)], "log", "log", (0.5, 200)
    ),
    Heat(
        "heat",
        "x",
        "y",
        [1, 2, 4],
        [1, 3],
        [[0, 1, None], [1, 0, 1]],
        "share",
        0,
        1,
        [PlotCurve("c", [1, 4], [1, 3])],
        "log",
    ),
    Histogram("histogram", "x", {"one": [1.0, 2.0, 2.0], "two": [1.5]}, bins=5, marks={"mean": 1.6}),
    BoundaryPicture("plane", GRID, GRID, CIRCLE, EXAMPLES, LABELS),
    Surface("space", GRID, GRID, GRID, BALL, [[*each, 0.0] for each in EXAMPLES], LABELS),
]


def result(**changes):
    base = {
        "id": "vardi2022/fig1a",
        "title": "A title",
        "preset": "smoke",
        "grid": {"dim": [100, 200], "seed": [0, 1]},
        "points": ({"dim": 100, "seed": 0, "size": 1.5, "grid": [1, 2]}, {"dim": 100, "seed": 1, "why": "a, b"}),
        "unreached": ({"dim": 200, "seed": 0, "reached": False},),
        "claims": (Claim("a < b | c", "<script>", True), Claim("second", "no", False), Claim("third", "?", None)),
        "remarks": ("A remark.",),
        "seconds": {"cells": 3.0},
    }
    return FigureResult(**{**base, **changes})


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_every_panel_can_be_drawn_and_gives_the_same_file_twice(panel, ending, tmp_path):
    for name in ("one", "two"):
        save(draw(Picture([panel])), tmp_path / f"{name}.{ending}", dpi=40)
    assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()


def test_panels_go_in_rows():
    figure = draw(Picture(PANELS[:4], columns=3))
    assert [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")] == [
        panel.title for panel in PANELS[:4]
    ]
    width, height = figure.get_size_inches()
    assert width > height


def test_curves_leave_gaps_and_share_colours():
    curves = [PlotCurve("a", [1, 2, 3], [1, None, 3], colour=2), PlotCurve("b", [1, 2], [1, 2], colour=2)]
    axes = draw(Picture([Chart("", "x", "y", curves)])).axes[0]
    lines = axes.get_lines()
    assert np.isnan(lines[0].get_ydata()[1])
    assert to_hex(lines[0].get_color()) == to_hex(lines[1].get_color())


def test_the_boundary_is_where_the_values_change_sign():
    axes = draw(Picture([PANELS[4]])).axes[0]
    zero = [path for collection in axes.collections for path in collection.get_paths()][-1].vertices
    assert np.abs(np.hypot(*zero.T) - 1).max() < 0.02


def test_the_zero_surface_of_a_ball_is_its_sphere():
    grid = np.linspace(-1.5, 1.5, 25)
    x, y, z = np.meshgrid(grid, grid, 1.2 * grid, indexing="ij")
    triangles = zero_surface(x**2 + y**2 + z**2 - 1, grid, grid, 1.2 * grid)
    assert np.abs(np.linalg.norm(triangles, axis=2) - 1).max() < 0.01
    sides = triangles[:, 1:] - triangles[:, :1]
    area = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1).sum() / 2
    assert area == pytest.approx(4 * np.pi, rel=0.02)
    outward = (np.cross(sides[:, 0], sides[:, 1]) * triangles.mean(1)).sum(1)
    assert (outward > -1e-12).all()  # towards where the values are positive


def test_the_zero_surface_has_no_holes():
    """Every edge belongs to an even number of triangles."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((6, 6, 6))
    values[[0, -1]] = values[:, [0, -1]] = values[:, :, [0, -1]] = -1
    triangles = zero_surface(values, *[np.arange(6.0)] * 3).round(9)
    edges = Counter(
        frozenset((tuple(corners[i]), tuple(corners[j])))
        for corners in triangles.tolist()
        for i, j in ((0, 1), (1, 2), (0, 2))
    )
    assert len(edges) > 0
    assert all(count % 2 == 0 for edge, count in edges.items() if len(edge) == 2)


def test_no_surface_where_nothing_changes_sign():
    grid = np.arange(3.0)
    assert zero_surface(np.ones((3, 3, 3)), grid, grid, grid).shape == (0, 3, 3)
    draw(Picture([Surface("", grid, grid, grid, np.ones((3, 3, 3)), [[0, 0, 0]], [1])]))


def test_the_table_holds_every_plain_value():
    assert table(result().points) == 'dim,seed,size,why\n100,0,1.5,\n100,1,,"a, b"\n'


def test_the_page_escapes_what_it_shows():
    text = page(result(), "<?xml?><svg></svg>")
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "<?xml?>" not in text
    assert "2 of 3 cells reached their stop" in text
    assert "dim 200, seed 0" in text
    assert [text.count(word) for word in (">holds<", ">does not hold<", ">not decided<")] == [1, 1, 1]


def test_the_page_of_all_figures():
    text = reproduction([{**result().to_json(), "current": True}])
    assert "\nCells: dim 100, 200; seed 0, 1.\n" in text
    assert "other code" not in text
    assert "| [vardi2022/fig1a](#vardi2022fig1a) | smoke | 1 of 3 | 1 | 1 of 3 | 3 s |" in text
    assert "| a < b \\| c | <script> | holds |" in text
    assert "\n\n\n" not in text


def test_damaged_results_are_named(tmp_path):
    (tmp_path / "vardi2022-fig1a").mkdir()
    (tmp_path / "vardi2022-fig1a" / "figure.json").write_text("{")
    with pytest.raises(ValueError, match=r"figure\.json"):
        contents(tmp_path)
