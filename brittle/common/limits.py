"""How much a file may ask for: one budget for every format, in memory and in time.

A file of numbers is about as large in memory as on disk. One that claims to unpack to far more is refused before the
memory is taken, unless what it claims is small anyway.
"""

import gzip
import io
from pathlib import Path

from brittle.common.errors import InputError, require

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


class Budget:
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


class Metered(io.RawIOBase):
    """An unpacked gzip stream that stops at the budget of the file it comes from, and where that is cut short."""

    def __init__(self, stream: gzip.GzipFile, budget: Budget) -> None:
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
