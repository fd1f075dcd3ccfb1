"""The pictures of an audit: flip curves, radii, a slice of the decision boundary, remedies, adversarial examples."""

import math
from pathlib import Path

import torch
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from torch import Tensor

from brittle.auditing import Audit
from brittle.auditing.costs import operations
from brittle.auditing.pieces import select_audited_data
from brittle.auditing.treatment import HELPS
from brittle.common.kinds import check_kinds
from brittle.data import Data
from brittle.networks import Network
from brittle.report.style import COLOURS, house_style, panels, save

GRID, COARSE = 81, 31
SLICE_WORK = 4e10  # operations for the slice with the finer grid
SHOWN = 5  # adversarial examples
UNHELPFUL = "#9aa0a6"


@check_kinds
def write_audit_pictures(audit: Audit, network: Network, data: Data, folder: Path) -> None:
    """The pictures as PNG files.

    Examples:
        >>> from pathlib import Path
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> found = bt.audit(bt.networks.orthogonal_kkt(data.X, data.y).network, data, budget=1, remedies="none")
        >>> bt.report.write_audit_pictures(found, found.model, found.data, Path("pictures"))
        >>> sorted(path.name for path in Path("pictures").iterdir())
        ['curves.png', 'radii.png', 'slice.png']
    """
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "radii": radius_distribution(audit),
        "curves": flip_curves(audit),
        "slice": boundary_slice(audit, network, data),
        "remedies": remedies(audit) if any(each.applied for each in audit.remedies) else None,
        "examples": adversarial_examples(audit, data),
    }
    for name, figure in figures.items():
        if figure is not None:
            save(figure, folder / f"{name}.png")


def flip_curves(audit: Audit) -> Figure:
    """The share of examples that one direction flips, by its size."""
    figure, (axes,) = panels(width=6.2)
    for one in audit.vulnerability.universal:
        axes.plot(one.sizes, 100 * one.shares, label=f"from the {one.name}")
    axes.set(xlabel="size of the perturbation", ylabel="examples flipped, %", ylim=(-3, 103))
    axes.set_title("One direction for all examples")
    axes.legend()
    return figure


def radius_distribution(audit: Audit) -> Figure:
    """How many examples are flipped within each distance: attacked and proved."""
    weak = audit.vulnerability
    curves = {"anywhere": weak.free.norms, "on the data's subspace": None, "off it": None}
    curves["on the data's subspace"] = None if weak.on is None else weak.on.norms
    curves["off it"] = None if weak.off is None else weak.off.norms
    curves["along the gradient"] = weak.gradient_step.norms
    figure, (axes,) = panels(width=6.2)
    for name, norms in curves.items():
        if norms is not None and norms.isfinite().any():
            axes.step(*_cumulative(norms), where="post", label=name)
    if weak.certified is not None:
        axes.step(
            *_cumulative(weak.certified.lower), where="post", color="black", linestyle="--", label="not below (proved)"
        )
    axes.set(xlabel="distance to a flip", ylabel="examples within, %", xscale="log", ylim=(-3, 103))
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter("{x:g}")  # 0.5 and 2, no powers of ten
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_title("How far the examples are from flipping")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=3, frameon=False)  # it would cover a curve
    return figure


def _cumulative(norms: Tensor) -> tuple[Tensor, Tensor]:
    finite = norms[norms.isfinite() & (norms > 0)].sort().values
    below = int((norms <= 0).sum())
    shares = 100 * (torch.arange(1, len(finite) + 1) + below) / len(norms)
    return finite, shares


def boundary_slice(audit: Audit, network: Network, data: Data) -> Figure:
    """The margin of one median example in the plane of its shortest flip and the way to another class."""
    weak = audit.vulnerability
    data = select_audited_data(data, weak.held_out)
    place = _median_place(weak.free.norms)
    row = int(weak.examples[weak.free.rows[place]])
    x, y, flip = data.X[row], data.y[row : row + 1], weak.perturbations[place]
    first = flip / flip.norm().clamp_min(1e-300)
    second = _across(data, row, first)
    reach = 2.2 * float(flip.norm()) or 1.0
    grid = _fineness(audit, network)
    steps = torch.linspace(-reach, reach, grid, dtype=torch.float64)
    across, along = torch.meshgrid(steps, steps, indexing="ij")
    points = x + along.reshape(-1, 1) * first + across.reshape(-1, 1) * second
    margins = network.margins(points, y.expand(len(points))).double().view(grid, grid)
    figure, (axes,) = panels(width=5.6, height=4.4)
    bound = float(margins.abs().max()) or 1.0
    with house_style():
        extent = (-reach, reach, -reach, reach)
        picture = axes.imshow(margins.numpy(), cmap="RdBu", vmin=-bound, vmax=bound, extent=extent, origin="lower")
        axes.contour(steps, steps, margins, levels=[0.0], colors="black", linewidths=1.2)
        axes.plot([0], [0], "o", color="black", label="the example")
        axes.plot([float(flip.norm())], [0], "x", color="black", label="its shortest flip")
        figure.colorbar(picture, ax=axes, label="margin")
    axes.set(xlabel="along the shortest flip", ylabel="towards another class", aspect="equal")
    axes.set_title(f"A slice through example {row}")
    axes.legend(loc="upper left")
    axes.grid(False)
    return figure


def _fineness(audit: Audit, network: Network) -> int:
    """How many points a side of the slice has: fewer where passes take long."""
    return GRID if GRID**2 * audit.speed * operations(network) <= SLICE_WORK else COARSE


def _median_place(norms: Tensor) -> int:
    """The example whose radius is the (lower) median of the finite ones."""
    order = torch.where(norms.isfinite() & (norms > 0), norms, math.inf).argsort()
    finite = max(1, int((norms.isfinite() & (norms > 0)).sum()))
    return int(order[(finite - 1) // 2])


def _across(data: Data, row: int, first: Tensor) -> Tensor:
    """Towards the nearest example of another label, orthogonal to the flip."""
    others = data.X[data.y != data.y[row]]
    ways = others - data.X[row] if len(others) else torch.ones(1, data.columns, dtype=torch.float64)
    way: Tensor = ways[ways.norm(dim=1).argmin()]
    way = way - (way @ first) * first
    length: Tensor = way.norm().clamp_min(1e-300)
    return way / length


def remedies(audit: Audit) -> Figure:
    """The median radius before and after each remedy that could be applied."""
    tried = [each for each in audit.remedies if each.applied and math.isfinite(each.radius_after)]
    figure, (axes,) = panels(width=6.2, height=0.9 + 0.5 * max(1, len(tried)))
    places = range(len(tried))
    colours = [COLOURS[2] if each.factor >= HELPS else UNHELPFUL for each in tried]
    axes.barh(places, [each.radius_after for each in tried], color=colours, height=0.55)
    axes.axvline(audit.vulnerability.free.median, color="black", linestyle="--", label="as it is")
    axes.set_yticks(list(places), [each.name for each in tried])
    axes.invert_yaxis()
    axes.set(xlabel="median distance to a flip")
    axes.legend()
    return figure


def adversarial_examples(audit: Audit, data: Data) -> Figure | None:
    """Examples as pictures, the shortest flip magnified, and both together; None where the data are no pictures."""
    image = data.truth.image
    if image is None:
        return None
    weak = audit.vulnerability
    data, norms = select_audited_data(data, weak.held_out), weak.free.norms
    places = torch.where(norms.isfinite() & (norms > 0), norms, math.inf).argsort()[:SHOWN].tolist()
    figure, axes = panels(columns=len(places), rows=3, width=1.5, height=1.5)
    for column, place in enumerate(places):
        row = int(weak.examples[weak.free.rows[place]])
        x, flip = data.X[row], weak.perturbations[place]
        shown = (x, flip, x + flip)
        for line, values in enumerate(shown):
            panel = axes[line * len(places) + column]
            scale = (
                {"cmap": "RdBu", "vmin": -flip.abs().max(), "vmax": flip.abs().max()} if line == 1 else {"cmap": "gray"}
            )
            panel.imshow(_picture(values, image).numpy(), **scale)
            panel.set(xticks=[], yticks=[])
            panel.grid(False)
    for line, name in enumerate(("example", "flip", "flipped")):
        axes[line * len(places)].set_ylabel(name)
    return figure


def _picture(values: Tensor, image: tuple[int, ...]) -> Tensor:
    picture = values.view(*image)
    if len(image) == 3:  # channels first, as PyTorch has them
        picture = picture.permute(1, 2, 0)
        picture = (picture - picture.min()) / (picture.max() - picture.min()).clamp_min(1e-300)
    return picture
