"""An ONNX file is read as the function that it computes, or refused: types, whole numbers, attributes, batch size."""

import logging
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, defs, helper, numpy_helper
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument

from brittle.common.errors import InputError
from brittle.networks import load_network
from brittle.networks.onnx_attributes import Attributes
from brittle.networks.onnx_file import OLDEST
from brittle.networks.onnx_nodes import NODES
from brittle.networks.onnx_shapes import FOLDS
from tests.networks.test_onnx_runtime import CHAINS, written

X = np.arange(1, 25, dtype=np.float32).reshape(3, 8)
node = helper.make_node


def whole(*values: int, kind: Any = np.int64) -> np.ndarray:
    return np.array(values, dtype=kind)


def saved(path, nodes, constants, shape=(8,), opsets=(("", 18),), kind=TensorProto.FLOAT) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", kind, ["N", *shape])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    imports = [helper.make_opsetid(*each) for each in opsets]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    path.write_bytes(model.SerializeToString())
    return model


def complaint(path) -> str:
    with pytest.raises(InputError) as caught:
        load_network(path)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


def runtime(path, rows: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": rows})[0])


def read(path, rows: np.ndarray) -> np.ndarray:
    return load_network(path).logits(torch.from_numpy(rows.reshape(len(rows), -1))).numpy()


LAYERS = {"W": np.eye(8, dtype=np.float32), "b": np.full(8, 2048, np.float32), "v": np.ones((8, 1), np.float32)}
FIRST = [node("Gemm", ["x", "W", "b"], ["h"]), node("Relu", ["h"], ["r"])]
SHORTER = ["FLOAT16", "BFLOAT16", "INT64", "INT32", "UINT8", "BOOL", "FLOAT8E4M3FN"]


@pytest.mark.parametrize("kind", SHORTER)
def test_a_value_that_is_rounded_to_a_shorter_type_is_refused(kind, tmp_path):
    """Above 2048 the numbers of 16 bits are 2 apart: the file computes a staircase, whose label changes at once."""
    casts = [
        node("Cast", ["r"], ["q"], to=getattr(TensorProto, kind)),
        node("Cast", ["q"], ["f"], to=TensorProto.FLOAT),
        node("MatMul", ["f", "v"], ["y"]),
    ]
    saved(tmp_path / "net.onnx", [*FIRST, *casts], LAYERS)
    assert "casts to something else than floats of 32 or 64 bits" in complaint(tmp_path / "net.onnx")


def test_a_value_may_go_from_32_bits_to_64_and_back(tmp_path):
    casts = [
        node("Cast", ["r"], ["q"], to=TensorProto.DOUBLE),
        node("Cast", ["q"], ["f"], to=TensorProto.FLOAT),
        node("MatMul", ["f", "v"], ["y"]),
    ]
    saved(tmp_path / "net.onnx", [*FIRST, *casts], LAYERS)
    assert np.allclose(read(tmp_path / "net.onnx", X), runtime(tmp_path / "net.onnx", X)[:, 0])


@pytest.mark.parametrize("kind", ["FLOAT16", "BFLOAT16", "INT64"])
def test_an_input_of_another_type_is_refused(kind, tmp_path):
    saved(tmp_path / "net.onnx", [node("Relu", ["x"], ["y"])], {}, kind=getattr(TensorProto, kind))
    assert "not of floats of 32 or 64 bits" in complaint(tmp_path / "net.onnx")


CAST_CONSTANTS = {
    "to half": (np.full(8, 2049.3, np.float32), ["FLOAT16", "FLOAT"]),
    "to bfloat": (np.full(8, 1.01, np.float32), ["BFLOAT16", "FLOAT"]),
    "to whole": (np.linspace(-2.7, 2.7, 8, dtype=np.float32), ["INT32", "FLOAT"]),
    "wrapping": (np.arange(2**32 - 4, 2**32 + 4), ["INT32", "FLOAT"]),
    "to truth": (np.array([0, 1, 2, -1, 0, 0.5, 0, 3], np.float32), ["BOOL", "FLOAT"]),
    "long": (np.full((8, 100), 258), ["UINT8", "FLOAT"]),
}


@pytest.mark.parametrize("name", CAST_CONSTANTS)
def test_a_constant_is_cast_as_the_file_says(name, tmp_path):
    value, kinds = CAST_CONSTANTS[name]
    names = ["a", *(f"c{place}" for place in range(len(kinds)))]
    casts = [
        node("Cast", [before], [after], to=getattr(TensorProto, kind))
        for before, after, kind in zip(names, names[1:], kinds, strict=False)
    ]
    last = node("Mul" if value.ndim == 1 else "MatMul", ["x", names[-1]], ["y"])
    saved(tmp_path / "net.onnx", [*casts, last], {"a": value})
    assert np.array_equal(read(tmp_path / "net.onnx", X), runtime(tmp_path / "net.onnx", X))


HOPELESS = {
    "beyond the type": (
        [node("Cast", ["a"], ["c"], to=TensorProto.INT32)],
        np.full(8, 1e10, np.float32),
        "not hold it",
    ),
    "infinite": ([node("Cast", ["a"], ["c"], to=TensorProto.FLOAT16)], np.full(8, 1e10, np.float32), "infinite"),
    "twice rounded": ([node("Cast", ["a"], ["c"], to=TensorProto.FLOAT16)], np.full(8, 0.1), "64 bits to 16"),
    "a text": ([node("Cast", ["a"], ["c"], to=TensorProto.STRING)], np.full(8, 0.1), "to the type 8"),
    "halves": ([node("Add", ["a", "a"], ["c"])], np.full(8, 0.1, np.float16), "constants in torch.float16"),
    "whole numbers as data": ([node("Identity", ["a"], ["c"])], np.arange(8), "real numbers are needed"),
    "a long whole quotient": ([node("Div", ["a", "a"], ["c"])], np.full((9, 8), 3), "real numbers are needed"),
}


@pytest.mark.parametrize("name", HOPELESS)
def test_constants_that_cannot_be_followed_are_refused(name, tmp_path):
    nodes, value, words = HOPELESS[name]
    saved(tmp_path / "net.onnx", [*nodes, node("Mul", ["x", "c"], ["y"])], {"a": value})
    assert words in complaint(tmp_path / "net.onnx")


ENDS = {"e": whole(2**30), "axis": whole(1), "z": whole(0)}
START = node("Slice", ["x", "q", "e", "axis"], ["y"])
WHOLE_NUMBERS = {
    "a quotient is rounded towards 0": ([node("Div", ["a", "b"], ["q"]), START], whole(-3), whole(2)),
    "of negatives too": ([node("Div", ["a", "b"], ["q"]), START], whole(-7), whole(-2)),
    "which may be exact": ([node("Div", ["a", "b"], ["q"]), START], whole(-6), whole(2)),
    "small numbers wrap": (
        [node("Add", ["a", "b"], ["d"]), node("Cast", ["d"], ["q"], to=TensorProto.INT64), START],
        whole(250, kind=np.uint8), whole(8, kind=np.uint8),
    ),
    "casts wrap": (
        [node("Cast", ["a"], ["c"], to=TensorProto.INT32), node("Cast", ["c"], ["q"], to=TensorProto.INT64), START],
        whole(2**32 + 2), whole(0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE_NUMBERS)
def test_whole_numbers_are_exact_in_their_type(name, tmp_path):
    nodes, first, other = WHOLE_NUMBERS[name]
    saved(tmp_path / "net.onnx", nodes, {"a": first, "b": other, **ENDS}, opsets=[("", 14)])
    expected = runtime(tmp_path / "net.onnx", X)
    assert np.array_equal(read(tmp_path / "net.onnx", X).reshape(expected.shape), expected)


def test_whole_numbers_of_two_types_are_refused(tmp_path):
    nodes = [node("Sub", ["a", "b"], ["q"]), START]
    saved(tmp_path / "net.onnx", nodes, {"a": whole(1), "b": whole(1, kind=np.int32), **ENDS})
    assert "types int64 and int32" in complaint(tmp_path / "net.onnx")


ROWS = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "z"], ["n"])]
FIXED = {"z": whole(0), "one": whole(1), "axis": whole(1), "rest": whole(-1), "eight": whole(8)}
BATCH = {
    "the end of a slice": [node("Slice", ["x", "z", "n", "axis"], ["y"])],
    "a product": [node("Mul", ["n", "one"], ["m"]), node("Concat", ["m", "eight"], ["t"], axis=0),
                  node("Reshape", ["x", "t"], ["y"])],
    "a number to compute with": [node("Cast", ["n"], ["f"], to=TensorProto.FLOAT), node("Div", ["x", "f"], ["y"])],
    "the second place of a shape": [node("Concat", ["rest", "n"], ["t"], axis=0), node("Reshape", ["x", "t"], ["y"])],
    "a place": [node("Gather", ["eight", "n"], ["t"]), node("Slice", ["x", "z", "t", "axis"], ["y"])],
    "a length": [node("ConstantOfShape", ["n"], ["t"], value=numpy_helper.from_array(whole(8))),
                 node("Slice", ["x", "z", "t", "axis"], ["y"])],
}  # fmt: skip


@pytest.mark.parametrize("name", BATCH)
@pytest.mark.parametrize("rows", ["N", 1])
def test_what_depends_on_the_number_of_examples_is_refused(name, rows, tmp_path):
    model = saved(tmp_path / "net.onnx", [*ROWS, *BATCH[name]], FIXED)
    if rows == 1:
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
        (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    words = complaint(tmp_path / "net.onnx")
    assert "number of examples" in words or "mixes the examples" in words


def test_the_number_of_examples_may_begin_a_shape(tmp_path):
    """Through every node that only moves it about."""
    moves = [
        node("Cast", ["s"], ["s32"], to=TensorProto.INT32),
        node("Cast", ["s32"], ["s64"], to=TensorProto.INT64),
        node("Slice", ["s64", "z", "one"], ["first"]),
        node("Unsqueeze", ["first", "z"], ["square"]),
        node("Transpose", ["square"], ["turned"], perm=[1, 0]),
        node("Squeeze", ["turned", "axis"], ["flat"]),
        node("Reshape", ["flat", "rest"], ["again"]),
        node("Concat", ["again", "four", "rest"], ["t"], axis=0),
        node("Reshape", ["x", "t"], ["h"]),
        node("Flatten", ["h"], ["f"]),
        node("MatMul", ["f", "W"], ["y"]),
    ]
    constants = {**FIXED, "four": whole(4), "W": np.eye(8, dtype=np.float32)}
    saved(tmp_path / "net.onnx", [node("Shape", ["x"], ["s"]), *moves], constants)
    assert np.array_equal(read(tmp_path / "net.onnx", X), runtime(tmp_path / "net.onnx", X))


def test_a_shape_of_what_mixes_the_examples_is_refused(tmp_path):
    """The number of examples would hide behind another axis."""
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 0]),
        node("Shape", ["t"], ["s"], start=1),
        node("Slice", ["x", "z", "s", "axis"], ["y"]),
    ]
    saved(tmp_path / "net.onnx", nodes, FIXED)
    assert "does not keep the examples of a batch apart" in complaint(tmp_path / "net.onnx")


@pytest.mark.parametrize("opsets", [(("", 18), ("", 12)), (("ai.onnx", 12), ("", 18)), ()])
def test_the_version_of_the_operators_is_named_once(opsets, tmp_path):
    saved(tmp_path / "net.onnx", [node("Softmax", ["x"], ["y"])], {}, opsets=opsets)
    assert f"names {len(opsets)} versions of the standard operators" in complaint(tmp_path / "net.onnx")


def test_unknown_versions_and_standard_operators_of_the_file_itself_are_refused(tmp_path):
    path = tmp_path / "net.onnx"
    saved(path, [node("Relu", ["x"], ["y"])], {}, opsets=[("", 10**6)])
    assert "is of version 1000000; the installed onnx knows versions up to" in complaint(path)
    model = saved(path, [node("Relu", ["x"], ["y"])], {})
    model.functions.append(helper.make_function("", "Relu", ["a"], ["b"], [node("Neg", ["a"], ["b"])], []))
    path.write_bytes(model.SerializeToString())
    assert "defines the standard operator 'Relu' anew" in complaint(path)


def test_an_empty_slice_gets_one_line(tmp_path):
    nodes = [node("Slice", ["x", "z", "z", "axis"], ["h"]), node("ReduceSum", ["h", "axis"], ["y"])]
    saved(tmp_path / "net.onnx", nodes, FIXED)
    assert "'slice' leaves nothing of an example" in complaint(tmp_path / "net.onnx")


@pytest.mark.parametrize("training", [True, False])
def test_a_dropout_in_training_mode_is_noted(training, tmp_path, caplog):
    constants = {"ratio": np.float32(0.5), "training": np.array(training)}
    saved(tmp_path / "net.onnx", [node("Dropout", ["x", "ratio", "training"], ["y"], seed=1)], constants)
    with caplog.at_level(logging.WARNING, "brittle"):
        assert np.array_equal(read(tmp_path / "net.onnx", X), X)
    assert [message for message in caplog.messages if "Dropout is in training mode" in message] == caplog.messages
    assert len(caplog.messages) == training


OPERATORS = sorted({*NODES, *FOLDS, "Shape"})
HARMLESS = {"momentum", "seed", "ratio", "noop_with_empty_axes"}


def definitions(kind: str) -> list[Any]:
    """Of the operator in every version that is read."""
    found = {defs.get_schema(kind, version, "").since_version: version for version in versions(kind)}
    return [defs.get_schema(kind, version, "") for version in found.values()]


def versions(kind: str) -> list[int]:
    since = [
        each.since_version for each in defs.get_all_schemas_with_history() if (each.domain, each.name) == ("", kind)
    ]
    return list(range(max(OLDEST, min(since)), defs.onnx_opset_version() + 1))


@pytest.mark.parametrize("kind", OPERATORS)
def test_no_attribute_of_any_operator_is_ignored(kind):
    """In every version: what was not asked for is refused, unless it is the default; so is what does not exist."""
    for schema in definitions(kind):
        inputs = ["x"] * schema.min_input
        for name, attribute in schema.attributes.items():
            other = helper.make_attribute(name, *[VALUES[int(attribute.type.value)]])
            stored = node(kind, inputs, ["y"])
            stored.attribute.append(other)
            with pytest.raises(InputError, match=f"'{name}'"):
                Attributes(stored, schema.since_version).finished()
            if attribute.default_value.name:
                stored.attribute[0].CopyFrom(attribute.default_value)
                Attributes(stored, schema.since_version).finished()
            stored.attribute[0].CopyFrom(helper.make_attribute(name, "text" if attribute.type.value != 3 else 1))
            with pytest.raises(InputError, match="of another type"):
                Attributes(stored, schema.since_version)
        with pytest.raises(InputError, match="'unknown'"):
            Attributes(node(kind, inputs, ["y"], unknown=1), schema.since_version)
        twice = node(kind, inputs, ["y"])
        twice.attribute.extend([helper.make_attribute("axis", 1)] * 2)
        with pytest.raises(InputError, match="two attributes of one name"):
            Attributes(twice, schema.since_version)


VALUES = {1: 0.123, 2: 97, 3: "other", 4: numpy_helper.from_array(whole(97)), 7: [97, 98]}


@pytest.mark.parametrize("name", CHAINS)
def test_every_attribute_of_a_node_is_read_or_refused(name, tmp_path):
    """One attribute after the other is changed: the file is refused, or onnxruntime computes what was read."""
    shape, *nodes = CHAINS[name]
    model = written(tmp_path / "net.onnx", shape, *nodes)
    rows = np.random.default_rng(1).normal(size=(3, *shape)).astype(np.float32)
    for place, stored in enumerate(model.graph.node):
        schema = defs.get_schema(stored.op_type, model.opset_import[0].version, "")
        for attribute in schema.attributes.values():
            if attribute.name in HARMLESS:
                continue
            for value in OTHERS[int(attribute.type.value)]:
                changed = onnx.ModelProto.FromString(model.SerializeToString())
                kept = [each for each in stored.attribute if each.name != attribute.name]
                del changed.graph.node[place].attribute[:]
                changed.graph.node[place].attribute.extend([*kept, helper.make_attribute(attribute.name, value)])
                (tmp_path / "net.onnx").write_bytes(changed.SerializeToString())
                try:
                    logits = load_network(tmp_path / "net.onnx").logits(torch.from_numpy(rows.reshape(3, -1)))
                    expected = runtime(tmp_path / "net.onnx", rows)
                except (InputError, Fail, InvalidArgument):
                    continue
                assert np.allclose(logits.numpy().ravel(), expected.ravel(), rtol=1e-3, atol=1e-4), (
                    attribute.name,
                    value,
                )


OTHERS: dict[int, list[Any]] = {
    1: [0.25], 2: [0, 1, 2], 3: ["tanh", "VALID", "SAME_UPPER"], 4: [], 7: [[1], [2, 1], [0, 1, 1, 0], [0, 2, 1, 3]],
}  # fmt: skip


def test_an_input_that_nobody_reads_is_refused(tmp_path):
    path = tmp_path / "net.onnx"
    saved(path, [node("Relu", ["x", "a"], ["y"])], {"a": X[0]})
    assert "takes 2 inputs; 1 are the most" in complaint(path)


def test_a_value_of_two_sources_is_refused(tmp_path):
    path = tmp_path / "net.onnx"
    model = saved(path, [node("Add", ["x", "a"], ["y"])], {"a": X[0]})
    model.graph.initializer.append(numpy_helper.from_array(X[1], "a"))
    path.write_bytes(model.SerializeToString())
    assert "the value 'a' is computed twice" in complaint(path)
    saved(path, [node("Shape", ["x"], ["a"]), node("Add", ["x", "a"], ["y"])], {"a": X[0]})
    assert "the value 'a' is computed twice" in complaint(path)


HARD = {
    "Clip": ([node("Clip", ["h", "low", "high"], ["y"])], [0.0, 1.0]),
    "HardSigmoid": ([node("HardSigmoid", ["h"], ["y"], alpha=0.25, beta=0.5)], []),
    "Relu and Min": ([node("Relu", ["h"], ["r"]), node("Min", ["r", "high"], ["y"])], [0.0, 1.0]),
}


@pytest.mark.parametrize("name", HARD)
def test_one_probability_of_relus_decides_at_a_half(name, tmp_path, caplog):
    nodes, limits = HARD[name]
    constants = dict(zip(("low", "high"), map(np.float32, limits), strict=False))
    constants |= {"W": np.linspace(-0.4, 0.4, 8, dtype=np.float32)[:, None], "b": np.full(1, 0.2, np.float32)}
    saved(tmp_path / "net.onnx", [node("Gemm", ["x", "W", "b"], ["h"]), *nodes], constants)
    rows = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    with caplog.at_level(logging.WARNING, "brittle"):
        network = load_network(tmp_path / "net.onnx")
    assert any("the label changes at 1/2" in message for message in caplog.messages)
    expected = runtime(tmp_path / "net.onnx", rows)[:, 0] > 0.5
    assert 20 < expected.sum() < 180
    assert np.array_equal(network.predict(torch.from_numpy(rows)).numpy() > 0, expected)


def test_what_is_made_of_a_file_does_not_take_the_names_in_it(tmp_path):
    """The transposed weights got a name that an array of the file may have."""
    constants = {"W": np.arange(64, dtype=np.float32).reshape(8, 8), **{f"h:{n}": X[0] + n for n in range(10, 40)}}
    nodes = [node("MatMul", ["x", "W"], ["h"]), node("Sum", ["h", *(f"h:{n}" for n in range(10, 40))], ["y"])]
    saved(tmp_path / "net.onnx", nodes, constants)
    assert np.allclose(read(tmp_path / "net.onnx", X), runtime(tmp_path / "net.onnx", X))


def test_weights_that_many_layers_share_are_kept_once(tmp_path):
    names = ["x", *(f"h{place}" for place in range(60)), "y"]
    nodes = [node("MatMul", [a, "W"], [b]) for a, b in pairwise(names)]
    saved(tmp_path / "net.onnx", nodes, {"W": np.eye(600, dtype=np.float32)}, shape=(600,))
    load_network(tmp_path / "net.onnx")
