"""Claims and remarks of figures that need a data set, which may be missing or another one."""

from collections.abc import Mapping, Sequence

from brittle.experiments.base import Claim
from brittle.experiments.cell import Point
from brittle.experiments.images import NAMES, advice, present


def judged_on(name: str, points: Sequence[Point], claims: Sequence[Claim]) -> list[Claim]:
    """Claims about a data set are decided by points of that data set alone."""
    if points and all(point["data"] == name for point in points):
        return list(claims)
    why = f"not decided: {advice(name)}" if not points and not present(name) else "not decided by this run"
    return [Claim(claim.text, f"{claim.measured} ({why})" if points else why, None) for claim in claims]


def told(name: str, points: Sequence[Point], seconds: Mapping[str, float]) -> list[str]:
    """The remark of a figure whose data are missing, or are not the paper's."""
    if not points:
        return [] if present(name) else [advice(name)]
    others = sorted({point["data"] for point in points} - {name})
    return [f"Measured on {NAMES[other]}, in place of {NAMES[name]}." for other in others]
