"""Files that would swallow memory or hang: refused, or read in time, by a process with little of both."""

import gzip
import io
import json
import struct
import subprocess
import sys
import tarfile
import zipfile
from itertools import pairwise

import numpy as np
import onnx
import pytest
import safetensors.torch
import torch
from onnx import TensorProto, helper, numpy_helper

from brittle import InputError
from brittle.common import limits
from brittle.common.limits import ALWAYS_ALLOWED, LARGEST_BYTES, LARGEST_RATIO, ByteLimit
from brittle.data import load_data

SECONDS = 240
GROWTH = 2**30
OPEN = """
import resource, sys
from pathlib import Path
import brittle, onnx, torch
from brittle.networks import load_network
from brittle.data import Cifar10, Mnist, load_data
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for line in sys.stdin:
    way, path = line.strip().split(" ", 1)
    ways = {"network": load_network, "data": load_data}
    ways |= {kind.__name__: lambda path, kind=kind: kind(folder=path, verify=False).load() for kind in (Mnist, Cifar10)}
    try:
        ways[way](path)
        print("read")
    except brittle.InputError as error:
        print(error)
"""


def zeros(stream, count):
    for _ in range(count // 2**20):
        stream.write(bytes(2**20))


def stride_0(folder):
    torch.save({"X": torch.zeros(1).expand(2, 2**30), "y": torch.tensor([1.0, -1.0])}, folder / "a.pt")
    return "data", folder / "a.pt", "array 'X' declares the shape"


def many_views(folder):
    row = torch.zeros(2**18)
    torch.save({f"{n}.weight": row.expand(16, 2**18) for n in range(0, 2000, 2)}, folder / "a.pt")
    return "network", folder / "a.pt", "would unpack to too much"


def deflated_npz(folder):
    head = io.BytesIO()
    shape = (2**13, 2**12)
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(folder / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("X.npy", "w") as stream:
        stream.write(head.getvalue())
        zeros(stream, 8 * shape[0] * shape[1])
    return "data", folder / "a.npz", "array 'X' would unpack to too much"


def many_entries(folder):
    with zipfile.ZipFile(folder / "a.npz", "w") as archive:
        for number in range(60_000):
            archive.writestr(f"{number:060d}", b"")
    return "data", folder / "a.npz", "is not a complete .npz file"


def gzip_bomb(folder):
    with gzip.open(folder / "train-images-idx3-ubyte.gz", "wb", compresslevel=1) as stream:
        stream.write(struct.pack(">4I", 2051, 256, 1024, 1024))
        zeros(stream, 2**28)
    return "Mnist", folder, "would unpack to too much"


def tar_bomb(folder):
    with tarfile.open(folder / "cifar-10-binary.tar.gz", "w:gz", compresslevel=1) as archive:
        info = tarfile.TarInfo("junk")
        info.size = 2**29
        with open("/dev/zero", "rb") as nothing:
            archive.addfile(info, nothing)
    return "Cifar10", folder, "would unpack to too much"


def many_members(folder):
    with tarfile.open(folder / "cifar-10-binary.tar.gz", "w:gz") as archive:
        for number in range(5000):
            archive.addfile(tarfile.TarInfo(str(number)))
    return "Cifar10", folder, "more than 100 files"


def nested_key(folder):
    """60 tuples, each of the one before it twice, as a key: a hash of it takes 2^60 steps."""
    content = b"\x80\x02}(K\x01" + b"2\x86" * 60 + b"K\x01u."
    for number in range(1, 6):
        (folder / f"data_batch_{number}").write_bytes(content)
    (folder / "test_batch").write_bytes(content)
    return "Cifar10", folder, "a key that is no text and no number"


def nested_key_in_pt(folder):
    with zipfile.ZipFile(folder / "a.pt", "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02}(K\x01" + b"2\x86" * 60 + b"K\x01u.")
    return "data", folder / "a.pt", "a key that is no text and no number"


def far_memo(folder):
    with zipfile.ZipFile(folder / "a.pt", "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02}r\xff\xff\xff\x7f.")
    return "network", folder / "a.pt", "holds no array"


def bytearray_in_pt(folder):
    with zipfile.ZipFile(folder / "a.pt", "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.")
    return "network", folder / "a.pt", "builtins.bytearray"


def long_pickle(folder):
    with zipfile.ZipFile(folder / "a.pt", "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02" + b"N0" * 2**20 + b"N.")
    return "network", folder / "a.pt", "instructions"


def text_labels(folder):
    (folder / "a.csv").write_text("".join(f"{n},word{n % 150_000}\n" for n in range(300_000)))
    return "data", folder / "a.csv", "read"


def endless_row(folder):
    (folder / "a.csv").write_text(",".join(['"1\n"'] * 5_000_000))
    return "data", folder / "a.csv", "has a row of more than"


def long_numbers(folder):
    (folder / "a.csv").write_text(f"{'9' * 130_000},1\n" * 200)
    return "data", folder / "a.csv", "a finite number is needed"


def wide_basis(folder):
    X = np.ones((2, 2))
    np.savez(folder / "a.npz", X=X, y=np.array([1.0, -1.0]), basis=np.ones((1, 60_000)))
    return "data", folder / "a.npz", "basis must have orthonormal columns"


def many_outputs(folder):
    safetensors.torch.save_file({"0.weight": torch.ones(60_000, 1)}, folder / "a.safetensors")
    return "network", folder / "a.safetensors", "60000 outputs"


def long_name(folder):
    safetensors.torch.save_file({f"{'9' * 9000}.weight": torch.ones(1, 1)}, folder / "a.safetensors")
    return "network", folder / "a.safetensors", "read"


def model(folder, nodes, arrays, lengths):
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, *lengths])] for name in ("x", "y")]
    stored = [numpy_helper.from_array(value, name) for name, value in arrays.items()]
    onnx.save(helper.make_model(helper.make_graph(nodes, "graph", *ends, stored)), str(folder / "a.onnx"))
    return folder / "a.onnx"


def onnx_input(folder):
    path = model(folder, [helper.make_node("Relu", ["x"], ["y"])], {}, [2**20, 2**20])
    return "network", path, "an input of the shape (1048576, 1048576) is too large"


def onnx_chain(folder):
    names = ["x", *(f"r{n}" for n in range(49_999)), "y"]
    nodes = [helper.make_node("Relu", [names[n]], [names[n + 1]]) for n in range(50_000)]
    return "network", model(folder, nodes, {}, [3]), "50000 operations; 10000 is the most"


def onnx_growth(folder):
    """Every addition of a column makes the value a thousand times as large."""
    arrays = {f"c{n}": np.ones((1000, *[1] * n), np.float32) for n in range(4)}
    names = ["x", "a", "b", "c", "y"]
    nodes = [helper.make_node("Add", [names[n], f"c{n}"], [names[n + 1]]) for n in range(4)]
    return "network", model(folder, nodes, arrays, [1, 1, 1, 1]), "too large"


def onnx_padding(folder):
    nodes = [helper.make_node("Pad", ["x", "p"], ["y"])]
    path = model(folder, nodes, {"p": np.array([0, 0, 0, 2**30])}, [3])
    return "network", path, "'constant_pad_nd' makes the network too large"


def onnx_patches(folder):
    """A kernel as large as the picture, which is padded: 10^12 copied numbers."""
    nodes = [helper.make_node("Conv", ["x", "K"], ["y"], pads=[1000] * 4)]
    return "network", model(folder, nodes, {"K": np.ones((1, 1, 1000, 1000), np.float32)}, [1, 1000, 1000]), "too large"


def onnx_scaled(folder, outputs, length, kernel):
    """Branches of one convolution and of the input: as layers each is a full matrix."""
    nodes = [helper.make_node("Conv", ["x", "K"], ["c"], pads=[kernel // 2] * 4)]
    for place in range(outputs):
        nodes.append(helper.make_node("Mul", ["x", f"s{place}"], [f"m{place}"]))
        nodes.append(helper.make_node("Add", ["c", f"m{place}"], [f"a{place}"]))
    nodes.append(helper.make_node("Concat", [f"a{place}" for place in range(outputs)], ["all"], axis=1))
    nodes.append(helper.make_node("GlobalAveragePool", ["all"], ["g"]))
    nodes.append(helper.make_node("Flatten", ["g"], ["y"]))
    arrays = {"K": np.ones((1, 1, kernel, kernel), np.float32)}
    arrays |= {f"s{place}": np.array([place + 1.0], np.float32) for place in range(outputs)}
    return model(folder, nodes, arrays, [1, length, length])


def onnx_matrices(folder):
    """10 kB, and 26 matrices of 9 million numbers each."""
    return "network", onnx_scaled(folder, 26, 64, 63), "multiplications, trial runs included"


def onnx_many_matrices(folder):
    """Cheap to run, and a matrix of 2 million numbers each as layers."""
    return "network", onnx_scaled(folder, 80, 64, 23), "read"


def onnx_convolutions(folder):
    """65 kB that take 10^13 multiplications on the random inputs of a trial."""
    length = 54
    kernel = np.full((1, 1, 2 * length - 1, 2 * length - 1), 1e-4, np.float32)
    names = ["x", *(f"h{place}" for place in range(1000))]
    nodes = [helper.make_node("Conv", [a, "K"], [b], pads=[length - 1] * 4) for a, b in pairwise(names)]
    nodes += [helper.make_node("Sigmoid", [names[-1]], ["s"]), helper.make_node("Mul", ["s", "s"], ["q"])]
    nodes.append(helper.make_node("Flatten", ["q"], ["y"]))
    return "network", model(folder, nodes, {"K": kernel}, [1, length, length]), "multiplications for one example"


def onnx_poolings(folder):
    """4 kB: the values of all 60 poolings of all trials at once were gigabytes."""
    names = ["x", *(f"h{place}" for place in range(60))]
    nodes = [helper.make_node("MaxPool", [a], [b], kernel_shape=[3, 3], pads=[1] * 4) for a, b in pairwise(names)]
    nodes.append(helper.make_node("Flatten", [names[-1]], ["y"]))
    return "network", model(folder, nodes, {}, [1, 200, 200]), "trial runs included"


def onnx_wide_input(folder):
    return "network", model(folder, [helper.make_node("Relu", ["x"], ["y"])], {}, [2**23]), "trial runs included"


def onnx_copies(folder):
    """Every product would keep a multiple of one matrix."""
    names = ["x", *(f"h{place}" for place in range(2000)), "y"]
    each = enumerate(pairwise(names))
    nodes = [helper.make_node("Gemm", [a, "W"], [b], transB=1, alpha=1 / (2 + place)) for place, (a, b) in each]
    return "network", model(folder, nodes, {"W": np.eye(256, dtype=np.float32)}, [256]), "are the most that constants"


def protobuf(folder, content):
    """A model whose graph is this; a length is written in groups of seven bits."""
    length = b"".join(bytes([len(content) >> shift & 127 | 128]) for shift in (0, 7, 14, 21)) + b"\0"
    (folder / "a.onnx").write_bytes(b"\x3a" + length + content)
    return "network", folder / "a.onnx", "fields, the most that is read"


def onnx_nodes(folder):
    return protobuf(folder, b"\x0a\x00" * 2**24)


def onnx_arrays(folder):
    return protobuf(folder, b"\x2a\x00" * 2**24)


def many_arrays(folder):
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({str(n): empty for n in range(200_000)}).encode()
    (folder / "a.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    return "network", folder / "a.safetensors", "200000 arrays; 20000 is the most"


BOMBS = (
    onnx_nodes, onnx_arrays, many_arrays,
    stride_0, many_views, deflated_npz, many_entries, gzip_bomb, tar_bomb, many_members, nested_key, nested_key_in_pt,
    far_memo, bytearray_in_pt, long_pickle, text_labels, endless_row, long_numbers, wide_basis, many_outputs, long_name,
    onnx_input, onnx_chain, onnx_growth, onnx_padding, onnx_patches, onnx_matrices, onnx_many_matrices,
    onnx_convolutions, onnx_poolings, onnx_wide_input, onnx_copies,
)  # fmt: skip


def test_bombs_are_refused_in_little_memory_and_time(tmp_path):
    """One process with a gigabyte to spare is asked about every bomb in turn."""
    cases = [(bomb, *bomb(_folder(tmp_path, bomb.__name__))) for bomb in BOMBS]
    asked = "".join(f"{way} {path}\n" for _, way, path, _ in cases)
    command = [sys.executable, "-c", OPEN, str(GROWTH)]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert len(lines) == len(cases)
    wrong = {bomb.__name__: line for (bomb, _, _, words), line in zip(cases, lines, strict=True) if words not in line}
    assert wrong == {}


def _folder(parent, name):
    (parent / name).mkdir()
    return parent / name


def test_the_budget_follows_the_file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(bytes(10))
    assert ByteLimit(path).limit == ALWAYS_ALLOWED
    with path.open("wb") as stream:
        stream.truncate(2**24)
    assert ByteLimit(path).limit == LARGEST_RATIO * 2**24
    with path.open("wb") as stream:
        stream.truncate(2**40)
    assert ByteLimit(path).limit == LARGEST_BYTES
    budget = ByteLimit(path)
    budget.take(LARGEST_BYTES - 1, "all but one")
    with pytest.raises(InputError, match="two more would unpack to too much"):
        budget.take(2, "two more")


def test_an_identity_matrix_may_be_compressed_as_far_as_it_goes(tmp_path):
    X = np.sqrt(1000) * np.eye(1000)
    np.savez_compressed(tmp_path / "a.npz", X=X, y=np.tile([1.0, -1.0], 500))
    assert (tmp_path / "a.npz").stat().st_size < X.nbytes / 100
    assert torch.equal(load_data(tmp_path / "a.npz").X, torch.from_numpy(X))


def test_the_limits_are_those_of_the_documentation():
    """docs/security.md, written again."""
    powers = {"DIRECTORY": 22, "TEXT": 24, "PICKLE": 20, "MODEL": 19, "ROW": 25, "WORK": 35, "VALUE": 21, "MADE": 28}
    assert {name: getattr(limits, f"LARGEST_{name}") for name in powers} == {n: 2**p for n, p in powers.items()}
    assert (LARGEST_BYTES, LARGEST_RATIO, ALWAYS_ALLOWED) == (8 * 1024**3, 64, 128 * 1024**2)
    assert (limits.LARGEST_ARRAYS, limits.LARGEST_GRAPH, limits.LARGEST_HELD) == (20_000, 10_000, 640 * 1024**2)
    assert (limits.ALWAYS_TRIED, limits.TRIED_RATIO) == (2**34, 2**14)
