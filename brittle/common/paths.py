"""Files that are there to be read, and the kinds that there are."""

import errno
from pathlib import Path

from brittle.common.errors import InputError, require

NETWORKS = (".npz", ".pt", ".safetensors")
PROGRAMS = (".onnx", ".pt2")
WRITTEN = (*NETWORKS, *PROGRAMS)
DATA = (".npz", ".pt", ".csv", ".parquet")
SPELLINGS = {".pth": ".pt", ".ckpt": ".pt", ".tsv": ".csv"}  # other names for the same
KINDS_OF_DATA = f"{', '.join(DATA)} and folders of pictures"


def existing(path: str | Path) -> Path:
    path = Path(path)
    try:
        found, regular = path.exists(), path.is_file()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    require(found, f"{path}: no such file")
    require(regular, f"{path}: is not a file")
    return path


def resolved(path: str | Path) -> Path:
    """Return the absolute path behind symbolic links; links that lead back to themselves are refused."""
    path = Path(path)
    try:
        path.stat()
    except OSError as error:
        require(error.errno != errno.ELOOP, f"{path}: is a symbolic link that leads to itself; name another place")
    except ValueError as error:
        raise InputError(f"{path}: is no path ({error})") from None
    return path.resolve()


def suffix_of(path: str | Path) -> str:
    """What kind of file a name stands for."""
    suffix = Path(path).suffix.lower()
    return SPELLINGS.get(suffix, suffix)
