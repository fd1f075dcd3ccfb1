"""Many draws at once of vectors in their span."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Generator, Tensor

AT_ONCE = 2**21  # numbers


def bartletts(draws: int, count: int, dim: int, rng: Generator) -> Iterator[Tensor]:
    """Batches (any, count, count): rows with the joint inner products of `count` ≤ dim Gaussian vectors of R^dim.

    As `settings.span.bartlett`, which makes one.
    """
    seed = int(torch.randint(2**63 - 1, (), generator=rng))
    chi = np.random.default_rng(seed)
    degrees = np.arange(dim, dim - count, -1).astype(float)
    size = max(1, AT_ONCE // count**2)
    for begin in range(0, draws, size):
        batch = min(size, draws - begin)
        L = torch.randn(batch, count, count, generator=rng, dtype=torch.float64).tril(-1)
        diagonal = np.sqrt(chi.chisquare(degrees, (batch, count)))
        yield L + torch.diag_embed(torch.from_numpy(diagonal))
