"""By which factor a constant of a proof may be wrong before the default instance of its statement notices.

    python -m benchmarks.slack [--seed 0]

Each constant is multiplied by factors further and further from 1, until the verdict is no longer "confirmed"; the
bisection ends within 1 %. A factor near 1 says that the instance meets the bound; docs/errata.md says why the others do
not.
Every constant is also written again by hand in tests/theorems/test_constants.py, which notices any change at once.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from brittle.theorems import CheckOutcome, Instance, Theorem, check_instance, find
from brittle.theorems.frei2023.groups import ClusterConstants
from brittle.theorems.kkt_proof import ProofConstants
from brittle.theorems.vardi2022.groups import ExampleConstants

FARTHEST, CLOSE = 1e3, 1.01


@dataclass(frozen=True)
class Constant:
    """A property `name` of the class `holder` in the statement `identity`, made wrong as it `grows`, or else falls."""

    identity: str
    holder: type
    name: str
    grows: bool

    @contextmanager
    def times(self, factor: float) -> Iterator[None]:
        """The constant is another one for a while."""
        right = self.holder.__dict__[self.name]
        setattr(self.holder, self.name, property(lambda numbers: factor * right.__get__(numbers)))
        try:
            yield
        finally:
            setattr(self.holder, self.name, right)


CONSTANTS = (
    Constant("vardi2022/C.2", ExampleConstants, "mass", True),
    Constant("vardi2022/C.3", ProofConstants, "dip", False),
    Constant("vardi2022/C.4", ProofConstants, "room", True),
    Constant("vardi2022/4.1", ProofConstants, "crossing", False),
    Constant("frei2023/A.10", ClusterConstants, "cluster_mass", False),
    Constant("frei2023/A.11", ClusterConstants, "own_mass", True),
    Constant("frei2023/A.12", ClusterConstants, "own_mass", True),
    Constant("frei2023/D.3", ProofConstants, "dip", False),
    Constant("frei2023/D.4", ProofConstants, "room", True),
    Constant("frei2023/4.2", ProofConstants, "crossing", False),
    Constant("frei2023/rate", ClusterConstants, "mass", True),
    Constant("frei2023/tight", ClusterConstants, "lost", False),
)


def noticed_from(constant: Constant, theorem: Theorem, instance: Instance) -> float:
    """The factor nearest to 1 that the verdict notices; infinite (or 0) where none is."""

    def confirmed(size: float) -> bool:
        with constant.times(size if constant.grows else 1 / size):
            return check_instance(theorem, instance).verdict is CheckOutcome.CONFIRMED

    low, high = 1.0, FARTHEST
    if confirmed(high):
        return float("inf") if constant.grows else 0.0
    while high / low > CLOSE:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if confirmed(middle) else (low, middle)
    return high if constant.grows else 1 / high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    for constant in CONSTANTS:
        theorem = find(constant.identity)
        instance = theorem.default(torch.Generator().manual_seed(seed))
        factor = noticed_from(constant, theorem, instance)
        print(f"{constant.identity:16} {constant.name:14} noticed from a factor {factor:.3g} on", flush=True)


if __name__ == "__main__":
    main()
