"""What is done to data between their source and a network: fewer classes, fewer pixels, one norm, fewer components."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from brittle.common.errors import require, require_count, require_value
from brittle.common.kinds import check_kinds
from brittle.common.parts import Given, option
from brittle.data.base import Data, DataInfo


def _two_labels(text: str, given: Given) -> tuple[int | str, int | str]:
    labels = [label.strip() for label in text.split(",")]
    require(len(labels) == 2 and all(labels), f"--classes is {text!r}; give two labels, such as 0,1")
    low, high = (int(label) if label.isdigit() else label for label in labels)
    return low, high


def require_two_classes(name: str, classes: object) -> None:
    """Two different class numbers, before the data say which they hold."""
    pair = tuple(classes) if isinstance(classes, tuple | list) else ()
    numbers = len(pair) == 2 and all(isinstance(each, int) for each in pair) and pair[0] != pair[1]
    require(numbers, f"{name} is {classes!r}; two different class numbers are needed")


CLASSES_HELP = "Two labels, such as 0,1, that become -1 and +1."
CLASSES = option(CLASSES_HELP, kind=str, read=_two_labels)
TWO_CLASSES = option(CLASSES_HELP, kind=str, read=_two_labels, check=require_two_classes)


def two_classes(data: Data, classes: tuple[int, int]) -> Data:
    """The examples of two classes; the first becomes -1, the second +1.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Digits().sample()
        >>> len(data), len(bt.data.two_classes(data, (3, 8)))
        (1797, 357)
    """
    require_two_classes("classes", classes)
    low, high = classes
    for label in classes:
        held = bool((data.y == label).any())
        require(held, f"there are no examples of the class {label}; there are {_shown(data.y)}")
    data = _called(data.take((data.y == low) | (data.y == high)), low, high)
    signs = _signs(data.y, high)
    if data.X_test is None:
        return replace(data, y=signs)
    data = data.take_test((data.test.y == low) | (data.test.y == high))
    return replace(data, y=signs, y_test=_signs(data.test.y, high))


def _called(data: Data, low: int, high: int) -> Data:
    """The two keep their names, or the numbers that they had."""
    names = data.truth.names
    kept = (str(low), str(high)) if names is None else (names[low], names[high])
    return replace(data, truth=replace(data.truth, names=kept))


def _signs(y: Tensor, high: int) -> Tensor:
    return torch.where(y == high, 1.0, -1.0).double()


def _shown(y: Tensor) -> str:
    values = [f"{value:g}" for value in torch.unique(y).tolist()]
    return ", ".join(values[:10]) + (", ..." if len(values) > 10 else "")


@check_kinds
def downsample(data: Data, side: int) -> Data:
    """Pictures resized to side × side by an antialiased triangle filter, so that d = side² for grey ones.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Digits(classes=(3, 8)).sample()
        >>> bt.data.downsample(data, 4).dim
        16
    """
    require_count("side", side)
    image = require_value(data.truth.image, "these data are not pictures: their shape as an image is not known")
    channels = image[0] if len(image) == 3 else 1
    shape = (channels, side, side) if len(image) == 3 else (side, side)

    def resized(X: Tensor) -> Tensor:
        pictures = X.view(len(X), channels, *image[-2:])
        small = torch.nn.functional.interpolate(pictures, size=(side, side), mode="bilinear", antialias=True)
        return small.flatten(1)

    return _mapped(data, resized, DataInfo(dim=channels * side * side, image=shape))


@check_kinds
def unit_norm(data: Data) -> Data:
    """Every example divided by its Euclidean norm; a linear subspace that held them still does.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.unit_norm(bt.data.Orthogonal(9).sample(2))
        >>> data.X.norm(dim=1).tolist()
        [1.0, 1.0]
    """

    def normed(X: Tensor) -> Tensor:
        norms: Tensor = X.norm(dim=1, keepdim=True)
        zeros = int((norms == 0).sum())
        require(zeros == 0, f"{zeros} examples are zero and have no direction: leave them out")
        return X / norms

    old = data.truth
    truth = DataInfo(dim=old.dim, radius=1.0, image=old.image)
    if old.offset is None:
        truth = replace(truth, basis=old.basis, complement=old.complement, codimension=old.codimension)
    return _mapped(data, normed, truth)


@check_kinds
def principal(data: Data, components: int, *, centred: bool = False) -> Data:
    """Examples projected on the affine subspace of the top principal components of the training examples.

    They stay vectors of R^d. `centred` moves the training mean to the origin, which makes the subspace linear.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Digits(classes=(3, 8)).sample()
        >>> flat = bt.data.principal(data, 5, centred=True)
        >>> int(torch.linalg.matrix_rank(flat.X)), flat.truth.codimension
        (5, 59)
    """
    require_count("components", components)
    most = min(data.X.shape)
    require(
        components <= most, f"components is {components}; {len(data)} examples of {data.columns} columns have {most}"
    )
    mean = data.X.mean(0)
    axes = _principal_axes(data.X - mean)
    basis = axes[:, :components].clone()
    origin = torch.zeros_like(mean) if centred else mean

    def projected(X: Tensor) -> Tensor:
        return origin + (X - mean) @ basis @ basis.T

    whole = not data.in_span
    truth = DataInfo(
        dim=data.dim,
        basis=basis,
        complement=axes[:, components:].clone() if whole else None,
        codimension=data.dim - components,
        offset=None if centred else mean,
        image=data.truth.image,
    )
    return _mapped(data, projected, truth)


@check_kinds
def compute_explained_variance(data: Data) -> Tensor:
    """Cumulative share of the training variance on the first 1, 2, ... principal components.

    Examples:
        >>> import brittle as bt
        >>> shares = bt.data.compute_explained_variance(bt.data.Line7().sample())
        >>> [round(share, 6) for share in shares.tolist()]
        [1.0, 1.0]
    """
    variances: Tensor = torch.linalg.eigvalsh(_covariance(data.X - data.X.mean(0))).flip(0).clamp(min=0)
    require(bool(variances.sum() > 0), "all examples are equal: they have no variance to explain")
    return variances.cumsum(0) / variances.sum()


def _principal_axes(centred: Tensor) -> Tensor:
    """All axes (columns, columns), the one of largest variance first."""
    rising: Tensor = torch.linalg.eigh(_covariance(centred)).eigenvectors
    return rising.flip(1)


def _covariance(centred: Tensor) -> Tensor:
    return centred.T @ centred / len(centred)


def _mapped(data: Data, change: Callable[[Tensor], Tensor], truth: DataInfo) -> Data:
    """Classes keep their names, and columns too where none is lost."""
    X, X_test = change(data.X), None if data.X_test is None else change(data.X_test)
    features = data.truth.features if X.shape[1] == data.columns else None
    return Data(X, data.y, X_test, data.y_test, replace(truth, names=data.truth.names, features=features))
