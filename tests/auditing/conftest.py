"""Audits of the tests end by their count of work alone: a slow machine is no reason to find another verdict."""

import pytest

from brittle.auditing import budget


@pytest.fixture(autouse=True, scope="module")
def no_hard_stop():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(budget, "LATEST", 1e3)
        yield
