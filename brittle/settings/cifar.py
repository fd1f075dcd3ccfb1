"""CIFAR-10 in its original forms: binary batches or Python batches, unpacked or as the archive that is offered."""

import codecs
import io
import pickle
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from brittle.common.errors import InputError, require

PIXELS = 3 * 32 * 32
LARGEST_BATCH_BYTES = 64 * 2**20
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
    packed = archive(folder)
    require(packed is not None, f"{folder}: CIFAR-10 is not there; run: brittle data fetch cifar10")
    assert packed is not None
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
        with tarfile.open(path, "r|gz") as stream:
            for member in stream:
                name = Path(member.name).name
                content = stream.extractfile(member) if member.isfile() and name in wanted else None
                if content is not None:
                    yield name, content.read(LARGEST_BATCH_BYTES)
    except (tarfile.TarError, EOFError, zlib.error, OSError):
        raise InputError(f"{path}: is not a complete .tar.gz archive") from None


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
        batch = _BatchUnpickler(io.BytesIO(content), encoding="bytes").load()
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except Exception:  # a pickle is a program: a broken one may fail in any way
        raise InputError(f"{where}: is not a complete CIFAR-10 batch") from None
    require(isinstance(batch, dict), f"{where}: must hold a dictionary with data and labels")
    batch = {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in batch.items()}
    labels = batch.get("labels")
    known = isinstance(labels, list) and all(isinstance(label, int) and 0 <= label < 256 for label in labels)
    require(known, f"{where}: must hold labels, a list of class numbers")
    assert isinstance(labels, list)
    pixels = batch.get("data")
    table = pixels.table(len(labels), PIXELS) if isinstance(pixels, _Array) else None
    require(table is not None, f"{where}: must hold data, an array of {len(labels)} rows of {PIXELS} bytes")
    assert table is not None
    return table, _checked(where, np.array(labels, np.uint8))


def _checked(where: str, labels: np.ndarray) -> np.ndarray:
    require(len(labels) > 0, f"{where}: holds no pictures")
    require(int(labels.max()) < 10, f"{where}: holds the label {int(labels.max())}; there are ten classes, 0 to 9")
    return labels


class _Array:
    """Stands for a numpy array in a pickle: keeps what it is told, so that no foreign code runs."""

    state: Any = None

    def __init__(self, *_: Any) -> None: ...

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def table(self, rows: int, columns: int) -> np.ndarray | None:
        """The unsigned bytes that the state describes, or None where it describes something else."""
        match self.state:
            case (_, (int(height), int(width)), _Type(code="u1"), fortran, bytes(content)):
                if (height, width, len(content)) == (rows, columns, rows * columns):
                    return np.frombuffer(content, np.uint8).reshape((rows, columns), order="F" if fortran else "C")
        return None


class _Type:
    """Stands for a numpy dtype in a pickle."""

    def __init__(self, code: Any = None, *_: Any) -> None:
        self.code = code.decode("latin1") if isinstance(code, bytes) else code

    def __setstate__(self, state: Any) -> None: ...


def _encoded(text: str, encoding: Any) -> bytes:
    """How Python 3 writes bytes into an old pickle."""
    require(encoding in ("latin1", b"latin1") and isinstance(text, str), "holds an encoding other than latin1")
    return codecs.encode(text, "latin1")


class _BatchUnpickler(pickle.Unpickler):
    """Admits basic containers and, by stand-ins, arrays; anything else in the pickle is refused by name."""

    allowed = {  # noqa: RUF012
        ("numpy", "ndarray"): _Array,
        ("numpy", "dtype"): _Type,
        ("numpy.core.multiarray", "_reconstruct"): _Array,
        ("numpy._core.multiarray", "_reconstruct"): _Array,
        ("_codecs", "encode"): _encoded,
    }

    def find_class(self, module: str, name: str) -> Any:
        known = (module, name) in self.allowed
        require(known, f"holds {module}.{name}, which a CIFAR-10 batch does not")
        return self.allowed[module, name]
