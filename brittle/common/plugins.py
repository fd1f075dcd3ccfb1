"""Parts that installed packages offer: entry points of a group such as `brittle.attacks`, imported when asked for."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from brittle.common.errors import InputError, require

THEOREMS = "brittle.theorems"  # the group of those who offer theorems, which are named by their ids


@cache
def offered(group: str) -> dict[str, tuple[EntryPoint, ...]]:
    """By name, all that are called so; nothing is imported."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for each in entry_points(group=group):
        found[each.name] = (*found.get(each.name, ()), each)
    return found


def loaded(group: str, name: str) -> Any:
    """What the entry point stands for; whatever goes wrong there is one line that names it."""
    points = offered(group)[name]
    places = " and ".join(sorted({each.value for each in points}))
    require(len({each.value for each in points}) == 1, f"two plug-ins of {group} are called {name!r}: {places}")
    try:
        return points[0].load()
    except Exception as error:
        raise InputError(f"the plug-in {name!r} of {group} ({places}) is broken: {told(error)}") from None


def told(error: BaseException) -> str:
    """An error of somebody else's code, by its kind and words."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
