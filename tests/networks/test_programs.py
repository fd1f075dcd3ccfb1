"""Whole programs in files: the same network from every format, and nothing that could run code."""

import io
import json
import os
import pickle
import warnings
import zipfile

import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from brittle.common.errors import InputError
from brittle.networks import Adapter, Deep, TwoLayer, load_network


@pytest.fixture
def two_layer() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1)).double()


def convolution() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(1, 3, 3, padding=1, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(12, 3)).double()


def save_script(module, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(module).save(str(path))
    return path


def save_exported(module, path, *shape):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        example = (torch.randn(2, *shape, dtype=torch.float64),)
        program = torch.export.export(module, example, dynamic_shapes=({0: torch.export.Dim("n")},))
        torch.export.save(program, str(path))
    return path


def save_onnx(path, nodes, arrays, shape, outputs):
    """A graph of one input x and one output y."""
    graph = helper.make_graph(
        [helper.make_node(kind, inputs, [output], **options) for kind, inputs, output, options in nodes],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [None, *shape])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [None, outputs])],
        [numpy_helper.from_array(value.detach().numpy().copy(), name) for name, value in arrays.items()],
    )
    onnx.save(helper.make_model(graph), str(path))
    return path


def two_layer_onnx(module, path):
    first, last = module[0], module[2]
    nodes = [
        ("MatMul", ["x", "W1"], "a", {}),
        ("Add", ["a", "b1"], "b", {}),
        ("Relu", ["b"], "c", {}),
        ("Gemm", ["c", "W2", "b2"], "y", {"transB": 1}),
    ]
    arrays = {"W1": first.weight.T, "b1": first.bias, "W2": last.weight, "b2": last.bias}
    return save_onnx(path, nodes, arrays, (5,), 1)


@pytest.mark.parametrize("form", ["script", "exported", "onnx"])
def test_a_chain_of_layers_is_recognised_in_every_format(two_layer, tmp_path, form):
    path = {
        "script": lambda: save_script(two_layer, tmp_path / "net.pt"),
        "exported": lambda: save_exported(two_layer, tmp_path / "net.pt2", 5),
        "onnx": lambda: two_layer_onnx(two_layer, tmp_path / "net.onnx"),
    }[form]()
    network = load_network(path)
    X = torch.randn(20, 5, dtype=torch.float64)
    assert isinstance(network, TwoLayer)
    assert torch.allclose(network.logits(X), two_layer(X)[:, 0], rtol=0, atol=1e-14)


def test_exported_programs_may_be_called_pt(two_layer, tmp_path):
    save_exported(two_layer, tmp_path / "net.pt2", 5).rename(tmp_path / "net.pt")
    assert isinstance(load_network(tmp_path / "net.pt"), TwoLayer)


def test_other_programs_become_adapters_with_gradients(tmp_path):
    module = convolution()
    module[1] = nn.Tanh()
    network = load_network(save_script(module, tmp_path / "net.pt"), shape=(1, 4, 4))
    X, y = torch.randn(6, 16, dtype=torch.float64), torch.tensor([0, 1, 2, 0, 1, 2])
    assert isinstance(network, Adapter)
    assert torch.allclose(network.logits(X), module(X.view(6, 1, 4, 4)), rtol=0, atol=1e-13)
    assert network.margin_gradients(X, y).shape == (6, 16)
    trainable = network.module()
    trainable(X).sum().backward()
    assert all(parameter.grad is not None for parameter in trainable.parameters())


def test_convolutions_are_read_from_onnx(tmp_path):
    module = convolution()
    conv, last = module[0], module[3]
    nodes = [
        ("Sub", ["x", "mean"], "s", {}),
        ("Conv", ["s", "K", "k"], "a", {"pads": [1, 1, 1, 1], "strides": [2, 2], "kernel_shape": [3, 3]}),
        ("Relu", ["a"], "b", {}),
        ("Reshape", ["b", "flat"], "c", {}),
        ("Gemm", ["c", "W", "w"], "y", {"transB": 1}),
    ]
    arrays = {"mean": torch.tensor(0.5, dtype=torch.float64), "K": conv.weight, "k": conv.bias}
    arrays |= {"flat": torch.tensor([0, -1]), "W": last.weight, "w": last.bias}
    network = load_network(save_onnx(tmp_path / "net.onnx", nodes, arrays, (1, 4, 4), 3))
    X = torch.randn(6, 16, dtype=torch.float64)
    assert torch.allclose(network.logits(X), module(X.view(6, 1, 4, 4) - 0.5), rtol=0, atol=1e-13)


def test_deep_chains_are_read_from_onnx(tmp_path):
    torch.manual_seed(2)
    layers = [nn.Linear(4, 6).double(), nn.Linear(6, 5).double(), nn.Linear(5, 3).double()]
    nodes, arrays, before = [], {}, "x"
    for place, layer in enumerate(layers):
        arrays |= {f"W{place}": layer.weight, f"b{place}": layer.bias}
        after = "y" if place == 2 else f"z{place}"
        nodes.append(("Gemm", [before, f"W{place}", f"b{place}"], after, {"transB": 1}))
        if place < 2:
            nodes.append(("Relu", [after], before := f"r{place}", {}))
    network = load_network(save_onnx(tmp_path / "net.onnx", nodes, arrays, (4,), 3))
    X = torch.randn(7, 4, dtype=torch.float64)
    assert isinstance(network, Deep)
    assert torch.allclose(network.logits(X), layers[2](layers[1](layers[0](X).relu()).relu()), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([("Sin", ["x"], "y", {})], "is a Sin, which is not read"),
        ([("Relu", ["x"], "a", {}), ("Gemm", ["a", "x"], "y", {})], "takes 'x', which is no constant"),
        ([("Relu", ["x"], "a", {})], "does not end in the output"),
        ([("Gemm", ["x", "missing"], "y", {})], "takes 'missing', which is no constant"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, nodes, message):
    path = save_onnx(tmp_path / "net.onnx", nodes, {}, (5,), 5)
    with pytest.raises(InputError, match=message):
        load_network(path)


def test_corrupt_and_huge_onnx_files_are_refused(two_layer, tmp_path):
    path = two_layer_onnx(two_layer, tmp_path / "net.onnx")
    model = onnx.load(str(path))
    model.graph.initializer[0].dims[:] = [10**9, 10**9]
    onnx.save(model, str(tmp_path / "huge.onnx"))
    with pytest.raises(InputError, match=r"huge\.onnx: array 'W1' declares the shape"):
        load_network(tmp_path / "huge.onnx")
    (tmp_path / "cut.onnx").write_bytes(path.read_bytes()[:90])
    with pytest.raises(InputError, match=r"cut\.onnx: "):
        load_network(tmp_path / "cut.onnx")


class Harmful:
    def __reduce__(self):
        return os.system, ("touch harmed",)


def test_an_exported_program_with_code_inside_is_refused(two_layer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = save_exported(two_layer, tmp_path / "net.pt2", 5)
    buffer = io.BytesIO()
    torch.save(Harmful(), buffer)
    _rewritten(source, "bad.pt2", lambda name, content: buffer.getvalue() if "sample_inputs" in name else content)
    with pytest.raises(InputError, match="holds pickled objects"):
        load_network("bad.pt2")
    assert not (tmp_path / "harmed").exists()


def test_an_exported_program_with_pickled_weights_is_refused(two_layer, tmp_path):
    def pickled(name, content):
        if not name.endswith("weights_config.json"):
            return content
        config = json.loads(content)
        for entry in config["config"].values():
            entry["use_pickle"] = True
        return json.dumps(config).encode()

    source = save_exported(two_layer, tmp_path / "net.pt2", 5)
    with pytest.raises(InputError, match="holds pickled objects"):
        load_network(_rewritten(source, tmp_path / "bad.pt2", pickled))


def _rewritten(source, target, change):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            new.writestr(info.filename, change(info.filename, old.read(info)))
    return target


def test_damaged_programs_get_one_line(two_layer, tmp_path):
    script = save_script(two_layer, tmp_path / "net.pt").read_bytes()
    (tmp_path / "cut.pt").write_bytes(script[: len(script) // 2])
    with pytest.raises(InputError, match=r"cut\.pt: "):
        load_network(tmp_path / "cut.pt")
    (tmp_path / "plain.pt2").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(InputError, match=r"plain\.pt2: is not an exported program"):
        load_network(tmp_path / "plain.pt2")
