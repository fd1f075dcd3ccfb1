"""Pickles as data: a small machine that builds containers and records, and never calls anything.

A pickle is a program. Its instructions are read one by one here; a name stays a name, a call becomes a `Record` of the
name and its arguments, and the reader of each format says what its records mean. Keys are plain, so that no hash is
taken of a structure that refers to itself over and over, and the number of instructions is limited.
"""

import pickletools
import struct
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from brittle.common.errors import InputError, require, required
from brittle.common.limits import LARGEST_PICKLE

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
class Record:
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
            required(work, f"has a pickle with the instruction {name}, which is not read")(argument)

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
        if isinstance(target, Record):
            target.state = state
        else:  # an OrderedDict may carry attributes, such as torch's _metadata
            require(isinstance(target, dict), "has a damaged pickle")

    def _binpersid(self, _: Any) -> None:
        self.stack.append(Record("persistent", (self.pop(),)))


def _built(name: str, arguments: tuple[Any, ...]) -> Any:
    """Two names have a meaning in every pickle: an ordered dictionary, and bytes as Python 3 writes them for 2."""
    if name == "collections.OrderedDict":
        require(arguments == (), "has an OrderedDict in an unusual form")
        return {}
    if name == "_codecs.encode":
        usual = len(arguments) == 2 and isinstance(arguments[0], str) and arguments[1] in ("latin1", b"latin1")
        require(usual, "holds an encoding other than latin1")
        return arguments[0].encode("latin1")
    return Record(name, arguments)
