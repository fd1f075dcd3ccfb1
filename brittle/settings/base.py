"""Data with the truth about where they come from, and the shape of everything that makes them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import torch
from torch import Generator, Tensor

from brittle.common.errors import require, require_count


@dataclass(frozen=True, eq=False)
class Truth:
    """What a setting knows about its data; None where there is nothing to know.

    Vectors have as many entries as `Data.X` has columns. For data sampled in their span that is fewer than `dim`.
    """

    dim: int | None = None  # ambient dimension d
    radius: float | None = None  # ‖x‖ of every example
    coherence: float | None = None  # p: a bound on |<x_i, x_j>|, for clusters on |<μ_q, μ_r>|
    means: Tensor | None = None  # (k, columns)
    mean_labels: Tensor | None = None  # (k,), ±1
    cluster: Tensor | None = None  # (n,), which mean each example belongs to
    cluster_test: Tensor | None = None  # (n_test,)
    noise: float | None = None  # σ
    basis: Tensor | None = None  # (columns, dim - codimension), orthonormal: the data's subspace P
    complement: Tensor | None = None  # (columns, ℓ), orthonormal: P⊥, where it is explicit
    codimension: int | None = None  # ℓ
    offset: Tensor | None = None  # (columns,), a point of an affine subspace; None for a linear one
    image: tuple[int, ...] | None = None  # shape of one example as a picture


@dataclass(frozen=True, eq=False)
class Data:
    """X (n, columns) float64; y (n,) float64 in {-1, 1}, or int64 class numbers."""

    X: Tensor
    y: Tensor
    X_test: Tensor | None = None
    y_test: Tensor | None = None
    truth: Truth = field(default_factory=Truth)

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", _examples("X", self.X))
        object.__setattr__(self, "y", _labels("y", self.y, len(self.X)))
        require((self.X_test is None) == (self.y_test is None), "X_test and y_test belong together: give both or none")
        if self.X_test is not None and self.y_test is not None:
            object.__setattr__(self, "X_test", _examples("X_test", self.X_test))
            object.__setattr__(self, "y_test", _labels("y_test", self.y_test, len(self.X_test)))
            same = self.X_test.shape[1] == self.X.shape[1]
            require(same, f"X_test has {self.X_test.shape[1]} columns and X has {self.X.shape[1]}; they must agree")
            kinds = self.y_test.dtype == self.y.dtype
            require(kinds, "y and y_test must both be -1 and 1, or both be class numbers")

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
    def test(self) -> "Data":
        """The held-out examples as data of their own."""
        require(self.X_test is not None, "these data have no test examples")
        assert self.X_test is not None
        assert self.y_test is not None
        truth = replace(self.truth, cluster=self.truth.cluster_test, cluster_test=None)
        return Data(self.X_test, self.y_test, truth=truth)

    def take(self, index: Tensor) -> "Data":
        """The training examples with these indices (or this mask); test examples stay."""
        cluster = None if self.truth.cluster is None else self.truth.cluster[index]
        return replace(self, X=self.X[index], y=self.y[index], truth=replace(self.truth, cluster=cluster))

    def require_binary(self) -> None:
        """Raise unless the labels are -1 and 1."""
        require(self.binary, "the labels are class numbers; this needs the labels -1 and 1 (choose two classes)")


class Setting(ABC):
    """A source of data. Its fields are its parameters; `sample` is its verb."""

    in_span_offered = False  # whether `in_span=True` is possible
    fixed_size: int | None = None  # the number of training examples, where it is not a choice

    def sample(
        self, examples: int | None = None, rng: Generator | None = None, *, test: int = 0, in_span: bool = False
    ) -> Data:
        """`examples` training and `test` held-out examples; a setting of fixed size gives a random subset, None all."""
        if examples is None:
            require(self.fixed_size is not None, f"{type(self).__name__} needs the number of examples")
        else:
            require_count("examples", examples)
        require_count("test", test, least=0)
        require(self.in_span_offered or not in_span, f"{type(self).__name__} cannot be sampled in its span")
        needless = examples is None and self.fixed_size is not None
        require(rng is not None or needless, f"{type(self).__name__}.sample draws at random: give it a torch.Generator")
        return self._sample(examples, rng if rng is not None else torch.Generator(), test, in_span)

    @abstractmethod
    def _sample(self, examples: int | None, rng: Generator, test: int, in_span: bool) -> Data: ...


def _examples(name: str, X: Tensor) -> Tensor:
    require(X.ndim == 2, f"{name} has shape {tuple(X.shape)}; one row per example and one column per feature is needed")
    require(X.shape[0] > 0, f"{name} has no rows; at least one example is needed")
    require(X.shape[1] > 0, f"{name} has no columns; at least one feature is needed")
    require(X.dtype != torch.bool and not X.is_complex(), f"{name} has type {X.dtype}; real numbers are needed")
    bad = int((~torch.isfinite(X)).any(1).sum())
    require(bad == 0, f"{name} holds NaN or infinity in {bad} of {len(X)} rows")
    return X.double()


def _labels(name: str, y: Tensor, count: int) -> Tensor:
    require(y.ndim == 1, f"{name} has shape {tuple(y.shape)}; one label per example is needed")
    require(len(y) == count, f"{name} has {len(y)} labels for {count} examples")
    values = y.double()
    signs = bool(((values == 1) | (values == -1)).all())
    if signs and not (values == 1).all():
        return values
    whole = bool(((values >= 0) & (values == values.round())).all())
    wrong = values[(values < 0) | (values != values.round())]
    shown = f"{wrong[0].item():g}" if len(wrong) else ""
    require(signs or whole, f"{name} holds {shown}; labels are -1 and 1, or class numbers 0, 1, 2, ...")
    # Only +1: a float array or a one-class sample of a sign problem; integers stay class numbers.
    return values if signs and y.is_floating_point() else values.long()
