"""Zip archives from strangers: a short directory, plain entries, and no more unpacked than the budget allows."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from brittle.common.errors import InputError, require
from brittle.common.limits import LARGEST_DIRECTORY, Budget
from brittle.common.paths import existing

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
        self.path, self.budget = path, Budget(path)
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
def opened(path: str | Path, what: str, inner: bool = True) -> Iterator[Archive]:
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
