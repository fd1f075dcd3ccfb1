"""Every theorem by its id."""

from dataclasses import is_dataclass
from difflib import get_close_matches
from importlib import import_module

from brittle.common import plugins
from brittle.common.errors import InputError, require
from brittle.common.kinds import kinds_checked
from brittle.common.plugins import THEOREMS as GROUP
from brittle.theorems.base import Theorem
from brittle.theorems.papers import PAPERS


def _all() -> dict[str, Theorem]:
    theorems: dict[str, Theorem] = {}
    for paper in PAPERS:
        for theorem in import_module(f"brittle.theorems.{paper}").THEOREMS:
            assert theorem.id not in theorems, f"two theorems are called {theorem.id}"
            theorems[theorem.id] = theorem
    return theorems


THEOREMS: dict[str, Theorem] = _all()


def _installed(identity: str) -> Theorem:
    theorem = made(plugins.loaded(GROUP, identity), f"the plug-in {identity!r} of {GROUP}")
    require(theorem.id == identity, f"the plug-in {identity!r} of {GROUP} is the theorem {theorem.id!r}: name it so")
    return theorem


def made(found: object, called: str) -> Theorem:
    """The theorem of a class that is not brittle's, as its fields are by default."""
    good = isinstance(found, type) and issubclass(found, Theorem) and is_dataclass(found)
    require(good, f"{called} is no dataclass that extends Theorem")
    assert isinstance(found, type)
    for name in ("id", "claim", "applies_to"):
        require(isinstance(getattr(found, name, None), str), f"{called} has no {name}: see docs/extending.md")
    try:
        theorem: Theorem = found()
    except TypeError as error:  # a verb that is missing, or a field without a default
        raise InputError(f"{called} cannot be made: {error}") from None
    return theorem


@kinds_checked
def find(identity: str) -> Theorem:
    """The theorem with this id, whatever its letters' case, or that of an installed package.

    An error names those that it might have been.

    Examples:
        >>> from brittle.theorems import find
        >>> find("VARDI2022/4.1").id
        'vardi2022/4.1'
        >>> find("4.1")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        brittle.common.errors.InputError: there is no theorem '4.1'; did you mean vardi2022/4.1 or ...
    """
    by_lower = {name.lower(): theorem for name, theorem in THEOREMS.items()}
    if identity.lower() in by_lower:
        return by_lower[identity.lower()]
    if identity in plugins.offered(GROUP):
        return _installed(identity)
    numbers = [name for name in THEOREMS if name.split("/")[1].lower() == identity.lower()]
    near = numbers or [by_lower[name].id for name in get_close_matches(identity.lower(), by_lower, n=3, cutoff=0.5)]
    meant = f"did you mean {' or '.join(near)}?" if near else "`brittle theorems` lists them all"
    raise InputError(f"there is no theorem {identity!r}; {meant}")
