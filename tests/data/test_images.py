"""Pictures from their original files: what they hold, and what is refused."""

import gzip
import io
import os
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from brittle import InputError
from brittle.data import Cifar10, Digits, FashionMnist, Mnist

PARTS = [(f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte") for part in ("train", "t10k")]


def idx(array: np.ndarray, magic: int | None = None) -> bytes:
    head = struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim if magic is None else magic, *array.shape)
    return head + array.astype(np.uint8).tobytes()


@pytest.fixture
def small_mnist(tmp_path) -> Path:
    """Six training and three test pictures of 2 × 3 pixels: example i has the label i and the pixels i, i+1, ..."""
    for (images, labels), count in zip(PARTS, (6, 3), strict=True):
        pixels = np.arange(count)[:, None, None] + np.arange(6).reshape(2, 3)
        (tmp_path / f"{images}.gz").write_bytes(gzip.compress(idx(pixels)))
        (tmp_path / f"{labels}.gz").write_bytes(gzip.compress(idx(np.arange(count))))
    return tmp_path


def test_idx_files_are_read(small_mnist):
    data = Mnist(folder=small_mnist, verify=False).load()
    assert data.X.shape == (6, 6)
    assert data.X[2].tolist() == [pixel / 255 for pixel in range(2, 8)]
    assert data.y.tolist() == [0, 1, 2, 3, 4, 5]
    assert data.y_test.tolist() == [0, 1, 2]
    assert data.truth.image == (2, 3)


def test_unpacked_idx_files_are_read(small_mnist):
    for path in list(small_mnist.iterdir()):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    assert len(FashionMnist(folder=small_mnist).load()) == 6


def test_files_that_are_not_the_original_ones_are_refused(small_mnist):
    with pytest.raises(InputError, match=r"train-images-idx3-ubyte\.gz: its SHA-256 is not the original file's"):
        Mnist(folder=small_mnist).load()


IMAGES = idx(np.zeros((6, 2, 3)))
BAD_IDX = [
    ("train-images-idx3-ubyte", gzip.compress(IMAGES)[:-9], "not a complete gzip file"),
    ("train-images-idx3-ubyte", b"plain text", "not a complete gzip file"),
    ("train-images-idx3-ubyte", gzip.compress(b"short"), "ends within its header"),
    (
        "train-images-idx3-ubyte",
        gzip.compress(idx(np.zeros((6, 2, 3)), 2049)),
        "begins with the number 2049; 2051 marks",
    ),
    ("train-images-idx3-ubyte", gzip.compress(IMAGES[:-1]), "declares 36 bytes and holds 35"),
    ("train-images-idx3-ubyte", gzip.compress(IMAGES + b"x"), "declares 36 bytes and holds more"),
    ("train-images-idx3-ubyte", gzip.compress(idx(np.zeros((0, 2, 3)))), "not a set of pictures"),
    ("train-images-idx3-ubyte", gzip.compress(struct.pack(">4I", 2051, 2**31, 2**31, 4)), "not a set of pictures"),
    ("train-labels-idx1-ubyte", gzip.compress(idx(np.zeros(5))), "holds 5 labels for 6 pictures"),
    ("train-labels-idx1-ubyte", gzip.compress(idx(np.full(6, 10))), "holds the label 10"),
    ("t10k-images-idx3-ubyte", gzip.compress(idx(np.zeros((3, 3, 3)))), r"training pictures are \(2, 3\)"),
    ("t10k-labels-idx1-ubyte", None, "no such file; run: brittle data fetch mnist"),
]


@pytest.mark.parametrize(("name", "content", "words"), BAD_IDX, ids=[words for *_, words in BAD_IDX])
def test_bad_idx_files_are_named(small_mnist, name, content, words):
    path = small_mnist / f"{name}.gz"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        Mnist(folder=small_mnist, verify=False).load()
    assert str(small_mnist) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_folder_says_how_to_get_it(tmp_path):
    with pytest.raises(InputError, match="no such folder; run: brittle data fetch cifar10"):
        Cifar10(folder=tmp_path / "nothing").load()
    with pytest.raises(InputError, match="CIFAR-10 is not there; run: brittle data fetch cifar10"):
        Cifar10(folder=tmp_path).load()


BATCHES = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]


def batch(number: int) -> tuple[np.ndarray, list[int]]:
    """Two pictures: their first pixels are the number of the batch, their labels 0 and that number."""
    pixels = np.zeros((2, 3072), np.uint8)
    pixels[:, 0] = number
    return pixels, [0, number]


def binary(number: int) -> bytes:
    pixels, labels = batch(number)
    return b"".join(bytes([label]) + row.tobytes() for row, label in zip(pixels, labels, strict=True))


def pickled(number: int, protocol: int = 2) -> bytes:
    pixels, labels = batch(number)
    return pickle.dumps({b"data": pixels, b"labels": labels, b"filenames": [b"a", b"b"]}, protocol=protocol)


def as_python_2(content: bytes) -> bytes:
    """The module's old name, which the original files carry."""
    return content.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


FORMS = {
    "binary": (binary, ".bin", "cifar-10-batches-bin", "cifar-10-binary.tar.gz"),
    "python": (pickled, "", "cifar-10-batches-py", "cifar-10-python.tar.gz"),
    "python 2": (lambda number: as_python_2(pickled(number)), "", "cifar-10-batches-py", "cifar-10-python.tar.gz"),
}


def lay(folder: Path, form: str, place: str) -> None:
    """The six batches of a form: as loose files, in their folder, or in the archive."""
    make, suffix, inside, archive = FORMS[form]
    contents = {f"{inside}/{name}{suffix}": make(number) for number, name in enumerate(BATCHES, 1)}
    if place == "archive":
        with tarfile.open(folder / archive, "w:gz") as stream:
            for name, content in contents.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                stream.addfile(info, io.BytesIO(content))
        return
    (folder / inside).mkdir()
    for name, content in contents.items():
        (folder / (name if place == "folder" else Path(name).name)).write_bytes(content)


@pytest.mark.parametrize("place", ["loose", "folder", "archive"])
@pytest.mark.parametrize("form", FORMS)
def test_cifar_is_read_in_every_form(form, place, tmp_path):
    lay(tmp_path, form, place)
    data = Cifar10(folder=tmp_path, verify=False).load()
    assert data.X.shape == (10, 3072)
    assert (data.X[:, 0] * 255).round().tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert data.y.tolist() == [0, 1, 0, 2, 0, 3, 0, 4, 0, 5]
    assert data.y_test.tolist() == [0, 6]
    assert data.truth.image == (3, 32, 32)


def test_a_foreign_archive_is_refused(tmp_path):
    lay(tmp_path, "binary", "archive")
    with pytest.raises(InputError, match=r"cifar-10-binary\.tar\.gz: its SHA-256 is not the original file's"):
        Cifar10(folder=tmp_path).load()


class Touch:
    """A pickle that would run a command."""

    def __reduce__(self):
        return os.system, ("touch stolen",)


BAD_BATCHES = [
    ("binary", b"", "holds 0 bytes"),
    ("binary", bytes(3072), "holds 3072 bytes; a whole number of 3073-byte pictures"),
    ("binary", bytes([10]) + bytes(3072), "holds the label 10"),
    ("python", pickle.dumps({b"data": Touch(), b"labels": [1]}, 2), r"holds (posix|nt)\.system, which"),
    ("python", pickled(1)[:-50], "is not a complete CIFAR-10 batch"),
    ("python", b"plain text", "is not a complete CIFAR-10 batch"),
    ("python", pickle.dumps([1, 2], 2), "must hold a dictionary"),
    ("python", pickle.dumps({b"labels": [1]}, 2), "must hold data, an array of 1 rows of 3072 bytes"),
    ("python", pickle.dumps({b"data": np.zeros((1, 3072), np.uint8)}, 2), "must hold labels"),
    ("python", pickle.dumps({b"data": np.zeros((1, 3072), np.uint8), b"labels": ["a"]}, 2), "must hold labels"),
    ("python", pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [1]}, 2), "must hold data"),
    ("python", pickle.dumps({b"data": np.zeros((1, 3072)), b"labels": [1]}, 2), "must hold data"),
    ("python", pickle.dumps({b"data": np.array([[Touch()]], object), b"labels": [1]}, 2), r"\.system, which"),
]


@pytest.mark.parametrize(("form", "content", "words"), BAD_BATCHES)
def test_bad_batches_are_named_and_never_run(form, content, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lay(tmp_path, form, "loose")
    path = tmp_path / f"data_batch_3{FORMS[form][1]}"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        Cifar10(folder=tmp_path).load()
    assert str(path) in str(caught.value)
    assert not (tmp_path / "stolen").exists()


def test_a_missing_batch_and_a_cut_archive_are_named(tmp_path):
    lay(tmp_path, "binary", "archive")
    archive = tmp_path / "cifar-10-binary.tar.gz"
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"binary\.tar\.gz: does not hold test_batch\.bin; the"):
        Cifar10(folder=tmp_path, verify=False).load()
    archive.write_bytes(b"plain text")
    with pytest.raises(InputError, match=r"binary\.tar\.gz: is not a complete \.tar\.gz archive"):
        Cifar10(folder=tmp_path, verify=False).load()
    lay(tmp_path, "binary", "folder")
    (tmp_path / "cifar-10-batches-bin" / "data_batch_4.bin").unlink()
    with pytest.raises(InputError, match=r"data_batch_4\.bin: no such file; all six batches are needed"):
        Cifar10(folder=tmp_path).load()


def test_digits_are_scikit_learns(rng):
    data = Digits().load()
    assert data.X.shape == (1797, 64)
    X, y = load_digits(return_X_y=True)
    assert np.array_equal(data.X.numpy() * 16, X)
    assert np.array_equal(data.y.numpy(), y)
    pair = Digits(classes=(3, 8)).sample(100, rng, test=None)
    assert pair.binary
    assert len(pair) == 100
    assert len(pair.X_test) == 357 - 100
    with pytest.raises(InputError, match="no examples of the class 11"):
        Digits(classes=(3, 11)).load()


def test_mnist_is_mnist(mnist_folder):
    data = Mnist(classes=(0, 1), folder=mnist_folder / "mnist").sample(test=None)
    assert data.X.shape == (12665, 784)
    assert data.X_test.shape == (2115, 784)
    assert (data.y == -1).sum() == 5923
    assert (data.y == 1).sum() == 6742
    assert torch.equal(data.X.aminmax().max, torch.tensor(1.0).double())
