"""One self-contained HTML file for one audit: opens offline, on a phone, on paper, in the dark."""

import base64
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from brittle import __version__
from brittle.auditing import Audit
from brittle.common.files import replacing
from brittle.networks import Network
from brittle.report import audit_figures as pictures
from brittle.report.style import house_style, save
from brittle.settings import Data


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure, and words for those who do not see it."""

    figure: Figure
    words: str
    plain: bool = True  # may be inverted in the dark

    @property
    def source(self) -> str:
        """The figure as a data address: nothing is fetched from anywhere."""
        stream = io.BytesIO()
        with house_style():
            self.figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
        return "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode()


def write_audit_page(audit: Audit, network: Network, data: Data, path: str | Path, title: str) -> None:
    """The page of an audit of this network on these data, as one file.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> found = bt.audit(bt.networks.orthogonal_kkt(data.X, data.y).network, data, budget=1, remedies="none")
        >>> bt.report.write_audit_page(found, found.model, found.data, "audit.html", "Orthogonal examples")
    """
    page = audit_page(audit, network, data, title)
    with replacing(path) as stream:
        stream.write(page.encode())


def write_audit_pictures(audit: Audit, network: Network, data: Data, folder: Path) -> None:
    """The page's pictures as files.

    Examples:
        >>> from pathlib import Path
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> found = bt.audit(bt.networks.orthogonal_kkt(data.X, data.y).network, data, budget=1, remedies="none")
        >>> bt.report.write_audit_pictures(found, found.model, found.data, Path("pictures"))
        >>> sorted(path.name for path in Path("pictures").iterdir())
        ['curves.png', 'radii.png', 'slice.png']
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in audit_pictures(audit, network, data).items():
        save(picture.figure, folder / f"{name}.png")


def audit_page(audit: Audit, network: Network, data: Data, title: str) -> str:
    """Every string is escaped by the template: names in a stranger's file stay names."""
    environment = Environment(
        loader=PackageLoader("brittle.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["number"] = number
    environment.filters["share"] = lambda value: "–" if value is None or math.isnan(value) else f"{value:.1%}"
    shown = audit_pictures(audit, network, data)
    template = environment.get_template("audit.html")
    return template.render(audit=audit, title=title, pictures=shown, version=__version__)


def number(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "∞" if math.isinf(value) else f"{value:.4g}"
    return str(value)


def audit_pictures(audit: Audit, network: Network, data: Data) -> dict[str, Picture]:
    weak = audit.vulnerability
    shown = {
        "radii": Picture(
            pictures.radius_distribution(audit),
            f"Cumulative distribution of the distance to a flip; the median anywhere is {number(weak.free.median)}.",
        ),
        "curves": Picture(
            pictures.flip_curves(audit),
            "Share of examples flipped by one direction, by its size; all are flipped at "
            + ", ".join(f"{number(one.smallest)} (from the {one.name})" for one in weak.universal)
            + ".",
        ),
        "slice": Picture(
            pictures.boundary_slice(audit, network, data),
            "The margin in a plane through one example: the boundary lies closest along the shortest flip.",
        ),
    }
    if any(each.applied for each in audit.remedies):
        words = ", ".join(f"{each.name}: {number(each.radius_after)}" for each in audit.remedies if each.applied)
        shown["remedies"] = Picture(pictures.remedies(audit), f"Median distance after each remedy: {words}.")
    examples = pictures.adversarial_examples(audit, data)
    if examples is not None:
        words = "The examples that are easiest to flip, their shortest flips, and both added."
        shown["examples"] = Picture(examples, words, plain=False)
    return shown
