"""Whether a network that was read is the function that its reference computes.

The logits' differences decide about labels, so they are what is compared, and never the logits relative to the largest
of them. With outputs f_1, ..., f_C the differences are d = f_i - f_j for every pair (for one output d = f itself), and
a network with the differences d' is another function if on any input

    |d' - d| > 4 ε |d| + 4 ε max(|f_i|, |f_j|) + 16 s + 16 r

where ε is the unit of rounding of the reference's float type, r is what brittle says about its own rounding in float64
(the unit of that type times the absolute values of all terms; for black boxes also 4 ε max(1, |f|)) and s is how far
rounding moves d in the reference. It measures s itself: it runs several times with every number on the way multiplied
by 1 ± 2ε at random (its inputs where it shows no more than these), and s is the largest change of d. Before a
disagreement is reported s is measured with many more runs.

Inputs are 0, whole numbers, ordinary ones, large ones (1e3, 1e5), small ones and points on kinks, which bisection along
lines finds where a hidden unit changes its sign: units of the network that was read, and of the reference where it
shows them. The reference sees its inputs in batches of 5, of 2 and of 1: an output that depends on its batch disagrees.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from brittle.networks import Adapter, Layered, Network

BATCHES = (5, 2, 1)
ROWS = 10  # of the batches after the first
RUNS, MORE_RUNS = 3, 40
OWN, MEASURED = 4, 16
SMOOTH = 4  # units that an erf or tanh of a black box may be off by, relative to 1: its own steps are not seen
LINES, HALVINGS = 10, 50
SHOWN = 0.3  # of the references that show their hidden units, how many are asked: it takes long


class Reference(Protocol):
    """What a generated model computes, by another program than brittle."""

    @property
    def eps(self) -> float:
        """The unit of rounding of its float type."""
        ...

    def outputs(self, X: Tensor) -> Tensor:
        """Logits (n, C) in float64 of the rows X (n, dim) as one batch; raises where it takes no such batch."""
        ...

    def disturbed(self, X: Tensor, rng: np.random.Generator) -> Tensor:
        """The same with rounding errors of 2 eps at random."""
        ...

    def hidden(self, X: Tensor) -> Tensor:
        """Intermediate numbers (n, count) of a batch of any size; none where it does not show them."""
        ...


class NoOutput(Exception):
    """The reference gives no finite outputs on any batch."""


def disagreement(network: Network, reference: Reference, rng: np.random.Generator, taken: float = 0.0) -> str | None:
    """The first disagreement found, as one line; None where there is none. Raises NoOutput.

    `taken` is what was taken from a probability, so that the label changes at 0.
    """
    size = _batch_size(reference, network.dim)
    X = _ordinary(network.dim, reference.eps, rng)
    X = torch.cat([X, _rounded(_kinks(network, reference, X, rng), reference.eps)])
    X = X[: len(X) // 10 * 10]
    layers = network.to(torch.float64)
    read, own = layers.logits(X).double().reshape(len(X), -1) + taken, layers.rounding(X).double()
    if isinstance(network, Adapter):
        own = own + SMOOTH * reference.eps * read.abs().amax(1).clamp(min=1)
    for batch in (size, *(each for each in BATCHES if each < size)):
        rows = len(X) if batch == size else ROWS
        try:
            wanted = _batched(reference.outputs, X[:rows], batch)
        except Exception:  # a batch of another size than what it was made for
            continue
        if wanted.shape != read[:rows].shape:
            return f"{read.shape[1]} outputs instead of {wanted.shape[1]}"
        found = _differing(read[:rows], own[:rows], wanted, reference, X[:rows], batch, rng)
        if found is not None:
            return f"{found}, in batches of {batch}"
    return None


def _batch_size(reference: Reference, dim: int) -> int:
    """The largest that the reference takes."""
    reason = ""
    for batch in BATCHES:
        try:
            reference.outputs(torch.zeros(batch, dim, dtype=torch.float64))
        except Exception as error:
            reason = str(error).partition("\n")[0]
            continue
        return batch
    raise NoOutput(reason)


def _differing(
    read: Tensor, own: Tensor, wanted: Tensor, reference: Reference, X: Tensor, batch: int, rng: np.random.Generator
) -> str | None:
    """The worst row where they differ by more than rounding makes of it."""
    for runs in (RUNS, MORE_RUNS):
        moved = [_batched(lambda rows: reference.disturbed(rows, rng), X, batch) for _ in range(runs)]
        excess = _excess(read, own, wanted, moved, reference.eps)
        if not bool((excess > 1).any()):
            return None
    row = int(excess.amax(1).argmax())
    values = ", ".join(f"{name} {_short(each[row])}" for name, each in (("read", read), ("instead of", wanted)))
    return f"at {_short(X[row])} {values} ({float(excess[row].max()):.1g} times what rounding allows)"


def _excess(read: Tensor, own: Tensor, wanted: Tensor, moved: Sequence[Tensor], eps: float) -> Tensor:
    """The change of every difference, in units of what is allowed; 0 where the reference is not finite."""
    d, given = differences(wanted), differences(read)
    spread = torch.stack([(differences(each) - d).abs() for each in moved]).amax(0)
    sizes = torch.stack([wanted[:, list(pair)].abs().amax(1) for pair in _pairs(wanted.shape[1])], 1)
    allowed = OWN * eps * (d.abs() + sizes) + MEASURED * (spread + own[:, None])
    finite = wanted.isfinite().all(1, keepdim=True) & allowed.isfinite()
    off = torch.where(given.isfinite(), (given - d).abs(), torch.inf)
    ratio = off / allowed.clamp(min=torch.finfo(torch.float64).tiny)
    return torch.where(finite & (off > 0), ratio, 0.0)


def differences(outputs: Tensor) -> Tensor:
    """f_i - f_j for every pair of outputs, (n, pairs); one output stands for itself."""
    if outputs.shape[1] == 1:
        return outputs
    return torch.stack([outputs[:, i] - outputs[:, j] for i, j in _pairs(outputs.shape[1])], 1)


def _pairs(count: int) -> list[tuple[int, int]]:
    return [(0, 0)] if count == 1 else list(combinations(range(count), 2))


def _batched(run: Callable[[Tensor], Tensor], X: Tensor, batch: int) -> Tensor:
    return torch.cat([run(rows) for rows in torch.split(X, batch)])


def _short(row: Tensor) -> str:
    return "[" + ", ".join(f"{value:.6g}" for value in row[:6].tolist()) + (", …]" if len(row) > 6 else "]")


def _rounded(X: Tensor, eps: float) -> Tensor:
    """Numbers that the reference's float type holds."""
    return X.float().double() if eps > 1e-10 else X


def _ordinary(dim: int, eps: float, rng: np.random.Generator) -> Tensor:
    """0, whole numbers, and random ones of several sizes; those of the first ten rows are of every kind."""

    def normal(rows: int, scale: float) -> np.ndarray:
        return scale * rng.normal(size=(rows, dim))

    one = np.zeros((1, dim))
    one[0, rng.integers(dim)] = 1.0
    kinds = [np.zeros((1, dim)), normal(3, 1), rng.integers(-3, 4, size=(3, dim)), normal(1, 1e3), normal(1, 1e5), one]
    kinds += [normal(4, 1), rng.integers(-9, 10, size=(2, dim)), normal(2, 0.01), normal(2, 10), normal(2, 1e3)]
    return _rounded(torch.from_numpy(np.concatenate(kinds).astype(np.float64)), eps)


def _kinks(network: Network, reference: Reference, X: Tensor, rng: np.random.Generator) -> Tensor:
    """Points at which a hidden unit is 0, or as near to it as float64 comes."""
    found = [X[:0]]
    for units in _units(network, reference, rng):
        starts, ends = (X[rng.integers(1, len(X), size=LINES)] for _ in range(2))
        found.append(_crossings(units, starts, ends, rng))
    return torch.cat(found)


def _units(network: Network, reference: Reference, rng: np.random.Generator) -> Iterator[Callable[[Tensor], Tensor]]:
    if isinstance(network, Layered) and network.depth > 1:
        layers = network.to(torch.float64)
        yield lambda X: torch.cat(layers.values(X)[:-1], 1)
    hidden = reference.hidden
    if rng.random() < SHOWN and hidden(torch.zeros(LINES, network.dim, dtype=torch.float64)).numel():
        yield hidden


def _crossings(units: Callable[[Tensor], Tensor], low: Tensor, high: Tensor, rng: np.random.Generator) -> Tensor:
    """One point on every line on which some unit changes its sign."""
    first, last = units(low), units(high)
    change = ((first < 0) != (last < 0)) & first.isfinite() & last.isfinite()
    chances = torch.from_numpy(rng.random(size=tuple(change.shape)))
    unit = torch.where(change, chances, -1.0).argmax(1, keepdim=True)
    below = first.gather(1, unit) < 0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        same = (units(middle).gather(1, unit) < 0) == below
        low, high = torch.where(same, middle, low), torch.where(same, high, middle)
    return high[change.any(1)]


def comparable(network: Network) -> bool:
    """Whether the network's logits are the model's outputs: those of probabilities are others."""
    return not (isinstance(network, Adapter) and network.probabilities)
