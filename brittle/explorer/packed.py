"""Arrays on their way to the browser: exact where they are read, four bytes a number where they are only drawn."""

import base64
from typing import Any

from torch import Tensor

from brittle.networks import TwoLayer


def drawn(values: Tensor) -> dict[str, Any]:
    """Single precision, for pictures."""
    array = values.detach().float().contiguous().numpy().astype("<f4", copy=False)
    return {"shape": list(array.shape), "float32": base64.b64encode(array.tobytes()).decode()}


def weights(network: TwoLayer) -> dict[str, Any]:
    """A two-layer network, every digit of it."""
    return {
        "W": network.W.tolist(),
        "b": network.b.tolist(),
        "v": network.v.tolist(),
        "c": float(network.c),
    }
