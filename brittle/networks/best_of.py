"""The largest of several logits, as layers of ReLUs: max(a, b) = φ(a - b) + φ(b) - φ(-b)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from brittle.common.errors import require
from brittle.common.kinds import kinds_checked
from brittle.networks.affine import Dense
from brittle.networks.deep import Deep
from brittle.networks.layered import Layered


@kinds_checked
def best_of(network: Layered, groups: Sequence[Sequence[int]], one_logit: bool = False) -> Deep:
    """The network whose logits are the largest of every group of the given one's logits.

    With `one_logit` it has one, of two groups the second one's less the first one's: that of the labels -1 and 1.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> clusters = bt.networks.PyTorch().draw_deep(2, (5,), torch.Generator().manual_seed(0), outputs=4)
        >>> classes = bt.networks.best_of(clusters, [[0, 1], [2, 3]])  # two clusters make a class
        >>> X = torch.eye(2).double()
        >>> torch.allclose(classes.logits(X)[:, 0].double(), clusters.logits(X)[:, :2].amax(1).double())
        True
    """
    sizes = [len(group) for group in groups]
    require(
        len(groups) > 1 and min(sizes) > 0, f"the groups have {sizes} logits; two or more that are not empty are needed"
    )
    *layers, last = network.layers
    W, b = last.matrix, last.offset
    places = [list(group) for group in groups]
    while max(map(len, places)) > 1:
        into, out, places = _halved(places, W.shape[0], W.dtype)
        layers.append(Dense(into @ W, into @ b))
        W, b = out, torch.zeros(len(out), dtype=W.dtype)
    order = torch.tensor([group[0] for group in places])
    W, b = W[order], b[order]
    if one_logit:
        require(len(groups) == 2, f"there are {len(groups)} groups; one logit tells two apart")
        W, b = W[1:] - W[:1], b[1:] - b[:1]
    return Deep((*layers, Dense(W, b)))


def _halved(places: list[list[int]], count: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, list[list[int]]]:
    """From `count` values to neurons and on to the larger ones of pairs; where in these each group has them."""
    neurons, values, found = list[Tensor](), list[dict[int, float]](), list[list[int]]()
    unit = torch.eye(count, dtype=dtype)
    for group in places:
        found.append([])
        for first, second in zip(group[::2], [*group[1::2], None], strict=False):
            found[-1].append(len(values))
            values.append({len(neurons): 1.0, len(neurons) + 1: -1.0})
            last = first if second is None else second
            neurons += [unit[last], -unit[last]]
            if second is not None:
                values[-1][len(neurons)] = 1.0
                neurons.append(unit[first] - unit[second])
    out = torch.zeros(len(values), len(neurons), dtype=dtype)
    for row, weights in enumerate(values):
        for column, weight in weights.items():
            out[row, column] = weight
    return torch.stack(neurons), out, found
