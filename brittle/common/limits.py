"""How much a file may ask for: one budget for every format, in memory and in time.

A file of numbers is about as large in memory as on disk. One that claims to unpack to far more is refused before the
memory is taken, unless what it claims is small anyway.
"""

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from brittle.common.errors import InputError, existing, require

LARGEST_BYTES = 8 * 2**30  # of all that one file holds, counted as 8 bytes per number
LARGEST_RATIO = 64  # of that to the size of the file: MNIST's own pictures reach 38 as float64
ALWAYS_ALLOWED = 128 * 2**20  # what any file may unpack to: an identity matrix compresses a thousandfold
LARGEST_DIRECTORY = 4 * 2**20  # bytes of a zip archive's list of entries, about 40,000 of them
LARGEST_TEXT = 16 * 2**20  # bytes of a header, of a graph in JSON, of one row of a table
LARGEST_PICKLE = 2**20  # instructions in one pickle
LARGEST_ARRAYS = 20_000  # arrays in one file of named tensors
LARGEST_MODEL = 2**19  # fields in one ONNX file
LARGEST_GRAPH = 10_000  # operations in one network
LARGEST_ROW = 2**25  # numbers that a network holds at once for one example
LARGEST_WORK = 2**35  # multiplications for one example
ALWAYS_TRIED = 2**34  # multiplications of all the trial runs of any network that is opened
TRIED_RATIO = 2**14  # or of one with large arrays, for each of their bytes
LARGEST_VALUE = 2**21  # numbers in one value of a network that is written as layers
LARGEST_HELD = 5 * 2**27  # bytes of the maps that are held at once while it is
LARGEST_MADE = 2**28  # entries of all the maps that are computed on the way, other work counted as such


class ByteLimit:
    """What a file may still unpack to."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.held = Path(path).stat().st_size
        self.limit = min(LARGEST_BYTES, max(ALWAYS_ALLOWED, LARGEST_RATIO * self.held))
        self.left = self.limit

    def take(self, size: int, what: str) -> None:
        """Refuse the file if `what` takes it over its limit."""
        over = f"{self.path}: {what} would unpack to too much: a file of {self.held} bytes may hold {self.limit}"
        require(size <= self.left, over)
        self.left -= size


class MeteredReader(io.RawIOBase):
    """An unpacked gzip stream that stops at the budget of the file it comes from, and where that is cut short."""

    def __init__(self, stream: gzip.GzipFile, budget: ByteLimit) -> None:
        self._stream, self._budget = stream, budget

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        content = bytearray()
        while size < 0 or len(content) < size:
            try:
                part = self._stream.read1(io.DEFAULT_BUFFER_SIZE if size < 0 else size - len(content))
            except EOFError:
                break
            if not part:
                break
            self._budget.take(len(part), "the stream")
            content += part
        return bytes(content)


def read_whole(path: Path) -> bytes:
    """All bytes of a file that may be as large as the largest."""
    try:
        size = path.stat().st_size
        require(size <= LARGEST_BYTES, f"{path}: holds {size} bytes; {LARGEST_BYTES} is the most that is read")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


# Zip archives from strangers: a short directory, plain entries, and no more unpacked than the budget allows.


DAMAGE = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError, struct.error
)  # fmt: skip
PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class _CautiousFile(io.FileIO):
    """Does not hand out a directory of any length: zipfile reads it in one piece."""

    longest = LARGEST_DIRECTORY

    def read(self, size: int | None = -1) -> bytes:
        _check_length(size, self.longest)
        return super().read(-1 if size is None else size) or b""


class _CautiousBytes(io.BytesIO):
    """The same for an archive inside another."""

    def read(self, size: int | None = -1) -> bytes:
        _check_length(size, LARGEST_DIRECTORY)
        return super().read(size)


def _check_length(size: int | None, longest: int) -> None:
    if size is not None and size > longest:
        raise zipfile.BadZipFile("the directory is too long")


class Archive:
    """The entries of a zip archive by name, without the folder that torch puts around them where `inner` is true."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, inner: bool) -> None:
        self.path, self.budget = path, ByteLimit(path)
        self._archive = archive
        entries = [entry for entry in archive.infolist() if entry.compress_type in PLAIN]
        self._entries = {entry.filename.partition("/")[2] if inner else entry.filename: entry for entry in entries}
        self.claimed = sum(entry.file_size for entry in entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def size(self, name: str) -> int:
        return self._entries[name].file_size

    def open(self, name: str) -> IO[bytes]:
        return self._archive.open(self._entries[name])

    def read(self, name: str, most: int | None = None) -> bytes:
        """The whole entry, which counts against the budget."""
        require(name in self, f"{self.path}: the entry '{name}' is missing")
        size = self.size(name)
        require(most is None or size <= most, f"{self.path}: the entry '{name}' has {size} bytes; {most} is the most")
        self.budget.take(size, f"the entry '{name}'")
        with self.open(name) as stream:
            content = stream.read(size)
        require(len(content) == size, f"{self.path}: the entry '{name}' declares {size} bytes and holds {len(content)}")
        return content


@contextmanager
def open_archive(path: str | Path, what: str, inner: bool = True) -> Iterator[Archive]:
    """An archive; whatever is damaged in it is said in one line that begins with the path and calls it `what`."""
    path = existing(path)
    try:
        with _CautiousFile(path) as stream, zipfile.ZipFile(stream) as archive:
            stream.longest = 2**63
            yield Archive(path, archive, inner)
    except InputError:
        raise
    except DAMAGE:
        raise InputError(f"{path}: is not {what}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def inner_entry(content: bytes, ending: str, most: int) -> bytes:
    """The first entry of this ending in an archive that is itself an entry; a BadZipFile where there is none."""
    with zipfile.ZipFile(_CautiousBytes(content)) as archive:
        for entry in archive.infolist():
            if entry.filename.endswith(ending) and entry.compress_type in PLAIN and entry.file_size <= most:
                with archive.open(entry) as stream:
                    return b"".join(iter(lambda: stream.read(LARGEST_DIRECTORY), b""))
    raise zipfile.BadZipFile(f"no entry {ending}")
