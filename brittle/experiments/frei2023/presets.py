"""What each preset of frei2023's figures covers, and the cells that it is made of."""

from dataclasses import dataclass

from brittle.experiments.base import Params


@dataclass(frozen=True)
class Grid:
    """What a preset covers."""

    dims: tuple[int, ...]  # figure a
    clusters: tuple[int, ...]
    seeds: int
    test: int
    width: int
    widths: tuple[int, ...]  # figure b
    networks: int  # of each width
    crowded_dim: int  # figure c
    crowded: tuple[int, ...]


GRIDS = {
    "smoke": Grid(
        dims=(10**4, 10**8),
        clusters=(2, 4, 8),
        seeds=1,
        test=60,
        width=100,
        widths=(50, 150),
        networks=2,
        crowded_dim=6,
        crowded=(3, 18),
    ),
    "quick": Grid(
        dims=(10**4, 10**8),
        clusters=(2, 4, 8, 16, 32, 64),
        seeds=3,
        test=200,
        width=1000,
        widths=(50, 100, 300, 1000, 3000),
        networks=4,
        crowded_dim=16,
        crowded=(8, 16, 32, 48, 64),
    ),
    "full": Grid(
        dims=(10**4, 10**6, 10**8),
        clusters=(2, 4, 8, 16, 32, 64, 128),
        seeds=5,
        test=1000,
        width=1000,
        widths=(50, 100, 300, 1000, 3000),
        networks=4,
        crowded_dim=40,
        crowded=(20, 40, 80, 120, 160),
    ),
}


def cell(dim: int, clusters: int, seed: int, **others: object) -> Params:
    """Every seed draws data of its own unless it is told to share them."""
    usual = {"noise": 1.0, "per_cluster": 10, "width": 1000, "data_seed": seed, "at": "kkt", "shortest": 0}
    return {"dim": dim, "clusters": clusters, "seed": seed, **usual, **others}
