"""What is read from an ONNX file is what onnxruntime computes from it, for every kind of node that is read."""

import logging

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from brittle.common.errors import InputError
from brittle.networks import load_network
from brittle.networks.onnx_nodes import NODES

RNG = np.random.default_rng(0)
ROWS, PICTURES = (4,), (2, 4, 6)  # of one example


def numbers(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    return np.abs(numbers(*shape)) + np.float32(0.5)


def whole(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def node(kind: str, *constants: np.ndarray | str, first: bool = False, opset: int = 18, **attributes):
    """A node that takes the value before it, and constants (or other values, by name) after it (or before it)."""
    return kind, constants, first, opset, attributes


FLAT = node("Flatten")
SMALL = np.float32(-0.5), np.float32(0.5)
LAST = node("Gemm", numbers(4, 3), numbers(3))
CHAINS = {
    "Gemm": [ROWS, node("Gemm", numbers(3, 4), numbers(1, 3), alpha=0.5, beta=2.0, transB=1)],
    "Gemm of one bias": [ROWS, node("Gemm", numbers(4, 3), numbers(1))],
    "MatMul": [ROWS, node("MatMul", numbers(4, 3))],
    "MatMul from the left": [(4, 3), node("MatMul", numbers(2, 4), first=True), FLAT],
    "Conv": [PICTURES, node("Conv", numbers(4, 1, 3, 2), numbers(4), group=2, strides=[1, 2], dilations=[1, 2],
                            pads=[1, 0, 2, 1]), FLAT],
    "Conv along one axis": [(2, 6), node("Conv", numbers(3, 2, 3), pads=[1, 1]), FLAT],
    "Conv that keeps the size": [PICTURES, node("Conv", numbers(3, 2, 3, 2), auto_pad="SAME_UPPER"), FLAT],
    "Conv that keeps the size, padded in front": [
        PICTURES, node("Conv", numbers(3, 2, 3, 2), auto_pad="SAME_LOWER"), FLAT
    ],
    "Reshape": [PICTURES, node("Reshape", whole(0, 4, -1)), FLAT],
    "Flatten": [PICTURES, FLAT],
    "Clip": [ROWS, node("Clip", *SMALL)],
    "Clip without limits": [ROWS, node("Clip")],
    "Clip as it was": [ROWS, node("Clip", min=-0.5, max=0.5, opset=10)],
    "MaxPool": [PICTURES, node("MaxPool", kernel_shape=[2, 3], strides=[2, 1], pads=[1, 1, 1, 1]), FLAT],
    "MaxPool without strides": [PICTURES, node("MaxPool", kernel_shape=[2, 3], ceil_mode=1), FLAT],
    "AveragePool": [PICTURES, node("AveragePool", kernel_shape=[2, 2], strides=[2, 2], pads=[1, 1, 1, 1]), FLAT],
    "AveragePool with its padding": [
        PICTURES, node("AveragePool", kernel_shape=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1), FLAT
    ],
    "MaxPool along one axis": [
        (2, 6), node("MaxPool", kernel_shape=[3], strides=[2], dilations=[1], pads=[1, 1], ceil_mode=1), FLAT
    ],
    "AveragePool along one axis": [(2, 6), node("AveragePool", kernel_shape=[3], strides=[2], pads=[1, 1]), FLAT],
    "AveragePool along one axis with its padding": [
        (2, 6), node("AveragePool", kernel_shape=[3], pads=[1, 1], count_include_pad=1), FLAT
    ],
    "GlobalAveragePool along one axis": [(3, 6), node("GlobalAveragePool"), FLAT],
    "Pad": [PICTURES, node("Pad", whole(0, 1, 2, 0, 0, 0, 1, -1)), FLAT],
    "Pad with a number": [(2, 6), node("Pad", whole(0, 0, 2, 0, 0, 1), np.float32(0.7)), FLAT],
    "Pad of named axes": [PICTURES, node("Pad", whole(1, 2, 3, 4), np.float32(-1), whole(-1, -3)), FLAT],
    "Pad as it was": [PICTURES, node("Pad", pads=[0, 0, 1, 1, 0, 0, 1, 2], value=0.5, opset=10), FLAT],
    "Slice": [PICTURES, node("Slice", whole(1, -5), whole(3, 2**63 - 1), whole(2, -1), whole(1, 2)), FLAT],
    "Slice of the first axes": [PICTURES, node("Slice", whole(0, 1), whole(2**63 - 1, 2)), FLAT],
    "Slice as it was": [ROWS, node("Slice", starts=[1], ends=[3], axes=[1], opset=9)],
    "GlobalAveragePool": [PICTURES, node("GlobalAveragePool"), FLAT],
    "Cast": [ROWS, node("Cast", to=TensorProto.FLOAT)],
    "BatchNormalization": [
        PICTURES, node("BatchNormalization", numbers(2), numbers(2), numbers(2), positive(2), epsilon=0.1), FLAT
    ],
    "Concat": [ROWS, node("Relu"), node("Concat", "x", axis=1)],
    "Squeeze": [(4, 1), node("Squeeze", whole(2))],
    "Squeeze as it was": [(4, 1), node("Squeeze", axes=[2], opset=11)],
    "Unsqueeze": [ROWS, node("Unsqueeze", whole(1)), FLAT],
    "ReduceMean": [PICTURES, node("ReduceMean", whole(2, 3), keepdims=0)],
    "ReduceMean as it was": [PICTURES, node("ReduceMean", axes=[2, 3], opset=11), FLAT],
    "Identity": [ROWS, node("Identity"), LAST],
    "Dropout": [ROWS, node("Dropout"), LAST],
    "Relu": [ROWS, node("Relu"), LAST],
    "Sigmoid": [ROWS, node("Sigmoid"), LAST],
    "Tanh": [ROWS, node("Tanh"), LAST],
    "Gelu": [ROWS, node("Gelu", opset=20)],
    "Gelu by tanh": [ROWS, node("Gelu", opset=20, approximate="tanh")],
    "PRelu": [ROWS, node("PRelu", positive(4))],
    "PRelu of the last axis": [(6, 6), node("PRelu", positive(6)), FLAT],
    "PRelu of every number": [(3, 2), node("PRelu", positive(3, 2)), FLAT],
    "PRelu of channels": [PICTURES, node("PRelu", positive(2, 1, 1)), FLAT],
    "Max": [ROWS, node("Max", numbers(4))],
    "Max of two": [ROWS, node("Gemm", numbers(4, 4)), node("Max", "x")],
    "Max of three": [ROWS, node("Gemm", numbers(4, 4)), node("Max", "x", numbers(4))],
    "Max of one": [ROWS, node("Max"), LAST],
    "Min of three": [ROWS, node("Gemm", numbers(4, 4)), node("Min", "x", numbers(4))],
    "Sum": [ROWS, node("Gemm", numbers(4, 4)), node("Sum", "x", numbers(4))],
    "HardSigmoid": [ROWS, node("HardSigmoid", alpha=0.3, beta=0.4), LAST],
    "HardSwish": [ROWS, node("HardSwish"), LAST],
    "Softplus": [ROWS, node("Softplus"), LAST],
    "Pow": [ROWS, node("Pow", np.float32(2)), LAST],
    "LayerNormalization": [(3, 4), node("LayerNormalization", positive(4), numbers(4), epsilon=0.1), FLAT],
    "LayerNormalization of two axes": [PICTURES, node("LayerNormalization", positive(4, 6), axis=2), FLAT],
    "ReduceSum": [PICTURES, node("ReduceSum", whole(2, 3), keepdims=0)],
    "ReduceMax": [PICTURES, node("ReduceMax", whole(-1, -2), keepdims=0)],
    "Gather": [PICTURES, node("Gather", np.array(1), axis=1), FLAT],
    "Squeeze of all": [(4, 1), node("Squeeze")],
    "Conv of every second place": [
        PICTURES, node("Conv", numbers(3, 2, 3, 3), auto_pad="SAME_UPPER", strides=[2, 2]), FLAT
    ],
    "MaxPool that covers everything": [
        PICTURES, node("MaxPool", kernel_shape=[3, 3], strides=[1, 1], auto_pad="SAME_UPPER"), FLAT
    ],
    "Min": [ROWS, node("Min", numbers(4))],
    "Erf": [ROWS, node("Erf")],
    "Exp": [ROWS, node("Exp")],
    "Abs": [ROWS, node("Abs")],
    "Sqrt": [ROWS, node("Abs"), node("Sqrt")],
    "Neg": [ROWS, node("Neg")],
    "Add": [ROWS, node("Add", numbers(4))],
    "Sub": [ROWS, node("Sub", numbers(4), first=True)],
    "Mul": [ROWS, node("Mul", numbers(1))],
    "Div": [ROWS, node("Div", positive(4))],
    "Softmax": [PICTURES, node("Softmax", axis=2), FLAT, node("Gemm", numbers(48, 3))],
    "Softmax as it was": [PICTURES, node("Softmax", opset=12), FLAT, node("Gemm", numbers(48, 3))],
    "LogSoftmax": [PICTURES, node("LogSoftmax", axis=1), FLAT, node("Gemm", numbers(48, 3))],
    "LogSoftmax as it was": [PICTURES, node("LogSoftmax", opset=12), FLAT, node("Gemm", numbers(48, 3))],
    "LeakyRelu": [ROWS, node("LeakyRelu", alpha=0.3)],
    "Elu": [ROWS, node("Elu", alpha=1.5)],
    "Transpose": [PICTURES, node("Transpose", perm=[0, 2, 3, 1]), FLAT],
}  # fmt: skip


def written(path, shape, *nodes) -> onnx.ModelProto:
    """A chain of nodes as a file."""
    made, constants, value = [], [], "x"
    for place, (kind, arrays, first, _, attributes) in enumerate(nodes):
        names = [each if isinstance(each, str) else f"c{place}_{number}" for number, each in enumerate(arrays)]
        constants += [
            numpy_helper.from_array(np.asarray(each), name)
            for each, name in zip(arrays, names, strict=True)
            if not isinstance(each, str)
        ]
        inputs = [*names, value] if first else [value, *names]
        value = f"v{place}"
        made.append(helper.make_node(kind, inputs, [value], **attributes))
    opset = min([each[3] for each in nodes], default=18)
    graph = helper.make_graph(
        made,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *shape])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return model


def computed(path, X: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (output,) = session.run(None, {"x": X})
    return np.asarray(output)


def test_every_kind_of_node_is_held_against_onnxruntime():
    assert {each[0] for chain in CHAINS.values() for each in chain[1:]} == set(NODES)


@pytest.mark.parametrize("name", CHAINS)
def test_what_is_read_is_what_the_file_computes(name, tmp_path):
    shape, *nodes = CHAINS[name]
    written(tmp_path / "net.onnx", shape, *nodes)
    X = numbers(7, *shape)
    expected = computed(tmp_path / "net.onnx", X)
    read = load_network(tmp_path / "net.onnx").logits(torch.from_numpy(X.reshape(7, -1)))
    assert np.allclose(read.numpy().reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ending", ["Softmax", "LogSoftmax", "Sigmoid"])
@pytest.mark.parametrize("opset", [12, 18])
def test_probabilities_at_the_end_are_left_out_and_the_logits_kept(ending, opset, tmp_path, caplog):
    last = node("Gemm", numbers(4, 3), opset=opset)
    written(tmp_path / "logits.onnx", ROWS, node("Relu", opset=opset), last)
    written(tmp_path / "net.onnx", ROWS, node("Relu", opset=opset), last, node(ending, opset=opset), node("Identity"))
    with caplog.at_level(logging.WARNING, "brittle"):
        network = load_network(tmp_path / "net.onnx")
    (said,) = caplog.messages
    assert f"net.onnx: ends in a {ending}, which is left out" in said
    X = numbers(7, *ROWS)
    logits = network.logits(torch.from_numpy(X)).numpy()
    assert np.allclose(logits, computed(tmp_path / "logits.onnx", X), atol=1e-5)
    assert (logits.argmax(1) == computed(tmp_path / "net.onnx", X).argmax(1)).all()


def test_one_probability_is_the_sign_of_its_logit(tmp_path):
    written(tmp_path / "net.onnx", ROWS, node("Gemm", numbers(4, 1)), node("Sigmoid"), node("Squeeze", whole(1)))
    X = numbers(9, *ROWS)
    network = load_network(tmp_path / "net.onnx")
    signs = network.predict(torch.from_numpy(X)).numpy()
    assert network.classes == 1
    assert set(signs) == {-1, 1}
    assert ((signs > 0) == (computed(tmp_path / "net.onnx", X) > 0.5)).all()


def test_a_sigmoid_that_others_use_too_stays(tmp_path):
    written(tmp_path / "net.onnx", ROWS, node("Sigmoid"), node("Mul", "x"))  # x · sigmoid(x)
    X = numbers(5, *ROWS)
    read = load_network(tmp_path / "net.onnx").logits(torch.from_numpy(X))
    assert np.allclose(read, computed(tmp_path / "net.onnx", X), atol=1e-5)


def test_a_softmax_along_another_axis_than_the_outputs_stays(tmp_path):
    """Laid flat, the largest logit need not have the largest probability."""
    written(tmp_path / "net.onnx", (2, 2), node("Softmax", axis=1), FLAT)
    X = numbers(99, 2, 2)
    read = load_network(tmp_path / "net.onnx").logits(torch.from_numpy(X.reshape(99, 4)))
    assert np.allclose(read, computed(tmp_path / "net.onnx", X), atol=1e-5)
    assert (read.argmax(1).numpy() != X.reshape(99, 4).argmax(1)).any()


def complaint(path) -> str:
    with pytest.raises(InputError) as caught:
        load_network(path)
    return str(caught.value)


def test_what_gives_no_logits_is_refused_with_the_way_out(tmp_path):
    path = tmp_path / "net.onnx"
    written(path, ROWS, LAST, node("ArgMax", axis=1))
    assert "is a ArgMax, which gives labels and no logits; export up to 'v0'" in complaint(path)
    written(path, ROWS, node("Gemm", numbers(4, 1)), node("Softmax"))
    assert "ends in a Softmax of one output, which is the same for every example" in complaint(path)
    model = written(path, ROWS, LAST)
    model.graph.output.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4]))
    path.write_bytes(model.SerializeToString())
    assert "has 1 inputs and 2 outputs (v0, x); one each is needed, and as output the logits" in complaint(path)


def shaped(path, *steps: tuple) -> None:
    """A network whose rows are laid flat by a shape that the file computes; `steps` make it of the value "lengths"."""
    made = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Shape", ["r"], ["lengths"])]
    made += [helper.make_node(kind, inputs, [output], **options) for kind, inputs, output, options in steps]
    made += [helper.make_node("Reshape", ["r", "shape"], ["flat"]), helper.make_node("MatMul", ["flat", "W"], ["y"])]
    constants = {"zero": np.array(0), "one": whole(1), "end": whole(4), "rest": whole(-1), "W": numbers(48, 3)}
    graph = helper.make_graph(
        made,
        "shaped",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *PICTURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()
    )


SHAPES = {
    "x.view(x.size(0), -1)": [
        ("Gather", ["lengths", "zero"], "n", {"axis": 0}),
        ("Constant", [], "axis", {"value_ints": [0]}),
        ("Unsqueeze", ["n", "axis"], "rows", {}),
        ("Concat", ["rows", "rest"], "shape", {"axis": 0}),
    ],
    "the product of the lengths": [
        ("Constant", [], "places", {"value_ints": [1, 2, 3]}),
        ("Gather", ["lengths", "places"], "inner", {}),
        ("Constant", [], "factors", {"value_ints": [4, 6]}),
        ("Slice", ["inner", "rest", "end"], "last", {}),
        ("Mul", ["last", "factors"], "both", {}),
        ("ConstantOfShape", ["one"], "minus", {"value": numpy_helper.from_array(whole(48))}),
        ("Slice", ["lengths", "zero_list", "one"], "rows", {}),
        ("Concat", ["rows", "minus"], "shape", {"axis": 0}),
    ],
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_that_a_file_computes_are_known_before_it_runs(name, tmp_path):
    steps = [("Constant", [], "zero_list", {"value_ints": [0]}), *SHAPES[name]]
    shaped(tmp_path / "net.onnx", *steps)
    X = numbers(7, *PICTURES)
    network = load_network(tmp_path / "net.onnx")
    assert network.depth == 2  # recognised
    read = network.logits(torch.from_numpy(X.reshape(7, -1)))
    assert np.allclose(read.numpy(), computed(tmp_path / "net.onnx", X), rtol=1e-4, atol=1e-5)


def test_a_shape_that_mixes_the_examples_is_refused(tmp_path):
    shaped(tmp_path / "net.onnx", ("Concat", ["end", "rest"], "shape", {"axis": 0}))
    assert "reshapes to [4, -1], which mixes the examples" in complaint(tmp_path / "net.onnx")


HOPELESS = {
    "divided by nothing": [("Constant", [], "none", {"value_ints": [0]}), ("Div", ["one", "none"], "shape", {})],
    "beyond the end": [("Constant", [], "far", {"value_ints": [9]}), ("Gather", ["lengths", "far"], "shape", {})],
    "endless": [
        ("Constant", [], "large", {"value_ints": [2**40, 2**40]}),
        ("ConstantOfShape", ["large"], "shape", {"value": numpy_helper.from_array(whole(1))}),
    ],
    "of other lengths": [("Constant", [], "three", {"value_ints": [1, 2, 3]}), ("Add", ["three", "pair"], "shape", {})],
    "along no axis": [("Concat", ["one", "end"], "shape", {"axis": 5})],
}


@pytest.mark.parametrize("name", HOPELESS)
def test_a_shape_that_cannot_be_had_is_refused_in_one_line(name, tmp_path):
    shaped(tmp_path / "net.onnx", ("Constant", [], "pair", {"value_ints": [1, 2]}), *HOPELESS[name])
    assert "computes a shape that cannot be had" in complaint(tmp_path / "net.onnx")


@pytest.mark.parametrize("kind", ["ArgMax", "ZipMap"])
def test_labels_beside_the_probabilities_are_left_out(kind, tmp_path):
    """As classifiers of scikit-learn are exported."""
    path = tmp_path / "net.onnx"
    model = written(path, ROWS, node("Gemm", numbers(4, 5)), node("Relu"), node("Gemm", numbers(5, 3)), node("Softmax"))
    X = numbers(9, *ROWS)
    expected = computed(path, X)
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    graph = model.graph
    graph.node.append(helper.make_node("ArgMax", ["v3"], ["label"], axis=1))
    graph.output.insert(0, helper.make_tensor_value_info("label", TensorProto.INT64, None))
    if kind == "ZipMap":
        graph.node.append(
            helper.make_node("ZipMap", ["v3"], ["named"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2])
        )
        del graph.output[1]
        graph.output.append(onnx.ValueInfoProto(name="named"))
    path.write_bytes(model.SerializeToString())
    assert (load_network(path).predict(torch.from_numpy(X)).numpy() == expected.argmax(1)).all()


def test_versions_in_which_nodes_meant_something_else_are_refused(tmp_path):
    written(tmp_path / "net.onnx", ROWS, node("Add", numbers(4), opset=6))
    assert "is of version 6, where nodes mean something else; export version 7 or newer" in complaint(
        tmp_path / "net.onnx"
    )


def test_what_is_not_read_is_named_with_the_way_out(tmp_path):
    written(tmp_path / "net.onnx", ROWS, node("Selu"))
    assert "node 'Selu' is a Selu, which is not read; pass the model itself in Python instead" in complaint(
        tmp_path / "net.onnx"
    )
