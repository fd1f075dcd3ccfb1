"""Named tensors in .pt and .safetensors files: plain numbers only, never code."""

from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from brittle.common.errors import InputError, require
from brittle.common.files import existing, replacing
from brittle.common.limits import LARGEST_ARRAYS, LARGEST_TEXT, Budget
from brittle.common.storages import described, opened_pt

STATE_KEYS = ("state_dict", "model_state_dict", "model", "net", "network", "weights", "params")

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
    with opened_pt(path) as (content, storages):
        for key in STATE_KEYS:
            if isinstance(content, dict) and isinstance(content.get(key), dict):
                content = content[key]
        wanted = isinstance(content, dict) and all(isinstance(key, str) for key in content)
        require(wanted, f"{path}: holds {described(content)}; a dictionary of named tensors is needed")
        notes = {name: value for name, value in content.items() if isinstance(value, str)}
        return {name: storages.tensor(name, content[name]) for name in content if name not in notes}, notes


def read_safetensors(path: str | Path) -> tuple[Named, Notes]:
    """The tensors of a .safetensors file and its metadata."""
    path = existing(path)
    budget = Budget(path)
    try:
        with path.open("rb") as stream:
            header = int.from_bytes(stream.read(8), "little")
        require(header <= LARGEST_TEXT, f"{path}: declares a header of {header} bytes; {LARGEST_TEXT} is the most")
        with safe_open(path, framework="pt") as archive:
            names = list(archive.keys())
            require(len(names) <= LARGEST_ARRAYS, f"{path}: holds {len(names)} arrays; {LARGEST_ARRAYS} is the most")
            tensors = {name: archive.get_tensor(name) for name in names}
            notes = dict(archive.metadata() or {})
    except (SafetensorError, OSError, ValueError, RuntimeError, OverflowError, AttributeError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: is not a complete .safetensors file ({str(error)[:200]})") from None
    for name, value in tensors.items():
        budget.take(8 * value.numel(), f"array '{name}'")
    return tensors, notes
