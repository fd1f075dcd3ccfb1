"""Networks as programs of torch.export, in their own float type and for any number of rows."""

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from brittle.common.errors import InputError
from brittle.common.files import replacing
from brittle.networks.affine import Convolution, Dense
from brittle.networks.base import Network
from brittle.networks.folded import Folded
from brittle.networks.layered import Layered, LayeredModule

ROWS = 3  # of the example; neither 0 nor 1, which torch.export takes for fixed numbers


def write_exported(network: Network, path: str | Path) -> None:
    """The program takes flat rows (n, dim) and gives logits (n,) or (n, C)."""
    program, content = exported(network, path), io.BytesIO()
    with _quietly():
        torch.export.save(program, content)
    with replacing(path) as stream:
        stream.write(content.getvalue())


def exported(network: Network, path: str | Path) -> Any:
    """The program, or the reason why there is none in one line."""
    rows = torch.zeros(ROWS, network.dim, dtype=network.dtype)
    try:
        with _quietly():
            module, any_number = _module(network).eval(), ({0: torch.export.Dim("n")},)
            return torch.export.export(module, (rows,), dynamic_shapes=any_number, strict=False)
    except Exception as error:  # whatever a stranger's module does there
        reason = (str(error).strip() or type(error).__name__).partition("\n")[0][:200]
        raise InputError(f"{path}: the network cannot be exported ({reason}); choose another suffix") from None


def _module(network: Network) -> nn.Module:
    """Its own module, or layers of which any map but a plain convolution is a matrix."""
    if isinstance(network, Folded) or not isinstance(network, Layered):
        return network.module()
    plain = [isinstance(layer, Convolution) and not layer.structured for layer in network.layers]
    pairs = zip(network.layers, plain, strict=True)
    return LayeredModule([layer if kept else Dense(layer.matrix, layer.offset) for layer, kept in pairs])


@contextmanager
def _quietly() -> Iterator[None]:
    """PyTorch logs and warns of what it tries."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
