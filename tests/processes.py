"""Processes in a session of their own, as a terminal starts them: signals to all of them, and who is left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SECONDS = 300  # for anything to happen, on a machine that has much else to do
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc, which is Linux's")


class Session:
    def __init__(self, *arguments: str, **options: Any) -> None:
        command = [sys.executable, *arguments]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.getcwd()}
        self.process = subprocess.Popen(
            command,
            env=environment,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *error: object) -> None:
        for pid in self.members():
            os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.communicate()

    def members(self) -> list[int]:
        """Living processes of the session."""
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if self._belongs(path)]

    def _belongs(self, path: Path) -> bool:
        try:
            fields = (path / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return False
        return int(fields[3]) == self.process.pid and fields[0] not in "ZX"

    def wait_until(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + SECONDS
        while not condition():
            assert self.process.poll() is None, self.process.communicate()[1].decode()
            assert time.monotonic() < end, "nothing happened"
            time.sleep(0.01)

    def loads(self, library: str) -> bool:
        return library in Path(f"/proc/{self.process.pid}/maps").read_text()

    def ended_by(self, number: signal.Signals) -> tuple[int, str]:
        """After a signal to every process, as Ctrl-C sends it: exit code and standard error, once all are gone."""
        os.killpg(self.process.pid, number)
        error = self.process.communicate(timeout=SECONDS)[1].decode()
        end = time.monotonic() + SECONDS
        while self.members():
            assert time.monotonic() < end, "a stray process"
            time.sleep(0.01)
        return self.process.returncode, error
