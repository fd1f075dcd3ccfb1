"""IDX files, the format of MNIST: a magic number, the lengths of the axes, then bytes."""

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np

from brittle.common.errors import InputError, require
from brittle.common.limits import LARGEST_BYTES, Budget


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
    Budget(path).take(8 * size, f"the shape {tuple(shape)}")
    content = stream.read(size + 1)
    fits = len(content) == size
    more = "more" if len(content) > size else f"{len(content)}"
    require(fits, f"{path}: declares {size} bytes and holds {more}")
    return np.frombuffer(content, np.uint8).reshape(shape)
