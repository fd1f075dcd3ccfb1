"""Where the search begins: a network that classifies, a working set, and columns."""

import torch
from torch import Tensor

from brittle.common.errors import InputError, require
from brittle.margin.columns import Columns, realised
from brittle.margin.examples import Examples, distinct
from brittle.margin.neurons import Neurons, Weights
from brittle.networks import PyTorch, TwoLayer
from brittle.settings import Data

SMALL = 300  # so many examples are solved at once
FIRST = 100  # examples of a larger set to begin with
HEAVIEST = 100  # neurons of the start whose patterns enter at once
UNAIDED = 2000  # examples for which a first network is made
ATTEMPTS = 4
LARGEST = 1e80  # entry of an example; a proof holds multipliers that are inverse to it


def first_network(data: Data, biases: bool, seed: int) -> TwoLayer:
    """Random neurons, with output weights of least norm that give every example the margin 1.

    Where neurons at 0 of size 1 see no difference between the examples, they are drawn at their centre in their units.
    """
    data.require_binary()
    require(
        len(data) <= UNAIDED,
        f"there are {len(data)} examples; above {UNAIDED} give a network that classifies them to begin with",
    )
    ones = torch.ones(len(data), 1, dtype=torch.float64)
    X = torch.cat([data.X, ones], 1) if biases else data.X
    keep = distinct(X, data.y)
    if not biases:
        require_separable_without_biases(data)
    rng = torch.Generator().manual_seed(seed)
    centre = data.X[keep].mean(0) if biases else torch.zeros_like(data.X[0])
    spread = float((data.X[keep] - centre).square().mean().sqrt()) or 1.0
    for origin, unit in ((torch.zeros_like(centre), 1.0), (centre, spread)):
        for attempt in range(ATTEMPTS):
            drawn = PyTorch().draw(data.columns, 2 ** (attempt + 1) * len(keep) + 10, rng)
            W = drawn.W / unit
            b = drawn.b - W @ origin if biases else torch.zeros_like(drawn.b)
            Z = torch.addmm(b, data.X[keep], W.T).relu()
            v = torch.linalg.lstsq(Z, data.y[keep, None], driver="gelsd").solution[:, 0]
            if bool((data.y[keep] * (Z @ v) > 0.5).all()):
                return TwoLayer(W, b, v)
    raise InputError(
        "no network was found that classifies the examples; some of them may nearly coincide: drop those, "
        "or centre the examples and scale them to size 1"
    )


def require_in_range(data: Data, biases: bool) -> None:
    """The largest entry of all is one that a proof can be about; with biases there is the entry 1."""
    largest = float(data.X.abs().max())
    require(
        largest <= LARGEST and (biases or largest == 0 or largest >= 1 / LARGEST),
        f"the largest entry of an example is {largest:.3g}; it must lie between {1 / LARGEST:g} and {LARGEST:g}",
    )


def require_separable_without_biases(data: Data) -> None:
    """Without biases N(ax) = aN(x) for a ≥ 0: examples on one ray share their label, and none is zero."""
    sizes = data.X.norm(dim=1)
    zero = torch.nonzero(sizes == 0)[:, 0]
    require(
        not len(zero), f"example {int(zero[0]) if len(zero) else 0} is zero; without biases every output there is 0"
    )
    try:
        distinct((data.X / sizes[:, None] * 2.0**40).round(), data.y)
    except InputError as error:
        raise InputError(f"without biases, where only directions count: {error}") from None


def first_set(examples: Examples, weights: Weights) -> Tensor:
    """A mask of the examples to begin with: all, or those of smallest margin, as many of each class."""
    y = examples.y
    if len(y) <= SMALL:
        return torch.ones(len(y), dtype=torch.bool)
    q = examples.margins(Neurons.of(weights))
    chosen = torch.zeros(len(y), dtype=torch.bool)
    for sign in (1.0, -1.0):
        mine = torch.nonzero(y == sign)[:, 0]
        chosen[mine[q[mine].argsort()[: FIRST // 2]]] = True
    return chosen


def first_columns(examples: Examples, weights: Weights, chosen: Tensor) -> Columns:
    """All examples of a class, single ones of the working set, and what the heaviest neurons show."""
    W, v = weights
    order = (v.abs() * W.norm(dim=1)).argsort(descending=True)[:HEAVIEST]
    order = order[v[order] != 0]
    shown = realised(examples.X @ W[order].T, v[order].sign(), examples.y)
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64)
    whole = Columns(signs, (signs[:, None] == examples.y).double())
    single = torch.eye(len(examples.y), dtype=torch.float64)[chosen]
    return whole.joined(Columns(examples.y[chosen], single)).joined(shown)
