"""Locks on open files: the system lets go of them when a process ends, however it ends."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
