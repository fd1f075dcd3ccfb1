"""A network on fixed data as a function of one flat vector θ: its margins, its log-loss and -∇ ln L."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from brittle.common.errors import require
from brittle.common.time_limit import check_time
from brittle.data.base import Data
from brittle.geometry import Basis
from brittle.networks.base import Network
from brittle.networks.deep import as_layered
from brittle.networks.layered import Layered
from brittle.networks.two_layer import TwoLayer
from brittle.training.losses import LossFunction

Kind = TypeVar("Kind", bound=Layered)


@dataclass(frozen=True, eq=False)
class DataSpan:
    """An orthonormal basis (d, r) of the span of the examples, and their coordinates (n, r) in it."""

    basis: Tensor
    coordinates: Tensor

    @classmethod
    def of(cls, X: Tensor) -> "DataSpan":
        span = Basis.spanning(X)
        return cls(span.vectors, span.coordinates(X))

    def inside(self, network: Kind) -> Kind:
        """The network as the span sees it: its first layer takes r coordinates."""
        return network.with_first_layer(network.weights[0] @ self.basis.to(network.dtype))

    def frozen_squared_norm(self, network: Layered) -> float:
        """‖W‖² of the first layer off the span."""
        W, Q = network.weights[0], self.basis.to(network.dtype)
        return float((W - (W @ Q) @ Q.T).square().sum())

    def joined(self, network: Kind, before: Kind, after: Kind) -> Kind:
        """The network whose in-span weights moved from `before` to `after`; the rest is not touched."""
        moved = (after.weights[0] - before.weights[0]) @ self.basis.to(network.dtype).T
        return network.moved(after.with_first_layer(network.weights[0] + moved, after.biases[0]).layers)


CHUNK_BYTES = 16 * 2**20  # hidden activations of one chunk: few enough for the cache, enough for fast products


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Margins q (n,), ln L (reduced and as a sum) and -∇L/L as a flat vector, at one θ."""

    margins: Tensor
    log_loss: float
    log_loss_sum: float
    direction: Tensor


# Margins that are judged, margins that the loss sees, and what adds Σ_i weights_i ∇q_i to an accumulator.
Forward = tuple[Tensor, Tensor, Callable[[Tensor, Tensor], None]]


class Objective(ABC):
    """Examples are taken in chunks and weighted by a running softmax, so memory does not grow with their number."""

    start: Tensor
    degree: int  # of homogeneity: margins are divided by ‖θ‖^degree
    examples: int
    frozen_squared_norm: float = 0.0  # of parameters that are not part of θ
    chunk: int

    @abstractmethod
    def network(self, theta: Tensor) -> Network: ...

    @abstractmethod
    def forward(self, theta: Tensor, rows: slice | Tensor) -> Forward:
        """The margins of at most `chunk` examples; what it gives back holds until the next call."""

    @abstractmethod
    def part(self, name: str) -> list[slice]:
        """The entries of θ in the first layer's 'weights', in the whole 'first' layer, or in 'all' layers."""

    def evaluate(self, theta: Tensor, loss: LossFunction, index: Tensor | None = None) -> Evaluation:
        """One gradient evaluation, on all examples or on those of a batch."""
        count = self.examples if index is None else len(index)
        direction = torch.zeros_like(theta)
        margins = torch.empty(count, dtype=theta.dtype)
        top, log_sum = -math.inf, -math.inf
        for first in range(0, count, self.chunk):
            check_time()
            rows = slice(first, min(first + self.chunk, count))
            q, soft, add = self.forward(theta, rows if index is None else index[rows])
            margins[rows] = q
            slopes, log_sum = loss.log_slopes(soft), _log_add(log_sum, loss.log_values(soft))
            highest = float(slopes.max())
            if highest > top:
                if top > -math.inf:
                    direction.mul_(math.exp(top - highest))
                top = highest
            add((slopes - top).exp_(), direction)
        factor = math.exp(top - log_sum) if top - log_sum < 700 else math.inf
        direction.mul_(factor)
        return Evaluation(margins, loss.reduced(log_sum, count), log_sum, direction)

    def margins(self, theta: Tensor) -> Tensor:
        rows = [slice(i, min(i + self.chunk, self.examples)) for i in range(0, self.examples, self.chunk)]
        with torch.no_grad():
            return torch.cat([self.forward(theta, part)[0] for part in rows])

    @property
    def operations(self) -> float:
        """Multiplications and additions of one gradient, about."""
        return 4.0 * self.examples * len(self.start)

    def squared_norm(self, theta: Tensor) -> float:
        return float(theta.square().sum()) + self.frozen_squared_norm


def _log_add(log_sum: float, log_values: Tensor) -> float:
    more = float(torch.logsumexp(log_values, 0))
    low, high = sorted((log_sum, more))
    return high + math.log1p(math.exp(low - high)) if low > -math.inf else high


class TwoLayerObjective(Objective):
    """Closed-form gradients. θ = (W, b, v, c) in this order; frozen parts get a zero direction.

    Biases that are all zero, and an output bias of zero, are taken as absent and stay zero unless `biases` says so.
    """

    degree = 2

    def __init__(
        self,
        network: TwoLayer,
        data: Data,
        layers: str = "all",
        biases: bool | None = None,
        span: DataSpan | None = None,
    ) -> None:
        self.template, self.span = network, span
        X = data.X if span is None else span.coordinates
        if span is not None:
            self.frozen_squared_norm = span.frozen_squared_norm(network)
            network = span.inside(network)
        self.inside, self.width, self.dim = network, network.width, network.dim
        self.X, self.y = X.to(network.dtype), data.y.to(network.dtype)
        self.examples = len(X)
        self.chunk = max(1, min(self.examples, max(256, CHUNK_BYTES // (self.width * self.X.element_size()))))
        self.start = torch.cat([network.W.reshape(-1), network.b, network.v, network.c.reshape(1)])
        self.trains_biases = bool((network.b != 0).any()) if biases is None else biases
        self.trains_output = layers == "all"
        self.trains_offset = self.trains_output and (not network.homogeneous or biases is True)
        self._hidden = torch.empty(self.chunk, self.width, dtype=network.dtype)

    def split(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Views of W, b, v and c."""
        cut = self.width * self.dim
        m = self.width
        return theta[:cut].view(m, self.dim), theta[cut : cut + m], theta[cut + m : cut + 2 * m], theta[-1]

    def network(self, theta: Tensor) -> TwoLayer:
        W, b, v, c = (part.clone() for part in self.split(theta))
        if self.span is None:
            return self.template.trained(W, b, v, c)
        return self.span.joined(self.template, self.inside, TwoLayer(W, b, v, c))

    def part(self, name: str) -> list[slice]:
        cut = self.width * self.dim
        return [slice(0, {"weights": cut, "first": cut + self.width, "all": None}[name])]

    def forward(self, theta: Tensor, rows: slice | Tensor) -> Forward:
        W, b, v, c = self.split(theta)
        X, y = self.X[rows], self.y[rows]
        hidden = torch.addmm(b, X, W.T, out=self._hidden[: len(y)]).relu_()
        q = torch.mv(hidden, v).add_(c).mul_(y)

        def add(weights: Tensor, direction: Tensor) -> None:
            s = weights * y
            dW, db, dv, dc = self.split(direction)
            if self.trains_output:
                dv.addmv_(hidden.T, s)
            if self.trains_offset:
                dc.add_(s.sum())
            active = hidden.sign_().mul_(v)
            if self.trains_biases:
                db.addmv_(active.T, s)
            dW.addmm_(active.T, X * s[:, None])

        return q, q, add


class ModuleObjective(Objective):
    """Any network, by autograd; with C logits the loss sees the soft margin l_y - ln Σ_{k≠y} e^{l_k}.

    Biases are trained unless `biases` is False; those of a two-layer network that are all zero are taken as absent
    here too, unless it is True.
    """

    def __init__(
        self,
        network: Network,
        data: Data,
        layers: str = "all",
        biases: bool | None = None,
        span: DataSpan | None = None,
    ) -> None:
        self.template, self.span = network, span
        if span is not None:
            layered = as_layered(network, "training in the span of the data")
            self.frozen_squared_norm = span.frozen_squared_norm(layered)
            network = span.inside(layered)
        self.inside, self.module = network, network.module()
        self._choose_biases(biases)
        self.X = (data.X if span is None else span.coordinates).to(network.dtype)
        self.y = data.y.to(network.dtype) if network.classes == 1 else data.y
        self.examples, self.chunk = len(data), min(len(data), 4096)
        named = [(name, p) for name, p in self.module.named_parameters() if p.requires_grad]
        require(len(named) > 0, "the module has no parameters: there is nothing to train")
        self.shapes = {name: p.shape for name, p in named}
        self.sizes = [p.numel() for _, p in named]
        self.start = torch.cat([p.detach().reshape(-1) for _, p in named])
        self.degree = network.degree
        self.first = self._first_layer([p for _, p in named])
        self.frozen = slice(self.first[1], None) if layers == "first" else slice(0, 0)

    def _choose_biases(self, biases: bool | None) -> None:
        """Vectors and numbers are the biases; those that are not trained count in ‖θ‖ all the same."""
        for parameter in (p for p in self.module.parameters() if p.ndim < 2 and biases is not None):
            parameter.requires_grad_(biases is True)
        frozen = (p.detach() for p in self.module.parameters() if not p.requires_grad)
        self.frozen_squared_norm += float(sum(p.square().sum() for p in frozen))

    def _first_layer(self, parameters: list[nn.Parameter]) -> tuple[int, int]:
        """Ends of the first matrix and of the vector that follows it."""
        matrix = next((i for i, p in enumerate(parameters) if p.ndim > 1), 0)
        end = sum(self.sizes[: matrix + 1])
        bias = matrix + 1 < len(parameters) and parameters[matrix + 1].ndim == 1
        return end, end + (self.sizes[matrix + 1] if bias else 0)

    def part(self, name: str) -> list[slice]:
        return [slice(0, {"weights": self.first[0], "first": self.first[1], "all": None}[name])]

    def parameters(self, theta: Tensor) -> dict[str, Tensor]:
        parts = torch.split(theta, self.sizes)
        return {name: part.view(shape) for part, (name, shape) in zip(parts, self.shapes.items(), strict=True)}

    def network(self, theta: Tensor) -> Network:
        with torch.no_grad():
            values = self.parameters(theta)
            for name, parameter in self.module.named_parameters():
                if name in values:
                    parameter.copy_(values[name])
        trained = self.inside.loaded(self.module)
        return trained if self.span is None else self._joined(self.span, trained)

    def _joined(self, span: DataSpan, trained: Network) -> Network:
        whole, before, after = (as_layered(each, "") for each in (self.template, self.inside, trained))
        return span.joined(whole, before, after)

    def forward(self, theta: Tensor, rows: slice | Tensor) -> Forward:
        check_time()
        theta = theta.detach().requires_grad_(torch.is_grad_enabled())
        logits = functional_call(self.module, self.parameters(theta), (self.X[rows],))
        q, soft = margins_of(logits, self.y[rows])

        def add(weights: Tensor, direction: Tensor) -> None:
            (gradient,) = torch.autograd.grad(soft, theta, grad_outputs=weights)
            gradient[self.frozen] = 0
            direction.add_(gradient)

        return q.detach(), soft.detach(), add


def margins_of(logits: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The margins that are judged and the smooth ones whose logistic loss is the cross-entropy; equal for one logit."""
    if logits.ndim == 1 or logits.shape[1] == 1:
        q = y * logits.reshape(len(y))
        return q, q
    own = logits.gather(1, y[:, None])[:, 0]
    others = logits.scatter(1, y[:, None], -torch.inf)
    return own - others.max(1).values, own - torch.logsumexp(others, 1)


def objective_for(
    network: Network, data: Data, layers: str = "all", biases: bool | None = None, span: DataSpan | None = None
) -> Objective:
    if isinstance(network, TwoLayer):
        return TwoLayerObjective(network, data, layers, biases, span)
    return ModuleObjective(network, data, layers, biases, span)
