"""Archives inside archives, and streams that are read piece by piece."""

import gzip
import io
import pickle
import zipfile
from types import SimpleNamespace

import pytest
import torch

from brittle.common.errors import InputError
from brittle.common.limits import ByteLimit, MeteredReader, inner_entry, read_whole
from brittle.common.torch_files import Name, PickledCall, open_pt, read_pickle


def archive(kind: int, **entries: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", kind) as made:
        for name, content in entries.items():
            made.writestr(name, content)
    return packed.getvalue()


@pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_first_entry_of_the_ending_is_read(kind):
    content = archive(kind, other=b"no", first_pkl=b"one" * 9, second_pkl=b"two")
    assert inner_entry(content, "_pkl", 27) == b"one" * 9
    assert inner_entry(content, "_pkl", 26) == b"two"  # the first is longer than is read


@pytest.mark.parametrize(("kind", "ending"), [(zipfile.ZIP_STORED, "_json"), (zipfile.ZIP_LZMA, "_pkl")])
def test_other_endings_and_other_compressions_are_no_entries(kind, ending):
    with pytest.raises(zipfile.BadZipFile, match=f"no entry {ending}"):
        inner_entry(archive(kind, first_pkl=b"one"), ending, 99)


def metered(path, content: bytes, left: int) -> MeteredReader:
    path.write_bytes(gzip.compress(content))
    budget = ByteLimit(path)
    budget.left = left
    return MeteredReader(gzip.GzipFile(path), budget)


def test_a_stream_gives_what_is_asked_for_and_all_of_it_within_its_budget(tmp_path):
    content = bytes(range(256)) * 100
    stream = metered(tmp_path / "a.gz", content, len(content))
    assert stream.readable()
    assert stream.read(10) == content[:10]
    assert stream.read(0) == b""
    assert stream.read() == content[10:]
    assert stream.read() == b""
    with pytest.raises(InputError, match="the stream would unpack to too much"):
        metered(tmp_path / "a.gz", content, len(content) - 1).read()


def test_a_stream_that_is_cut_short_gives_what_there_is(tmp_path):
    path, content = tmp_path / "a.gz", bytes(range(256)) * 100
    path.write_bytes(gzip.compress(content)[:-9])
    assert content.startswith(MeteredReader(gzip.GzipFile(path), ByteLimit(path)).read())


def test_a_file_is_read_whole_or_refused(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"1234")
    monkeypatch.setattr("brittle.common.limits.LARGEST_BYTES", 4)
    assert read_whole(path) == b"1234"
    path.write_bytes(b"12345")
    with pytest.raises(InputError, match="holds 5 bytes; 4 is the most"):
        read_whole(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_whole(tmp_path / "none")


def test_a_budget_grows_with_the_file_between_what_any_may_hold_and_the_most(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 10)
    assert ByteLimit(path).limit == 128 * 2**20
    for name, value in (("ALWAYS_ALLOWED", 100), ("LARGEST_BYTES", 2000)):
        monkeypatch.setattr(f"brittle.common.limits.{name}", value)
    budget = ByteLimit(path)
    assert budget.limit == 640
    budget.take(640, "all")
    with pytest.raises(InputError, match="one more would unpack to too much: a file of 10 bytes may hold 640"):
        budget.take(1, "one more")
    path.write_bytes(b"x" * 100)
    assert ByteLimit(path).limit == 2000


def test_a_storage_that_declares_more_than_it_holds_is_refused(tmp_path):
    """Two numbers are shown of a hundred that are stored; the file says that there are two hundred."""
    path = tmp_path / "a.pt"
    torch.save({"a": torch.arange(100.0)[:2]}, path)
    with open_pt(path) as (content, storages):
        assert storages.tensor("a", content["a"]).tolist() == [0, 1]
    with zipfile.ZipFile(path) as made:
        entries = {name: made.read(name) for name in made.namelist()}
    with zipfile.ZipFile(path, "w") as made:
        for name, held in entries.items():
            made.writestr(name, held.replace(b"Kd", b"K\xc8") if name.endswith("data.pkl") else held)
    with open_pt(path) as (content, storages), pytest.raises(InputError, match="'a' declares 200 numbers"):
        storages.tensor("a", content["a"])


def stored(path, size: tuple[int, ...], stride: tuple[int, ...], offset: int = 0):
    """What a file of four numbers from 0 to 3 and this description of a view says."""
    record = PickledCall("persistent", (("storage", Name("torch.FloatStorage"), "0", "cpu", 4),))
    tensor = PickledCall("torch._utils._rebuild_tensor_v2", (record, offset, size, stride, False, {}))
    numbers = torch.arange(4.0).numpy().tobytes()
    path.write_bytes(archive(zipfile.ZIP_STORED, **{"a/data/0": numbers, "a/data.pkl": b"N."}))
    with open_pt(path) as (_, storages):
        return storages.tensor("W", tensor)


def test_a_view_is_read_where_it_fits_into_what_is_stored(tmp_path):
    path = tmp_path / "a.pt"
    assert stored(path, (2, 2), (2, 1)).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert stored(path, (2,), (2,), 1).tolist() == [1.0, 3.0]
    for size in ((0,), (0, 3), (3, 0)):  # no number of it is stored, wherever it begins
        assert stored(path, size, (1,) * len(size), 4).shape == size
    for size, stride, offset in (((5,), (1,), 0), ((2,), (2,), 2), ((1,), (1,), 4)):
        with pytest.raises(InputError, match=r"'W' declares the shape .* and holds 4 numbers"):
            stored(path, size, stride, offset)
    for size, stride, offset in (((2,), (1, 1), 0), ((2,), (-1,), 1), ((2,), (1,), -1), ((1.0,), (1,), 0)):
        with pytest.raises(InputError, match="'W' is described in an unusual way"):
            stored(path, size, stride, offset)


@pytest.mark.parametrize("content", [b"\x80\x04\x8c\x05torchN\x93.", b"\x80\x04N\x8c\x01a\x93."])
def test_a_name_in_a_pickle_is_a_text(content):
    """STACK_GLOBAL of a text and of None, either way around."""
    with pytest.raises(InputError, match="has a damaged pickle"):
        read_pickle(content, lambda name: True, "{}")


@pytest.mark.parametrize("number", [2**63 - 1, 1 - 2**63, 2**63, -(2**63)])
def test_an_integer_in_a_pickle_has_64_bits(number):
    content = pickle.dumps(number)
    if abs(number) < 2**63:
        assert read_pickle(content, lambda name: True, "{}") == number
    else:
        with pytest.raises(InputError, match="an integer of more than 64 bits"):
            read_pickle(content, lambda name: True, "{}")


def test_a_call_in_a_pickle_is_of_a_name_with_a_tuple():
    name, call = b"ctorch\nx\n", b"R."
    assert read_pickle(b"\x80\x02" + name + b")" + call, lambda name: True, "{}") == PickledCall("torch.x", ())
    for called in (name + b"]", b"))", b")]"):
        with pytest.raises(InputError, match="has a damaged pickle"):
            read_pickle(b"\x80\x02" + called + call, lambda name: True, "{}")


@pytest.mark.parametrize("key", [None, 1.5, (1, 2)])
def test_a_key_in_a_pickle_is_a_text_or_a_number(key):
    assert read_pickle(pickle.dumps({"a": 1, b"b": 2, 3: 3}, 3), lambda name: True, "{}") == {"a": 1, b"b": 2, 3: 3}
    with pytest.raises(InputError, match="a key that is no text and no number"):
        read_pickle(pickle.dumps({key: 1}), lambda name: True, "{}")


def test_no_more_is_read_than_is_asked_for_where_a_stream_comes_in_parts(tmp_path):
    (tmp_path / "a.gz").write_bytes(b"1")
    parts = io.BytesIO(b"abcdefgh")
    stream = MeteredReader(SimpleNamespace(read1=lambda size: parts.read(min(size, 3))), ByteLimit(tmp_path / "a.gz"))
    assert [stream.read(4), stream.read(5)] == [b"abcd", b"efgh"]
