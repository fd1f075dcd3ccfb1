"""What an attack found of some examples after others, as if it had been found at once."""

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar

from torch import Tensor

if TYPE_CHECKING:
    from brittle.attacks.base import AttackResult

VECTORS = ("perturbations", "direction", "raw")  # each takes as much room as the examples
Found = TypeVar("Found", bound="AttackResult")


def joined(parts: Iterable[Found], rows: int) -> Found:
    """The parts below each other, `rows` examples in all; each is copied to its place before the next is asked for."""
    whole: dict[str, Tensor] = {}
    filled, kind = 0, None
    for part in parts:
        kind = type(part)
        for name, value in _own(part).items():
            if name not in whole:
                whole[name] = value.new_empty((rows if len(value) else 0, *value.shape[1:]))
            whole[name][filled : filled + len(value)] = value
        filled += len(part.norms)
    assert kind is not None
    return kind(**{field.name: whole.get(field.name, whole["perturbations"]) for field in fields(kind)})


def _own(part: "AttackResult") -> dict[str, Tensor]:
    """By name, without `raw` where no box made it another thing than the perturbations."""
    names = (field.name for field in fields(part))
    return {name: getattr(part, name) for name in names if name != "raw" or part.raw is not part.perturbations}


def without_vectors(found: Found) -> Found:
    """The same with (0, dim) in place of the vectors."""
    return replace(found, **{name: getattr(found, name)[:0].clone() for name in VECTORS})
