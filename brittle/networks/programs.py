"""Files that hold a whole program: TorchScript archives and exported programs, opened without running Python code."""

import io
import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from brittle.common.errors import InputError, require
from brittle.common.files import existing
from brittle.networks.adapter import Adapter
from brittle.networks.base import Network
from brittle.networks.recognise import agree
from brittle.networks.state import of_state


def archive_kind(path: str | Path) -> str:
    """`script`, `exported` or `tensors`, by what the zip archive holds; damaged files are `tensors`."""
    try:
        with zipfile.ZipFile(existing(path)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return "tensors"
    if any(name.endswith("/constants.pkl") for name in names):
        return "script"
    return "exported" if any(name.endswith("/archive_format") for name in names) else "tensors"


def load_script(path: str | Path, shape: tuple[int, ...] = ()) -> Network:
    """TorchScript. Its pickles are read by PyTorch's own reader, which can build tensors and containers only."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TorchScript is old; the files are still there
            module = torch.jit.load(str(path), map_location="cpu")
    except (RuntimeError, ValueError) as error:
        raise InputError(f"{path}: is not a TorchScript file that can be read ({_first_line(error)})") from None
    return _network(path, module, shape)


def load_exported(path: str | Path, shape: tuple[int, ...] = ()) -> Network:
    """A program of torch.export, after everything in it that would be unpickled has been judged."""
    _check_exported(Path(path))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = torch.export.load(str(path)).module()
    except Exception as error:  # a damaged program fails in its deserialiser in any way at all
        raise InputError(f"{path}: is not an exported program that can be read ({_first_line(error)})") from None
    return _network(path, module, shape)


def _check_exported(path: Path) -> None:
    """torch.export.load falls back to full pickles, so nothing but plain tensors may be in there."""
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                _check_entry(path, info.filename.partition("/")[2], archive.read(info))
    except (zipfile.BadZipFile, OSError, json.JSONDecodeError, UnicodeDecodeError):
        raise InputError(f"{path}: is not a complete exported program") from None


def _check_entry(path: Path, name: str, content: bytes) -> None:
    if name.endswith("_config.json"):
        pickled = [key for key, entry in json.loads(content).get("config", {}).items() if _is_pickled(entry)]
        require(not pickled, f"{path}: holds pickled objects ({', '.join(pickled[:3])}), not plain tensors")
    elif name.startswith("data/sample_inputs/"):
        try:
            torch.load(io.BytesIO(content), weights_only=True)
        except Exception:  # whatever is in there, it is not plain tensors
            raise InputError(f"{path}: holds pickled objects ({name}), not plain tensors") from None


def _is_pickled(entry: Any) -> bool:
    return not isinstance(entry, dict) or bool(entry.get("use_pickle")) or entry.get("tensor_meta") is None


def _network(path: str | Path, module: nn.Module, shape: tuple[int, ...]) -> Network:
    """The exact network where the arrays are linear layers in a row and the program computes just that."""
    try:
        known = of_state(path, dict(module.state_dict()))
    except InputError:
        known = None
    if known is not None and agree(known, module, shape):
        return known
    return Adapter(module, shape or ((known.dim,) if known is not None else ()))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:160] if lines else type(error).__name__
