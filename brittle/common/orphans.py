"""A helper process ends with the one that started it, even with one that kill -9 ended."""

import ctypes
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Linux kills this process as soon as its parent is gone; other systems know no such thing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
