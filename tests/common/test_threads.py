"""One thread, unless somebody chose another number."""

import os

import pytest
import torch

from brittle.common.threads import VARIABLES, one_thread_unless_chosen


@pytest.fixture
def threads(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    before = torch.get_num_threads()
    yield monkeypatch
    torch.set_num_threads(before)


def seen() -> int:
    with one_thread_unless_chosen():
        return torch.get_num_threads()


def test_one_thread_where_nobody_says_anything(threads):
    torch.set_num_threads(os.cpu_count() or 1)
    assert seen() == 1
    assert torch.get_num_threads() == (os.cpu_count() or 1)


def test_what_was_chosen_wins(threads):
    threads.setattr(os, "cpu_count", lambda: 8)
    torch.set_num_threads(3)
    assert seen() == 3
    torch.set_num_threads(8)
    assert seen() == 1
    threads.setenv("OMP_NUM_THREADS", "8")
    assert seen() == 8
