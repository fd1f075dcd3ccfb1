"""Foolbox both ways: its attacks as parts of this folder, its models as networks. Needs the extra `peers`."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from brittle.attacks.base import Attack, AttackResult, AttackTarget, Attempt, Bounds
from brittle.attacks.flips import step_past
from brittle.common.errors import InputError, require, require_positive
from brittle.common.parts import AFTER_NAME, option
from brittle.networks import Network, as_network

HAIR = 1e-5  # Foolbox works in float32: its flips may stop this far, relatively, before the boundary in float64


@dataclass(frozen=True)
class Foolbox(Attack[AttackResult]):
    """An ℓ2 attack of Foolbox by its class name, with its options; `budget` for those that need one.

    Foolbox wants a box: without one it gets the data's range, widened by that range on both sides.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> found = bt.attacks.Foolbox("DDNAttack", {"steps": 20}).run(network, data, bounds=(-5.0, 5.0))
        >>> found.rate
        1.0
    """

    name: ClassVar = "foolbox"

    attack: str = field(default="DDNAttack", metadata=option("A class of foolbox.attacks.", AFTER_NAME))
    options: Mapping[str, Any] = field(
        default_factory=dict,
        metadata=option("How many.", "--steps", kind=int, read=lambda steps, given: {"steps": steps}),
    )
    budget: float | None = field(
        default=None, metadata=option("Radius of the ball, for attacks that need one.", check=require_positive)
    )

    def propose(self, target: AttackTarget) -> Attempt:
        foolbox = _foolbox()
        kind = getattr(foolbox.attacks, self.attack, None)
        require(inspect.isclass(kind), f"attack is {self.attack!r}; a class of foolbox.attacks is needed")
        labels = (target.y > 0).long() if target.data.binary else target.y
        model = as_foolbox(target.network, target.bounds or _roomy(target.X))
        with _seeded(target), torch.enable_grad():
            _, found, _ = self._build(kind)(model, target.X.float(), labels, epsilons=self.budget)
        delta = found.detach().double() - target.X
        one = torch.ones(len(delta), dtype=torch.float64)
        sizes = step_past(target.network, target.X, target.y, delta, one, one * (1 + HAIR))
        return Attempt(torch.where(sizes.isfinite(), sizes, 1.0)[:, None] * delta, delta)

    def _build(self, kind: Any) -> Any:
        try:
            return kind(**self.options)
        except (TypeError, ValueError, ImportError) as error:
            raise InputError(f"foolbox.attacks.{self.attack} with {dict(self.options)}: {error}") from None


def as_foolbox(network: Network | nn.Module, bounds: Bounds) -> Any:
    """A foolbox.PyTorchModel of the network in float32; a sign network gets the classes 0 (label -1) and 1.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> model = bt.attacks.as_foolbox(bt.networks.orthogonal_kkt(data.X, data.y).network, bounds=(-5.0, 5.0))
        >>> type(model).__name__, model(data.X.float()).argmax(1).tolist()
        ('PyTorchModel', [1, 1, 0, 0])
    """
    known = as_network(network)
    inner = known.module().float()
    module = _TwoLogits(inner) if known.classes == 1 else inner
    return _foolbox().PyTorchModel(module.eval(), bounds=bounds, device="cpu")


def from_foolbox(model: Any, shape: tuple[int, ...] = ()) -> Network:
    """The network inside a foolbox.PyTorchModel: `shape` is that of one input; its box is `model.bounds`.

    Without preprocessing the module itself is taken, so that layers stay exact.

    Examples:
        >>> import foolbox
        >>> import torch
        >>> import brittle as bt
        >>> module = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3)).eval()
        >>> network = bt.attacks.from_foolbox(foolbox.PyTorchModel(module, bounds=(0, 1)), shape=(2,))
        >>> network.dim, network.classes
        (2, 3)
    """
    require(isinstance(model, _foolbox().PyTorchModel), f"{type(model).__name__} is not a foolbox.PyTorchModel")
    module = inspect.getclosurevars(model._model).nonlocals.get("model")
    if isinstance(module, nn.Module) and all(each is None for each in model._preprocess_args):
        return as_network(module, shape)
    return as_network(_Preprocessed(model), shape)


class _TwoLogits(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, X: Tensor) -> Tensor:
        value = self.inner(X)
        return torch.stack([-value, value], 1)


class _Preprocessed(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("kind", torch.zeros(1))

    def forward(self, X: Tensor) -> Tensor:
        logits: Tensor = self.model(X)
        return logits


def _foolbox() -> Any:
    try:
        import foolbox
    except ImportError:
        raise InputError("this needs Foolbox: install it with pip install 'brittle[peers]'") from None
    return foolbox


def _roomy(X: Tensor) -> Bounds:
    low, high = float(X.min()), float(X.max())
    room = max(high - low, 1.0)
    return low - room, high + room


@contextmanager
def _seeded(target: AttackTarget) -> Iterator[None]:
    """Foolbox draws from the global generators: give them a seed for a while."""
    seed = int(torch.randint(2**31, (1,), generator=target.rng))
    before = np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(before)  # noqa: NPY002
