"""For the tests of a model: `assert_robust` fails where too few examples are proved to hold out to a radius."""

import torch
from torch import Tensor

from brittle.attacks.subject import Holder, Model, subject
from brittle.certificates import Certificate, Exact, RadiusBounds
from brittle.common.errors import require_between, require_positive
from brittle.data import Data
from brittle.data.arrays import Labels

__all__ = ["assert_robust"]
SECONDS = 10.0  # for the proof of one example
NAMED = 5  # examples that a message names


def assert_robust(
    model: Model,
    X: Holder,
    y: Labels | str | None,
    radius: float,
    share: float = 1.0,
    *,
    method: Certificate | None = None,
    rng: torch.Generator | None = None,
) -> RadiusBounds:
    """At least this share of the examples are right, and provably stay right under every change of length < radius.

    The model and the data are what `brittle.audit` takes, y None where X holds the labels. The `method` proves,
    `certificates.Exact` for up to ten seconds an example unless another one is given. An AssertionError says how many
    examples hold, how many are broken, with the flips that were found, and how many are open, which no proof and no
    flip decides. Returns what was found.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> robust = bt.networks.nearly_orthogonal(data.X, data.y).network
        >>> found = bt.testing.assert_robust(robust, data, None, radius=1.0)
        >>> bool((found.lower >= 1.0).all())
        True
    """
    require_positive("radius", radius)
    require_between("share", share, 0.0, 1.0)
    network, data = subject(model, X, y)
    found = (method or Exact(seconds=SECONDS)).bound(network, data, cap=radius, rng=rng)
    holds = found.lower >= radius
    if int(holds.sum()) < share * len(data):
        raise AssertionError(_message(found, holds, data, radius, share))
    return found


def _message(found: RadiusBounds, holds: Tensor, data: Data, radius: float, share: float) -> str:
    broken = ~holds & (found.upper < radius)
    unknown = ~holds & ~broken
    shown = [f"{row} at {float(found.upper[row]):.4g}" for row in broken.nonzero()[:NAMED, 0].tolist()]
    more = ", ..." if int(broken.sum()) > NAMED else ""
    flips = f" (examples {', '.join(shown)}{more}; 0 is one that is wrong as it is)" if shown else ""
    return (
        f"{int(holds.sum())} of {len(data)} examples provably hold out to the radius {radius:g}, and {share:.1%} were "
        f"asked for: {int(broken.sum())} are broken{flips}, {int(unknown.sum())} are open"
    )
