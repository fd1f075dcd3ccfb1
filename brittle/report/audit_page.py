"""One self-contained HTML file for one audit: opens offline, on a phone, on paper, in the dark."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from markupsafe import Markup

from brittle import __version__
from brittle.auditing import Audit
from brittle.auditing.causes import WeaknessShares
from brittle.auditing.found import Mechanism
from brittle.auditing.geometry import Geometry
from brittle.auditing.pieces import median
from brittle.auditing.regime import TrainingRegime
from brittle.common.files import replacing
from brittle.common.kinds import check_kinds
from brittle.common.result import jsonable
from brittle.data import Data
from brittle.networks import Network
from brittle.report import audit_charts
from brittle.report.example_views import ExampleViews
from brittle.report.remedy_chart import rank_remedies, remedy_chart
from brittle.report.svg import ENVIRONMENT, curve, digest, line, number, share, source, tag, times
from brittle.report.terms import TERMS
from brittle.report.words import Origin, ReportWords, advice, describe_passed_cause

Facts = list[tuple[str, str]]


def geometry(shape: Geometry) -> Facts:
    """Of the data."""
    sums = " random sums of examples" if shape.rows < shape.examples else " examples"
    rank = (
        "dimensions that the data span"
        if shape.span_known
        else "dimensions that the data span, at least (not known at this budget)"
    )
    within = "yes" if shape.nearly_orthogonal else "no"
    few = shape.example_limit < 2  # one of each label is the least
    most = "not even two examples would be" if few else f"up to {number(math.floor(shape.example_limit))} examples are"
    grouped = f"{shape.clusters}" if shape.clusters > 1 else "none"
    return [
        ("examples", number(shape.examples)),
        ("features", number(shape.columns)),
        (rank, number(shape.rank)),
        ("dimensions off their span", number(shape.codimension)),
        ("measured on", f"{shape.rows}{sums}"),
        (
            "principal components for 90%, 95%, 99% of the variance",
            ", ".join(map(str, shape.effective_dimensions.values())),
        ),
        (f"largest |cosine| between two of {shape.paired} examples", number(shape.largest_cosine)),
        ("nearly orthogonal, as vardi2022 needs", f"{within}: {most}"),
        ("share of the rarest label", share(shape.label_balance)),
        ("clusters that stand out", f"{grouped} (best silhouette {number(shape.cluster_silhouette, 2)}, 0.5 needed)"),
        ("duplicates", number(shape.duplicates)),
    ]


REGIMES = {"kkt": "a KKT point", "between": "between lazy and rich", "unknown": "where it started is not known"}


def regime(found: TrainingRegime) -> Facts:
    """Of the training."""
    return [
        ("training accuracy", share(found.accuracy)),
        ("smallest margin", number(found.smallest_margin)),
        ("median margin", number(found.median_margin)),
        ("examples within a tenth of the smallest margin", share(found.share_on_margin)),
        ("largest move of a neuron", number(found.largest_move)),
        ("the same times √width (C₀ of the lazy regime)", number(found.lazy_constant)),
        ("move of the first layer, over its initial size", share(found.relative_move)),
        ("ReLUs of the first layer on the data that changed sign", share(found.signs_changed)),
        ("distance from a KKT point", number(found.kkt_residual)),
        ("normalised margin", number(found.normalised_margin)),
        ("share of the largest margin of any network, at least", share(found.share_of_largest_margin)),
    ]


def explanation(found: WeaknessShares) -> Facts:
    """Of the flips."""
    carrying = "–" if found.neurons is None else f"{number(found.neurons_carrying_gradient)} of {found.neurons}"
    return [
        ("dimensions off the data's subspace", share(found.dimension_share_off)),
        ("squared gradient off the subspace", share(found.gradient_share_off)),
        ("squared shortest flip off the subspace", share(found.perturbation_share_off)),
        ("off-subspace weights that are their initial values", share(found.initial_share_of_weights_off)),
        ("off-subspace gradient that the initial values explain", share(found.initial_share_of_gradient_off)),
        ("neurons that carry 90% of the gradient", carrying),
    ]


def plan(audit: Audit) -> Facts:
    """Of the work."""
    proofs = audit.vulnerability.certified
    return [
        ("examples attacked", number(audit.plan.examples)),
        ("remedies tried", number(len(audit.remedies))),
        ("work for each of them at least, s", number(audit.plan.remedy_work)),
        ("work for proofs at least, s", number(audit.plan.proof_work)),
        ("how radii were proved", "–" if proofs is None else proofs.method),
        ("seconds that it took", number(audit.seconds)),
    ]


# A small drawing for every mechanism: what it looks like in the plane.


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


STYLES = ("css/base.css", "css/audit.css")
SCRIPTS = tuple(
    f"js/{name}.js"
    for name in (
        "numbers", "draw", "content", "attacker", "pixels", "slice", "viewer", "table", "terms", "saves", "compare",
        "choice", "start",
    )
)  # fmt: skip
AS_SHARES = ("doubtful labels", "stopped early", "lazy training")  # mechanisms whose measure is a share


@check_kinds
def write_audit_page(
    audit: Audit,
    network: Network,
    data: Data,
    path: str | Path,
    title: str,
    origin: Origin | None = None,
    other: tuple[str, Mapping[str, Any]] | None = None,
) -> None:
    """The page of an audit of this network on these data, as one file; see `audit_page`.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> found = bt.audit(bt.networks.orthogonal_kkt(data.X, data.y).network, data, budget=1, remedies="none")
        >>> bt.report.write_audit_page(found, found.model, found.data, "audit.html", "Orthogonal examples")
    """
    page = audit_page(audit, network, data, title, origin, other)
    with replacing(path) as stream:
        stream.write(page.encode())


def audit_page(
    audit: Audit,
    network: Network,
    data: Data,
    title: str,
    origin: Origin | None = None,
    other: tuple[str, Mapping[str, Any]] | None = None,
) -> str:
    """Every string is escaped by the template: names in a stranger's file stay names.

    `origin` says how the audit came about; `other` is the name and the JSON of an audit that this one is compared with.
    """
    page = Page(audit, ExampleViews(audit, network, data), other)
    return ENVIRONMENT.get_template("audit.html").render(
        audit=audit,
        title=title,
        page=page,
        words=ReportWords(audit),
        charts=audit_charts,
        sketch=sketch,
        advice=advice,
        passed=describe_passed_cause,
        terms=TERMS,
        origin=origin or Origin(),
        version=__version__,
    )


def _by_number(name: str) -> tuple[float, str]:
    """2 before 10; names after numbers."""
    return (float(name), name) if name.lstrip("-").isdecimal() else (float("inf"), name)


class Page:
    """What the templates ask for beside the audit itself."""

    def __init__(self, audit: Audit, examples: ExampleViews, other: tuple[str, Mapping[str, Any]] | None) -> None:
        self.audit, self.examples, self.other = audit, examples, other
        self.style = source(*STYLES)
        self.script = Markup('(() => {\n"use strict";\n') + source(*SCRIPTS) + Markup("})();")
        self.geometry, self.regime = geometry(audit.geometry), regime(audit.regime)
        self.regime_name = REGIMES.get(audit.regime.name, audit.regime.name)
        self.explanation, self.plan = explanation(audit.explanation), plan(audit)
        self.chart, self.narrow_chart = remedy_chart(audit), remedy_chart(audit, narrow=True)

    @property
    def policy(self) -> str:
        """Nothing is fetched, and no script runs but this one."""
        allowed = f"style-src {digest(self.style)}; script-src {digest(self.script)}; img-src data: blob:"
        return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"

    @cached_property
    def shown(self) -> dict[str, Any]:
        """The examples, as the script gets them."""
        return self.examples.content()

    @property
    def content(self) -> Markup:
        """What the script works with; no text in it can end the element that it stands in."""
        other = None if self.other is None else {"title": self.other[0], "audit": self.other[1]}
        whole = {
            "audit": self.audit.to_json(),
            "table": self.audit.by_example(),
            "latex": self.audit.to_latex(),
            "examples": self.shown,
            "features": self.examples.data.truth.features,
            "other": other,
        }
        text = json.dumps(jsonable(whole), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return Markup(text.replace("<", "\\u003c"))

    @property
    def radii(self) -> list[tuple[str, Any]]:
        weak = self.audit.vulnerability
        named = (
            ("shortest flip anywhere", weak.free),
            ("no class ahead from", weak.tied),
            ("on the data's subspace", weak.on),
            ("off it", weak.off),
            ("one gradient step", weak.gradient_step),
        )
        return [(name, radii) for name, radii in named if radii is not None]

    @property
    def applied(self) -> bool:
        return any(each.applied for each in self.audit.remedies)

    @property
    def remedies(self) -> list[Any]:
        return rank_remedies(self.audit)

    @property
    def curves(self) -> list[str]:
        """The remedies with a curve to choose from."""
        return [each.name for each in self.remedies if each.applied and each.curve is not None]

    @property
    def classes(self) -> list[dict[str, Any]]:
        """How far every class is from a flip, and what it flips to."""
        weak, labels = self.audit.vulnerability, self.audit.by_example()["label"]
        names, norms = list(map(str, labels))[: len(weak.free.norms)], weak.free.norms
        rows = []
        for name in sorted(set(names), key=_by_number):
            own = torch.tensor([each == name for each in names])
            flips = Counter(
                flip for flip, mine in zip(self.shown["flipped"], own.tolist(), strict=True) if mine and flip
            )
            told = ", ".join(f"{word} ({count})" for word, count in flips.most_common(3))
            some = norms[own]
            rows.append(
                {
                    "name": name,
                    "count": len(some),
                    "median": median(some),
                    "weakest": float(some.min()),
                    "flips": told or "–",
                }
            )
        return rows

    @property
    def applying(self) -> list[Any]:
        return [row for row in self.audit.theorems if row.applies]

    @cached_property
    def miss(self) -> Any:
        return audit_charts.nearest_miss(self.audit.theorems)

    @property
    def missing(self) -> list[Any]:
        return [each for each in self.miss.hypotheses if not each.holds]

    @property
    def others(self) -> list[Any]:
        return [row for row in self.audit.theorems if not row.applies and row is not self.miss]

    @staticmethod
    def measured(row: Mechanism) -> str:
        """The value of a mechanism as a person reads it."""
        if row.value is None:
            return "not measured"
        if row.name == "KKT point":
            return f"ε = {number(10**row.value, 2)}"
        if row.name == "off-subspace weights":
            return times(row.value)
        return share(row.value) if row.name in AS_SHARES else number(row.value, 3)
