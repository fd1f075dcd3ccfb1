"""The audit: why is this network not robust, exactly how much, and what would help?"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from brittle.attacks.subject import Holder, Model, network_for, subject
from brittle.auditing.applicable import TheoremRow, applicable
from brittle.auditing.budget import Budget
from brittle.auditing.explanation import Explanation, explain
from brittle.auditing.geometry import Geometry, geometry
from brittle.auditing.regime import TrainingRegime, training_regime
from brittle.auditing.remedies import PARTS, Patient, Remedy
from brittle.auditing.treatment import Treatment, seeded, treat
from brittle.auditing.verdict import weaknesses, written
from brittle.auditing.vulnerability import Vulnerability, vulnerability
from brittle.common.errors import InputError, require, require_count
from brittle.common.latex import tabular
from brittle.common.progress import Progress, Watch, silent
from brittle.common.result import Result, short
from brittle.networks import Network, as_layered
from brittle.settings import Data
from brittle.settings.arrays import Labels
from brittle.theorems import Instance


@dataclass(frozen=True, eq=False)
class Audit(Result):
    """The `verdict` in words and everything it rests on.

    `weaknesses` are the named mechanisms; `network` describes what was audited, `geometry` its data, `regime` how it
    was trained, as far as that shows. `vulnerability` holds the radii, attacked and certified, `explanation` where the
    flips point, `theorems` what each paper says here, `remedies` what each changes. `partial` names what the `budget`
    in seconds cut short; `seconds` is what it took. `model` and `data` are what was audited, as the audit saw it.
    """

    verdict: str
    weaknesses: tuple[str, ...]
    network: dict[str, Any]
    geometry: Geometry
    regime: TrainingRegime
    vulnerability: Vulnerability
    explanation: Explanation
    theorems: tuple[TheoremRow, ...]
    remedies: tuple[Treatment, ...]
    partial: tuple[str, ...]
    budget: float
    seconds: float
    model: Network
    data: Data

    def content(self) -> dict[str, Any]:
        """Everything but the network and the data themselves."""
        return {name: value for name, value in super().content().items() if name not in ("model", "data")}

    def report(self, path: str | Path, title: str = "") -> None:
        """Write the page: one HTML file with everything in it. `title` is its heading."""
        require(Path(path).suffix.lower() == ".html", f"{path}: the page is HTML; choose a name like audit.html")
        kind = self.network["kind"]
        page = import_module("brittle.report")  # the room that draws is below this one, and nothing here needs it
        page.write_audit_page(self, self.model, self.data, path, title or f"Audit of a {kind}")

    def by_example(self) -> dict[str, Any]:
        """Of every audited example: its place in the data, its label, its radii by method, None where not reached."""
        weak, rows = self.vulnerability, self.vulnerability.examples
        y = self.data.y[rows].tolist()
        columns: dict[str, Any] = {"example": rows.tolist(), "label": [self._name(label) for label in y]}
        for name in ("free", "on", "off", "gradient_step"):
            radii = getattr(weak, name)
            if radii is not None:
                columns[name] = _spread(radii.rows, radii.norms, len(rows))
        if weak.certified is not None:
            for name in ("lower", "upper", "exact"):
                columns[name] = _spread(weak.certified.rows, getattr(weak.certified, name), len(rows))
        return columns

    def _name(self, label: float) -> Any:
        names = self.data.truth.names
        return label if names is None else names[int((label + 1) / 2 if self.data.binary else label)]

    def to_latex(self) -> str:
        """A tabular with the rules of booktabs: the median of every kind of radius, and how many it rests on."""
        weak = self.vulnerability
        radii = {"anywhere": weak.free, "on the subspace": weak.on, "off it": weak.off, "one step": weak.gradient_step}
        rows = [[name, short(each.median), str(len(each.rows))] for name, each in radii.items() if each is not None]
        if weak.certified is not None:
            rows.append(["proved", short(weak.certified.median_lower), str(len(weak.certified.rows))])
        return tabular(("radius", "median", "examples"), rows, "lrr")

    def remedy(self, name: str) -> Treatment:
        for treatment in self.remedies:
            if treatment.name == name:
                return treatment
        raise InputError(f"the audit tried no remedy {name!r}; it tried {[each.name for each in self.remedies]}")


def _spread(rows: Tensor, values: Tensor, count: int) -> list[Any]:
    """The values at their rows, None elsewhere."""
    known = dict(zip(rows.tolist(), values.tolist(), strict=True))
    return [known.get(row) for row in range(count)]


def audit(
    model: Model,
    X: Holder,
    y: Labels | str | None = None,
    *,
    start: Model | None = None,
    budget: float = 60.0,
    examples: int = 200,
    remedies: str | Remedy | Sequence[str | Remedy] | None = None,
    rng: Generator | None = None,
    watch: Watch = silent,
) -> Audit:
    """Audit a network on its training data, within about `budget` seconds.

    The model is a network, a torch module or a classifier of scikit-learn. The data are examples X and labels y
    (arrays, tensors, lists, tables; of a table y may name the label column), or in one a `Data`, a torch `Dataset` or a
    `DataLoader`. `start` is the network at its initialisation, where it is known; `examples` is how many are attacked
    at most; `remedies` are those to try, by name or your own: one, several, "none", or None for all that have a name.
    """
    require_count("examples", examples)
    chosen = _chosen(remedies)
    known, data = subject(model, X, y)
    network = _started(known, None if start is None else network_for(start, data))
    network.check(data.X, data.y)
    rng = rng if rng is not None else torch.Generator().manual_seed(0)
    return _Auditor(network, data, Budget(budget), examples, rng, watch).run(chosen)


def _chosen(remedies: str | Remedy | Sequence[str | Remedy] | None) -> tuple[Remedy, ...]:
    if remedies is None:
        return tuple(part() for part in PARTS.values())
    if remedies == "none":
        return ()
    return tuple(map(_remedy, [remedies] if isinstance(remedies, str | Remedy) else remedies))


def _remedy(remedy: str | Remedy) -> Remedy:
    if isinstance(remedy, Remedy):
        return remedy
    require(remedy in PARTS, f"remedy is {remedy!r}; it must be one of {', '.join(PARTS)}, or none")
    return PARTS[remedy]()


def _started(network: Network, start: Network | None) -> Network:
    if start is not None:
        same = type(start) is type(network)
        require(same, "start and model must be networks of the same linear layers")
        now, then = (as_layered(each, "an audit with a start") for each in (network, start))
        network = now.with_layers(now.layers, then.with_layers(then.layers))
    return network.to(torch.float64)


class _Auditor:
    """One audit under way: each section takes its share of the time that is left."""

    def __init__(
        self, network: Network, data: Data, budget: Budget, examples: int, rng: Generator, watch: Watch
    ) -> None:
        self.network, self.data, self.budget, self.examples = network, data, budget, examples
        self.rng, self.watch = rng, watch
        self.partial: list[str] = []

    def run(self, remedies: tuple[Remedy, ...]) -> Audit:
        begun = time.perf_counter()
        self._tell(0.0, "data geometry")
        shape = geometry(self.data)
        self._tell(0.05, "training regime")
        instance = Instance(self.data, self.network)
        regime = training_regime(instance)
        self._tell(0.1, "attacks and certificates")
        weak = vulnerability(self.network, self.data, shape.basis, self.rng, self.budget.share(0.5), self.examples)
        self._note_partial(weak)
        attacked = self.data.take(weak.examples[weak.free.rows])
        reasons = explain(self.network, attacked, shape.basis, weak.perturbations)
        self._tell(0.5, "theorems")
        theorems, complete = applicable(instance, self.budget.share(0.2))
        if not complete:
            self.partial.append("theorems")
        treatments = self._treat(remedies, shape, weak, attacked)
        named = weaknesses(shape, regime, weak, reasons)
        text = written(self.network, shape, regime, weak, reasons, treatments, named)
        return Audit(
            verdict=text,
            weaknesses=tuple(named),
            network=self.network.description,
            geometry=shape,
            regime=regime,
            vulnerability=weak,
            explanation=reasons,
            theorems=theorems,
            remedies=treatments,
            partial=tuple(self.partial),
            budget=self.budget.seconds,
            seconds=time.perf_counter() - begun,
            model=self.network,
            data=self.data,
        )

    def _treat(
        self, remedies: tuple[Remedy, ...], shape: Geometry, weak: Vulnerability, attacked: Data
    ) -> tuple[Treatment, ...]:
        patient = Patient(self.network, self.data, shape.basis, weak.free.median)
        done: list[Treatment] = []
        for place, remedy in enumerate(remedies):
            self._tell(0.6 + 0.4 * place / len(remedies), f"remedy: {remedy.name}")
            rng = seeded(self.rng)
            if self.budget.left <= 0:
                self.partial.append(f"remedy {remedy.name}")
                continue
            share = self.budget.share(1 / (len(remedies) - place))
            done.append(treat(remedy, patient, attacked, weak.free.norms, rng, share))
        return tuple(done)

    def _note_partial(self, weak: Vulnerability) -> None:
        named = {"free": weak.free, "on": weak.on, "off": weak.off, "certified": weak.certified}
        self.partial += [f"radii {name}" for name, radii in named.items() if radii is not None and radii.partial]

    def _tell(self, done: float, what: str) -> None:
        self.watch(Progress(done, what))
