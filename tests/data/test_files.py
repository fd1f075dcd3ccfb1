"""Data files give back what was saved; a malformed one ends in one line that names the file and the array."""

import io
import pickle
import zipfile
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, from_dtype

from brittle import InputError
from brittle.data import Clusters, Data, DataInfo, File, Sphere, Subspace, as_data, load_data, save_data
from tests.cases import SETTINGS
from tests.data.test_truth import sampled
from tests.data.truths import by_name, read_or_refused

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
Y = np.array([1.0, -1.0, 1.0])


def write(path, **content):
    np.savez(path, **content)
    return path


def complaint(path) -> str:
    """The one line about a file that cannot be read."""
    message = read_or_refused(path)
    assert message != "read"
    return message.removeprefix(str(path))


def assert_same(first: Data, second: Data) -> None:
    for part, other, kind in ((first, second, Data), (first.truth, second.truth, DataInfo)):
        for field in fields(kind):
            a, b = getattr(part, field.name), getattr(other, field.name)
            if isinstance(a, torch.Tensor):
                assert a.dtype == b.dtype
                assert torch.equal(a, b)
            elif field.name != "truth":
                assert a == b, field.name


@pytest.mark.parametrize("setting", by_name(SETTINGS))
def test_every_setting_survives_its_file(setting, rng, tmp_path):
    data = sampled(setting, rng)
    data = data if len(data) < 1000 else data.take(torch.arange(50))
    save_data(data, tmp_path / "data.npz")
    assert_same(data, load_data(tmp_path / "data.npz"))


@pytest.mark.parametrize("setting", [Sphere(10**9), Clusters(10**9, clusters=3), Subspace(10**9, 10**8)])
def test_data_in_their_span_survive_their_file(setting, rng, tmp_path):
    data = setting.sample(10, rng, test=3, in_span=True)
    save_data(data, tmp_path / "data.npz")
    again = load_data(tmp_path / "data.npz")
    assert_same(data, again)
    assert again.in_span


finite = from_dtype(np.dtype(float), allow_nan=False, allow_infinity=False)


@given(X=arrays(float, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=finite), data=st.data())
def test_any_finite_numbers_and_any_labels_survive(X, data, tmp_path_factory):
    labels = data.draw(st.sampled_from([st.sampled_from([-1.0, 1.0]), st.integers(0, 9)]))
    y = data.draw(st.lists(labels, min_size=len(X), max_size=len(X)))
    original = Data(torch.from_numpy(X), torch.tensor(y))
    path = tmp_path_factory.mktemp("files") / "data.npz"
    save_data(original, path)
    assert_same(original, load_data(path))


@given(
    X=arrays(float, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)),
    y=arrays(
        st.sampled_from([np.float64, np.int64, np.int8, np.bool_]), array_shapes(min_dims=0, max_dims=2, min_side=0)
    ),
)
def test_any_arrays_are_read_or_refused_in_one_line(X, y, tmp_path_factory):
    path = write(tmp_path_factory.mktemp("files") / "data.npz", X=X, y=y)
    if read_or_refused(path) == "read":
        data = load_data(path)
        assert data.X.shape == X.shape
        assert torch.isfinite(data.X).all()
        assert len(data.y) == len(X)


BAD_ARRAYS = [
    ({"X": X}, "'y' is missing"),
    ({"y": Y}, "'X' is missing"),
    ({"X": X[0], "y": Y}, "array X has shape (2,)"),
    ({"X": X, "y": X}, "array y has shape (3, 2)"),
    ({"X": X, "y": Y[:2]}, "array y has 2 labels for 3 examples"),
    ({"X": X[:0], "y": Y[:0]}, "array X has no rows"),
    ({"X": X[:, :0], "y": Y}, "array X has no columns"),
    ({"X": X > 2, "y": Y}, "array X has type torch.bool"),
    ({"X": X.astype(complex), "y": Y}, "array 'X' has type complex128"),
    ({"X": X.astype(str), "y": Y}, "array 'X' has type <U"),
    ({"X": X.astype("datetime64[s]"), "y": Y}, "array 'X' has type datetime64"),
    ({"X": np.where(X > 5, np.nan, X), "y": Y}, "array X holds NaN or infinity in 1 of 3 rows"),
    ({"X": np.where(X > 5, np.inf, X), "y": Y}, "array X holds NaN or infinity in 1 of 3 rows"),
    ({"X": X, "y": abs(Y) * 2.5}, "array y holds 2.5; labels are"),
    ({"X": X, "y": np.array([0.5, 1, 0])}, "array y holds 0.5; labels are"),
    ({"X": X, "y": np.array([-1, 1, 0])}, "array y holds 0; labels are"),
    ({"X": X, "y": np.array([np.nan, 1, 0])}, "array y holds nan; labels are"),
    ({"X": X, "y": np.array([0, 1, 10**12])}, "array y holds 1e+12; labels are"),
    ({"X": X, "y": np.array([0, 1, 2**64 - 1], np.uint64)}, "array y holds "),
    ({"X": X, "y": Y, "X_test": X}, "X_test and y_test belong together"),
    ({"X": X, "y": Y, "X_test": X[:, :1], "y_test": Y}, "array X_test has 1 columns"),
    ({"X": X, "y": Y, "X_test": X, "y_test": Y * 3}, "array y_test holds "),
    ({"X": X, "y": Y, "X_test": X * np.nan, "y_test": Y}, "array X_test holds NaN"),
    ({"X": X, "y": Y, "means": X[:, :1]}, "array means has shape (3, 1)"),
    ({"X": X, "y": Y, "means": X * np.inf}, "means holds NaN"),
    ({"X": X, "y": Y, "means": X, "mean_labels": Y * 2}, "mean_labels must be -1 and 1"),
    ({"X": X, "y": Y, "means": X, "mean_labels": Y[:2]}, "array mean_labels has shape (2,)"),
    ({"X": X, "y": Y, "means": X, "cluster": np.array([0, 1, 3])}, "array cluster holds 3"),
    ({"X": X, "y": Y, "cluster": np.array([0, -1, 3])}, "array cluster holds -1"),
    ({"X": X, "y": Y, "cluster": np.array([0, 0.5, 3])}, "cluster must hold whole numbers"),
    ({"X": X, "y": Y, "cluster": np.array([0, 1])}, "array cluster has shape (2,)"),
    ({"X": X, "y": Y, "cluster": np.zeros(0)}, "cluster must hold whole numbers"),
    ({"X": X, "y": Y, "cluster_test": np.array([0, 1])}, "cluster_test is given without test examples"),
    ({"X": X, "y": Y, "basis": X}, "basis must have orthonormal columns"),
    ({"X": X, "y": Y, "basis": np.eye(3)}, "array basis has shape (3, 3)"),
    ({"X": X, "y": Y, "basis": np.ones(2)}, "array basis has shape (2,)"),
    ({"X": X, "y": Y, "complement": np.ones((2, 1))}, "complement must have orthonormal columns"),
    ({"X": X, "y": Y, "offset": np.ones(3)}, "array offset has shape (3,)"),
    ({"X": X, "y": Y, "dim": 1}, "array dim is 1; it must be at least the 2 columns"),
    ({"X": X, "y": Y, "dim": np.array([3, 4])}, "dim must be one whole number"),
    ({"X": X, "y": Y, "dim": 2.5}, "dim must hold whole numbers"),
    ({"X": X, "y": Y, "codimension": 5}, "array codimension is 5"),
    ({"X": X, "y": Y, "noise": -1.0}, "noise must be one number of at least 0"),
    ({"X": X, "y": Y, "radius": np.ones(2)}, "radius must be one number"),
    ({"X": X, "y": Y, "image": np.array([28, 28])}, "array image is (28, 28)"),
    ({"X": X, "y": Y, "image": np.array([-1, -2])}, "image must be the shape"),
    ({"X": X, "y": np.array([0, "a", 1], object)}, "array 'y' holds pickled objects"),
]


@pytest.mark.parametrize(("content", "words"), BAD_ARRAYS, ids=[words for _, words in BAD_ARRAYS])
def test_bad_arrays_are_named(content, words, tmp_path):
    assert words in complaint(write(tmp_path / "data.npz", **content))


def test_unknown_arrays_are_left_alone(tmp_path):
    path = write(tmp_path / "data.npz", X=X, y=Y, notes=np.array(["a"], object))
    assert len(load_data(path)) == 3


def test_labels_of_one_sign_follow_the_others(tmp_path):
    path = write(tmp_path / "data.npz", X=X, y=np.array([1, -1, 1]), X_test=X, y_test=np.array([1, 1, 1]))
    assert load_data(path).y_test.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("compressed", [False, True])
def test_a_damaged_archive_never_ends_in_a_traceback(compressed, tmp_path):
    """Truncated anywhere, or with any byte of a small file turned round: read unharmed or refused in one line."""
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, X=X, y=Y)
    whole = stream.getvalue()
    path = tmp_path / "data.npz"
    damaged = [whole[:size] for size in range(0, len(whole), 7)]
    damaged += [whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :] for place in range(0, len(whole), 3)]
    ends = []
    for content in damaged:
        path.write_bytes(content)
        ends.append(read_or_refused(path))
    assert ends.count("read") < len(ends) / 2


def npy(shape: tuple, dtype: str = "<f8", content: bytes = b"") -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue() + content


@pytest.mark.parametrize("shape", [(10**9, 10**9), (2**62, 4), (3, 3)])
def test_an_absurd_declared_shape_is_refused_before_any_memory_is_taken(shape, tmp_path):
    path = tmp_path / "data.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", npy(shape, content=bytes(48)))
        archive.writestr("y.npy", npy((3,), content=bytes(24)))
    assert "array 'X' " in complaint(path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("data.npz", b"", "not a complete .npz"),
        ("data.npz", b"no archive at all", "not a complete .npz"),
        ("data.npz", pickle.dumps({"X": 1}), "not a complete .npz"),
        ("data.pt", b"", "plain tensors"),
        ("data.pt", b"no archive at all", "plain tensors"),
        ("data.pt", pickle.dumps(print), "plain tensors"),
        ("data.txt", b"1 2 3", "the suffix is '.txt'"),
        ("data", b"1 2 3", "the suffix is ''"),
    ],
)
def test_what_is_no_data_file_is_refused(name, content, words, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    assert words in complaint(path)


def test_a_file_must_be_there(tmp_path):
    assert "no such file" in complaint(tmp_path / "data.npz")
    assert "has no pictures" in complaint(tmp_path)


@pytest.mark.parametrize("form", [dict, tuple])
def test_tensors_are_read_from_pt(form, tmp_path):
    tensors = (torch.from_numpy(X).float(), torch.from_numpy(Y).int())
    torch.save(dict(zip("Xy", tensors, strict=True)) if form is dict else tensors, tmp_path / "data.pt")
    data = load_data(tmp_path / "data.pt")
    assert data.X.dtype == torch.float64
    assert data.X.tolist() == X.tolist()
    assert data.y.tolist() == Y.tolist()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (torch.eye(2), "must hold a dictionary"),
        ({"X": torch.eye(2)}, "'y' is missing"),
        ({"X": torch.eye(2), "y": "text"}, "array 'y' has type str"),
        ({"X": torch.eye(2), "y": {"a": 1}}, "array 'y' has type dict"),
        ({"X": torch.eye(2).to_sparse(), "y": torch.ones(2)}, "dense real tensor"),
        ({"X": torch.eye(2) * torch.nan, "y": torch.ones(2)}, "array X holds NaN"),
    ],
)
def test_bad_tensors_are_named(content, words, tmp_path):
    torch.save(content, tmp_path / "data.pt")
    assert words in complaint(tmp_path / "data.pt")


def test_two_classes_become_signs(tmp_path):
    path = write(tmp_path / "data.npz", X=X, y=np.array([4, 7, 9]))
    assert File(path, classes=(9, 4)).load().y.tolist() == [1.0, -1.0]
    with pytest.raises(InputError, match=r"data\.npz: there are no examples of the class 5; there are 4, 7, 9"):
        File(path, classes=(5, 4)).load()


@pytest.mark.parametrize("name", ["data.csv", "data", "missing/data.npz"])
def test_data_are_written_as_npz_or_not_at_all(name, tmp_path):
    with pytest.raises(InputError):
        save_data(Data(torch.from_numpy(X), torch.from_numpy(Y)), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@given(column=st.integers(0, 3), value=st.sampled_from([np.nan, np.inf, -np.inf]))
def test_a_truth_of_nonsense_is_refused(column, value, tmp_path_factory):
    truth = replace(DataInfo(), offset=torch.tensor([0.0, 1.0]))
    path = tmp_path_factory.mktemp("files") / "data.npz"
    save_data(Data(torch.from_numpy(X), torch.from_numpy(Y), truth=truth), path)
    assume(load_data(path).truth.offset is not None)
    names = ("offset", "noise", "radius", "coherence")
    shape = (2,) if column == 0 else ()
    write(path, X=X, y=Y, **{names[column]: np.full(shape, value)})
    assert names[column] in complaint(path)


def test_columns_keep_the_names_that_a_table_gives_them(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"age": [1.0, 2.0, 3.0], "kind": ["a", "b", "a"], "dose": [0.5, 0.25, 1.0]})
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        data = File(tmp_path / name, label="kind").load()
        assert data.truth.features == ("age", "dose")
        assert data.X[:, 1].tolist() == [0.5, 0.25, 1.0]
    save_data(data, tmp_path / "again.npz")
    assert load_data(tmp_path / "again.npz").truth.features == ("age", "dose")
    assert as_data(table, "kind").truth.features == ("age", "dose")
    (tmp_path / "plain.csv").write_text("1,2,0\n3,4,1\n")
    assert load_data(tmp_path / "plain.csv").truth.features is None


def test_a_name_for_every_column_or_none():
    with pytest.raises(InputError, match="features are 1 names"):
        Data([[1.0, 2.0], [2.0, 1.0]], [-1.0, 1.0], truth=DataInfo(features=("age",)))
