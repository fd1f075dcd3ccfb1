"""Downloads: from a small server of our own, checked, and one clear line where they fail."""

import hashlib
import threading
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler

import pytest

from brittle import InputError
from brittle.data import data_folder, fetch, holding, sources
from brittle.data.sources import DatasetSource

CONTENT = {"first.gz": b"one" * 5000, "second.gz": b"two"}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Says nothing."""


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """A data set `small` that a local server offers, and an empty data folder."""
    remote, local = tmp_path / "remote", tmp_path / "local"
    remote.mkdir()
    for name, content in CONTENT.items():
        (remote / name).write_bytes(content)
    server = HTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(remote)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}
    mirrors = ("http://127.0.0.1:9/", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setitem(sources.SOURCES, "small", DatasetSource(hashes, mirrors))
    monkeypatch.setenv("BRITTLE_DATA", str(local))
    yield remote
    server.shutdown()
    server.server_close()


def test_what_is_missing_is_fetched_from_the_mirror_that_answers(offered):
    assert set(holding("small").files.values()) == {"absent"}
    steps = []
    held = fetch("small", steps.append)
    assert held.complete
    assert held.folder == data_folder() / "small"
    assert (held.folder / "first.gz").read_bytes() == CONTENT["first.gz"]
    shares = [step.done for step in steps]
    assert shares[-1] == 1
    assert all(0 <= share <= 1 for share in shares)


def test_what_is_there_is_not_fetched_again(offered):
    fetch("small")
    for name in CONTENT:
        (offered / name).unlink()
    assert fetch("small").complete


def test_a_damaged_file_is_seen_and_replaced(offered):
    folder = fetch("small").folder
    (folder / "first.gz").write_bytes(b"damaged")
    assert holding("small").files == {"first.gz": "different", "second.gz": "verified"}
    assert fetch("small").complete


def test_a_file_with_another_checksum_is_never_kept(offered):
    (offered / "first.gz").write_bytes(b"something else")
    with pytest.raises(InputError, match=r"small: first\.gz could not be fetched \(what came has another SHA-256\)"):
        fetch("small")
    assert not data_folder().joinpath("small").exists()


def test_without_a_network_one_line_says_what_to_do(offered, monkeypatch):
    monkeypatch.setitem(sources.SOURCES, "small", DatasetSource({"first.gz": "0" * 64}, ("http://127.0.0.1:9/",)))
    with pytest.raises(
        InputError, match=r"first\.gz could not be fetched \(no answer: ConnectionError\); copy it into"
    ):
        fetch("small")


def test_an_unknown_name_is_refused():
    with pytest.raises(InputError, match="'imagenet' is not a data set that can be fetched; there are mnist, "):
        fetch("imagenet")


def test_every_source_has_a_sha256_for_each_file():
    for source in sources.SOURCES.values():
        assert source.mirrors
        assert all(len(sha) == 64 and int(sha, 16) >= 0 for sha in source.files.values())


def test_the_data_folder_falls_back_to_the_cache(monkeypatch):
    monkeypatch.delenv("BRITTLE_DATA", raising=False)
    assert data_folder().name == "brittle"


def test_real_mnist_is_verified(mnist_folder):
    assert holding("mnist").complete


def test_a_folder_that_cannot_be_written_is_named(offered, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("BRITTLE_DATA", str(tmp_path / "file"))
    with pytest.raises(InputError, match="file/small: cannot be written; set BRITTLE_DATA to another folder"):
        fetch("small")


def test_unpacked_files_are_seen(tmp_path, monkeypatch):
    monkeypatch.setenv("BRITTLE_DATA", str(tmp_path))
    (tmp_path / "cifar10" / "cifar-10-batches-bin").mkdir(parents=True)
    assert holding("cifar10").state == "absent"
    (tmp_path / "cifar10" / "cifar-10-batches-bin" / "test_batch.bin").write_bytes(b"")
    assert holding("cifar10").state == "there, unverified"
