"""The same outputs on the data from fewer neurons."""

import torch

from brittle.common.kinds import kinds_checked
from brittle.networks import TwoLayer
from brittle.settings import Data


@kinds_checked
def compress(network: TwoLayer, data: Data) -> TwoLayer:
    """Merge neurons of one sign that are active on the same examples; drop those that are active on none.

    With u_j = |v_j| (w_j, b_j), neurons of one sign and one pattern add up: φ(Σ u_j·x̃) = Σ φ(u_j·x̃) on the data, and
    the balanced weights of the sum have squared norm 2‖Σ u_j‖ ≤ Σ_j v_j² + ‖(w_j, b_j)‖². Off the data the
    network changes.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> start = bt.networks.PyTorch().draw(6, width=500, rng=torch.Generator().manual_seed(0))
        >>> small = bt.margin.compress(start, data)
        >>> small.width < 500, torch.allclose(small.logits(data.X), start.logits(data.X))
        (True, True)
    """
    network.check(data.X)
    Z = network.preactivations(data.X)
    active = Z.T > 0
    used = torch.nonzero(active.any(1) & (network.v != 0))[:, 0]
    if not len(used):
        return TwoLayer(network.W[:1] * 0, network.b[:1] * 0, network.v[:1] * 0, network.c)
    rows = torch.cat([network.v[used, None] > 0, active[used]], 1)
    _, group = torch.unique(rows, dim=0, return_inverse=True)
    count = int(group.max()) + 1
    U = network.v[used].abs()[:, None] * torch.cat([network.W, network.b[:, None]], 1)[used]
    U = torch.zeros(count, U.shape[1], dtype=U.dtype).index_add_(0, group, U)
    signs = torch.zeros(count, dtype=U.dtype).index_copy_(0, group, network.v[used].sign())
    root = U.norm(dim=1).sqrt()
    W = U / root[:, None]
    return TwoLayer(W[:, :-1].contiguous(), W[:, -1].contiguous(), signs * root, network.c)
