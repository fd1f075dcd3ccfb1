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


def folded(name: str, values: list[Any]) -> Any:
    """The result on known numbers; unknown where one of them is."""
    if any(isinstance(each, Unknown) for each in values):
        return Unknown()
    plain = all(each is None or isinstance(each, bool | int | float | str) for each in values)
    if not plain and not name.startswith("__"):
        raise InputError(f"the operation '{name}' on lists is not read")
    try:
        result = FOLDED[name](*values)
    except (TypeError, OverflowError) as error:
        raise InputError(f"the operation '{name}' cannot be done ({error})") from None
    if isinstance(result, str) or (isinstance(result, int) and abs(result) >= 2**63):
        raise InputError(f"the operation '{name}' gives more than a number of 64 bits")
    return result
