"""Numbers in the text of a TorchScript file that are known before any input is."""

import operator
from collections.abc import Callable
from typing import Any

from brittle.common.errors import InputError


class Unknown:
    """A number or a choice that depends on the input, such as its number of axes."""


FOLDED: dict[str, Callable[..., Any]] = {
    "__is__": operator.is_, "__isnot__": operator.is_not, "__not__": operator.not_,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
}  # fmt: skip
IDENTITIES = ("__is__", "__isnot__")  # asked of anything beside None


def folded(name: str, values: list[Any], named: dict[str, Any]) -> Any:
    """The result on known numbers; unknown where one of them is."""
    if named not in ({}, {"alpha": 1}):  # 1 is what the tracer writes down
        raise InputError(f"the operation '{name}' on numbers has other arguments here ({', '.join(named)[:100]})")
    if any(isinstance(each, Unknown) for each in values):
        return Unknown()
    if not all(map(_is_plain, values)) and not (name in IDENTITIES and any(each is None for each in values)):
        raise InputError(f"the operation '{name}' on lists or tensors is not read")
    try:
        result = FOLDED[name](*values)
    except (TypeError, OverflowError) as error:
        raise InputError(f"the operation '{name}' cannot be done ({error})") from None
    if isinstance(result, str) or (isinstance(result, int) and abs(result) >= 2**63):
        raise InputError(f"the operation '{name}' gives more than a number of 64 bits")
    return result


def whole(value: Any) -> int:
    """`int(value)` of a known number: the digits after the point are cut off."""
    if not isinstance(value, bool | int | float):
        raise InputError("'int' of something that is no known number is not read")
    if not -(2.0**63) <= value < 2.0**63:  # neither NaN nor infinity
        raise InputError(f"'int' of {value} gives more than a number of 64 bits")
    return int(value)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
