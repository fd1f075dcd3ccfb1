"""The network of the four papers: N(x) = Σ_j v_j φ(w_j·x + b_j) + c."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from brittle.common.errors import require
from brittle.networks.affine import Affine, Dense
from brittle.networks.layered import Layered


@dataclass(frozen=True, eq=False)
class TwoLayer(Layered):
    """W (width, dim), b (width,), v (width,), c (), all of one float type; `start` is where training began.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> absolute = bt.networks.TwoLayer(torch.tensor([[1.0], [-1.0]]), torch.zeros(2), torch.ones(2))
        >>> absolute.logits(torch.tensor([[-3.0], [2.0]])).tolist()
        [3.0, 2.0]
    """

    W: Tensor
    b: Tensor
    v: Tensor
    c: Tensor = field(default_factory=lambda: torch.tensor(0.0))
    start: "TwoLayer | None" = None

    def __post_init__(self) -> None:
        require(self.W.ndim == 2, f"W has shape {tuple(self.W.shape)}; (width, dim) is needed")
        require(self.W.is_floating_point(), f"W has type {self.W.dtype}; a float type is needed")
        width, dim = self.W.shape
        require(
            width > 0 and dim > 0, f"W has shape {tuple(self.W.shape)}; at least one neuron and one feature are needed"
        )
        object.__setattr__(self, "c", torch.as_tensor(self.c).to(self.W))
        for name, shape in (("b", (width,)), ("v", (width,)), ("c", ())):
            array = getattr(self, name)
            fits = tuple(array.shape) == shape
            require(fits, f"{name} has shape {tuple(array.shape)}; {shape} is needed for W of shape {(width, dim)}")
            require(array.dtype == self.W.dtype, f"{name} has type {array.dtype} and W has {self.W.dtype}")
        if self.start is not None:
            same = self.start.W.shape == self.W.shape
            require(same, f"W0 has shape {tuple(self.start.W.shape)} and W has {tuple(self.W.shape)}; they must agree")
            if self.start.dtype != self.dtype:
                object.__setattr__(self, "start", self.start.to(self.dtype))

    @property
    def width(self) -> int:
        return self.W.shape[0]

    @property
    def arrays(self) -> dict[str, Tensor]:
        return {"W": self.W, "b": self.b, "v": self.v, "c": self.c}

    @property
    def description(self) -> dict[str, Any]:
        words = {"kind": "two-layer ReLU network", "inputs": self.dim, "outputs": 1}
        return {**words, "width": self.width, "start": self.start is not None}

    @property
    def layers(self) -> tuple[Affine, ...]:
        return Dense(self.W, self.b), Dense(self.v[None], self.c[None])

    def with_layers(self, layers: Sequence[Affine], start: "TwoLayer | None" = None) -> "TwoLayer":
        first, second = layers
        return TwoLayer(first.matrix, first.offset, second.matrix[0], second.offset[0], start)

    @property
    def dim(self) -> int:
        return self.W.shape[1]

    @property
    def classes(self) -> int:
        return 1

    @property
    def dtype(self) -> torch.dtype:
        return self.W.dtype

    @property
    def squared_norm(self) -> Tensor:
        """‖θ‖² of all parameters."""
        return self.W.square().sum() + self.b.square().sum() + self.v.square().sum() + self.c.square()

    @property
    def homogeneous(self) -> bool:
        """Whether N is 2-homogeneous in its parameters: there is no output bias."""
        return bool(self.c == 0)

    def preactivations(self, X: Tensor) -> Tensor:
        """z_ij = w_j·x_i + b_j, (n, width)."""
        return torch.addmm(self.b, X.to(self.dtype), self.W.T)

    def _logits(self, X: Tensor) -> Tensor:
        return self.preactivations(X).relu_() @ self.v + self.c

    def _logit_gradients(self, X: Tensor, weights: Tensor) -> Tensor:
        active = self.preactivations(X).gt(0).to(self.dtype)
        return weights.to(self.dtype)[:, None] * (active.mul_(self.v) @ self.W)

    def neuron_gradients(self, X: Tensor, weights: Tensor) -> Tensor:
        active = self.preactivations(X).gt(0).to(self.dtype)
        return active.mul_(self.v).mul_(weights.to(self.dtype)[:, None])

    @property
    def _row_bytes(self) -> int:
        return self.width * self.W.element_size()

    def trained(self, W: Tensor, b: Tensor, v: Tensor, c: Tensor | None = None) -> "TwoLayer":
        """The network with new parameters that remembers where it started."""
        start = self.start if self.start is not None else replace(self, start=None)
        return TwoLayer(W, b, v, self.c if c is None else c, start)

    def scaled(self, factor: float) -> "TwoLayer":
        """All parameters times the factor; the output scales with its square."""
        return TwoLayer(self.W * factor, self.b * factor, self.v * factor, self.c * factor**2, self.start)

    def balanced(self) -> "TwoLayer":
        """The same function with the smallest norm: |v_j| = ‖(w_j, b_j)‖ for every neuron, as at every KKT point."""
        inner = (self.W.square().sum(1) + self.b.square()).sqrt()
        size = (inner * self.v.abs()).sqrt()
        factor = torch.where(size > 0, size / inner, 0.0)
        return TwoLayer(factor[:, None] * self.W, factor * self.b, size * self.v.sign(), self.c, self.start)

    def module(self) -> nn.Module:
        return TwoLayerModule(self)

    def loaded(self, module: nn.Module) -> "TwoLayer":
        assert isinstance(module, TwoLayerModule)
        values = (module.W, module.b, module.v, module.c)
        W, b, v, c = (value.detach().clone() for value in values)
        return self.trained(W, b, v, c)


class TwoLayerModule(nn.Module):
    """The trainable form of a two-layer network; biases that are all zero are taken as absent."""

    def __init__(self, network: TwoLayer) -> None:
        super().__init__()
        self.W = nn.Parameter(network.W.clone())
        self.b = nn.Parameter(network.b.clone(), requires_grad=bool((network.b != 0).any()))
        self.v = nn.Parameter(network.v.clone())
        self.c = nn.Parameter(network.c.clone(), requires_grad=not network.homogeneous)

    def forward(self, X: Tensor) -> Tensor:
        return torch.relu(torch.addmm(self.b, X, self.W.T)) @ self.v + self.c
