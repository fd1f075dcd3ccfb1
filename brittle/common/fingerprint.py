"""A short name for a value that changes when anything in it does."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from torch import Tensor, nn

LENGTH = 24  # hexadecimal digits


def fingerprint(value: Any) -> str:
    """Of all numbers of all tensors in it, at any depth; other objects count by how they print themselves."""
    digest = hashlib.sha256()
    for part in _parts(value):
        digest.update(part)
        digest.update(b"\0")
    return digest.hexdigest()[:LENGTH]


def _parts(value: Any) -> Iterator[bytes]:
    if isinstance(value, Tensor):
        yield f"{tuple(value.shape)} {value.dtype}".encode()
        yield value.detach().contiguous().numpy().tobytes()
    elif isinstance(value, nn.Module):
        yield repr(value).encode()
        yield from _parts(value.state_dict())
    elif is_dataclass(value) and not isinstance(value, type):
        yield f"{type(value).__module__}.{type(value).__qualname__}".encode()
        for field in fields(value):
            yield field.name.encode()
            yield from _parts(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for name in value:
            yield from _parts((name, value[name]))
    elif isinstance(value, list | tuple):
        yield f"{len(value)} values".encode()
        for each in value:
            yield from _parts(each)
    else:
        yield repr(value).encode()
