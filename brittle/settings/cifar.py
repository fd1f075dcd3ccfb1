"""CIFAR-10 in its original forms: binary batches or Python batches, unpacked or as the archive that is offered."""

import gzip
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from brittle.common.errors import InputError, require, required
from brittle.common.limits import Budget, Metered
from brittle.common.pickles import Record, read_pickle

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
Pictures = tuple[np.ndarray, np.ndarray]  # (n, 3072) pixels, (n,) labels


def read_cifar(folder: Path) -> tuple[Pictures, Pictures]:
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


Reader = Callable[[str, bytes], Pictures]
Fetcher = Callable[[str], tuple[str, bytes]]  # from a batch's name to where it lies and what it holds


def _form(folder: Path) -> tuple[Reader, Fetcher]:
    for place in _places(folder):
        for suffix, reader in ((".bin", _binary_batch), ("", _python_batch)):
            if (place / f"test_batch{suffix}").is_file():
                return reader, _loose(place, suffix)
    packed = required(archive(folder), f"{folder}: CIFAR-10 is not there; run: brittle data fetch cifar10")
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
            stream = Metered(unpacked, Budget(path))
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


def _joined(read: Reader, fetch: Fetcher, names: tuple[str, ...]) -> Pictures:
    batches = [read(*fetch(name)) for name in names]
    return np.concatenate([pixels for pixels, _ in batches]), np.concatenate([labels for _, labels in batches])


def _binary_batch(where: str, content: bytes) -> Pictures:
    """Each picture: one byte of label, then 3072 of pixels."""
    size = 1 + PIXELS
    whole = len(content) > 0 and len(content) % size == 0
    require(whole, f"{where}: holds {len(content)} bytes; a whole number of {size}-byte pictures is needed")
    table = np.frombuffer(content, np.uint8).reshape(-1, size)
    return table[:, 1:], _checked(where, table[:, 0])


def _python_batch(where: str, content: bytes) -> Pictures:
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
    table = required(table, f"{where}: must hold data, an array of {len(labels)} rows of {PIXELS} bytes")
    return table, _checked(where, np.array(labels, np.uint8))


def _table(pixels: Any, rows: int) -> np.ndarray | None:
    """The unsigned bytes that a numpy array's state in a pickle describes; None where it is something else."""
    match pixels:
        case Record(state=(_, (int(height), int(width)), Record(arguments=(code, *_)), fortran, content)):
            content = content.encode("latin1") if isinstance(content, str) else content  # as Python 2 wrote it
            bytes_of = isinstance(content, bytes) and code in ("u1", b"u1")
            if bytes_of and (height, width, len(content)) == (rows, PIXELS, rows * PIXELS):
                return np.frombuffer(content, np.uint8).reshape((rows, PIXELS), order="F" if fortran is True else "C")
    return None


def _checked(where: str, labels: np.ndarray) -> np.ndarray:
    require(len(labels) > 0, f"{where}: holds no pictures")
    require(int(labels.max()) < 10, f"{where}: holds the label {int(labels.max())}; there are ten classes, 0 to 9")
    return labels
