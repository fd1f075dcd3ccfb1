"""One self-contained HTML file for one audit: opens offline, on a phone, on paper, in the dark."""

import json
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from markupsafe import Markup

from brittle import __version__
from brittle.auditing import Audit
from brittle.auditing.mechanisms import Mechanism
from brittle.auditing.sample import median
from brittle.common.files import replacing
from brittle.common.kinds import kinds_checked
from brittle.common.result import jsonable
from brittle.networks import Network
from brittle.report import audit_charts
from brittle.report.audit_facts import REGIMES, explanation, geometry, plan, regime
from brittle.report.environment import ENVIRONMENT, digest, source
from brittle.report.example_views import Examples
from brittle.report.numbers import number, share, times
from brittle.report.origin import Origin
from brittle.report.remedy_chart import ranked, remedy_chart
from brittle.report.sketches import sketch
from brittle.report.terms import TERMS
from brittle.report.words import Words, advice, passed
from brittle.settings import Data

STYLES = ("css/base.css", "css/audit.css")
SCRIPTS = tuple(
    f"js/{name}.js"
    for name in (
        "numbers", "draw", "content", "attacker", "pixels", "slice", "viewer", "table", "terms", "saves", "compare",
        "choice", "start",
    )
)  # fmt: skip
AS_SHARES = ("doubtful labels", "stopped early", "lazy training")  # mechanisms whose measure is a share


@kinds_checked
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
        >>> data = bt.settings.Orthogonal(6).sample(6)
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
    page = Page(audit, Examples(audit, network, data), other)
    return ENVIRONMENT.get_template("audit.html").render(
        audit=audit,
        title=title,
        page=page,
        words=Words(audit),
        charts=audit_charts,
        sketch=sketch,
        advice=advice,
        passed=passed,
        terms=TERMS,
        origin=origin or Origin(),
        version=__version__,
    )


def _by_number(name: str) -> tuple[float, str]:
    """2 before 10; names after numbers."""
    return (float(name), name) if name.lstrip("-").isdecimal() else (float("inf"), name)


class Page:
    """What the templates ask for beside the audit itself."""

    def __init__(self, audit: Audit, examples: Examples, other: tuple[str, Mapping[str, Any]] | None) -> None:
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
        return ranked(self.audit)

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
