"""Pickles as data: a small machine that builds containers and records, and never calls anything.

A pickle is a program. Its instructions are read one by one here; a name stays a name, a call becomes a `PickledCall`
of the name and its arguments, and the reader of each format says what its records mean. Keys are plain, so that no
hash is taken of a structure that refers to itself over and over, and the number of instructions is limited.
"""

import math
import pickletools
import struct
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from brittle.common.errors import InputError, about, require, require_value
from brittle.common.files import existing, replacing
from brittle.common.limits import LARGEST_ARRAYS, LARGEST_PICKLE, LARGEST_TEXT, Archive, ByteLimit, open_archive

LARGEST_INTEGER = 2**63
TEXTS = (
    "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES",
    "SHORT_BINBYTES", "BINBYTES8", "FLOAT", "BINFLOAT",
)  # fmt: skip
INTEGERS = ["INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"]
FIXED: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False,
    "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "EMPTY_DICT": dict,
}  # fmt: skip


@dataclass(frozen=True)
class Name:
    """A global of the pickle: never looked up."""

    text: str


@dataclass
class PickledCall:
    """What a pickle would have built by calling `name`."""

    name: str
    arguments: tuple[Any, ...]
    state: Any = None


def read_pickle(content: bytes, known: Callable[[str], bool], refusal: str) -> Any:
    """What a pickle describes. `refusal` is the line for a name that is not `known`, with {} in its place."""
    machine = _Machine(known, refusal)
    try:
        with warnings.catch_warnings(action="ignore"):  # unknown escapes in old texts
            for count, (instruction, argument, _) in enumerate(pickletools.genops(content)):
                if count >= LARGEST_PICKLE:
                    raise InputError(f"has a pickle of more than {LARGEST_PICKLE} instructions")
                if instruction.name == "STOP":
                    return machine.pop()
                machine.run(instruction.name, argument)
    except InputError:
        raise
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, struct.error, RecursionError):
        pass
    raise InputError("has a damaged pickle")


class _Machine:
    def __init__(self, known: Callable[[str], bool], refusal: str) -> None:
        self.known, self.refusal = known, refusal
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self, name: str, argument: Any) -> None:
        if name in FIXED:
            self.stack.append(FIXED[name]())
        elif name in TEXTS:
            self.stack.append(argument)
        elif name in INTEGERS:
            require(abs(argument) < LARGEST_INTEGER, "holds an integer of more than 64 bits")
            self.stack.append(argument)
        elif name not in ("PROTO", "FRAME"):
            work = getattr(self, f"_{name.lower()}", None) or self._memory(name)
            require_value(work, f"has a pickle with the instruction {name}, which is not read")(argument)

    def pop(self) -> Any:
        if self.marks and len(self.stack) <= self.marks[-1]:
            raise ValueError("a mark is in the way")
        return self.stack.pop()

    def _memory(self, name: str) -> Callable[[Any], None] | None:
        """The instructions that keep a value and fetch it again, in their many sizes."""
        if name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            return lambda place: self.memo.__setitem__(len(self.memo) if place is None else place, self.stack[-1])
        if name in ("GET", "BINGET", "LONG_BINGET"):
            return lambda place: self.stack.append(self.memo[place])
        return None

    def _since_mark(self) -> list[Any]:
        start = self.marks.pop()
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def _mark(self, _: Any) -> None:
        self.marks.append(len(self.stack))

    def _pop(self, _: Any) -> None:
        self.pop()

    def _pop_mark(self, _: Any) -> None:
        self._since_mark()

    def _dup(self, _: Any) -> None:
        self.stack.append(self.stack[-1])

    def _tuple(self, _: Any) -> None:
        self.stack.append(tuple(self._since_mark()))

    def _tuple1(self, _: Any) -> None:
        self._last(1)

    def _tuple2(self, _: Any) -> None:
        self._last(2)

    def _tuple3(self, _: Any) -> None:
        self._last(3)

    def _last(self, count: int) -> None:
        values = [self.pop() for _ in range(count)]
        self.stack.append(tuple(reversed(values)))

    def _list(self, _: Any) -> None:
        self.stack.append(self._since_mark())

    def _append(self, _: Any) -> None:
        value = self.pop()
        self._extend([value])

    def _appends(self, _: Any) -> None:
        self._extend(self._since_mark())

    def _extend(self, values: list[Any]) -> None:
        require(isinstance(self.stack[-1], list), "has a damaged pickle")
        self.stack[-1].extend(values)

    def _dict(self, _: Any) -> None:
        values = self._since_mark()
        self.stack.append({})
        self._fill(values)

    def _setitem(self, _: Any) -> None:
        value, key = self.pop(), self.pop()
        self._fill([key, value])

    def _setitems(self, _: Any) -> None:
        self._fill(self._since_mark())

    def _fill(self, values: list[Any]) -> None:
        target = self.stack[-1]
        require(isinstance(target, dict) and len(values) % 2 == 0, "has a damaged pickle")
        for key, value in zip(values[::2], values[1::2], strict=True):
            require(isinstance(key, str | bytes | int), "has a dictionary with a key that is no text and no number")
            target[key] = value

    def _global(self, text: str) -> None:
        module, _, name = text.partition(" ")
        self._named(module, name)

    def _stack_global(self, _: Any) -> None:
        name, module = self.pop(), self.pop()
        require(isinstance(name, str) and isinstance(module, str), "has a damaged pickle")
        self._named(module, name)

    def _named(self, module: str, name: str) -> None:
        text = f"{module}.{name}"
        known = text in ("collections.OrderedDict", "_codecs.encode") or self.known(text)
        require(known, self.refusal.replace("{}", text[:200]))
        self.stack.append(Name(text))

    def _reduce(self, _: Any) -> None:
        arguments, name = self.pop(), self.pop()
        require(isinstance(name, Name) and isinstance(arguments, tuple), "has a damaged pickle")
        self.stack.append(_built(name.text, arguments))

    _newobj = _reduce

    def _build(self, _: Any) -> None:
        state, target = self.pop(), self.stack[-1]
        if isinstance(target, PickledCall):
            target.state = state
        else:  # an OrderedDict may carry attributes, such as torch's _metadata
            require(isinstance(target, dict), "has a damaged pickle")

    def _binpersid(self, _: Any) -> None:
        self.stack.append(PickledCall("persistent", (self.pop(),)))


def _built(name: str, arguments: tuple[Any, ...]) -> Any:
    """Two names have a meaning in every pickle: an ordered dictionary, and bytes as Python 3 writes them for 2."""
    if name == "collections.OrderedDict":
        require(arguments == (), "has an OrderedDict in an unusual form")
        return {}
    if name == "_codecs.encode":
        usual = len(arguments) == 2 and isinstance(arguments[0], str) and arguments[1] in ("latin1", b"latin1")
        require(usual, "holds an encoding other than latin1")
        return arguments[0].encode("latin1")
    return PickledCall(name, arguments)


# The archives of torch.save: a pickle that describes tensors, and their numbers in entries of their own.


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
            if isinstance(value, PickledCall) and value.name == "torch._utils._rebuild_parameter" and value.arguments:
                value = value.arguments[0]
        if isinstance(value, PickledCall) and value.name in OTHER_TENSORS:
            raise InputError(f"{path}: array '{name}' is {OTHER_TENSORS[value.name]}; a dense real tensor is needed")
        rebuilt = isinstance(value, PickledCall) and value.name == "torch._utils._rebuild_tensor_v2"
        require(rebuilt, f"{path}: '{name}' is {describe_value(value)}; a tensor is needed")
        match value.arguments:
            case (PickledCall(name="persistent", arguments=(pid,)), int(offset), tuple(size), tuple(stride), *rest):
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


def describe_value(value: Any) -> str:
    """What a value of a pickle is, for a person."""
    if isinstance(value, PickledCall | Name):
        name = value.name if isinstance(value, PickledCall) else value.text
        if name in QUANTISED:
            return f"the type {name} of a quantised module (save the module of floats that it was made from)"
        return f"a pickled object ({name[:200]}), not plain tensors (save module.state_dict() instead)"
    return f"a {type(value).__name__}"


@contextmanager
def open_pt(path: str | Path) -> Iterator[tuple[Any, Storages]]:
    """What a file of torch.save describes, and the storages to read its tensors from."""
    what = "a complete .pt file of plain tensors (truncated, or not written by torch.save)"
    with open_archive(path, what) as archive:
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


# Named tensors in .pt and .safetensors files: plain numbers only, never code.


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
    with open_pt(path) as (content, storages):
        for key in STATE_KEYS:
            if isinstance(content, dict) and isinstance(content.get(key), dict):
                content = content[key]
        wanted = isinstance(content, dict) and all(isinstance(key, str) for key in content)
        require(wanted, f"{path}: holds {describe_value(content)}; a dictionary of named tensors is needed")
        notes = {name: value for name, value in content.items() if isinstance(value, str)}
        return {name: storages.tensor(name, content[name]) for name in content if name not in notes}, notes


def read_safetensors(path: str | Path) -> tuple[Named, Notes]:
    """The tensors of a .safetensors file and its metadata."""
    path = existing(path)
    budget = ByteLimit(path)
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
