"""Pictures: scikit-learn's digits, and MNIST, Fashion-MNIST and CIFAR-10 from their original files."""

import gzip
import math
import struct
import tarfile
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
import torch
from torch import Tensor

from brittle.common.errors import InputError, require, require_value
from brittle.common.limits import LARGEST_BYTES, ByteLimit, MeteredReader
from brittle.common.parts import option
from brittle.common.torch_files import PickledCall, read_pickle
from brittle.data.base import Data, DataInfo, GivenSet
from brittle.data.sources import data_folder, sha256, source
from brittle.data.transforms import TWO_CLASSES, two_classes


def read_idx(path: Path, axes: int) -> np.ndarray:
    """The array of bytes in an IDX file, compressed where its name ends in .gz."""
    try:
        with path.open("rb") as stream:
            if path.suffix != ".gz":
                return _read(path, stream, axes)
            with gzip.open(stream) as unpacked:
                return _read(path, unpacked, axes)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{path}: is not a complete gzip file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def _read(path: Path, stream: BinaryIO | gzip.GzipFile, axes: int) -> np.ndarray:
    head = stream.read(4 + 4 * axes)
    require(len(head) == 4 + 4 * axes, f"{path}: ends within its header")
    magic, *shape = struct.unpack(f">{1 + axes}I", head)
    expected = 0x800 + axes  # 8 stands for unsigned bytes
    require(magic == expected, f"{path}: begins with the number {magic}; {expected} marks such an IDX file")
    size = math.prod(shape)
    pictures = 0 < 8 * size <= LARGEST_BYTES
    require(pictures, f"{path}: declares the shape {tuple(shape)}, which is not a set of pictures")
    ByteLimit(path).take(8 * size, f"the shape {tuple(shape)}")
    content = stream.read(size + 1)
    fits = len(content) == size
    more = "more" if len(content) > size else f"{len(content)}"
    require(fits, f"{path}: declares {size} bytes and holds {more}")
    return np.frombuffer(content, np.uint8).reshape(shape)


# CIFAR-10 in its original forms: binary batches or Python batches, unpacked or as the archive that is offered.


PIXELS = 3 * 32 * 32
LARGEST_BATCH_BYTES = 64 * 2**20
LARGEST_ARCHIVE = 100
ARRAYS = (  # the names in a pickled numpy array
    "numpy.ndarray",
    "numpy.dtype",
    "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray._reconstruct",
)
TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST = ("test_batch",)
CifarPictures = tuple[np.ndarray, np.ndarray]  # (n, 3072) pixels, (n,) labels


def read_cifar(folder: Path) -> tuple[CifarPictures, CifarPictures]:
    """Training and test pictures from whichever form `folder` holds."""
    read, batch = _form(folder)
    return _joined(read, batch, TRAIN), _joined(read, batch, TEST)


def archive(folder: Path) -> Path | None:
    """The packed form, where there is no unpacked one."""
    loose = any((place / name).is_file() for place in _places(folder) for name in ("test_batch.bin", "test_batch"))
    packed = (folder / "cifar-10-binary.tar.gz", folder / "cifar-10-python.tar.gz")
    return None if loose else next((path for path in packed if path.is_file()), None)


def _places(folder: Path) -> tuple[Path, ...]:
    return folder, folder / "cifar-10-batches-bin", folder / "cifar-10-batches-py"


Reader = Callable[[str, bytes], CifarPictures]
Fetcher = Callable[[str], tuple[str, bytes]]  # from a batch's name to where it lies and what it holds


def _form(folder: Path) -> tuple[Reader, Fetcher]:
    for place in _places(folder):
        for suffix, reader in ((".bin", _binary_batch), ("", _python_batch)):
            if (place / f"test_batch{suffix}").is_file():
                return reader, _loose(place, suffix)
    packed = require_value(archive(folder), f"{folder}: CIFAR-10 is not there; run: brittle data fetch cifar10")
    contents = dict(_members(packed))
    binary = "binary" in packed.name
    return (_binary_batch if binary else _python_batch), _packed(packed, contents, ".bin" if binary else "")


def _loose(place: Path, suffix: str) -> Fetcher:
    def fetch(name: str) -> tuple[str, bytes]:
        path = place / f"{name}{suffix}"
        require(path.is_file(), f"{path}: no such file; all six batches are needed")
        with path.open("rb") as stream:
            return str(path), stream.read(LARGEST_BATCH_BYTES)

    return fetch


def _packed(path: Path, contents: dict[str, bytes], suffix: str) -> Fetcher:
    def fetch(name: str) -> tuple[str, bytes]:
        require(f"{name}{suffix}" in contents, f"{path}: does not hold {name}{suffix}; the archive may be cut short")
        return f"{path} ({name}{suffix})", contents[f"{name}{suffix}"]

    return fetch


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """The batches of an archive, read one after the other; nothing is unpacked to disk."""
    wanted = {f"{name}{suffix}" for name in TRAIN + TEST for suffix in (".bin", "")}
    try:
        with path.open("rb") as packed, gzip.open(packed) as unpacked:
            stream = MeteredReader(unpacked, ByteLimit(path))
            with tarfile.open(fileobj=stream, mode="r|") as contents:
                yield from _wanted(path, contents, wanted)
    except InputError:
        raise
    except (tarfile.TarError, EOFError, zlib.error, OSError, ValueError, OverflowError, RecursionError):
        raise InputError(f"{path}: is not a complete .tar.gz archive") from None


def _wanted(path: Path, contents: tarfile.TarFile, wanted: set[str]) -> Iterator[tuple[str, bytes]]:
    for count, member in enumerate(contents):
        require(count < LARGEST_ARCHIVE, f"{path}: holds more than {LARGEST_ARCHIVE} files; the original holds 8")
        name = Path(member.name).name
        content = contents.extractfile(member) if member.isfile() and name in wanted else None
        if content is not None:
            yield name, content.read(LARGEST_BATCH_BYTES)


def _joined(read: Reader, fetch: Fetcher, names: tuple[str, ...]) -> CifarPictures:
    batches = [read(*fetch(name)) for name in names]
    return np.concatenate([pixels for pixels, _ in batches]), np.concatenate([labels for _, labels in batches])


def _binary_batch(where: str, content: bytes) -> CifarPictures:
    """Each picture: one byte of label, then 3072 of pixels."""
    size = 1 + PIXELS
    whole = len(content) > 0 and len(content) % size == 0
    require(whole, f"{where}: holds {len(content)} bytes; a whole number of {size}-byte pictures is needed")
    table = np.frombuffer(content, np.uint8).reshape(-1, size)
    return table[:, 1:], _checked(where, table[:, 0])


def _python_batch(where: str, content: bytes) -> CifarPictures:
    try:
        batch = read_pickle(content, ARRAYS.__contains__, "holds {}, which a CIFAR-10 batch does not")
    except InputError as error:
        damaged = "damaged" in str(error)
        raise InputError(f"{where}: {'is not a complete CIFAR-10 batch' if damaged else error}") from None
    require(isinstance(batch, dict), f"{where}: must hold a dictionary with data and labels")
    batch = {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in batch.items()}
    labels = batch.get("labels")
    known = isinstance(labels, list) and all(isinstance(label, int) and 0 <= label < 256 for label in labels)
    require(known, f"{where}: must hold labels, a list of class numbers")
    assert isinstance(labels, list)
    table = _table(batch.get("data"), len(labels))
    table = require_value(table, f"{where}: must hold data, an array of {len(labels)} rows of {PIXELS} bytes")
    return table, _checked(where, np.array(labels, np.uint8))


def _table(pixels: Any, rows: int) -> np.ndarray | None:
    """The unsigned bytes that a numpy array's state in a pickle describes; None where it is something else."""
    match pixels:
        case PickledCall(state=(_, (int(height), int(width)), PickledCall(arguments=(code, *_)), fortran, content)):
            content = content.encode("latin1") if isinstance(content, str) else content  # as Python 2 wrote it
            bytes_of = isinstance(content, bytes) and code in ("u1", b"u1")
            if bytes_of and (height, width, len(content)) == (rows, PIXELS, rows * PIXELS):
                return np.frombuffer(content, np.uint8).reshape((rows, PIXELS), order="F" if fortran is True else "C")
    return None


def _checked(where: str, labels: np.ndarray) -> np.ndarray:
    require(len(labels) > 0, f"{where}: holds no pictures")
    require(int(labels.max()) < 10, f"{where}: holds the label {int(labels.max())}; there are ten classes, 0 to 9")
    return labels


PYTHON_ARCHIVE = ("cifar-10-python.tar.gz", "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce")
FOLDER = option("Where the original files lie; in the data folder unless given.")
VERIFY = option("Insist on the original files' SHA-256.")


@dataclass(frozen=True)
class ImageSet(GivenSet):
    """Pictures with pixels in [0, 1]: all classes by number, or two `classes` as -1 and +1.

    Examples:
        >>> import brittle as bt
        >>> isinstance(bt.data.Mnist(classes=(3, 8)), bt.data.ImageSet)
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
        truth = DataInfo(dim=int(np.prod(self.image)), image=self.image)
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
        >>> data = bt.data.Digits(classes=(3, 8)).sample()
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
        >>> threes_and_eights = bt.data.Mnist(classes=(3, 8))  # from $BRITTLE_DATA, or what `fetch` brought
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
        >>> shirts = bt.data.FashionMnist(classes=(0, 6))  # from $BRITTLE_DATA, or what `fetch` brought
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
        >>> cats_and_dogs = bt.data.Cifar10(classes=(3, 5))  # from $BRITTLE_DATA, or what `fetch` brought
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
