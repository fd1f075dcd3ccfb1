"""Files that are wrong in rare ways: one line each, and no number is read as another."""

import numpy as np
import onnx
import pytest
import safetensors.torch
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from brittle.common.errors import InputError
from brittle.data import load_data
from brittle.networks import Folded, TwoLayer, load_network

EYE = np.eye(2, dtype=np.float32)


def save_model(path, nodes, arrays=(), shape=(2,), outputs=("y",)):
    """`arrays` are TensorProtos; the input is x."""
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, *shape]) for name in names]
        for names in (("x",), outputs)
    ]
    made = [each if not isinstance(each, tuple) else helper.make_node(*each[:3], **each[3]) for each in nodes]
    onnx.save(helper.make_model(helper.make_graph(made, "graph", *ends, list(arrays))), str(path))
    return path


def array(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def odd_type(name, kind):
    stored = array(name, EYE)
    stored.data_type = kind
    return stored


def node(kind, *inputs, **options):
    return kind, list(inputs), ["y"], options


def reshape(lengths):
    return [node("Reshape", "x", "s")], [array("s", lengths)]


def product(stored):
    return [node("MatMul", "x", "W")], [stored]


def shift(value):
    return [node("Add", "x", "c")], [array("c", value)]


def pad(sides, **options):
    return [node("Pad", "x", "p", **options)], [array("p", sides)]


def cut(*places):
    names = [f"p{number}" for number in range(len(places))]
    kept = [np.asarray(each, dtype=np.int64) for each in places]
    return [node("Slice", "x", *names)], [array(name, each) for name, each in zip(names, kept, strict=True)]


RELU = node("Relu", "x")
BAD_MODELS = {
    "constant without value": (
        [("Constant", [], ["W"], {}), node("MatMul", "x", "W")],
        [],
        "a Constant holds no array",
    ),
    "unknown type": (*product(odd_type("W", 99)), "'W' is of the type 99"),
    "texts": (*product(odd_type("W", TensorProto.STRING)), "'W' is of the type 8"),
    "complex": (*product(array("W", EYE + 1j)), "'W' is of the type 14; real numbers"),
    "float8": (*product(odd_type("W", TensorProto.FLOAT8E4M3FN)), "real numbers"),
    "wrong size": (*shift(np.ones(3, np.float32)), "'add' cannot be done"),
    "mixes rows": (*shift(EYE), "'add' cannot be done"),
    "float shape": (*reshape([0.0, -1.0]), "whole numbers"),
    "huge shape": (*reshape([-1, 2**40]), "a.onnx: "),
    "reshape to more": (*reshape([-1, 6]), "'reshape_rows' cannot be done"),
    "two unknowns": (*reshape([-1, -1]), "which is not read"),
    "shape of no rank": (*reshape(4), "mixes the examples"),
    "another domain": ([node("Relu", "x", domain="own")], [], "is a own.Relu, which is not read"),
    "takes nothing": ([node("Relu")], [], "takes or gives nothing"),
    "takes itself": ([node("Relu", "y")], [], "not computed before"),
    "twice": ([RELU, RELU], [], "computed twice"),
    "flatten of all": ([node("Flatten", "x", axis=0)], [], "more than each example"),
    "cast to integers": ([node("Cast", "x", to=TensorProto.INT64)], [], "casts to something else"),
    "stride 0": ([node("MaxPool", "x", kernel_shape=[1, 1], strides=[0, 0])], [], "must be positive"),
    "padding by reflection": (*pad([0, 1, 0, 1], mode="reflect"), "the padding 'reflect'"),
    "padding of some axes": (*pad([0, 1, 0]), "not given for every axis"),
    "padding of the batch": (*pad([1, 0, -1, 0]), "mixes the examples"),
    "huge padding": (*pad([0, 0, 0, 2**30]), "makes the network too large"),
    "padding beyond all numbers": (*pad([0, 0, 0, 2**62]), "neither a number nor a value"),
    "slice backwards": (*cut([3], [0], [1], [-1]), "must be positive"),
    "slice of the batch": (*cut([0], [5000], [0]), "examples of a batch apart"),
    "slice without an end": (*cut([0], []), "starts and ends"),
    "softmax of rows": ([node("Softmax", "x", axis=0)], [], "mixes the examples"),
    "transposed rows": ([node("Transpose", "x", perm=[1, 0])], [], "examples of a batch apart"),
}


@pytest.mark.parametrize(("nodes", "arrays", "words"), BAD_MODELS.values(), ids=BAD_MODELS)
def test_a_bad_model_gets_one_line(nodes, arrays, words, tmp_path):
    path = save_model(tmp_path / "a.onnx", nodes, arrays)
    with pytest.raises(InputError) as caught:
        load_network(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_a_model_without_outputs_gets_one_line(tmp_path):
    with pytest.raises(InputError, match="1 inputs and 0 outputs"):
        load_network(save_model(tmp_path / "a.onnx", [RELU], outputs=()))


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_halves_may_stand_in_whole_numbers(kind, tmp_path):
    W = [[1.5, -2.0], [0.25, 3.0]]
    stored = helper.make_tensor("W", kind, [2, 2], [each for row in W for each in row])
    brain, half = np.array(W, np.float32).view(np.uint32) >> 16, np.array(W, np.float16).view(np.uint16)
    bits = half if kind == TensorProto.FLOAT16 else brain
    del stored.int32_data[:]
    stored.ClearField("raw_data")
    stored.int32_data.extend(int(each) for each in bits.reshape(-1))
    nodes = [("MatMul", ["x", "W"], ["y"], {})]
    network = load_network(save_model(tmp_path / "a.onnx", nodes, [stored]))
    assert network.logits(torch.eye(2)).tolist() == W


def test_residual_networks_and_pools_are_read_from_onnx(tmp_path):
    torch.manual_seed(0)
    conv, norm, last = nn.Conv2d(1, 1, 3, padding=1), nn.BatchNorm2d(1).eval(), nn.Linear(4, 3)
    norm.running_mean.fill_(0.3)
    nodes = [
        ("Conv", ["x", "K", "k"], ["a"], {"pads": [1, 1, 1, 1]}),
        ("BatchNormalization", ["a", "g", "s", "m", "u"], ["n"], {"epsilon": 1e-5}),
        ("Relu", ["n"], ["b"], {}),
        ("Add", ["b", "x"], ["c"], {}),
        ("MaxPool", ["c"], ["d"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("Flatten", ["d"], ["e"], {}),
        ("Gemm", ["e", "W", "w"], ["f"], {"transB": 1}),
        ("Sigmoid", ["f"], ["y"], {}),
    ]
    values = {"K": conv.weight, "k": conv.bias, "g": norm.weight, "s": norm.bias, "m": norm.running_mean}
    values |= {"u": norm.running_var, "W": last.weight, "w": last.bias}
    arrays = [array(name, value.detach().numpy()) for name, value in values.items()]
    network = load_network(save_model(tmp_path / "a.onnx", nodes, arrays, (1, 4, 4)))
    X = torch.randn(5, 16)
    pictures = X.reshape(5, 1, 4, 4)
    hidden = torch.max_pool2d(norm(conv(pictures)).relu() + pictures, 2).flatten(1)
    assert isinstance(network, Folded)
    assert torch.allclose(network.logits(X).float(), last(hidden), atol=1e-6)  # the logits, not their sigmoid


def test_a_shift_after_a_product_belongs_to_the_layer_only_where_it_fits(tmp_path):
    nodes = [
        ("MatMul", ["x", "W"], ["a"], {}),
        ("Add", ["c", "a"], ["b"], {}),
        ("Relu", ["b"], ["d"], {}),
        ("MatMul", ["d", "v"], ["y"], {}),
    ]
    arrays = [array("W", EYE), array("v", EYE[:, :1])]
    shifted = load_network(save_model(tmp_path / "a.onnx", nodes, [*arrays, array("c", np.float32(3))]))
    assert isinstance(shifted, TwoLayer)
    assert shifted.b.tolist() == [3, 3]
    with pytest.raises(InputError, match="'add' cannot be done"):
        load_network(save_model(tmp_path / "b.onnx", nodes, [*arrays, array("c", np.ones(3, np.float32))]))


def nested():
    return torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)], layout=torch.strided)


ODD_TENSORS = {
    "meta": (lambda: torch.zeros(2, 2, device="meta"), "without numbers"),
    "quantised": (lambda: torch.quantize_per_tensor(torch.zeros(2, 2), 0.1, 0, torch.qint8), "quantised"),
    "nested": (nested, "nested"),
    "sparse": (lambda: torch.eye(2).to_sparse(), "sparse"),
    "compressed": (lambda: torch.eye(2).to_sparse_csr(), "sparse"),
    "float8": (lambda: torch.zeros(2, 2).to(torch.float8_e4m3fn), "unusual type"),
    "complex": (lambda: torch.zeros(2, 2, dtype=torch.complex64), ""),
    "integers": (lambda: torch.zeros(2, 2, dtype=torch.uint16), ""),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("make", "words"), ODD_TENSORS.values(), ids=ODD_TENSORS)
def test_odd_tensors_get_one_line_as_networks_and_as_data(make, words, tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"X": make(), "y": torch.tensor([1.0, -1.0]), "0.weight": make()}, path)
    for read in (load_network, load_data):
        with pytest.raises(InputError) as caught:
            read(path)
        assert str(caught.value).startswith(str(path))
        assert words in str(caught.value)


@pytest.mark.parametrize("kind", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_small_floats_of_safetensors_are_refused(kind, tmp_path):
    path = tmp_path / "a.safetensors"
    safetensors.torch.save_file({"0.weight": torch.zeros(2, 2).to(kind)}, path)
    for module in (None, nn.Sequential(nn.Linear(2, 2, bias=False))):
        with pytest.raises(InputError, match=r"'0\.weight' has type float8"):
            load_network(path, module)


def test_the_words_of_a_file_cannot_command_a_terminal(tmp_path):
    path = tmp_path / "a.safetensors"
    words = "\x1b[2J\x1b]0;owned\x07\n\r\u202e" + "x" * 10_000
    safetensors.torch.save_file({"a": torch.zeros(1)}, path, metadata={"brittle_network": words})
    with pytest.raises(InputError, match="of the kind") as caught:
        load_network(path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000
    assert str(caught.value).endswith("which this version does not know")


def test_names_with_odd_digits_are_names(tmp_path):
    for names in (("²", "³"), ("9" * 5000, "8" * 5000), ("a", "١")):
        torch.save({f"{name}.weight": torch.eye(2) for name in names}, tmp_path / "a.pt")
        assert load_network(tmp_path / "a.pt", activation="relu").shape == (2, 2, 2)
