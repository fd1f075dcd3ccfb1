"""What an audit found: the verdict and everything it rests on."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import Tensor

from brittle.auditing.applicable import TheoremRow
from brittle.auditing.change import Change, changed
from brittle.auditing.evidence import Evidence
from brittle.auditing.explanation import Explanation
from brittle.auditing.geometry import Geometry
from brittle.auditing.limit import Limit
from brittle.auditing.mechanisms import Mechanism, mechanisms
from brittle.auditing.plan import Plan
from brittle.auditing.regime import TrainingRegime
from brittle.auditing.sample import audited
from brittle.auditing.treatment import Treatment
from brittle.auditing.vulnerability import Vulnerability
from brittle.common.errors import InputError, require
from brittle.common.latex import tabular
from brittle.common.result import Result, frame, short
from brittle.networks import Network
from brittle.settings import Data


@dataclass(frozen=True, eq=False)
class Audit(Result):
    """The `verdict` in words and everything it rests on.

    `weaknesses` are the named mechanisms, the likeliest cause first; `network` describes what was audited,
    `geometry` its data, `regime` how it was trained, as far as that shows. `vulnerability` holds the radii,
    attacked and certified, `limit` what the data allow (None for one class), `explanation` where the flips point,
    `evidence` what else tells causes apart, `theorems` what each paper says here, `remedies` what each changes. The
    `plan` says what was to be done for the `budget`, `work` how much of it was spent; both are counted in seconds
    of a nominal machine, on which a pass takes `speed` times as long as its operations. `partial` names what the time
    limit cut short: only an audit where nothing was is reproducible, with the same speed. It took `seconds`. `model`
    and `data` are what was audited, as the audit saw it.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> found = bt.audit(bt.networks.orthogonal_kkt(data.X, data.y).network, data, budget=1, remedies="none")
        >>> found.reproducible, found.network["kind"]
        (True, 'two-layer ReLU network')
    """

    verdict: str
    weaknesses: tuple[str, ...]
    network: dict[str, Any]
    geometry: Geometry
    regime: TrainingRegime
    vulnerability: Vulnerability
    limit: Limit | None
    explanation: Explanation
    evidence: Evidence
    theorems: tuple[TheoremRow, ...]
    remedies: tuple[Treatment, ...]
    plan: Plan
    speed: float
    partial: tuple[str, ...]
    work: float
    budget: float
    seconds: float
    model: Network
    data: Data

    def report(self, path: str | Path, title: str = "", since: "Audit | None" = None) -> None:
        """Write the page: one HTML file with everything in it. `title` is its heading; `since` is compared with."""
        require(Path(path).suffix.lower() == ".html", f"{path}: the page is HTML; choose a name like audit.html")
        kind = self.network["kind"]
        page = import_module("brittle.report")  # the room that draws is below this one, and nothing here needs it
        other = None if since is None else ("the other one", since.to_json())
        page.write_audit_page(self, self.model, self.data, path, title or f"Audit of a {kind}", None, other)

    def change(self, since: "Audit") -> Change:
        """What is different from another audit, such as that of an earlier network on the same data."""
        return changed(since.to_json(), self.to_json())

    def by_example(self) -> dict[str, Any]:
        """Of every audited example: its place in the data, its label, its radii by method, None where not reached."""
        weak, rows = self.vulnerability, self.vulnerability.examples
        y = audited(self.data, weak.held_out).y[rows].tolist()
        columns: dict[str, Any] = {"example": rows.tolist(), "label": [self.class_name(label) for label in y]}
        for name in ("free", "on", "off", "gradient_step"):
            radii = getattr(weak, name)
            if radii is not None:
                columns[name] = _spread(radii.rows, radii.norms.tolist(), len(rows))
        if weak.certified is not None:
            proofs = weak.certified
            named = {"lower": proofs.lower.tolist(), "upper": proofs.upper.tolist(), "status": proofs.status}
            columns |= {name: _spread(proofs.rows, values, len(rows)) for name, values in named.items()}
        return columns

    def class_name(self, label: float) -> Any:
        """What the data call this label; the label itself where they do not say."""
        names = self.data.truth.names
        if self.data.binary and label == 0:
            return "undecided"
        return label if names is None else names[int((label + 1) / 2 if self.data.binary else label)]

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """All causes that were looked for with their measures, the named ones first."""
        return mechanisms(self)

    def remedy_frame(self) -> Any:
        """A pandas DataFrame with a row for every remedy."""
        return frame([each.plain() for each in self.remedies])

    def to_latex(self) -> str:
        """A tabular with the rules of booktabs: the median of every kind of radius, and how many it rests on."""
        weak = self.vulnerability
        radii = {"anywhere": weak.free, "on the subspace": weak.on, "off it": weak.off, "one step": weak.gradient_step}
        rows = [[name, short(each.median), str(len(each.rows))] for name, each in radii.items() if each is not None]
        if weak.certified is not None:
            rows.append(["proved", short(weak.certified.median_lower), str(len(weak.certified.rows))])
        return tabular(("radius", "median", "examples"), rows, "lrr")

    @property
    def reproducible(self) -> bool:
        """The same seed and speed give the same audit, however busy the machine is."""
        return not self.partial

    def content(self) -> dict[str, Any]:
        """Everything but the network and the data themselves, with the word on whether it is reproducible."""
        content = {name: value for name, value in super().content().items() if name not in ("model", "data")}
        return {**content, "mechanisms": self.mechanisms, "reproducible": self.reproducible}

    def remedy(self, name: str) -> Treatment:
        for treatment in self.remedies:
            if treatment.name == name:
                return treatment
        raise InputError(f"the audit tried no remedy {name!r}; it tried {[each.name for each in self.remedies]}")


def _spread(rows: Tensor, values: Sequence[Any], count: int) -> list[Any]:
    """The values at their rows, None elsewhere."""
    known = dict(zip(rows.tolist(), values, strict=True))
    return [known.get(row) for row in range(count)]
