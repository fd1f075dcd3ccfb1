"""One good file of every format that brittle reads, and how brittle opens it: what `malformed` damages."""

import gzip
import io
import pickle
import shutil
import struct
import tarfile
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pandas
import torch
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from torch import nn

from brittle.data import Cifar10, Data, Mnist, load_data, save_data
from brittle.networks import Deep, Network, TwoLayer, load_network, recognise, save_network

PIXELS = 3072
BATCHES = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]


@dataclass(frozen=True)
class Format:
    """`name` of the file inside its folder, the other files that lie there, and what opens it."""

    name: str
    content: bytes
    open: Callable[[Path], Network | Data]
    beside: dict[str, bytes]


def _network(path: Path) -> Network:
    network = load_network(path)
    network.logits(torch.zeros(2, network.dim, dtype=network.dtype))
    return network


def _state(path: Path) -> Network:
    return load_network(path, activation="relu")


def _picture_network(path: Path) -> Network:
    return load_network(path, shape=(1, 4, 4))


def _mnist(path: Path) -> Data:
    return Mnist(folder=path.parent, verify=False).load()


def _cifar(path: Path) -> Data:
    return Cifar10(folder=path.parent, verify=False).load()


def _picture_folder(path: Path) -> Data:
    """The picture as the only one of each of two classes."""
    for name in ("elm", "oak"):
        (path.parent / "pictures" / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, path.parent / "pictures" / name / path.name)
    return load_data(path.parent / "pictures")


def _noise() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 255, (5, 6, 3), dtype=np.uint8))


def _written(name: str, write: Callable[[Path], object]) -> bytes:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        write(Path(folder) / name)
        return (Path(folder) / name).read_bytes()


def _compressed(path: Path) -> None:
    np.savez_compressed(path, W=np.eye(6), b=np.ones(6), v=np.arange(6.0))


def _traced(module: nn.Module, *lengths: int) -> Callable[[Path], object]:
    trace: Callable[..., torch.jit.ScriptModule] = torch.jit.trace
    return lambda path: torch.jit.save(trace(module, torch.randn(2, *lengths)), path)


def _exported(module: nn.Module, *shape: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        example = (torch.randn(2, *shape),)
        torch.export.save(torch.export.export(module, example, dynamic_shapes=({0: torch.export.Dim("n")},)), path)

    return write


def _onnx(path: Path) -> None:
    arrays = {"K": torch.randn(2, 1, 3, 3), "k": torch.randn(2), "W": torch.randn(8, 3), "w": torch.randn(3)}
    arrays |= {"flat": torch.tensor([0, -1]), "mean": torch.tensor(0.5)}
    nodes = [
        helper.make_node("Sub", ["x", "mean"], ["s"]),
        helper.make_node("Conv", ["s", "K", "k"], ["a"], pads=[0, 0, 0, 0], strides=[1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Reshape", ["b", "flat"], ["c"]),
        helper.make_node("MatMul", ["c", "W"], ["d"]),
        helper.make_node("Add", ["d", "w"], ["y"]),
    ]
    inputs, outputs = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, *lengths])]
        for name, lengths in (("x", [1, 4, 4]), ("y", [3]))
    )
    stored = [numpy_helper.from_array(value.numpy(), name) for name, value in arrays.items()]
    onnx.save(helper.make_model(helper.make_graph(nodes, "graph", inputs, outputs, stored)), str(path))


def _idx(array: np.ndarray) -> bytes:
    return struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def _pictures() -> dict[str, bytes]:
    parts = {"train": 6, "t10k": 3}
    images = {f"{part}-images-idx3-ubyte": _idx(np.ones((count, 2, 3))) for part, count in parts.items()}
    return images | {f"{part}-labels-idx1-ubyte": _idx(np.arange(count)) for part, count in parts.items()}


def _batch() -> tuple[bytes, bytes]:
    """The same two pictures as a binary and as a Python batch."""
    pixels = np.ones((2, PIXELS), np.uint8)
    binary = b"".join(bytes([label]) + row.tobytes() for label, row in enumerate(pixels))
    return binary, pickle.dumps({b"data": pixels, b"labels": [0, 1]}, protocol=2)


def _tar(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def good_files() -> dict[str, Format]:
    """Small files with the parts that real ones have."""
    torch.manual_seed(0)
    rows = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
    pictures = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 3)
    ).eval()
    two = TwoLayer(torch.randn(4, 3), torch.randn(4), torch.randn(4), torch.tensor(0.5))
    deep = Deep.dense((torch.randn(4, 3), torch.randn(2, 4)), (torch.randn(4), torch.randn(2)))
    data = Data(torch.randn(6, 3), torch.tensor([1.0, -1.0] * 3))
    table = "a,b,kind\n" + "".join(f"{n},{n / 7},{'elm' if n % 2 else 'oak'}\n" for n in range(8))
    networks: dict[str, tuple[str, Callable[[Path], object], Callable[[Path], Network | Data]]] = {
        "npz network": ("a.npz", lambda path: save_network(two, path), _network),
        "npz network, deflated": ("a.npz", _compressed, _network),
        "pt network": ("a.pt", lambda path: save_network(deep, path), _network),
        "pt state": ("a.pt", lambda path: torch.save({"state_dict": rows.state_dict()}, path), _state),
        "safetensors": ("a.safetensors", lambda path: save_network(deep, path), _network),
        "onnx": ("a.onnx", _onnx, _network),
        "folded": (
            "a.safetensors",
            lambda path: save_network(recognise(pictures, (1, 4, 4))[0], path),
            _network,
        ),
        "scripted rows": ("a.pt", lambda path: torch.jit.save(torch.jit.script(rows), path), _network),
        "scripted pictures": ("a.pt", lambda path: torch.jit.save(torch.jit.script(pictures), path), _picture_network),
        "traced pictures": (
            "a.pt",
            _traced(pictures, 1, 4, 4),
            _picture_network,
        ),
        "exported rows": ("a.pt2", _exported(rows, 3), _network),
        "exported pictures": ("a.pt2", _exported(pictures, 1, 4, 4), _network),
        "npz data": ("a.npz", lambda path: save_data(data, path), load_data),
        "pt data": ("a.pt", lambda path: torch.save({"X": data.X, "y": data.y}, path), load_data),
        "csv": ("a.csv", lambda path: path.write_text(table), load_data),
        "parquet": ("a.parquet", lambda path: pandas.read_csv(io.StringIO(table)).to_parquet(path), load_data),
        "png": ("a.png", lambda path: _noise().save(path), _picture_folder),
        "jpeg": ("a.jpg", lambda path: _noise().save(path), _picture_folder),
    }
    files = {key: Format(name, _written(name, write), opened, {}) for key, (name, write, opened) in networks.items()}
    return files | _picture_files()


def _picture_files() -> dict[str, Format]:
    idx, (binary, python) = _pictures(), _batch()
    packed = {f"{name}.gz": gzip.compress(content) for name, content in idx.items()}
    files = {}
    for key, name, held in (
        ("idx pictures", "train-images-idx3-ubyte", idx),
        ("idx labels", "train-labels-idx1-ubyte", idx),
        ("idx pictures, packed", "train-images-idx3-ubyte.gz", packed),
    ):
        files[key] = Format(name, held[name], _mnist, held)
    for key, name, content in (("cifar binary", ".bin", binary), ("cifar python", "", python)):
        files[key] = Format(f"data_batch_3{name}", content, _cifar, {f"{batch}{name}": content for batch in BATCHES})
    archive = _tar({f"{batch}.bin": binary for batch in BATCHES})
    files["cifar archive"] = Format("cifar-10-binary.tar.gz", archive, _cifar, {})
    return files
