"""What every network can be asked, whatever it is made of."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Self

import torch
from torch import Tensor, nn

from brittle.common.errors import InputError, require
from brittle.common.time_limit import check_time, limit_time

WORKING_BYTES = 16 * 2**20  # larger pieces of memory go back to the kernel after every use, and it clears them anew
UNSEEN_TERMS = 16  # how many times the logit the terms may be from which it was added up


class Network(ABC):
    """A classifier of rows of X (n, dim): by the sign of one logit (`classes` is 1), or by the largest of C logits.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> module = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
        >>> network = bt.networks.as_network(module)
        >>> X = torch.eye(2)
        >>> network.logits(X).shape, network.predict(X).shape, network.margins(X, torch.tensor([0, 2])).shape
        (torch.Size([2, 3]), torch.Size([2]), torch.Size([2]))
    """

    @property
    @abstractmethod
    def dim(self) -> int: ...

    @property
    @abstractmethod
    def classes(self) -> int:
        """1 for a sign network, otherwise the number of logits."""

    @property
    @abstractmethod
    def dtype(self) -> torch.dtype: ...

    @abstractmethod
    def logits(self, X: Tensor) -> Tensor:
        """(n,) for a sign network, otherwise (n, C). Autograd passes through."""

    @abstractmethod
    def logit_gradients(self, X: Tensor, weights: Tensor) -> Tensor:
        """Gradient in x of Σ_k weights_k logit_k at every row: (n, dim); weights (n,) or (n, C)."""

    @property
    def depth(self) -> int | None:
        """The number of layers, where the network is made of affine maps and ReLUs."""
        return None

    @property
    def widths(self) -> tuple[int, ...]:
        """Of the hidden layers; none where they are unknown."""
        return ()

    @property
    def products(self) -> int:
        """How many products of two numbers a pass of one example adds up, as PyTorch counts them."""
        from torch.utils.flop_counter import FlopCounterMode  # loads PyTorch's compiler, which takes seconds

        with FlopCounterMode(display=False) as counter, torch.no_grad(), limit_time(None):
            self.logits(torch.zeros(1, self.dim, dtype=self.dtype))
        return int(counter.get_total_flops()) // 2

    @property
    def degree(self) -> int:
        """The power of ‖θ‖ that margins are measured by: of homogeneity, where biases beyond the first layer are 0."""
        return 0

    @property
    def arrays(self) -> dict[str, Tensor]:
        """Every array of numbers that makes the network, by its name."""
        state = self.module().state_dict()  # that of a quantised module also holds types and tuples
        return {name: value for name, value in state.items() if isinstance(value, Tensor)}

    @property
    def description(self) -> dict[str, Any]:
        """What kind of network it is, in words and numbers."""
        return {"kind": "module", "inputs": self.dim, "outputs": self.classes}

    @property
    def free_first_layer(self) -> bool:
        """Whether x enters through a matrix all of whose entries are parameters."""
        return False

    def to(self, dtype: torch.dtype) -> Self:
        """The same function with its numbers in this type; what cannot be converted stays as it is."""
        return self

    @abstractmethod
    def module(self) -> nn.Module:
        """A trainable copy: a module from (n, dim) to (n,) or (n, C)."""

    @abstractmethod
    def loaded(self, module: nn.Module) -> Self:
        """This kind of network with the parameters of a module that `module()` made."""

    def pair(self, first: int, second: int) -> "Network":
        """The sign network logit_first - logit_second: class `first` against class `second`."""
        raise InputError("the network has one output; a pair of classes needs a network with several")

    def margins(self, X: Tensor, y: Tensor) -> Tensor:
        """y N(x), or the logit of the label minus the largest other one; positive where the label is right."""
        self.check(X, y)
        check_time()
        logits = self.logits(X)
        if self.classes == 1:
            return y.to(logits) * logits
        rows = torch.arange(len(y))
        return logits[rows, y] - logits[rows, self._rivals(logits, y)]

    def margin_gradients(self, X: Tensor, y: Tensor) -> Tensor:
        """Gradient of the margin in x at every row: (n, dim)."""
        self.check(X, y)
        check_time()
        return self.logit_gradients(X, self.margin_weights(X, y))

    def margin_weights(self, X: Tensor, y: Tensor) -> Tensor:
        """The weights of the logits in the margin of every row: (n,) for a sign network, otherwise (n, C)."""
        if self.classes == 1:
            return y.to(self.dtype)
        rows, logits = torch.arange(len(y)), self.logits(X)
        weights = torch.zeros_like(logits)
        weights[rows, y] = 1
        weights[rows, self._rivals(logits, y)] = -1
        return weights

    def predict(self, X: Tensor) -> Tensor:
        """The label of every row: ±1 (0 where the output is exactly 0), or a class number."""
        self.check(X)
        logits = self.logits(X)
        return logits.sign() if self.classes == 1 else logits.argmax(1)

    def rounding(self, X: Tensor) -> Tensor:
        """One unit of rounding in the logits of every row, (n,): a sum's terms count, not what is left of them."""
        return torch.finfo(self.dtype).eps * self._magnitudes(X).double()

    def _magnitudes(self, X: Tensor) -> Tensor:
        """The sum of the absolute values of a logit's terms; what is known from outside is only the largest |logit|."""
        return UNSEEN_TERMS * self.logits(X).abs().reshape(len(X), self.classes).amax(1)

    def accuracy(self, X: Tensor, y: Tensor) -> float:
        return float((self.margins(X, y) > 0).double().mean())

    def check(self, X: Tensor, y: Tensor | None = None) -> None:
        """Raise unless the network can judge these examples."""
        fits = X.ndim == 2 and X.shape[1] == self.dim
        require(fits, f"the examples have shape {tuple(X.shape)} and the network takes {self.dim} features")
        if y is None:
            return
        require(y.shape == X.shape[:1], f"the labels have shape {tuple(y.shape)} for {len(X)} examples")
        if self.classes == 1:
            signs = y.is_floating_point() and bool((y.abs() == 1).all())
            if not signs:
                words = "the network has one output and needs the labels -1 and 1, not class numbers"
                raise InputError(f"{words}; here they are {_span(y)}")
        else:
            last = self.classes - 1
            if y.dtype != torch.int64 or bool(((y < 0) | (y > last)).any()):
                words = f"the network has {self.classes} outputs and needs class numbers from 0 to {last}"
                from_one = int(y.min()) == 1 and int(y.max()) == self.classes
                raise InputError(f"{words}; here they are {_span(y)}{': subtract 1' if from_one else ''}")

    @staticmethod
    def _rivals(logits: Tensor, y: Tensor) -> Tensor:
        """The most likely wrong class of every row."""
        return logits.detach().scatter(1, y[:, None], -torch.inf).argmax(1)


def in_chunks(compute: Callable[..., Tensor], row_bytes: int, *inputs: Tensor) -> Tensor:
    """compute(*inputs) over runs of rows, so that `row_bytes` of work per row stay within WORKING_BYTES."""
    rows = max(1, WORKING_BYTES // max(1, row_bytes))
    if len(inputs[0]) <= rows:
        return compute(*inputs)
    chunks = zip(*(torch.split(each, rows) for each in inputs), strict=True)
    return join_parts((compute(*chunk) for chunk in chunks), len(inputs[0]))


def join_parts(parts: Iterable[Tensor], rows: int) -> Tensor:
    """The parts below each other, `rows` in all.

    Each is copied to its place before the next is computed: one that is kept lies behind the working memory of its
    computation, so that the allocator could not use that again, and memory would grow with the number of parts.
    """
    rest = iter(parts)
    part = next(rest)
    if part.requires_grad:
        return torch.cat([part, *rest])
    whole, filled = part.new_empty((rows, *part.shape[1:])), len(part)
    whole[:filled] = part
    for part in rest:
        whole[filled : filled + len(part)] = part
        filled += len(part)
    return whole


def _span(y: Tensor) -> str:
    return f"{float(y.min()):g} to {float(y.max()):g}" if len(y) else f"of type {y.dtype}"
