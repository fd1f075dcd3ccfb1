"""Strangers' files are read with pickling off and a limit on size; ours are written whole or not at all."""

import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from brittle.common import interrupts
from brittle.common.errors import InputError, require
from brittle.common.errors import existing as existing
from brittle.common.limits import LARGEST_BYTES, Archive, open_archive

if sys.platform != "win32":
    import fcntl


def lock(handle: int) -> None:
    """Where a file system knows no locks, what others do with the file is not our business either."""
    if sys.platform != "win32":
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)


@contextmanager
def lock_kept(handle: int) -> Iterator[None]:
    """Until the end of the block, even if the handle is closed in it."""
    if sys.platform == "win32":
        yield
        return
    twin = os.dup(handle)
    try:
        yield
    finally:
        os.close(twin)


def remove_unlocked(path: Path) -> None:
    """A lock that can be had means that kill -9 or a power failure ended the writer."""
    with suppress(OSError), path.open("rb") as stream:
        if sys.platform != "win32":
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    if sys.platform == "win32":  # which removes no file that is open
        with suppress(OSError):
            path.unlink()


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file that takes its place at `path` only when the block ends without an error."""
    path, partial = Path(path), None
    try:
        with interrupts.hold_signals():
            handle, partial = _begun(path)
        with interrupts.last_words(partial.unlink), lock_kept(handle):
            with os.fdopen(handle, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(partial, 0o666 & ~_umask())
            os.replace(partial, path)
    except OSError as error:
        _remove(partial)
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
    except BaseException:
        _remove(partial)
        raise


def require_writable(path: str | Path) -> None:
    """Say now what would keep a file from being written there after hours of work."""
    with interrupts.hold_signals():
        handle, partial = _begun(Path(path))
        os.close(handle)
        _remove(partial)


def require_folder(path: str | Path) -> None:
    """The same for files in a folder, which need not be there yet."""
    try:
        chain = (Path(path).absolute(), *Path(path).absolute().parents)
        there = next(folder for folder in chain if folder.exists())
        require(there.is_dir(), f"{path}: {there} is not a folder")
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def _begun(path: Path) -> tuple[int, Path]:
    """A partial file beside its place, locked as long as its writer lives; those of dead writers are removed."""
    try:
        require(path.parent.is_dir(), f"{path}: the folder {path.parent} does not exist")
        require(not path.is_dir(), f"{path}: is a folder; name a file")
        require(path.is_file() or not path.exists(), f"{path}: is a device or a pipe; name a file")
        for stale in path.parent.glob(f".{escape(path.name)}.*.partial"):
            remove_unlocked(stale)
        while True:
            handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
            lock(handle)
            if os.fstat(handle).st_nlink:  # else another writer took it for stale before it was locked
                return handle, Path(partial)
            os.close(handle)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error})") from None


def _remove(partial: Path | None) -> None:
    if partial is not None:
        partial.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_npz(path: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    with replacing(path) as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]


def write_json(path: str | Path, content: Any) -> None:
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    with replacing(path) as stream:
        stream.write(text.encode())


def read_npz(path: str | Path, names: tuple[str, ...], texts: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """Those of the named arrays that the file holds, as numbers; other arrays are not even opened.

    Those that `texts` names too may hold short texts instead.
    """
    with open_archive(path, "a complete .npz file (truncated, or not a zip archive)", inner=False) as archive:
        members = {name: f"{name}.npy" if f"{name}.npy" in archive else name for name in names}
        return {
            name: _read_member(archive, name, member, name in texts)
            for name, member in members.items()
            if member in archive
        }


def _read_member(archive: Archive, name: str, member: str, text: bool) -> np.ndarray:
    """One array, after its header has been judged: a header may declare any size and any type."""
    try:
        with archive.open(member) as stream:
            version = np.lib.format.read_magic(stream)
            read_header = (
                np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = read_header(stream)
            _check_header(archive, name, shape, dtype, archive.size(member), text)
        with archive.open(member) as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
            return array.astype(array.dtype.newbyteorder("="), copy=False)
    except InputError:
        raise
    except Exception as error:  # a damaged header or stream can fail in any way at all
        reason = str(error)[:200] or type(error).__name__
        raise InputError(f"{archive.path}: array '{name}' cannot be read ({reason})") from None


def _check_header(archive: Archive, name: str, shape: tuple[int, ...], dtype: np.dtype, held: int, text: bool) -> None:
    array = f"{archive.path}: array '{name}'"
    require(not dtype.hasobject, f"{array} holds pickled objects; brittle reads plain numbers only")
    plain = (dtype.kind in "fiub" and dtype.itemsize <= 8) or (text and dtype.kind == "U")
    require(plain, f"{array} has type {dtype}; numbers are needed")
    require(min(shape, default=0) >= 0, f"{array} declares the shape {shape}; no length is negative")
    numbers = math.prod(shape)
    room = max(8, dtype.itemsize) * numbers
    require(room <= LARGEST_BYTES, f"{array} declares the shape {shape}, which is too large")
    size = numbers * dtype.itemsize
    require(size <= held, f"{array} declares {size} bytes and holds {held}")
    archive.budget.take(room, f"array '{name}'")
