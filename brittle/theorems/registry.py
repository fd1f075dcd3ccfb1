"""Every theorem by its id."""

from difflib import get_close_matches
from importlib import import_module

from brittle.common.errors import InputError
from brittle.theorems.base import Theorem

PAPERS = ("vardi2022", "frei2023", "melamed2023", "wang2022")


def _all() -> dict[str, Theorem]:
    theorems: dict[str, Theorem] = {}
    for paper in PAPERS:
        for theorem in import_module(f"brittle.theorems.{paper}").THEOREMS:
            assert theorem.id not in theorems, f"two theorems are called {theorem.id}"
            theorems[theorem.id] = theorem
    return theorems


THEOREMS: dict[str, Theorem] = _all()


def find(identity: str) -> Theorem:
    """The theorem with this id, whatever its letters' case; an error that names those that it might have been."""
    by_lower = {name.lower(): theorem for name, theorem in THEOREMS.items()}
    if identity.lower() in by_lower:
        return by_lower[identity.lower()]
    numbers = [name for name in THEOREMS if name.split("/")[1].lower() == identity.lower()]
    near = numbers or [by_lower[name].id for name in get_close_matches(identity.lower(), by_lower, n=3, cutoff=0.5)]
    meant = f"did you mean {' or '.join(near)}?" if near else "`brittle theorems` lists them all"
    raise InputError(f"there is no theorem {identity!r}; {meant}")
