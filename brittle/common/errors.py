"""The one error that a user can mend, and the short checks that raise it."""

import errno
import logging
import math
from pathlib import Path
from typing import SupportsFloat, TypeVar

LONGEST_START, LONGEST_END = 600, 300
SPACES = {ord("\n"): " "}
Thing = TypeVar("Thing")


class InputError(ValueError):
    """Bad input. The message is one line: what it is, its value, what would be right.

    Examples:
        >>> import brittle as bt
        >>> bt.data.Sphere(dim=-3)
        Traceback (most recent call last):
            ...
        brittle.common.errors.InputError: dim is -3; it must be a whole number of at least 1
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(one_line(str(message)))


def one_line(text: str) -> str:
    """Printable characters only, and not too many: a file's own words may hold terminal escapes or be endless."""
    if len(text) > LONGEST_START + LONGEST_END:
        text = f"{text[:LONGEST_START]} ... {text[-LONGEST_END:]}"
    return printable(text.translate(SPACES))


def printable(text: str) -> str:
    """Return the lines of a text with spaces and question marks in the place of characters that are not printable.

    Names of classes, columns and files may hold escape sequences, which a terminal would obey.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else " " if each.isspace() else "?" for each in text)


def about(path: object, error: InputError) -> InputError:
    """The same complaint with the file's name in front, unless it is there already."""
    text = str(error)
    return error if text.startswith(one_line(str(path))) else InputError(f"{path}: {text}")


def require(condition: bool, message: str) -> None:
    if not condition:
        raise InputError(message)


def require_value(value: Thing | None, message: str) -> Thing:
    """The value, which may not be missing."""
    if value is None:
        raise InputError(message)
    return value


def require_count(name: str, value: int, least: int = 1) -> None:
    """A whole number of at least `least`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(whole and value >= least, f"{name} is {value!r}; it must be a whole number of at least {least}")


def require_finite(name: str, value: float) -> None:
    require(_is_finite(value), f"{name} is {value!r}; it must be a finite number")


def require_positive(name: str, value: float) -> None:
    require(_is_finite(value) and value > 0, f"{name} is {value!r}; it must be a positive finite number")


def require_between(name: str, value: float, low: float, high: float) -> None:
    require(_is_finite(value) and low <= value <= high, f"{name} is {value!r}; it must lie between {low} and {high}")


def require_chance(name: str, value: float) -> None:
    """A probability that is neither 0 nor 1."""
    require(_is_finite(value) and 0 < value < 1, f"{name} is {value!r}; it must lie between 0 and 1, without its ends")


def require_not_negative(name: str, value: float) -> None:
    require(_is_finite(value) and value >= 0, f"{name} is {value!r}; it must be a finite number of at least 0")


def _is_finite(value: object) -> bool:
    """Whether this is one finite real number. True and False are none."""
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        return False
    try:
        return math.isfinite(value)
    except (TypeError, ValueError, OverflowError):  # an array of several numbers, or a number beyond the floats
        return False


# What a user should know although nothing is wrong, one line each.
#
# The library does not print: the line goes to the logger `brittle`, which without further ado ends on standard error.


LOGGER = logging.getLogger("brittle")


def note(message: str) -> None:
    LOGGER.warning(one_line(message))


# Files that are there to be read, and the kinds that there are.


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


def resolve_path(path: str | Path) -> Path:
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
