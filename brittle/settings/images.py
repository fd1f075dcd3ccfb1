"""Pictures: scikit-learn's digits, and MNIST, Fashion-MNIST and CIFAR-10 from their original files."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from brittle.common.errors import require
from brittle.common.parts import option
from brittle.settings.base import Data, GivenSet, Truth
from brittle.settings.cifar import archive, read_cifar
from brittle.settings.idx import read_idx
from brittle.settings.sources import data_folder, sha256, source
from brittle.settings.transforms import TWO_CLASSES, two_classes

PYTHON_ARCHIVE = ("cifar-10-python.tar.gz", "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce")
FOLDER = option("Where the original files lie; in the data folder unless given.")
VERIFY = option("Insist on the original files' SHA-256.")


@dataclass(frozen=True)
class ImageSet(GivenSet):
    """Pictures with pixels in [0, 1]: all classes by number, or two `classes` as -1 and +1.

    Examples:
        >>> import brittle as bt
        >>> isinstance(bt.settings.Mnist(classes=(3, 8)), bt.settings.ImageSet)
        True
    """

    classes: tuple[int, int] | None = field(default=None, metadata=TWO_CLASSES)

    def load(self) -> Data:
        pictures = self._read()
        if self.classes is None:
            return pictures.data()
        return two_classes(pictures.only(self.classes).data(), self.classes)

    @abstractmethod
    def _read(self) -> "Pictures": ...


@dataclass(frozen=True)
class Pictures:
    """Pixels (n, ...) from 0 to `white` and class numbers (n,), as small as they lie in their files."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray | None
    y_test: np.ndarray | None
    image: tuple[int, ...]
    white: int = 255

    def only(self, classes: tuple[int, int]) -> "Pictures":
        """Drops the others before they grow to float64; a missing class is left for `two_classes` to report."""
        if not np.isin(classes, self.y).all():
            return self
        keep = np.isin(self.y, classes)
        if self.X_test is None or self.y_test is None:
            return replace(self, X=self.X[keep], y=self.y[keep])
        held = np.isin(self.y_test, classes)
        return replace(self, X=self.X[keep], y=self.y[keep], X_test=self.X_test[held], y_test=self.y_test[held])

    def data(self) -> Data:
        truth = Truth(dim=int(np.prod(self.image)), image=self.image)
        if self.X_test is None or self.y_test is None:
            return Data(self._pixels(self.X), _numbers(self.y), truth=truth)
        tests = self._pixels(self.X_test), _numbers(self.y_test)
        return Data(self._pixels(self.X), _numbers(self.y), *tests, truth)

    def _pixels(self, X: np.ndarray) -> Tensor:
        return torch.from_numpy(X.reshape(len(X), -1).astype(np.float64)) / self.white


@dataclass(frozen=True)
class Digits(ImageSet):
    """scikit-learn's 1797 bundled 8 × 8 digits; no test set of its own.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Digits(classes=(3, 8)).sample()
        >>> data.X.shape, data.truth.image
        (torch.Size([357, 64]), (8, 8))
    """

    name: ClassVar = "digits"

    def _read(self) -> Pictures:
        table = _bundled_digits()
        return Pictures(table[:, :-1], table[:, -1].astype(np.int64), None, None, (8, 8), white=16)


def _bundled_digits() -> np.ndarray:
    """The file inside scikit-learn, pixels and then the label; to import scikit-learn would take seconds."""
    package = find_spec("sklearn")
    assert package is not None
    assert package.origin is not None
    bundled = Path(package.origin).with_name("datasets") / "data" / "digits.csv.gz"
    if bundled.is_file():
        return np.loadtxt(bundled, delimiter=",")
    from sklearn.datasets import load_digits  # a release that keeps it elsewhere

    return np.column_stack(load_digits(return_X_y=True))


@dataclass(frozen=True)
class Mnist(ImageSet):
    """28 × 28 handwritten digits; `folder` holds the four IDX files, `verify` insists on their SHA-256.

    Examples:
        >>> import brittle as bt
        >>> threes_and_eights = bt.settings.Mnist(classes=(3, 8))  # from $BRITTLE_DATA, or what `fetch` brought
        >>> data = threes_and_eights.sample()  # doctest: +SKIP
    """

    name: ClassVar = "mnist"

    folder: str | Path | None = field(default=None, metadata=FOLDER)
    verify: bool = field(default=True, metadata=VERIFY)

    def _read(self) -> Pictures:
        return _idx_set(self.name, self.folder, self.verify)


@dataclass(frozen=True)
class FashionMnist(ImageSet):
    """28 × 28 pieces of clothing, in files like MNIST's.

    Examples:
        >>> import brittle as bt
        >>> shirts = bt.settings.FashionMnist(classes=(0, 6))  # from $BRITTLE_DATA, or what `fetch` brought
        >>> data = shirts.sample()  # doctest: +SKIP
    """

    name: ClassVar = "fashion-mnist"

    folder: str | Path | None = field(default=None, metadata=FOLDER)
    verify: bool = field(default=True, metadata=VERIFY)

    def _read(self) -> Pictures:
        return _idx_set(self.name, self.folder, self.verify)


@dataclass(frozen=True)
class Cifar10(ImageSet):
    """3 × 32 × 32 colour pictures from binary or Python batches, unpacked or as the original archive.

    `verify` insists on the SHA-256 of an archive; unpacked batches are judged by their structure.

    Examples:
        >>> import brittle as bt
        >>> cats_and_dogs = bt.settings.Cifar10(classes=(3, 5))  # from $BRITTLE_DATA, or what `fetch` brought
        >>> data = cats_and_dogs.sample()  # doctest: +SKIP
    """

    name: ClassVar = "cifar10"

    folder: str | Path | None = field(default=None, metadata=FOLDER)
    verify: bool = field(default=True, metadata=VERIFY)

    def _read(self) -> Pictures:
        folder = _folder(self.name, self.folder)
        packed = archive(folder)
        if packed is not None and self.verify:
            _verify(packed, (source(self.name).files | dict([PYTHON_ARCHIVE]))[packed.name])
        (X, y), (X_test, y_test) = read_cifar(folder)
        return Pictures(X, y, X_test, y_test, (3, 32, 32))


def _folder(name: str, chosen: str | Path | None) -> Path:
    folder = data_folder() / name if chosen is None else Path(chosen)
    require(folder.is_dir(), f"{folder}: no such folder; run: brittle data fetch {name}")
    return folder


def _verify(path: Path, expected: str) -> None:
    genuine = sha256(path) == expected
    require(genuine, f"{path}: its SHA-256 is not the original file's; fetch it again, or read it with verify=False")


def _idx_set(name: str, chosen: str | Path | None, verify: bool) -> Pictures:
    folder = _folder(name, chosen)
    X, y = _idx_pair(name, folder, "train", verify)
    X_test, y_test = _idx_pair(name, folder, "t10k", verify)
    same = X.shape[1:] == X_test.shape[1:]
    require(same, f"{folder}: training pictures are {X.shape[1:]} and test pictures {X_test.shape[1:]}")
    return Pictures(X, y, X_test, y_test, tuple(X.shape[1:]))


def _idx_pair(name: str, folder: Path, part: str, verify: bool) -> tuple[np.ndarray, np.ndarray]:
    X = read_idx(_idx_file(name, folder, f"{part}-images-idx3-ubyte", verify), 3)
    path = _idx_file(name, folder, f"{part}-labels-idx1-ubyte", verify)
    y = read_idx(path, 1)
    require(len(X) == len(y), f"{path}: holds {len(y)} labels for {len(X)} pictures")
    require(int(y.max()) < 10, f"{path}: holds the label {int(y.max())}; there are ten classes, 0 to 9")
    return X, y


def _idx_file(name: str, folder: Path, file: str, verify: bool) -> Path:
    packed, plain = folder / f"{file}.gz", folder / file
    if packed.is_file():
        if verify:
            _verify(packed, source(name).files[packed.name])
        return packed
    require(plain.is_file(), f"{packed}: no such file; run: brittle data fetch {name}")
    return plain


def _numbers(y: np.ndarray) -> Tensor:
    return torch.from_numpy(y.astype(np.int64))
