"""What foreign networks are recognised as, and what that is worth: attacks on layers against an attack on gradients.

    python -m benchmarks.networks [--examples 20] [--only WORDS]

Small networks are trained on scikit-learn's digits with fixed seeds, written in one of the formats and read back. The
difference is the largest between the outputs of the file and of the module, on all examples. Norms are means over the
examples that both attacks flipped; both are measured on the same network in float64.
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from brittle.attacks import Foolbox, MinimumNorm
from brittle.data import Data, Digits
from brittle.networks import Network, Recognition, read_network, recognise

EPOCHS, BATCH = 8, 64
Shape = tuple[int, ...]
Read = tuple[Network, Recognition | None]
PEER = Foolbox("DDNAttack", {"steps": 1000})


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, X: Tensor) -> Tensor:
        return torch.relu(self.second(torch.relu(self.norm(self.first(X)))) + X)


class Joined(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, X: Tensor) -> Tensor:
        return torch.cat([X, torch.relu(self.conv(X))], 1)


class Normalised(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, X: Tensor) -> Tensor:
        output: Tensor = self.inner((X - 0.3) / 0.4)
        return output


def _pictures(*layers: nn.Module, width: int) -> Callable[[int], nn.Module]:
    return lambda outputs: nn.Sequential(*layers, nn.Flatten(), nn.Linear(width, outputs))


def _rows(*layers: nn.Module, width: int = 32) -> Callable[[int], nn.Module]:
    return lambda outputs: nn.Sequential(nn.Linear(64, 32), *layers, nn.Linear(width, outputs))


def _conv(before: int, after: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(before, after, 3, stride=stride, padding=1)


def architectures() -> dict[str, Callable[[int], nn.Module]]:
    plain = (_conv(1, 4, 2), nn.ReLU(), _conv(4, 8, 2), nn.ReLU())
    return {
        "two layers": _rows(nn.ReLU()),
        "three layers": _rows(nn.ReLU(), nn.Linear(32, 24), nn.ReLU(), width=24),
        "batch norm, dropout": _rows(nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2)),
        "leaky ReLU": _rows(nn.LeakyReLU(0.1)),
        "PReLU": _rows(nn.PReLU(32)),
        "ReLU6": _rows(nn.ReLU6()),
        "convolutions": _pictures(*plain, width=32),
        "normalised input": lambda outputs: Normalised(_pictures(*plain, width=32)(outputs)),
        "convolution, batch norm": _pictures(_conv(1, 4, 2), nn.BatchNorm2d(4), nn.ReLU(), width=64),
        "max pooling": _pictures(_conv(1, 4), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), width=64),
        "average pooling": _pictures(_conv(1, 8), nn.ReLU(), nn.AvgPool2d(2), width=128),
        "global average": _pictures(
            _conv(1, 8), nn.ReLU(), _conv(8, 8, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), width=8
        ),
        "residual": _pictures(_conv(1, 4, 2), nn.ReLU(), Residual(4), width=64),
        "concatenation": _pictures(_conv(1, 3, 2), nn.ReLU(), Joined(3), width=96),
        "GELU": _rows(nn.GELU()),
    }


def _state(module: nn.Module, shape: Shape, folder: Path) -> Read:
    torch.save(module.state_dict(), folder / "state.pt")
    return read_network(folder / "state.pt", module, shape)


def _script(module: nn.Module, shape: Shape, folder: Path) -> Read:
    torch.jit.script(module).save(str(folder / "script.pt"))  # type: ignore[no-untyped-call]
    return read_network(folder / "script.pt", shape=shape)


def _exported(module: nn.Module, shape: Shape, folder: Path) -> Read:
    example = (torch.randn(2, *shape),)
    program = torch.export.export(module, example, dynamic_shapes=({0: torch.export.Dim("n")},))
    torch.export.save(program, folder / "net.pt2")
    return read_network(folder / "net.pt2")


def _onnx(module: nn.Module, shape: Shape, folder: Path) -> Read:
    axes = {"x": {0: "n"}}
    options = {"input_names": ["x"], "dynamic_axes": axes, "dynamo": False}
    torch.onnx.export(module, (torch.randn(2, *shape),), str(folder / "net.onnx"), **options)  # type: ignore[arg-type]
    return read_network(folder / "net.onnx")


FORMATS: dict[str, Callable[[nn.Module, Shape, Path], Read]] = {
    "module": lambda module, shape, folder: recognise(module, shape), "state dict": _state, "TorchScript": _script,
    ".pt2": _exported, "ONNX": _onnx,
}  # fmt: skip


@dataclass(frozen=True)
class Task:
    """Data and the number of logits."""

    name: str
    data: Data
    outputs: int


def tasks() -> list[Task]:
    classes, pair = Digits().load(), Digits(classes=(3, 8)).load()
    return [Task("10 digits", classes, 10), Task("3 and 8", pair, 1)]


def trained(build: Callable[[int], nn.Module], task: Task) -> nn.Module:
    torch.manual_seed(0)
    module = build(task.outputs)
    for each in module.modules():
        reset: Callable[[], None] = getattr(each, "reset_parameters", lambda: None)
        reset()
    X, y = task.data.X.float().reshape(-1, *_shape(module)), task.data.y
    optimiser = torch.optim.Adam(module.parameters(), lr=3e-3)
    for _ in range(EPOCHS * max(1, 1500 // len(X))):
        for rows in torch.split(torch.randperm(len(X)), BATCH):
            logits = module(X[rows])
            if task.outputs == 1:
                loss = nn.functional.softplus(-y[rows].float() * logits[:, 0]).mean()
            else:
                loss = nn.functional.cross_entropy(logits, y[rows])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return module.eval()


def _shape(module: nn.Module) -> Shape:
    """Pictures, unless the first layer is linear."""
    first = next(each for each in module.modules() if list(each.parameters(recurse=False)))
    return (64,) if isinstance(first, nn.Linear) else (1, 8, 8)


def row(name: str, form: str, module: nn.Module, task: Task, examples: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network, seen = FORMATS[form](module, _shape(module), Path(folder))
    X = task.data.X
    with torch.no_grad():
        outputs = module(X.float().reshape(-1, *_shape(module))).double()
    difference = float((network.logits(X).double().reshape(outputs.shape) - outputs).abs().max())
    right = (network.margins(X, task.data.y) > 0).nonzero()[:examples, 0]
    data = task.data.take(right)
    start = time.process_time()
    ours = MinimumNorm().run(network, data)
    middle = time.process_time()
    theirs = PEER.run(network, data)
    end = time.process_time()
    both = ours.success & theirs.success
    norms = [float(each.norms[both].mean()) for each in (ours, theirs)]
    kind = "black box" if seen is not None and seen.reason else f"{type(network).__name__}, {network.depth} layers"
    times = [f"{middle - start:.1f}", f"{end - middle:.1f}"]
    return [name, form, task.name, kind, f"{difference:.0e}", *(f"{norm:.4f}" for norm in norms), *times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=20)
    parser.add_argument("--only", default="", help="architectures with these words")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| network | source | task | recognised as | difference | minimum norm | DDN | seconds | of DDN |")
    print("|---|---|---|---|---|---|---|---|---|")
    for place, (name, build) in enumerate(architectures().items()):
        for turn, task in enumerate(tasks()):
            if arguments.only in name:
                form = list(FORMATS)[(2 * place + turn) % len(FORMATS)]
                cells = row(name, form, trained(build, task), task, arguments.examples)
                print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
