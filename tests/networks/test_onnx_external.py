"""Arrays of an ONNX file in a file beside it, as torch.onnx.export and onnx.save write them, and what is refused."""

import os

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from brittle.common.errors import InputError
from brittle.networks import load_network
from tests.networks.test_onnx_runtime import LAST, ROWS, computed, node, numbers, written

DATA = "net.onnx.data"
X = numbers(5, *ROWS)


def apart(folder, **options) -> onnx.ModelProto:
    """A network of two layers whose arrays lie in DATA; the model as it is in the file."""
    model = written(folder / "net.onnx", ROWS, node("Gemm", numbers(4, 4), numbers(4)), node("Relu"), LAST)
    settings = {"save_as_external_data": True, "location": DATA, "size_threshold": 0, **options}
    onnx.save(model, folder / "net.onnx", **settings)
    return onnx.load(folder / "net.onnx", load_external_data=False)


def renamed(folder, model, **entries) -> str:
    """The complaint about a model whose first array names other things about its file; None leaves one away."""
    array = model.graph.initializer[0]
    kept = {each.key: each.value for each in array.external_data} | entries
    del array.external_data[:]
    for key, value in kept.items():
        if value is not None:
            array.external_data.add(key=key, value=value)
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(InputError) as caught:
        load_network(folder / "net.onnx")
    words = str(caught.value)
    assert words.startswith(f"{folder / 'net.onnx'}: array 'c0_0'")
    assert words.isprintable()
    return words


@pytest.mark.parametrize("single", [True, False])
def test_arrays_beside_the_file_are_read(single, tmp_path):
    apart(tmp_path, all_tensors_to_one_file=single)
    assert len(list(tmp_path.iterdir())) == (2 if single else 5)
    read = load_network(tmp_path / "net.onnx").logits(torch.from_numpy(X)).numpy()
    assert np.allclose(read, computed(tmp_path / "net.onnx", X), atol=1e-5)


def test_the_folder_is_that_of_the_file(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    apart(tmp_path / "inner")
    monkeypatch.chdir(tmp_path)
    load_network("inner/net.onnx")
    monkeypatch.chdir(tmp_path / "inner")
    load_network("net.onnx")


def test_constants_among_the_nodes_may_lie_there_too(tmp_path):
    array = numpy_helper.from_array(numbers(4), "c")
    (tmp_path / DATA).write_bytes(bytes(8) + array.raw_data)
    array.ClearField("raw_data")
    array.data_location = TensorProto.EXTERNAL
    for key, value in (("location", DATA), ("offset", "8")):  # the length follows from the shape
        array.external_data.add(key=key, value=value)
    nodes = [helper.make_node("Constant", [], ["c"], value=array), helper.make_node("Add", ["x", "c"], ["y"])]
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4])] for name in ("x", "y")]
    model = helper.make_model(helper.make_graph(nodes, "graph", *ends), ir_version=8)
    model.opset_import[0].version = 18
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    read = load_network(tmp_path / "net.onnx").logits(torch.from_numpy(X)).numpy()
    assert np.array_equal(read.astype(np.float32), computed(tmp_path / "net.onnx", X))


ELSEWHERE = [
    "../secret", "/etc/passwd", "inner/secret", "..\\secret", "C:secret", "..", ".", "", "a\nb", "a\0b", "x" * 256,
]  # fmt: skip


@pytest.mark.parametrize("name", ELSEWHERE, ids=range(len(ELSEWHERE)))
def test_only_plain_names_of_the_same_folder_are_followed(name, tmp_path):
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    model = apart(folder)
    for place in (tmp_path / "secret", folder / "inner" / "secret"):
        place.write_bytes((folder / DATA).read_bytes())
    assert "which is no file of the same folder" in renamed(folder, model, location=name)


def test_no_link_folder_or_pipe_is_read(tmp_path):
    model = apart(tmp_path)
    (tmp_path / "kept").write_bytes((tmp_path / DATA).read_bytes())
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "inner").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert "cannot be read (it is a link)" in renamed(tmp_path, model, location="link")
    assert "cannot be read (it is a link)" in renamed(tmp_path, model, location="loop")
    assert "'pipe', which is no plain file" in renamed(tmp_path, model, location="pipe")
    assert "in 'inner'" in renamed(tmp_path, model, location="inner")
    assert "in 'none', which cannot be read (No such file" in renamed(tmp_path, model, location="none")


SIZES = [
    ({"offset": "-4"}, "'-4' as the offset"),
    ({"offset": "1e3"}, "'1e3' as the offset"),
    ({"offset": "٤"}, "'٤' as the offset"),
    ({"offset": "9" * 5000}, "as the offset"),
    ({"offset": "1000000"}, "which holds"),
    ({"length": "60"}, "needs 64 bytes, and 60 are named"),
    ({"length": "68"}, "needs 64 bytes, and 68 are named"),
    ({"length": ""}, "'' as the length"),
]


@pytest.mark.parametrize(("entries", "words"), SIZES, ids=range(len(SIZES)))
def test_places_and_sizes_are_held_against_the_file_and_the_array(entries, words, tmp_path):
    assert words in renamed(tmp_path, apart(tmp_path), **entries)


def test_a_file_that_was_cut_short_is_refused(tmp_path):
    model = apart(tmp_path)
    with (tmp_path / DATA).open("r+b") as stream:
        stream.truncate(20)
    assert "which holds 20 bytes" in renamed(tmp_path, model)


def test_an_array_has_one_source(tmp_path):
    model = apart(tmp_path)
    model.graph.initializer[0].raw_data = bytes(64)
    assert "lies in parts, or in a file that is not read" in renamed(tmp_path, model)
    model.graph.initializer[0].ClearField("raw_data")
    model.graph.initializer[0].external_data.add(key="location", value="other")
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match="names one thing about its file twice"):
        load_network(tmp_path / "net.onnx")


def test_one_place_that_many_arrays_share_is_within_the_budget(tmp_path):
    """A megabyte that 200 arrays name would be 200 megabytes."""
    count = 200
    (tmp_path / "zeros").write_bytes(bytes(2**20))
    arrays = []
    for place in range(count):
        array = TensorProto(name=f"c{place}", data_type=TensorProto.FLOAT, dims=[2**18], data_location=1)
        array.external_data.add(key="location", value="zeros")
        arrays.append(array)
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4])] for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "graph", *ends, arrays)
    model = helper.make_model(graph, ir_version=8)
    model.opset_import[0].version = 18
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match="the arrays in 'zeros' would unpack to too much"):
        load_network(tmp_path / "net.onnx")


def test_a_quantised_network_gets_one_line(tmp_path):
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4])] for name in ("x", "y")]
    model = helper.make_model(helper.make_graph(nodes, "graph", *ends), ir_version=8)
    model.opset_import[0].version = 18
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match="is a DynamicQuantizeLinear, which is not read"):
        load_network(tmp_path / "net.onnx")
