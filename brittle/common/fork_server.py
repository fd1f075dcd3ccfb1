"""The fork server of worker processes imports this first: it ends with the run, and so does what it forks."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Linux kills this process as soon as its parent is gone; other systems know no such thing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


end_with_parent()
os.register_at_fork(after_in_child=end_with_parent)
