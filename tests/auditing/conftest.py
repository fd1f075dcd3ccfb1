"""Audits of the tests end by their count of work alone: a slow machine is no reason to find another verdict."""

import pytest

from brittle.auditing import run


@pytest.fixture(autouse=True, scope="module")
def no_hard_stop():
    with pytest.MonkeyPatch.context() as patched:
        for limit in ("COMPUTING", "WALL"):
            patched.setattr(run, limit, 1e3)
        yield
