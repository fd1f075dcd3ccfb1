"""Any nn.Module as a network that is only asked for its outputs and gradients."""

import copy
import io
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, fx, nn

from brittle.common.errors import InputError, require, require_count
from brittle.common.limits import LARGEST_ROW
from brittle.common.time_limit import check_time
from brittle.networks.base import WORKING_BYTES, Network, join_parts
from brittle.networks.output_layers import Rows, are_probabilities, logits_of

ROWS_AT_ONCE = 1024
PROBES = 16
SCALES = (1.0, 0.1, 10.0, 100.0)
RESHAPES = ("Squeeze", "Unsqueeze", "View", "UnsafeView", "Reshape", "ToCopy", "Clone", "Alias", "Select", "Slice")


@dataclass(frozen=True, eq=False)
class Adapter(Network):
    """A copy `inner` of a module in evaluation mode, from (n, *shape) to (n,), (n, 1) or (n, C).

    Rows of X (n, dim) are reshaped to `shape` (by default the flat row itself) and converted to the module's float
    type. Each row's output must depend on that row alone. Where the outputs are `probabilities` on all random inputs,
    the logits are theirs: one probability changes the label at 1/2.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> module = torch.nn.Sequential(torch.nn.Linear(2, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
        >>> network = bt.networks.as_network(module)
        >>> type(network).__name__, network.dim, network.classes
        ('Adapter', 2, 1)
    """

    inner: nn.Module
    shape: tuple[int, ...] = ()
    outputs: int = field(init=False)  # 1, or C
    batch: int = field(default=ROWS_AT_ONCE, kw_only=True)  # rows of a pass, at most
    probabilities: bool = field(init=False)

    def __post_init__(self) -> None:
        module = evaluating(self.inner)
        shape = tuple(self.shape) or (features(module),)
        for size in shape:
            require_count("every length of the input shape", size)
        small = math.prod(shape) <= LARGEST_ROW
        require(small, f"the input shape {shape} has more than {LARGEST_ROW} numbers, which is too large")
        object.__setattr__(self, "inner", module)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "outputs", self._probe())
        object.__setattr__(self, "probabilities", self._gives_probabilities())

    def _probe(self) -> int:
        """The number of outputs, seen on two rows of zeros."""
        kind = type(self.inner).__name__
        zeros = torch.zeros(2, *self.shape, dtype=self.dtype, device=self._device)
        try:
            with torch.no_grad():
                output = self.inner(zeros)
        except Exception as error:  # a foreign module may raise anything
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise InputError(f"the module {kind} fails on an input of shape {tuple(zeros.shape)}: {reason}") from error
        tensor = isinstance(output, Tensor) and output.is_floating_point()
        require(tensor, f"the module {kind} returns a {type(output).__name__}; a float tensor of logits is needed")
        fits = output.shape[:1] == (2,) and output.ndim <= 2 and output.numel() > 0
        found = tuple(output.shape)
        require(fits, f"the module {kind} returns the shape {found} for 2 rows; (2,), (2, 1) or (2, C) is needed")
        return 1 if output.ndim == 1 else output.shape[1]

    def _gives_probabilities(self) -> bool:
        if isinstance(self.inner, _Pair):
            return False
        try:
            inputs = probes(self.dim, self.trials)
            with torch.enable_grad():
                last = _last_operation(self._raw(inputs[0][:1].clone().requires_grad_()))
            with torch.no_grad():
                rows = [torch.split(X, self._rows_at_once) for X in inputs]
                outputs = [join_parts((self._raw(each) for each in X), sum(map(len, X))) for X in rows]
        except Exception:  # a foreign module may raise anything, here on random inputs
            return False
        signed = last == "TanhBackward0"  # however one-sided
        return not signed and all(are_probabilities(each) for each in outputs)

    @property
    def trials(self) -> int:
        """On how many random inputs of every size it is tried."""
        return getattr(self.inner, "trials", 0) or PROBES

    @property
    def dim(self) -> int:
        return math.prod(self.shape)

    @property
    def classes(self) -> int:
        return self.outputs

    @property
    def degree(self) -> int:
        return sum(parameter.ndim > 1 for parameter in self.inner.parameters())

    @property
    def dtype(self) -> torch.dtype:
        floats = (each for each in self._tensors() if each.is_floating_point())
        return next((each.dtype for each in floats), torch.float64)

    @property
    def _device(self) -> torch.device:
        return next((each.device for each in self._tensors()), torch.device("cpu"))

    def _tensors(self) -> list[Tensor]:
        return [*self.inner.parameters(), *self.inner.buffers()]

    @property
    def _rows_at_once(self) -> int:
        """Fewer where the module says that a row takes much memory."""
        row_bytes = max(1, getattr(self.inner, "row_bytes", 1))
        return max(1, min(self.batch, WORKING_BYTES // row_bytes))

    @cached_property
    def products(self) -> int:
        return super().products

    def in_batches(self, rows: int) -> "Adapter":
        """The same network with so many rows in a pass, at most."""
        smaller = copy.copy(self)
        object.__setattr__(smaller, "batch", rows)
        return smaller

    def logits(self, X: Tensor) -> Tensor:
        if not len(X):  # many modules fail on no rows
            return torch.zeros(0 if self.classes == 1 else (0, self.classes), dtype=self.dtype, device=X.device)
        return join_parts((self._outputs(rows) for rows in torch.split(X, self._rows_at_once)), len(X))

    def logit_gradients(self, X: Tensor, weights: Tensor) -> Tensor:
        if not len(X):
            return torch.zeros_like(X, dtype=self.dtype)
        pairs = zip(*(torch.split(each, self._rows_at_once) for each in (X.detach(), weights)), strict=True)
        return join_parts((self._gradients(rows, each) for rows, each in pairs), len(X))

    def _raw(self, X: Tensor) -> Tensor:
        check_time()
        values: Tensor = self.inner(X.to(self.dtype).to(self._device).reshape(len(X), *self.shape))
        return values.to(X.device)

    def _outputs(self, X: Tensor) -> Tensor:
        values = self._raw(X)
        values = logits_of(values) if self.probabilities else values
        return values.reshape(len(X)) if self.classes == 1 else values

    def _gradients(self, X: Tensor, weights: Tensor) -> Tensor:
        with torch.enable_grad():
            rows = X.to(self.dtype).clone().requires_grad_()
            value = (self._outputs(rows) * weights.to(self.dtype)).sum()
            if not value.requires_grad:  # the outputs do not depend on the input
                return torch.zeros_like(rows)
            return torch.autograd.grad(value, rows)[0]

    def pair(self, first: int, second: int) -> "Network":
        if self.classes == 1:
            return super().pair(first, second)
        last = self.classes - 1
        fits = first != second and 0 <= first <= last and 0 <= second <= last
        require(fits, f"the pair is ({first}, {second}); two different classes from 0 to {last} are needed")
        return Adapter(_Pair(self.inner, first, second, self.probabilities), self.shape)

    def to(self, dtype: torch.dtype) -> "Adapter":
        if dtype == self.dtype:
            return self
        try:
            return Adapter(evaluating(self.inner).to(dtype), self.shape)
        except InputError:  # it has a type of its own somewhere inside
            return self

    def module(self) -> nn.Module:
        """A trainable copy that stays in evaluation mode: no dropout, and fixed statistics where it normalises."""
        inner = evaluating(self.inner)
        for parameter in inner.parameters():
            parameter.requires_grad_(True)
        return Rows(inner, self.shape, self.classes, self.probabilities)

    def loaded(self, module: nn.Module) -> "Adapter":
        assert isinstance(module, Rows)
        return Adapter(module.inner, self.shape)


class _Pair(nn.Module):
    def __init__(self, inner: nn.Module, first: int, second: int, probabilities: bool) -> None:
        super().__init__()
        self.inner, self.first, self.second, self.probabilities = inner, first, second, probabilities

    def forward(self, X: Tensor) -> Tensor:
        values: Tensor = self.inner(X)
        values = logits_of(values) if self.probabilities else values
        return values[:, self.first] - values[:, self.second]


def probes(dim: int, count: int = PROBES) -> list[Tensor]:
    """Random inputs, `count` of each of several sizes, in numbers that either float type holds."""
    rng = torch.Generator().manual_seed(0)
    drawn = (scale * torch.randn(count, dim, generator=rng, dtype=torch.float64) for scale in SCALES)
    return [probe.float().double() for probe in drawn]


def _last_operation(output: Tensor) -> str:
    """What made the output, by autograd's name, behind what only gives it another shape."""
    step: Any = output.grad_fn
    while step is not None and step.name().startswith(RESHAPES):
        step = step.next_functions[0][0]
    return "" if step is None else str(step.name())


def evaluating(module: nn.Module) -> nn.Module:
    """A copy that is not trained. Exported programs know no modes, and scripted ones no deep copies."""
    copied = _script_copy(module) if isinstance(module, torch.jit.ScriptModule) else copy.deepcopy(module)
    if not isinstance(copied, fx.GraphModule):
        copied.eval()
    for parameter in copied.parameters():
        parameter.requires_grad_(False)
    return copied


def _script_copy(module: torch.jit.ScriptModule) -> nn.Module:
    stream = io.BytesIO()
    load: Callable[[io.BytesIO], nn.Module] = torch.jit.load
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is old; the files are still there
        torch.jit.save(module, stream)
        stream.seek(0)
        return load(stream)


def features(module: nn.Module) -> int:
    """The inputs of a module that begins with a linear layer."""
    layers = [each for each in module.modules() if next(each.parameters(recurse=False), None) is not None]
    if layers and isinstance(layers[0], nn.Linear):
        return layers[0].in_features
    kind = type(module).__name__
    words = "pass shape=(features,) or (channels, h, w), --shape on the command line, or data of that shape"
    raise InputError(f"the input shape of the module {kind} is not clear; {words}")
