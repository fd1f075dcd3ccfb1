"""What many tests share: generators, and the real data where they are."""

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

# No deadline: a loaded machine is not a bug. Derandomised: a test that passed yesterday passes today.
settings.register_profile("brittle", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("brittle")

# Audits count a pass as on the nominal machine: a measured speed would make other audits of a loaded machine.
os.environ.setdefault("BRITTLE_SPEED", "1")

# What runs in the background ignores Ctrl-C, and so does all that it starts: interruptions would be tested in vain.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def no_time_limit() -> Iterator[None]:
    """Audits of the tests end by their count of work alone: a slow machine is no reason to find another verdict."""
    from brittle.auditing import budget

    with pytest.MonkeyPatch.context() as patched:
        for limit in ("COMPUTING", "WALL"):
            patched.setattr(budget, limit, 1e3)
        yield


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture
def notes(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What is said to a user, whatever other tests have set."""
    caplog.set_level(logging.WARNING, "brittle")
    return caplog


@pytest.fixture(scope="session")
def mnist_folder() -> Path:
    """The folder that holds mnist/, or a skip that says what is missing."""
    root = os.environ.get("BRITTLE_DATA")
    if not root or not (Path(root) / "mnist" / "train-images-idx3-ubyte.gz").exists():
        pytest.skip("real MNIST is not there: set BRITTLE_DATA to a folder that holds mnist/")
    return Path(root)
