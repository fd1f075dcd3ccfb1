"""A small run of the damaged files, and that the run would notice what it looks for."""

import os
import time

import pytest

from benchmarks import malformed
from benchmarks.good_files import Format, good_files
from brittle import InputError


def test_some_hundred_damaged_files_are_read_or_refused():
    total = malformed.run(300, seed=7)
    assert total.bad == []
    assert sum(sum(each.values()) for each in total.outcomes.values()) == 300


def test_the_good_files_are_good(tmp_path):
    for key, kind in good_files().items():
        (tmp_path / key).mkdir()
        for name, content in {**kind.beside, kind.name: kind.content}.items():
            (tmp_path / key / name).write_bytes(content)
        assert malformed._opened(kind, tmp_path / key / kind.name) in ("network", "data"), key


def raising(path):
    raise KeyError(path)


def babbling(path):
    raise InputError("no file is named")


BAD = {
    "another error": (raising, "KeyError in"),
    "a poor line": (babbling, "a poor line"),
    "memory": (lambda path: bytearray(3 * 2**30), "memory"),
    "death": (lambda path: os._exit(1), "the process died"),
    "hanging": (lambda path: time.sleep(600), "more than 1 s"),
}


@pytest.mark.parametrize(("opener", "words"), BAD.values(), ids=BAD)
def test_every_bad_outcome_is_noticed(opener, words, monkeypatch):
    monkeypatch.setattr(malformed, "good_files", lambda: {"a": Format("a", b"content", opener, {})})
    monkeypatch.setattr(malformed, "SECONDS", 1.0)
    ((_, _, outcome),) = malformed.run(1).bad
    assert words in outcome
