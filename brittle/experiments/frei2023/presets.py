"""What each preset of frei2023's figures covers, and the cells that it is made of."""

from dataclasses import dataclass
from typing import Any

from brittle.experiments.frei2023.cells import ClusterCell


@dataclass(frozen=True)
class Grid:
    """What a preset covers."""

    dims: tuple[int, ...]  # d of figure a
    clusters: tuple[int, ...]  # k of figure a
    seeds: int  # how many
    test: int  # fresh examples
    crowded_dims: tuple[int, ...]  # d of figure c
    crowded: tuple[float, ...]  # k/d of figure c
    width: int = 1000  # of figures a and c
    widths: tuple[int, ...] = (50, 100, 300, 1000, 3000)  # of figure b
    networks: int = 4  # of each width in figure b


GRIDS = {
    "smoke": Grid(
        dims=(10**4, 10**8),
        clusters=(2, 4, 8),
        seeds=1,
        test=60,
        width=100,
        widths=(50, 150),
        networks=2,
        crowded_dims=(4, 6),
        crowded=(0.5, 3),
    ),
    "quick": Grid(
        dims=(10**4, 10**8),
        clusters=(2, 4, 8, 16, 32, 64),
        seeds=3,
        test=200,
        crowded_dims=(8, 12, 16, 24),
        crowded=(0.5, 1, 2, 3, 4),
    ),
    "full": Grid(
        dims=(10**4, 10**6, 10**8),
        clusters=(2, 4, 8, 16, 32, 64, 128),
        seeds=5,
        test=1000,
        crowded_dims=(10, 20, 40, 60),
        crowded=(0.5, 1, 2, 3, 4),
    ),
}


def cell(dim: int, clusters: int, seed: int, **others: Any) -> ClusterCell:
    """Every seed draws data of its own unless it is told to share them."""
    return ClusterCell(**{"dim": dim, "clusters": clusters, "seed": seed, "data_seed": seed, **others})
