"""What a run that is ended at once leaves on standard error: nothing but its own last line."""

import subprocess
import sys

LEAVING = """
import os
from brittle.experiments.engines import {context} as context
lock = context().Lock()
os.write(1, b"made")
os._exit(3)
"""
USUAL = "import multiprocessing; context = lambda: multiprocessing.get_context('forkserver')"


def left(code: str) -> subprocess.CompletedProcess:
    """Also waits for the tracker of semaphores, which holds standard error open."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)


def test_semaphores_that_are_left_behind_are_removed_without_a_word():
    ours = left(LEAVING.format(context="_context"))
    assert (ours.returncode, ours.stdout, ours.stderr) == (3, "made", "")
    usual = left(LEAVING.replace("from brittle.experiments.engines import {context} as context", USUAL))
    assert "leaked semaphore" in usual.stderr  # or the test would see nothing of what it is about
