"""How often `melamed2023/A.1-law` refuses starts of a wrong law, and those of the right one.

    python -m benchmarks.power --wrong 20 --right 100

Each draw has data, starts and rotations of its own. The wrong laws have independent or sparse coordinates of the right
variance, or axes that differ; N(0, I/d) is the right one. A start is refused where the verdict is not "confirmed".
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.networks import Initialisation, Kaiming
from brittle.theorems import CheckOutcome, check_instance
from brittle.theorems.melamed2023.invariance import LawOfTheStart

Entries = Callable[[int, int, Generator], Tensor]


def signs(width: int, dim: int, rng: Generator) -> Tensor:
    """±1."""
    return torch.randint(2, (width, dim), generator=rng).double() * 2 - 1


def laplace(width: int, dim: int, rng: Generator) -> Tensor:
    """Independent Laplace variables."""
    uniform = torch.rand(width, dim, generator=rng, dtype=torch.float64) - 0.5
    return -uniform.sign() * (1 - 2 * uniform.abs()).log() / math.sqrt(2)


def one_hot(width: int, dim: int, rng: Generator) -> Tensor:
    """One coordinate of each row, of random sign."""
    axis = torch.nn.functional.one_hot(torch.randint(dim, (width,), generator=rng), dim)
    return math.sqrt(dim) * axis * signs(width, 1, rng)


def anisotropic(width: int, dim: int, rng: Generator) -> Tensor:
    """Normal with standard deviations from .1 to 1.9."""
    return torch.randn(width, dim, generator=rng, dtype=torch.float64) * torch.linspace(0.1, 1.9, dim)


def half_zero(width: int, dim: int, rng: Generator) -> Tensor:
    """Normal in the first half of the coordinates, zero in the others."""
    rows = torch.randn(width, dim, generator=rng, dtype=torch.float64) * math.sqrt(2)
    return rows * (torch.arange(dim) < dim // 2)


WRONG: dict[str, Entries] = {each.__name__: each for each in (signs, laplace, one_hot, anisotropic, half_zero)}


@dataclass(frozen=True)
class WrongLaw(Kaiming):
    """As in the paper, with other weights of the first layer."""

    name: ClassVar = "wrong law"

    entries: Entries = signs

    def draw_arrays(self, dim: int, width: int, ambient: int, rng: Generator) -> tuple[Tensor, Tensor, Tensor]:
        _, b, v = super().draw_arrays(dim, width, ambient, rng)
        return self.entries(width, dim, rng) / math.sqrt(ambient), b, v


def refused(law: Initialisation, seeds: range, theorem: LawOfTheStart | None = None) -> int:
    """How many of the draws with these seeds are not confirmed."""
    theorem, count = theorem or LawOfTheStart(), 0
    for seed in seeds:
        rng = torch.Generator().manual_seed(seed)
        instance = theorem.default(rng)
        instance = replace(instance, facts=theorem.starts(law, instance.data.columns, rng))
        count += check_instance(theorem, instance).verdict is not CheckOutcome.CONFIRMED
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wrong", type=int, default=20, help="draws of each wrong law")
    parser.add_argument("--right", type=int, default=100, help="draws of N(0, I/d)")
    arguments = parser.parse_args()
    for name, entries in WRONG.items():
        law = WrongLaw(entries=entries)
        print(f"{name:12} {refused(law, range(arguments.wrong))} of {arguments.wrong} refused", flush=True)
    print(f"{'N(0, I/d)':12} {refused(Kaiming(), range(arguments.right))} of {arguments.right} refused")


if __name__ == "__main__":
    main()
