"""Ways to damage a file: blindly, and with an eye for what is inside."""

import gzip
import io
import json
import pickletools
import random
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import onnx
from google.protobuf.message import DecodeError

LENGTHS = (0, 1, 2, 255, 2**15, 2**16 - 1, 2**20, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**64 - 1)
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2, 3, 7, 2**20, 2**31, 2**40, 2**70, 1e308, -0.5, "", "x", "__class__", "relu", "\x1b[31m\n",
    "x" * 3000, [], {}, [1, 2], [2**20, 2**20], [-1], {"as_int": 2**40}, {"as_none": True}, [[[[[[[[1]]]]]]]],
)  # fmt: skip
TOKENS = (
    b"0", b"-1", b"nan", b"self", b"inf", b"1e999", b"9" * 5000, b"\"", b"'", b",", b"\n", b"(", b"[" * 200, b"None",
    b"torch.sin", b"torch.relu", b"__import__('os')", b"while True:", b"\xff\xfe", b"\0", b"\x1b]0;x\x07", b"1048576",
    b"1099511627776", b"2", b"3", b"x",
)  # fmt: skip

INSTRUCTIONS = (
    b"N", b"K\x02", b"J\xff\xff\xff\x7f", b"\x8a\x09" + b"\xff" * 8 + b"\x7f", b"(", b"t", b"}", b"R", b"b", b"2",
    b"r\xff\xff\xff\x7f", b"cos\nsystem\n", b"]", b"s", b"u", b"a", b"Q", b"\x81", b"0", b"1",
)  # fmt: skip


def flipped(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8, 40))):
        if damaged:
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    return bytes(damaged)


def cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def spliced(content: bytes, rng: random.Random) -> bytes:
    """A piece of the file again, at another place."""
    start, place = rng.randrange(len(content) + 1), rng.randrange(len(content) + 1)
    piece = content[start : start + rng.choice((1, 4, 30, 500))]
    return content[:place] + piece + content[place + rng.choice((0, len(piece))) :]


def resized(content: bytes, rng: random.Random) -> bytes:
    """Some number in the file, as if it were a length, becomes another."""
    size = rng.choice((1, 2, 4, 8))
    value: int = rng.choice(LENGTHS) % 256**size
    place = rng.randrange(max(1, len(content) - size))
    return content[:place] + value.to_bytes(size, rng.choice(("little", "big"))) + content[place + size :]


def reworded(content: bytes, rng: random.Random) -> bytes:
    """A word or a number of a text becomes another."""
    words = list(re.finditer(rb"[\w.]+|[^\w\s]", content[:50_000]))
    if not words:
        return content
    word = rng.choice(words)
    other = rng.choice((*TOKENS, rng.choice(words)[0]))
    return content[: word.start()] + other + content[word.end() :]


def rejsoned(content: bytes, rng: random.Random) -> bytes:
    """Some value of a JSON text becomes another, or goes."""
    try:
        root = json.loads(content)
    except ValueError:
        return flipped(content, rng)
    part: Any = root
    while isinstance(part, dict | list) and part:
        key = rng.choice(list(part)) if isinstance(part, dict) else rng.randrange(len(part))
        if not isinstance(part[key], dict | list) or not part[key] or rng.random() < 0.15:
            if rng.random() < 0.2:
                del part[key]
            else:
                part[key] = rng.choice(VALUES)
            break
        part = part[key]
    return json.dumps(root).encode()


def repickled(content: bytes, rng: random.Random) -> bytes:
    """An instruction of a pickle is left out, doubled, moved or replaced by another one."""
    try:
        places = [place for _, _, place in pickletools.genops(content) if place is not None]
    except (ValueError, IndexError, struct.error, KeyError):
        return flipped(content, rng)
    ends = [*places[1:], len(content)]
    parts = [content[start:end] for start, end in zip(places, ends, strict=True)]
    for _ in range(rng.choice((1, 1, 3))):
        place, other = rng.randrange(len(parts)), rng.randrange(len(parts))
        way = rng.randrange(4)
        if way == 0 and len(parts) > 1:
            del parts[place]
        elif way == 1:
            parts.insert(place, parts[other])
        elif way == 2:
            parts[place] = parts[other]
        else:
            parts[place] = rng.choice(INSTRUCTIONS)
    return b"".join(parts)


def rezipped(content: bytes, rng: random.Random) -> bytes:
    """One entry of an archive is damaged, dropped, doubled or deflated, and all checksums are right again."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = [(info.filename, archive.read(info)) for info in archive.infolist()]
    except (zipfile.BadZipFile, RuntimeError, ValueError, NotImplementedError, OSError, zlib.error):
        return flipped(content, rng)
    place, way = rng.randrange(len(entries)), rng.random()
    name, inside = entries[place]
    if way < 0.05:
        del entries[place]
    elif way < 0.1:
        entries.append((name, flipped(inside, rng)))
    elif way < 0.15:
        entries[place] = (entries[rng.randrange(len(entries))][0], inside)
    else:
        entries[place] = (name, inner(name)(inside, rng))
    packed = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if rng.random() < 0.1 else zipfile.ZIP_STORED
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(packed, "w", kind) as archive:  # doubled names
        for name, inside in entries:
            archive.writestr(zipfile.ZipInfo(name), inside, kind)
    return packed.getvalue()


def regzipped(content: bytes, rng: random.Random) -> bytes:
    try:
        inside = gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        return flipped(content, rng)
    return gzip.compress(rng.choice(BLIND)(inside, rng))


def remodelled(content: bytes, rng: random.Random) -> bytes:
    """Some field of an ONNX model becomes another."""
    try:
        message: Any = onnx.load_model_from_string(content)
    except (DecodeError, ValueError):
        return flipped(content, rng)
    model = message
    for _ in range(12):
        fields = message.ListFields()
        if not fields:
            break
        field, value = rng.choice(fields)
        if field.message_type is not None:
            repeated = hasattr(value, "add")
            if repeated and rng.random() < 0.1:
                del value[rng.randrange(len(value))]
                break
            message = rng.choice(list(value)) if repeated else value
            continue
        _refill(message, field.name, value, rng)
        break
    damaged: bytes = model.SerializeToString()
    return damaged


def _refill(message: Any, name: str, value: Any, rng: random.Random) -> None:
    try:
        if isinstance(value, int | float | str | bytes):
            setattr(message, name, rng.choice((0, 1, 2, 3, 7, 10, 14, 16, -1, 2**31 - 1, 2**40, "x", "", b"", b"1")))
        elif len(value) and rng.random() < 0.3:
            del value[rng.randrange(len(value)) :]
        elif len(value):
            value[rng.randrange(len(value))] = rng.choice((0, -1, 1, 2, 2**20, 2**40, "", "x", rng.choice(list(value))))
    except (TypeError, ValueError):
        message.ClearField(name)


def reheaded(content: bytes, rng: random.Random) -> bytes:
    """The JSON header of a .safetensors file changes, and its length with it."""
    (length,) = struct.unpack("<Q", content[:8])
    header = rejsoned(content[8 : 8 + length], rng)
    return struct.pack("<Q", len(header)) + header + content[8 + length :]


Way = Callable[[bytes, random.Random], bytes]
BLIND: tuple[Way, ...] = (flipped, cut, spliced, resized)


def inner(name: str) -> Way:
    """What suits an entry of an archive."""
    suited = {".json": rejsoned, ".pkl": repickled, ".py": reworded, ".npy": reworded}
    return next((way for suffix, way in suited.items() if name.endswith(suffix)), resized)


def mutated(name: str, content: bytes, rng: random.Random) -> bytes:
    """The file with one kind of damage; every third time blindly."""
    if rng.random() < 0.35:
        return rng.choice(BLIND)(content, rng)
    if content[:2] == b"PK":
        return rezipped(content, rng)
    if content[:2] == b"\x1f\x8b":
        return regzipped(content, rng)
    if content[:1] == b"\x80":
        return repickled(content, rng)
    suited: dict[str, Way] = {".onnx": remodelled, ".safetensors": reheaded, ".csv": reworded}
    return next((way for suffix, way in suited.items() if name.endswith(suffix)), resized)(content, rng)
