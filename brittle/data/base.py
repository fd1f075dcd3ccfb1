"""Data with the truth about where they come from, and the shape of everything that makes them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Generator, Tensor

from brittle.common.errors import note, require, require_count, require_value
from brittle.common.kinds import check_kinds
from brittle.common.parts import check_fields
from brittle.data.arrays import (
    Examples,
    Labels,
    as_rows,
    check_examples,
    check_labels,
    check_truth,
    column_names,
    number_labels,
)


@dataclass(frozen=True, eq=False)
class DataInfo:
    """What a setting knows about its data; None where there is nothing to know.

    Vectors have as many entries as `Data.X` has columns. For data sampled in their span that is fewer than `dim`,
    and `basis` then spans the part of P that those columns span.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> truth = bt.data.Orthogonal(4).sample(2).truth
        >>> truth.radius, truth.coherence
        (2.0, 0.0)
    """

    dim: int | None = None  # ambient dimension d
    radius: float | None = None  # ‖x‖ of every example
    coherence: float | None = None  # p: a bound on |<x_i, x_j>|, for clusters on |<μ_q, μ_r>|
    means: Tensor | None = None  # (k, columns)
    mean_labels: Tensor | None = None  # (k,), ±1
    cluster: Tensor | None = None  # (n,), which mean each example belongs to
    cluster_test: Tensor | None = None  # (n_test,)
    noise: float | None = None  # σ
    basis: Tensor | None = None  # (columns, dim - codimension), orthonormal: the subspace P of the data
    complement: Tensor | None = None  # (columns, ℓ), orthonormal: P⊥, where it is explicit
    codimension: int | None = None  # ℓ
    offset: Tensor | None = None  # (columns,), a point of an affine subspace; None for a linear one
    image: tuple[int, ...] | None = None  # shape of one example, where it has axes: (height, width), (channels, h, w)
    names: tuple[str, ...] | None = None  # of the classes by their numbers; of -1 and then +1
    features: tuple[str, ...] | None = None  # what the columns are called, where a table says it


@dataclass(frozen=True, eq=False)
class Data:
    """X (n, columns) float64; y (n,) float64 in {-1, 1}, or int64 class numbers.

    `X_test` and `y_test` are held-out examples of the same form, None without; `truth` is what the setting knows.
    All four may be given as tensors, arrays, lists or tables. Examples with axes of their own, such as (n, C, H, W),
    are laid flat, and `shape` remembers them; labels that are texts are numbered, and `truth.names` remembers these.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Data([[0.0, 1.0], [1.0, 0.0]], [-1, 1])
        >>> len(data), data.dim, data.binary, data.X.dtype
        (2, 2, True, torch.float64)
    """

    X: Tensor
    y: Tensor
    X_test: Tensor | None = None
    y_test: Tensor | None = None
    truth: DataInfo = field(default_factory=DataInfo)

    if TYPE_CHECKING:

        def __init__(
            self,
            X: Examples,
            y: Labels,
            X_test: Examples | None = None,
            y_test: Labels | None = None,
            truth: DataInfo = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        require((self.X_test is None) == (self.y_test is None), "X_test and y_test belong together: give both or none")
        features = self.truth.features or column_names(self.X)
        image = self._flatten("X")
        labels, counts = {"y": self.y}, {"y": len(self.X)}
        if self.X_test is not None and self.y_test is not None:
            self._flatten("X_test")
            same = self.X_test.shape[1] == self.X.shape[1]
            require(same, f"X_test has {self.X_test.shape[1]} columns and X has {self.X.shape[1]}; they must agree")
            labels["y_test"], counts["y_test"] = self.y_test, len(self.X_test)
        numbers, names = number_labels(labels, self.truth.names)
        for name, y in check_labels(numbers, counts).items():
            object.__setattr__(self, name, y)
        if image is not None or names != self.truth.names or features != self.truth.features:
            truth = replace(self.truth, image=image or self.truth.image, names=names, features=features)
            object.__setattr__(self, "truth", truth)
        check_truth(self.truth, len(self.X), self.columns, counts.get("y_test"))

    def _flatten(self, name: str) -> tuple[int, ...] | None:
        rows, shape = as_rows(name, getattr(self, name))
        object.__setattr__(self, name, check_examples(name, rows))
        return shape

    def __len__(self) -> int:
        return len(self.X)

    @property
    def columns(self) -> int:
        return self.X.shape[1]

    @property
    def dim(self) -> int:
        """The ambient dimension, larger than `columns` for data sampled in their span."""
        return self.truth.dim or self.columns

    @property
    def in_span(self) -> bool:
        return self.dim > self.columns

    @property
    def binary(self) -> bool:
        return self.y.is_floating_point()

    @property
    def classes(self) -> int:
        return 2 if self.binary else int(self.y.max()) + 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one example, as networks take it: (columns,) where it is flat, a grey picture with its one channel."""
        image = self.truth.image or (self.columns,)
        return (1, *image) if len(image) == 2 else image

    def labelled_for(self, outputs: int) -> "Data":
        """The labels as a network of so many outputs takes them.

        One logit: classes 0 and 1 become -1 and +1, as BCEWithLogitsLoss means them. Two: -1 and +1 become 0 and 1.
        """
        if outputs == 1 and not self.binary and self.classes <= 2:
            note("the labels 0 and 1 are read as -1 and +1: the network has one logit, positive for the class 1")
            return self._relabelled(lambda y: 2.0 * y - 1)
        if outputs == 2 and self.binary:
            note("the labels -1 and +1 are read as the classes 0 and 1: the network has two logits")
            return self._relabelled(lambda y: (y + 1).long() // 2)
        return self

    def _relabelled(self, change: Callable[[Tensor], Tensor]) -> "Data":
        return replace(self, y=change(self.y), y_test=None if self.y_test is None else change(self.y_test))

    @property
    def test(self) -> "Data":
        """The held-out examples as data of their own."""
        X, y = (require_value(each, "these data have no test examples") for each in (self.X_test, self.y_test))
        return Data(X, y, truth=replace(self.truth, cluster=self.truth.cluster_test, cluster_test=None))

    @property
    def training(self) -> "Data":
        """The training examples without the held-out ones."""
        return replace(self, X_test=None, y_test=None, truth=replace(self.truth, cluster_test=None))

    def take(self, index: Tensor) -> "Data":
        """The training examples with these indices (or this mask); test examples stay."""
        cluster = None if self.truth.cluster is None else self.truth.cluster[index]
        return replace(self, X=self.X[index], y=self.y[index], truth=replace(self.truth, cluster=cluster))

    def take_test(self, index: Tensor) -> "Data":
        """The test examples with these indices (or this mask); training examples stay."""
        held = self.test
        cluster = None if held.truth.cluster is None else held.truth.cluster[index]
        truth = replace(self.truth, cluster_test=cluster)
        return replace(self, X_test=held.X[index], y_test=held.y[index], truth=truth)

    def require_binary(self) -> None:
        """Raise unless the labels are -1 and 1."""
        require(self.binary, "the labels are class numbers; this needs the labels -1 and 1 (choose two classes)")


class Setting(ABC):
    """A source of data. Its fields are its parameters; `sample` is its verb.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> setting = bt.data.Sphere(dim=5)
        >>> isinstance(setting, bt.data.Setting)
        True
        >>> setting.sample(10, torch.Generator().manual_seed(0), test=3).X_test.shape
        torch.Size([3, 5])
    """

    name: ClassVar[str]  # what the command line calls it

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def in_span_offered(self) -> bool:
        """Whether `in_span=True` is possible."""
        return True

    @property
    def finite(self) -> bool:
        """Whether this is a given set of examples, of which `sample` takes all or a random subset."""
        return False

    @check_kinds
    def sample(
        self, examples: int | None = None, rng: Generator | None = None, *, test: int | None = 0, in_span: bool = False
    ) -> Data:
        """`examples` training and `test` held-out examples; None stands for all that a finite setting has."""
        kind = type(self).__name__
        for name, count in (("examples", examples), ("test", test)):
            require(count is not None or self.finite, f"{kind} has no end: give it the number of examples ({name})")
        if examples is not None:
            require_count("examples", examples)
        if test is not None:
            require_count("test", test, least=0)
        require(self.in_span_offered or not in_span, f"{kind} cannot be sampled in its span")
        needless = not self._draws(examples, test)
        require(rng is not None or needless, f"{kind}.sample draws at random: give it a torch.Generator")
        return self.draw(examples, rng if rng is not None else torch.Generator(), test, in_span)

    def _draws(self, examples: int | None, test: int | None) -> bool:
        """Whether the sample depends on the generator."""
        return True

    @abstractmethod
    def draw(self, examples: int | None, rng: Generator, test: int | None, in_span: bool) -> Data:
        """The sample; `sample` has checked what was asked for."""


class GivenSet(Setting):
    """A setting that holds a given set of examples, perhaps with a test set of its own.

    Examples:
        >>> import brittle as bt
        >>> issubclass(bt.data.Digits, bt.data.GivenSet)
        True
        >>> len(bt.data.Digits().sample())
        1797
    """

    @property
    def in_span_offered(self) -> bool:
        return False

    @property
    def finite(self) -> bool:
        return True

    def _draws(self, examples: int | None, test: int | None) -> bool:
        return examples is not None or bool(test)

    @abstractmethod
    def load(self) -> Data:
        """Every example that there is."""

    def draw(self, examples: int | None, rng: Generator, test: int | None, in_span: bool) -> Data:
        data = self.load()
        if data.X_test is None and test != 0:
            return self._split(data, examples, rng, test)
        data = data.take(_some("examples", len(data), examples, rng))
        if test == 0:
            return data.training
        return data.take_test(_some("test", len(data.test), test, rng))

    def _split(self, data: Data, examples: int | None, rng: Generator, test: int | None) -> Data:
        """Held-out examples of a set without a test set: some that are not trained on."""
        kind = type(self).__name__
        require(examples is not None or test is not None, f"{kind} has no test set of its own: give examples or test")
        wanted = (examples or 1) + (test or 1)
        enough = wanted <= len(data)
        require(enough, f"{kind} has {len(data)} examples; {wanted} were asked for (examples and test together)")
        order = torch.randperm(len(data), generator=rng)
        count = len(data) - test if examples is None and test is not None else examples
        assert count is not None
        held = order[count:] if test is None else order[count : count + test]
        held = held.sort().values
        X_test, y_test = data.X[held], data.y[held]
        cluster = None if data.truth.cluster is None else data.truth.cluster[held]
        data = data.take(order[:count].sort().values)
        return replace(data, X_test=X_test, y_test=y_test, truth=replace(data.truth, cluster_test=cluster))


def _some(name: str, available: int, wanted: int | None, rng: Generator) -> Tensor:
    """Indices of a random subset in its old order; all of them where `wanted` is None."""
    require(wanted is None or wanted <= available, f"{name} is {wanted}; there are only {available}")
    if wanted is None:
        return torch.arange(available)
    return torch.randperm(available, generator=rng)[:wanted].sort().values
