"""Files are written whole or not at all, and read as plain numbers or not at all."""

import json
import os
import stat
import subprocess
import sys
import zipfile
from io import BytesIO

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from brittle.common.errors import InputError
from brittle.common.files import existing, read_npz, replacing, require_writable, write_json, write_npz
from brittle.common.torch_files import read_pt, read_safetensors, write_pt, write_safetensors


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def interrupted(error):
        with replacing(path) as stream:
            stream.write(b"new")
            raise error

    for error in (KeyboardInterrupt, RuntimeError):
        with pytest.raises(error):
            interrupted(error)
        assert path.read_bytes() == b"old"
        assert names(tmp_path) == ["a.bin"]
    with pytest.raises(InputError, match=r"cannot be written \(No space"):
        interrupted(OSError(28, "No space left on device"))
    assert names(tmp_path) == ["a.bin"]


WRITER = """
import sys, time
from brittle.common.files import replacing
with replacing(sys.argv[1]) as stream:
    print("begun", flush=True)
    time.sleep(600)
"""


def test_what_a_killed_writer_left_is_removed_by_the_next_and_the_file_of_a_living_one_is_not(tmp_path):
    path = tmp_path / "a[1].bin"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE) for _ in range(3)]
    try:
        assert all(writer.stdout.readline() == b"begun\n" for writer in writers)
        (tmp_path / ".other.bin.x.partial").touch()
        for writer in writers[:2]:
            writer.kill()
            writer.wait()
        assert len(names(tmp_path)) == 4
        with replacing(path) as stream:
            stream.write(b"new")
        assert len(names(tmp_path)) == 3
        assert path.read_bytes() == b"new"
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    require_writable(path)
    assert names(tmp_path) == [".other.bin.x.partial", "a[1].bin"]


def test_a_finished_write_replaces_the_file_with_usual_permissions(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with replacing(path) as stream:
        stream.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    (tmp_path / "plain").write_bytes(b"")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent/a.npz", "the folder .*absent does not exist"),
        (".", "is a folder"),
        ("x" * 300, "cannot be written"),
        ("a\0b", "cannot be written"),
    ],
)
def test_places_that_cannot_hold_a_file(tmp_path, name, words):
    with pytest.raises(InputError, match=words):
        write_npz(tmp_path / name, {"a": np.zeros(1)})
    with pytest.raises(InputError, match=words):
        require_writable(tmp_path / name)
    assert names(tmp_path) == []


def test_devices_and_pipes_are_left_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="a device or a pipe"):
        write_json(tmp_path / "pipe", {})
    with pytest.raises(InputError, match="is not a file"):
        existing(tmp_path / "pipe")
    with pytest.raises(InputError, match="no such file"):
        existing(tmp_path / "absent")
    with pytest.raises(InputError, match="cannot be read"):
        existing(tmp_path / ("x" * 300))


kinds = st.sampled_from(["<f8", ">f8", "<f4", "<i8", "|u1", "|b1", "<f2"])
shapes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


@given(kinds.flatmap(lambda kind: arrays.arrays(np.dtype(kind), shapes)), st.booleans())
def test_arrays_come_back_as_they_went(tmp_path_factory, array, compressed):
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    (np.savez_compressed if compressed else np.savez)(path, a=array, other=np.array([None]))
    (back,) = read_npz(path, ("a", "absent")).values()
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype.newbyteorder("=")
    write_npz(path, {"a": back})
    np.testing.assert_array_equal(read_npz(path, ("a",))["a"], array)


def header(shape, kind="<f8"):
    stream = BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})
    return stream.getvalue()


BAD_MEMBERS = {
    "objects": (header((1,), "|O") + b"x" * 8, "pickled objects"),
    "texts": (header((1,), "<U1") + b"xxxx", "has type <U1"),
    "long doubles": (header((1,), "<f16") + b"x" * 16, "has type"),
    "too large": (header((2**40, 2**40)), "too large"),
    "negative": (header((-1, 8)), "no length is negative"),
    "short": (header((99,)), "declares 792 bytes"),
    "no header": (b"garbage", "'a' cannot be read"),
    "empty": (b"", "'a' cannot be read"),
}


@pytest.mark.parametrize(("member", "words"), BAD_MEMBERS.values(), ids=BAD_MEMBERS)
def test_bad_arrays_are_named(tmp_path, member, words):
    path = tmp_path / "bad.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", member)
    with pytest.raises(InputError, match=words) as caught:
        read_npz(path, ("a",))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_damaged_compressed_archive(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.arange(500.0))
    whole = bytearray(path.read_bytes())
    for place in range(60, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        try:
            read = read_npz(path, ("a",))
        except InputError:
            continue
        assert read == {} or (read["a"] == np.arange(500.0)).all()


@settings(max_examples=10)
@given(st.dictionaries(st.text(max_size=5), st.floats(allow_nan=False, allow_infinity=False)))
def test_json_is_written_as_json(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("json") / "a.json"
    write_json(path, content)
    assert json.loads(path.read_text()) == content


@pytest.mark.parametrize(("write", "read"), [(write_pt, read_pt), (write_safetensors, read_safetensors)])
def test_a_view_is_written_without_what_it_looks_into(tmp_path, write, read):
    large = torch.arange(100_000.0)
    write(tmp_path / "a", {"a": large[:3], "b": large[:3], "c": large[:6].reshape(2, 3).T}, {"note": "text"})
    tensors, notes = read(tmp_path / "a")
    assert notes == {"note": "text"}
    assert tensors["c"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert (tmp_path / "a").stat().st_size < 5000


def test_scripts_and_padded_archives_are_refused(tmp_path):
    for name, members, words in [
        ("script.pt", {"a/constants.pkl": b""}, "TorchScript code"),
        ("padded.pt", {"a/data.pkl": bytes(10**7)}, "declares 10000000 bytes"),
    ]:
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        with pytest.raises(InputError, match=words):
            read_pt(tmp_path / name)
