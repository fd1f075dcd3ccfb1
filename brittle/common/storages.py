"""The archives of torch.save: a pickle that describes tensors, and their numbers in entries of their own."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from brittle.common.archives import Archive, opened
from brittle.common.errors import InputError, about, require
from brittle.common.limits import LARGEST_TEXT
from brittle.common.pickles import Name, Record, read_pickle

TYPES = {
    "Double": torch.float64, "Float": torch.float32, "Half": torch.float16, "BFloat16": torch.bfloat16,
    "Long": torch.int64, "Int": torch.int32, "Short": torch.int16, "Char": torch.int8, "Byte": torch.uint8,
    "Bool": torch.bool, "ComplexDouble": torch.complex128, "ComplexFloat": torch.complex64,
}  # fmt: skip
STORAGES = {f"torch.{kind}Storage": dtype for kind, dtype in TYPES.items()}
OTHER_TENSORS = {
    "torch._utils._rebuild_sparse_tensor": "a sparse tensor",
    "torch._utils._rebuild_sparse_csr_tensor": "a sparse tensor",
    "torch._utils._rebuild_qtensor": "a quantised tensor",
    "torch._utils._rebuild_meta_tensor_no_storage": "a tensor without numbers (on the device meta)",
    "torch._utils._rebuild_nested_tensor": "a nested tensor",
    "torch._utils._rebuild_tensor_v3": "a tensor of an unusual type",
}
QUANTISED = ("torch.qint8", "torch.quint8", "torch.qint32", "torch.quint4x2")
FOREIGN = "holds a pickled object ({}), not plain tensors; save module.state_dict() instead"


class Storages:
    """The numbers of an archive's tensors; each is read once, and every description is held against what is there."""

    def __init__(self, archive: Archive, folder: str = "data") -> None:
        self.archive, self.folder = archive, folder
        self._read: dict[str, Tensor] = {}

    def tensor(self, name: str, value: Any) -> Tensor:
        """The tensor that a record describes; `name` is for the message."""
        path = self.archive.path
        for _ in range(2):
            if isinstance(value, Record) and value.name == "torch._utils._rebuild_parameter" and value.arguments:
                value = value.arguments[0]
        if isinstance(value, Record) and value.name in OTHER_TENSORS:
            raise InputError(f"{path}: array '{name}' is {OTHER_TENSORS[value.name]}; a dense real tensor is needed")
        rebuilt = isinstance(value, Record) and value.name == "torch._utils._rebuild_tensor_v2"
        require(rebuilt, f"{path}: '{name}' is {described(value)}; a tensor is needed")
        match value.arguments:
            case (Record(name="persistent", arguments=(pid,)), int(offset), tuple(size), tuple(stride), *rest):
                plain = not any(rest[2:])
                require(plain, f"{path}: array '{name}' is stored as a negative or conjugate view; save a clone of it")
                return self._view(name, self._storage(name, pid), offset, size, stride)
        raise InputError(f"{path}: array '{name}' is described in an unusual way")

    def _storage(self, name: str, pid: Any) -> Tensor:
        match pid:
            case ("storage", Name(text=kind), str(key), _, int(count)):
                pass
            case _:
                raise InputError(f"{self.archive.path}: array '{name}' is described in an unusual way")
        dtype = STORAGES.get(kind)
        if dtype is None:
            raise InputError(f"{self.archive.path}: array '{name}' is of the type {kind}; plain numbers are needed")
        content = self._bytes(key)
        fits = count >= 0 and count * dtype.itemsize <= len(content)
        held = f"{count} numbers of the type {kind} and holds {len(content)} bytes"
        require(fits, f"{self.archive.path}: array '{name}' declares {held}")
        return content[: count * dtype.itemsize].view(dtype)

    def _bytes(self, key: str) -> Tensor:
        if key not in self._read:
            content = self.archive.read(f"{self.folder}/{key}")
            self._read[key] = torch.frombuffer(bytearray(content) or bytearray(1), dtype=torch.uint8)[: len(content)]
        return self._read[key]

    def _view(self, name: str, storage: Tensor, offset: int, size: tuple[Any, ...], stride: tuple[Any, ...]) -> Tensor:
        path = self.archive.path
        whole = len(size) == len(stride) <= 64 and all(type(each) is int and each >= 0 for each in (*size, *stride))
        require(whole and offset >= 0, f"{path}: array '{name}' is described in an unusual way")
        self.archive.budget.take(8 * math.prod(size), f"array '{name}' declares the shape {size}, which")
        last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
        fits = math.prod(size) == 0 or last < len(storage)
        require(fits, f"{path}: array '{name}' declares the shape {size} and holds {len(storage)} numbers")
        if math.prod(size) == 0:
            return storage.new_zeros(size)
        return storage.as_strided(size, stride, offset)


def described(value: Any) -> str:
    """What a value of a pickle is, for a person."""
    if isinstance(value, Record | Name):
        name = value.name if isinstance(value, Record) else value.text
        if name in QUANTISED:
            return f"the type {name} of a quantised module (save the module of floats that it was made from)"
        return f"a pickled object ({name[:200]}), not plain tensors (save module.state_dict() instead)"
    return f"a {type(value).__name__}"


@contextmanager
def opened_pt(path: str | Path) -> Iterator[tuple[Any, Storages]]:
    """What a file of torch.save describes, and the storages to read its tensors from."""
    what = "a complete .pt file of plain tensors (truncated, or not written by torch.save)"
    with opened(path, what) as archive:
        scripted = "constants.pkl" in archive
        require(not scripted, f"{path}: holds TorchScript code; tensors alone are read here")
        stored = archive.claimed <= archive.budget.held  # torch.save does not compress
        require(stored, f"{path}: declares {archive.claimed} bytes and holds {archive.budget.held}")
        yield archive_content(archive, "data.pkl"), Storages(archive)


def archive_content(archive: Archive, entry: str) -> Any:
    """What one pickle of an archive describes."""
    if "byteorder" in archive:
        order = archive.read("byteorder", 16)
        require(order == b"little", f"{archive.path}: its numbers are big-endian; save it again on a common machine")
    try:
        return read_pickle(archive.read(entry, LARGEST_TEXT), _harmless, FOREIGN)
    except InputError as error:
        raise about(archive.path, error) from None


def _harmless(name: str) -> bool:
    """Names that may stand in the description of a tensor or of a scripted module; none is ever looked up."""
    return name.startswith(("torch.", "__torch__."))
