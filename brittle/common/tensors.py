"""Named tensors in .pt and .safetensors files: plain numbers only, never code."""

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from brittle.common.errors import InputError, require
from brittle.common.files import existing, replacing

STATE_KEYS = ("state_dict", "model_state_dict", "model")

Named = dict[str, Tensor]
Notes = dict[str, str]


def write_pt(path: str | Path, tensors: Mapping[str, Tensor], notes: Mapping[str, str]) -> None:
    with replacing(path) as stream:
        torch.save({**notes, **_owned(tensors)}, stream)


def write_safetensors(path: str | Path, tensors: Mapping[str, Tensor], notes: Mapping[str, str]) -> None:
    content = safetensors.torch.save(_owned(tensors), metadata=dict(notes))
    with replacing(path) as stream:
        stream.write(content)


def _owned(tensors: Mapping[str, Tensor]) -> Named:
    """Copies: a view would be written with all of the memory that it looks into."""
    return {name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in tensors.items()}


def read_pt(path: str | Path) -> tuple[Named, Notes]:
    """The tensors of a dictionary that torch.save wrote, and its short texts; a checkpoint's state is unwrapped."""
    path = existing(path)
    _check_archive(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged pickle can fail in any way at all
        raise InputError(f"{path}: {_reason(error)}") from None
    for key in STATE_KEYS:
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    wanted = isinstance(content, dict) and all(isinstance(key, str) for key in content)
    require(wanted, f"{path}: holds a {type(content).__name__}; a dictionary of named tensors is needed")
    notes = {name: value for name, value in content.items() if isinstance(value, str)}
    return {name: _tensor(path, name, content[name]) for name in content if name not in notes}, notes


def _check_archive(path: Path) -> None:
    """torch.save stores without compression, so no entry can be larger than the file."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except Exception:  # a damaged directory can fail in any way at all
        raise InputError(f"{path}: is not a complete .pt file (truncated, or not written by torch.save)") from None
    scripted = any(entry.filename.endswith("/constants.pkl") for entry in entries)
    require(not scripted, f"{path}: holds TorchScript code; tensors alone are read here")
    claimed = sum(entry.file_size for entry in entries)
    held = path.stat().st_size
    require(claimed <= held, f"{path}: declares {claimed} bytes and holds {held}")


def _reason(error: Exception) -> str:
    found = re.search(r"GLOBAL (\S+)", str(error))
    if found:
        return f"holds a pickled object ({found[1]}), not plain tensors; save module.state_dict() instead"
    return "cannot be read as tensors (damaged, or not written by torch.save)"


def _tensor(path: Path, name: str, value: Any) -> Tensor:
    require(isinstance(value, Tensor), f"{path}: '{name}' is a {type(value).__name__}; a tensor is needed")
    plain = value.layout == torch.strided and not value.is_quantized
    require(plain, f"{path}: array '{name}' is a sparse or quantised tensor; a dense one is needed")
    size, held = value.numel() * value.element_size(), path.stat().st_size
    message = f"{path}: array '{name}' declares the shape {tuple(value.shape)}, {size} bytes in a file of {held}"
    require(size <= held, message)
    return value.detach()


def read_safetensors(path: str | Path) -> tuple[Named, Notes]:
    """The tensors of a .safetensors file and its metadata."""
    path = existing(path)
    try:
        with safe_open(path, framework="pt") as archive:
            return {name: archive.get_tensor(name) for name in archive.keys()}, dict(archive.metadata() or {})  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RuntimeError, OverflowError) as error:
        raise InputError(f"{path}: is not a complete .safetensors file ({str(error).splitlines()[0]})") from None
