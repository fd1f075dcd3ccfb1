"""Folders of pictures: one sub-folder per class, perhaps inside `train` and `test` (or `val`)."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brittle.common.errors import InputError, about, require, require_value
from brittle.common.limits import ALWAYS_ALLOWED, LARGEST_RATIO, read_whole
from brittle.data.arrays import require_room
from brittle.data.base import Data, DataInfo

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")  # readers of Pillow that run nothing else
MOST_PICTURES = 10**6
MOST_PIXELS = 2**25
HELD_OUT = ("test", "val", "valid", "validation")


def picture_folder(folder: Path) -> Data:
    """Pictures as numbers from 0 to 1, (height, width) where all are grey, otherwise (3, height, width)."""
    inside = {each.name: each for each in _folders(folder)}
    if "train" in inside:
        other = next((inside[name] for name in HELD_OUT if name in inside), None)
        names = tuple(each.name for each in _folders(inside["train"]))
        return _data(_files(inside["train"], names), None if other is None else _files(other, names), names)
    names = tuple(inside)
    return _data(_files(folder, names), None, names)


Listed = list[tuple[Path, str]]


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror or error})") from None


def _files(folder: Path, names: tuple[str, ...]) -> Listed:
    """All pictures with their classes."""
    found: Listed = []
    for each in _folders(folder):
        require(each.name in names, f"{each}: there is no class of that name to train on; there are {names[:10]}")
        files = (file for file in each.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file())
        found += [(file, each.name) for file in sorted(files)]
        require(len(found) <= MOST_PICTURES, f"{folder}: holds more than {MOST_PICTURES} pictures; take fewer")
    require(bool(found), f"{folder}: has no pictures; one folder per class is needed, with files like 1.png")
    return found


def _data(files: Listed, held_out: Listed | None, names: tuple[str, ...]) -> Data:
    everything = [file for file, _ in [*files, *(held_out or [])]]
    size, grey = _shape(everything)
    _check_room(everything, size[0] * size[1] * (1 if grey else 3))
    truth = DataInfo(names=names) if len(names) > 1 else DataInfo()
    require(len(names) > 1, f"there is one class, {names[0]}; a folder for each of two or more is needed")
    X, y = _pixels(files, size, grey), [name for _, name in files]
    if held_out is None:
        return Data(X, y, truth=truth)
    return Data(X, y, _pixels(held_out, size, grey), [name for _, name in held_out], truth)


def _check_room(files: list[Path], values: int) -> None:
    """A header may declare any size: what all of them unpack to is held against what they are."""
    require_room(len(files), values, "take fewer or smaller pictures")
    held, numbers = sum(file.stat().st_size for file in files), len(files) * values
    fits = numbers <= max(ALWAYS_ALLOWED // 8, LARGEST_RATIO * held)
    require(fits, f"{len(files)} pictures of {held} bytes would unpack to too much: {numbers} numbers")


def _shape(files: list[Path]) -> tuple[tuple[int, int], bool]:
    """Width and height of all, and whether all are grey; nothing is unpacked yet."""
    first, grey = None, True
    for file in files:
        with _opened(file) as picture:
            first = first or picture.size
            same = picture.size == first
            require(same, f"{file}: has {picture.size} pixels and others have {first}; all of one size are needed")
            grey = grey and picture.mode in ("1", "L", "LA", "I", "F", "I;16")
            deep = picture.mode in ("I", "F", "I;16")
            require(not deep, f"{file}: has pixels of more than 8 bits ({picture.mode}), which are not read")
    return require_value(first, "there are no pictures"), grey


def _pixels(files: Listed, size: tuple[int, int], grey: bool) -> NDArray[Any]:
    width, height = size
    shape = (height, width) if grey else (3, height, width)
    X = np.empty((len(files), *shape))
    for place, (file, _) in enumerate(files):
        with _opened(file) as picture:
            require(picture.size == size, f"{file}: changed while it was read")
            try:
                whole = picture.convert("RGBA") if picture.mode == "P" else picture  # whose palette may have holes
                values = np.asarray(whole.convert("L" if grey else "RGB"), dtype=np.float64) / 255
            except (OSError, ValueError, SyntaxError, EOFError) as error:
                raise about(file, InputError(f"is a damaged picture ({str(error)[:100]})")) from None
            X[place] = values if grey else values.transpose(2, 0, 1)
    return X


def _opened(file: Path) -> Any:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise InputError("reading pictures needs the extra 'images': pip install 'brittle[images]'") from None
    content = read_whole(file)
    try:
        picture = Image.open(io.BytesIO(content), formats=FORMATS)  # where no length that it claims can be reserved
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        reason = "" if isinstance(error, UnidentifiedImageError) else f" ({str(error)[:100]})"
        raise about(file, InputError(f"is no picture that can be read{reason}")) from None
    pixels = picture.size[0] * picture.size[1]
    require(pixels <= MOST_PIXELS, f"{file}: has {pixels} pixels; {MOST_PIXELS} are the most")
    return picture
