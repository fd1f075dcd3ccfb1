"""Standard output may be closed, full or know no Greek: never a traceback, never the exit code of a claim."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = [["--help"], ["--version"], ["bench"], ["theorems"], ["theorems", "--json", "-"]]
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="/dev/full is Linux's")


def run(arguments, environment=None, **streams):
    streams = {"stderr": subprocess.PIPE, **streams}
    command = [sys.executable, "-m", "brittle", *arguments]
    return subprocess.run(command, env={**os.environ, **(environment or {})}, timeout=300, **streams)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_pipe_that_nobody_reads_ends_quietly(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    ended = run(arguments, stdout=writer)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@needs_full
def test_a_full_device_is_one_line(arguments):
    with FULL.open("wb") as full:
        ended = run(arguments, stdout=full)
    assert (ended.returncode, ended.stderr) == (2, b"brittle: standard output: No space left on device\n")


@pytest.mark.parametrize("closing", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_from_the_start(closing, tmp_path):
    """The file does not take the place of standard output, which native code may print to."""
    command = f'"{sys.executable}" -m brittle check wang2022/eq1 --json out.json {closing}'
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    ended = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, timeout=300)
    assert ended.returncode == 0
    assert b"Traceback" not in ended.stderr
    assert json.loads((tmp_path / "out.json").read_text())["verdict"]


@needs_full
def test_a_full_standard_error_keeps_the_exit_code():
    with FULL.open("wb") as full:
        assert run(["absent"], stdout=subprocess.PIPE, stderr=full).returncode == 2


ASCII = [
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "ascii:strict"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
]


@pytest.mark.parametrize("environment", ASCII, ids=["ascii", "strict", "C"])
def test_a_terminal_without_greek_letters(environment):
    plain = {**environment, "COLUMNS": "200"}
    ended = run(["theorems", "--paper", "vardi2022"], plain, stdout=subprocess.PIPE)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"once L < 1 flow tends to a KKT direction: ?" in ended.stdout  # γ̃
    ended = run(["π"], plain, stdout=subprocess.PIPE)
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"brittle: No such command")
    assert ended.stderr.decode("ascii").count("\n") == 1
