"""What every attack is: a part that proposes perturbations, and an entry that measures them itself."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar, final

import torch
from torch import Generator, Tensor

from brittle.attacks.subject import Holder, Model, subject
from brittle.common.errors import require
from brittle.common.kinds import check_kinds
from brittle.common.parts import check_fields
from brittle.common.progress import Progress, Watch, silent
from brittle.common.result import Result
from brittle.common.threads import one_thread_unless_chosen
from brittle.common.time_limit import limit_time
from brittle.data import Data
from brittle.geometry import unit_rows
from brittle.networks import Layered, Network

Bounds = tuple[float, float]
AT_ONCE = 2**22  # numbers in the examples that are attacked together, unless all have to be


@dataclass(frozen=True, eq=False)
class AttackResult(Result):
    """Measured in float64 on the network itself.

    perturbations (n, dim); norms (n,) ℓ2; success (n,) strictly flipped (y N < 0, or another class ahead);
    direction (n, dim) unit vectors that were tried, zero where there was none; raw (n, dim) the perturbations before
    they were clipped to the box; clipped (n,) whether the box changed them. A misclassified example has success and
    norm 0; a failure keeps the perturbation that was tried last, or 0.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> found = bt.attacks.Ray().run(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> found.success.tolist(), bool((found.perturbations.norm(dim=1) == found.norms).all())
        ([True, True, True, True], True)
    """

    perturbations: Tensor
    norms: Tensor
    success: Tensor
    direction: Tensor
    raw: Tensor
    clipped: Tensor

    @property
    def rate(self) -> float:
        """The share of examples that were flipped."""
        return float(self.success.double().mean())

    @property
    def mean_norm(self) -> float:
        """Over the flipped examples; NaN where none is."""
        return float(self.norms[self.success].mean())


Outcome = TypeVar("Outcome", bound=AttackResult, covariant=True)


@dataclass(frozen=True, eq=False)
class AttackTarget:
    """What is attacked: a float64 network at the examples X (n, dim) of data, with labels y.

    bounds: the box, where there is one; rng: for every random choice; watch: is told how far the attack is.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> from brittle.common.progress import silent
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> target = bt.attacks.AttackTarget(network, data, (-2.0, 2.0), torch.Generator(), silent)
        >>> [round(margin, 6) for margin in target.margins.tolist()]
        [1.0, 1.0, 1.0, 1.0]
        >>> target.clip(torch.full((4, 4), 1.0).double())[0].tolist()
        [0.0, 1.0, 1.0, 1.0]
    """

    network: Network
    data: Data
    bounds: Bounds | None
    rng: Generator
    watch: Watch

    @property
    def X(self) -> Tensor:
        return self.data.X

    @property
    def y(self) -> Tensor:
        return self.data.y

    @cached_property
    def margins(self) -> Tensor:
        """Those of the examples as they are."""
        return self.network.margins(self.X, self.y).double()

    def changes(self) -> list[int]:
        """How often each tensor of the examples and of a layered network was changed in place, as PyTorch counts it."""
        weights = self.network.arrays.values() if isinstance(self.network, Layered) else ()
        return [0 if each.is_inference() else each._version for each in (self.X, self.y, *weights)]

    def limits(self, directions: Tensor, limit: float | Tensor, rows: Tensor | None = None) -> Tensor:
        """How far each ray (of these rows) may go: up to the limit, and no farther than the box."""
        lengths = torch.as_tensor(limit, dtype=torch.float64).expand(len(directions))
        if self.bounds is None:
            return lengths
        wall = torch.where(directions > 0, self.bounds[1], self.bounds[0])
        gap = wall - (self.X if rows is None else self.X[rows])
        room = torch.where(directions == 0, torch.inf, gap / torch.where(directions == 0, 1.0, directions))
        return torch.minimum(lengths, room.min(1).values.clamp(min=0))

    def clip(self, perturbations: Tensor, rows: Tensor | None = None) -> Tensor:
        """Perturbations (of these rows) that keep x + δ in the box."""
        if self.bounds is None:
            return perturbations
        low, high = self.bounds
        X = self.X if rows is None else self.X[rows]
        moved = X + perturbations
        inside = torch.where(moved > high, high - X, perturbations)
        return torch.where(moved < low, low - X, inside)


@dataclass(frozen=True, eq=False)
class Attempt:
    """perturbations (n, dim): what the attack proposes; direction (n, dim): what it tried, of any length.

    further: the other fields of its result, by name.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> attempt = bt.attacks.Attempt(perturbations=torch.zeros(3, 2), direction=torch.ones(3, 2))
        >>> attempt.further
        {}
    """

    perturbations: Tensor
    direction: Tensor
    further: dict[str, Any] = field(default_factory=dict)


class Attack(ABC, Generic[Outcome]):
    """A way to flip a network. Its fields are its parameters; `run` is its verb.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> attacks = bt.attacks.GradientStep(), bt.attacks.MinimumNorm()
        >>> [round(attack.run(network, data).mean_norm, 4) for attack in attacks]
        [1.118, 1.0]
    """

    name: ClassVar[str]  # what the command line calls it
    result: ClassVar[type[AttackResult]] = AttackResult  # what `run` returns
    joint: ClassVar[bool] = False  # whether all examples are attacked together, so that none can be left out

    def __post_init__(self) -> None:
        check_fields(self)

    @final
    @check_kinds
    def run(
        self,
        network: Model,
        data: Holder,
        *,
        bounds: Bounds | None = None,
        rng: Generator | None = None,
        watch: Watch = silent,
        vectors: bool = True,
    ) -> Outcome:
        """Attack every example; sizes are in input units, `bounds` (lowest, highest) is a box for x + δ.

        Modules and classifiers of scikit-learn are read as networks, pairs (X, y) and data loaders as data. Where the
        examples are many, `vectors` False keeps the norms without what takes as much room as the data: perturbations,
        direction and raw are (0, dim) then.
        """
        known, data = subject(network, data)
        known = known.to(torch.float64)
        known.check(data.X, data.y)
        _check_bounds(bounds, data.X)
        target = AttackTarget(known, data, bounds, rng if rng is not None else Generator(), watch)
        with torch.no_grad(), one_thread_unless_chosen():
            return self._in_parts(target, vectors)

    def _in_parts(self, target: AttackTarget, vectors: bool) -> Outcome:
        """Many examples some after others, so that the working memory does not grow with them."""

        def found(part: AttackTarget) -> Outcome:
            attempt = self._proposed(part)
            with limit_time(None):  # what was found so far is measured, however late it is
                result = self._judged(part, attempt)
            return result if vectors else without_vectors(result)

        data, count = target.data, len(target.X)
        rows = count if self.joint else max(1, AT_ONCE // data.columns)
        if count <= rows:
            return found(target)
        places = torch.split(torch.arange(count), rows)
        parts = (
            replace(target, data=data.training.take(index), watch=_share(target.watch, place, len(places)))
            for place, index in enumerate(places)
        )
        return join_results(map(found, parts), count)

    @abstractmethod
    def propose(self, target: AttackTarget) -> Attempt:
        """A perturbation for every example; `run` measures it and trusts nothing else."""

    def _proposed(self, target: AttackTarget) -> Attempt:
        """What `propose` returns, of the right shape, by an attack that left everything as it was."""
        word, before = type(self).__name__, target.changes()
        attempt = self.propose(target)
        require(
            target.changes() == before,
            f"{word}.propose changes the examples or the network in place, and nothing can be measured on them: "
            "let it work on copies",
        )
        shapes = [tuple(getattr(getattr(attempt, name, None), "shape", ())) for name in ("perturbations", "direction")]
        right = tuple(target.X.shape)
        require(
            isinstance(attempt, Attempt) and shapes == [right, right],
            f"{word}.propose returns {type(attempt).__name__} with shapes {shapes}; it must return an Attempt with "
            f"perturbations and direction of shape {right}",
        )
        return attempt

    def _judged(self, target: AttackTarget, attempt: Attempt) -> Outcome:
        """Nothing is taken from the attack's own word."""
        already = target.margins < 0
        sound = attempt.perturbations.isfinite().all(1) & ~already
        raw = torch.where(sound[:, None], attempt.perturbations, 0.0)
        perturbations = target.clip(raw)
        success = target.network.margins(target.X + perturbations, target.y) < 0
        return self.result(  # type: ignore[return-value]
            perturbations=perturbations,
            norms=perturbations.norm(dim=1),
            success=success,
            direction=unit_rows(attempt.direction),
            raw=raw,
            clipped=(raw != perturbations).any(1),
            **attempt.further,
        )


def _share(watch: Watch, place: int, parts: int) -> Watch:
    """Of one part after others."""
    return lambda progress: watch(Progress((place + progress.done) / parts, progress.note))


def _check_bounds(bounds: Bounds | None, X: Tensor) -> None:
    if bounds is None:
        return
    low, high = bounds
    require(low < high, f"bounds is ({low}, {high}); the lowest value must be below the highest")
    outside = int((X.clamp(low, high) != X).any(1).sum())
    require(outside == 0, f"bounds is ({low}, {high}), and {outside} of {len(X)} examples lie outside it")


# What an attack found of some examples after others, as if it had been found at once.


VECTORS = ("perturbations", "direction", "raw")  # each takes as much room as the examples
Found = TypeVar("Found", bound="AttackResult")


def join_results(parts: Iterable[Found], rows: int) -> Found:
    """The parts below each other, `rows` examples in all; each is copied to its place before the next is asked for."""
    whole: dict[str, Tensor] = {}
    filled, kind = 0, None
    for part in parts:
        kind = type(part)
        for name, value in _own(part).items():
            if name not in whole:
                whole[name] = value.new_empty((rows if len(value) else 0, *value.shape[1:]))
            whole[name][filled : filled + len(value)] = value
        filled += len(part.norms)
    assert kind is not None
    return kind(**{field.name: whole.get(field.name, whole["perturbations"]) for field in fields(kind)})


def _own(part: "AttackResult") -> dict[str, Tensor]:
    """By name, without `raw` where no box made it another thing than the perturbations."""
    names = (field.name for field in fields(part))
    return {name: getattr(part, name) for name in names if name != "raw" or part.raw is not part.perturbations}


def without_vectors(found: Found) -> Found:
    """The same with (0, dim) in place of the vectors."""
    return replace(found, **{name: getattr(found, name)[:0].clone() for name in VECTORS})
