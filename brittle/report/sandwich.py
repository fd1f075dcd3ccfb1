"""Lower bound, radius and upper bound of every example, sorted: how much room is left between proof and attack."""

from pathlib import Path

import torch
from matplotlib.figure import Figure

from brittle.certificates import Bounds
from brittle.common.kinds import kinds_checked
from brittle.report.style import COLOURS, panels, save


def sandwich(found: Bounds) -> Figure:
    """Sorted by upper bound, then by lower bound; examples without a known flip stand at the right without an upper.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> figure = bt.plot.sandwich(bt.certificates.Relaxation().bound(network, data))
    """
    shown = torch.where(found.upper.isfinite(), found.upper, found.cap)
    order = torch.argsort(shown + 1e-9 * found.lower)
    lower, upper, exact = found.lower[order], found.upper[order], found.exact[order]
    places = torch.arange(1, len(order) + 1)
    figure, (axes,) = panels(width=6.0)
    axes.vlines(places, lower, shown[order], color="#BBBBBB", linewidth=1.0)
    known = upper.isfinite()
    axes.plot(places[known], upper[known], "v", color=COLOURS[1], label="attack (upper bound)")
    axes.plot(places[~exact], lower[~exact], "^", color=COLOURS[0], label=f"certificate ({found.method})")
    axes.plot(places[exact], lower[exact], "o", color=COLOURS[2], label="exact radius", markersize=3.5)
    axes.set(xlabel="example, sorted by radius", ylabel="ℓ2 distance to a flip", xlim=(0, len(order) + 1))
    axes.set_ylim(bottom=0)
    axes.set_title(f"{int(exact.sum())} of {len(order)} exact, mean lower/upper {_mean(found)}")
    axes.legend(loc="upper left")
    return figure


@kinds_checked
def draw_sandwich(found: Bounds, path: str | Path) -> Path:
    """The enclosures of all examples, sorted by radius, as a picture file.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> found = bt.certificates.Dual().bound(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> bt.report.draw_sandwich(found, "radii.png").name
        'radii.png'
    """
    return save(sandwich(found), path)


def _mean(found: Bounds) -> str:
    return f"{float(found.ratio.mean()):.4f}" if len(found.ratio) else "unknown"
