"""The walk of a command through the house: every file and function that it enters, in order, and calls upwards.

    python -m benchmarks.walk audit net.npz --data data.npz --budget 10
    python -m benchmarks.walk reproduce vardi2022/fig1a --preset smoke --jobs 1 --out NEW_FOLDER
    python -m benchmarks.walk certify net.npz --data data.npz --method exact

What the command imports is imported before, by its --help: only its own work is listed. A call is upwards where a room
calls one that stands after it in `ORDER` of tests/test_house.py; `common` calls back whatever it is given, and so does
whoever was given a `watch` to tell of progress. What is left is listed: hooks and functions that were handed down are
no fault, anything else is. Two trees are compared by running it in both.
"""

import sys
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import brittle
from brittle.cli import main as command
from tests.test_house import ORDER

HOUSE = f"{Path(brittle.__file__).parent}/"
Place = tuple[str, str]  # file, function


class Walk:
    """Functions in the order of their first call, and who calls whom."""

    def __init__(self) -> None:
        self.places: dict[Place, None] = {}
        self.calls: set[tuple[Place, Place]] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        place = _place(frame)
        if event != "call" or place is None:
            return
        self.places[place] = None
        caller = frame.f_back
        while caller is not None and _place(caller) is None:
            caller = caller.f_back
        before = None if caller is None else _place(caller)
        if before is not None:
            self.calls.add((before, place))

    @property
    def upwards(self) -> list[tuple[Place, Place]]:
        return sorted(call for call in self.calls if _rank(call[0]) < _rank(call[1]) and not _given(*call))


def _place(frame: FrameType) -> Place | None:
    code = frame.f_code
    inside = code.co_filename.startswith(HOUSE) and code.co_name not in ("<module>", "<genexpr>", "<listcomp>")
    return (code.co_filename.removeprefix(HOUSE), code.co_qualname) if inside else None


def _room(place: Place) -> str:
    return place[0].partition("/")[0]


def _given(caller: Place, called: Place) -> bool:
    """Whether the caller was handed what it calls."""
    return _room(caller) == "common" or called[1].endswith(".watch")


def _rank(place: Place) -> int:
    return ORDER.index(_room(place)) if _room(place) in ORDER else len(ORDER)


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    command([sys.argv[1], "--help"])
    walk = Walk()
    sys.setprofile(walk)
    try:
        command(sys.argv[1:])
    finally:
        sys.setprofile(None)
    for file, places in groupby(walk.places, key=lambda place: place[0]):
        print(f"{file}: {', '.join(name for _, name in places)}")
    print(f"{len({file for file, _ in walk.places})} files, {len(walk.places)} functions")
    print(f"calls upwards: {len(walk.upwards)}", *walk.upwards, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
