"""A PyTorch module as a reference: run as it is, run with rounding errors at random, and looked into."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

See = Callable[[Any, Tensor], None]
ERRING = (torch.float32, torch.float64)  # a cast to a shorter type is no rounding that a reading may leave out


class Eager:
    """A module in evaluation mode that takes inputs (n, *shape) of the type `dtype`."""

    def __init__(self, module: nn.Module, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        self.module, self.shape, self.dtype = module, shape, dtype

    @property
    def eps(self) -> float:
        return torch.finfo(self.dtype).eps

    def outputs(self, X: Tensor) -> Tensor:
        return self._run(X.to(self.dtype, copy=True))

    def disturbed(self, X: Tensor, rng: np.random.Generator) -> Tensor:
        def err(function: Any, values: Tensor) -> None:
            signs = torch.from_numpy(np.asarray(rng.integers(0, 2, size=tuple(values.shape)) * 2 - 1))
            values.mul_(1 + 2 * torch.finfo(values.dtype).eps * signs.to(values.dtype))

        rows = X.to(self.dtype, copy=True)
        err(None, rows)
        with _Watched(err):
            return self._run(rows)

    def hidden(self, X: Tensor) -> Tensor:
        found = [X[:, :0]]

        def see(function: Any, values: Tensor) -> None:
            if values.ndim > 1 and len(values) == len(X):
                found.append(values.detach().double().reshape(len(X), -1))

        try:
            with _Watched(see):
                self._run(X.to(self.dtype, copy=True))
        except Exception:  # it does not take so many rows
            return X[:, :0]
        return torch.cat(found, 1)

    def _run(self, X: Tensor) -> Tensor:
        with torch.no_grad():
            output: Tensor = self.module(X.reshape(len(X), *self.shape))
        if output.ndim > 2 or len(output) != len(X):
            raise ValueError(f"outputs of the shape {tuple(output.shape)} for {len(X)} rows")
        return output.double().reshape(len(X), -1)


class _Watched(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Shows every new array of floats to `see`, which may change its numbers; views of older ones are not new."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __init__(self, see: See) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.see = see

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        in_place = func._schema.name.endswith("_")
        held = {_place(each) for each in args if isinstance(each, Tensor)} if not in_place else set()
        for each in result if isinstance(result, tuple | list) else [result]:
            if isinstance(each, Tensor) and each.dtype in ERRING and _place(each) not in held and each.numel():
                self.see(func, each)
        return result


def _place(values: Tensor) -> int:
    return values.untyped_storage().data_ptr()
