"""kill -9, Ctrl-C and SIGTERM at random times: what is lost, what is left behind, and how long an end takes.

    python -m benchmarks.kill [--kills N] [--signals N] [--seed N] [--only NAME ...] [--json FILE]

Kills: a command is started in a session of its own, killed with SIGKILL after a random share of the time that it takes,
and run again to its end. Its files must be those of an undisturbed run, finished cells must be reused, and no process
and no partial file may be left. Signals: every process of the session receives SIGINT or, every third time, SIGTERM, as
from a terminal; measured are the seconds until all of them are gone. Exit code 1 on any violation.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from brittle.common.files import require_writable, write_json

LIMIT = 2.0  # seconds in which a signal ends everything
PATIENCE = 60.0  # seconds after which a process counts as stray
NETWORK = ["--setting", "sphere", "--dim", "200", "--examples", "40", "--width", "300", "--seed", "1"]
GIVEN = ["given/net.npz", "--data", "given/data.npz"]
FIGURE = [
    "reproduce",
    "vardi2022/fig1a",
    "--preset",
    "smoke",
    "--only",
    "alpha=0.5",
    "--only",
    "dim=64",
    "--out",
    "out",
]


@dataclass(frozen=True)
class Command:
    """`again` is added where it is run after a kill and has left a checkpoint; `result` reads what must be the same."""

    arguments: list[str]
    result: Callable[[Path], Any] = lambda folder: None
    again: list[str] = field(default_factory=list)


def figures(folder: Path) -> Any:
    out = folder / "out" / "vardi2022-fig1a"
    return [(out / name).read_bytes() for name in ("points.csv", "figure.svg", "figure.png")] + [cells(folder)]


def cells(folder: Path) -> dict[str, Any]:
    return {path.name: json.loads(path.read_text())["measured"] for path in folder.glob("out/cells/*.json")}


def bounds(folder: Path) -> Any:
    content = json.loads((folder / "bounds.json").read_text())
    return [content[name] for name in ("lower", "upper", "status")]


def weights(folder: Path) -> Any:
    with np.load(folder / "net.npz") as arrays:
        return {name: arrays[name].tobytes() for name in arrays.files}


CERTIFY = Command(["certify", *GIVEN, "--method", "dual", "--refined", "--json", "bounds.json"], bounds)
TRAIN = ["train", *NETWORK, "--regime", "descent", "--rate", "0.01", "--until", "steps=8000"]
KILLED = {
    "reproduce --jobs 2": Command([*FIGURE, "--jobs", "2"], figures),
    "reproduce --jobs 1": Command([*FIGURE, "--jobs", "1"], figures),
    "certify": CERTIFY,
    "train --checkpoint": Command([*TRAIN, "--checkpoint", "run.npz", "--out", "net.npz"], weights, ["--resume"]),
}
SIGNALLED = {
    **KILLED,
    "train": Command(TRAIN),
    "certify --method exact": Command(["certify", *GIVEN, "--method", "exact", "--seconds", "1"]),
    "audit": Command(["audit", *GIVEN, "--budget", "10", "--examples", "20", "--report", "a.html"]),
    "kkt --solve": Command(["kkt", *GIVEN, "--solve", "--out", "kkt.npz"]),
    "attack": Command(["attack", *GIVEN, "--out", "adv.npz"]),
    "check": Command(["check", "all"]),
    "theorems": Command(["theorems"]),
}


class Session:
    """A command in a session of its own, in a folder."""

    def __init__(self, arguments: list[str], folder: Path) -> None:
        root = Path(__file__).parents[1]
        environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1", "TMPDIR": str(folder / "tmp")}
        (folder / "tmp").mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "brittle", *arguments],
            cwd=folder,
            env=environment,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def members(self) -> list[int]:
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if self._belongs(path)]

    def _belongs(self, path: Path) -> bool:
        try:
            state, _, _, session = (path / "stat").read_text().rsplit(")", 1)[1].split()[:4]
        except OSError:
            return False
        return int(session) == self.process.pid and state not in "ZX"

    def gone(self) -> bool:
        """Whether all its processes end in time; those that do not are killed."""
        end = time.monotonic() + PATIENCE
        while self.members() and time.monotonic() < end:
            time.sleep(0.005)
        stray = self.members()
        for pid in stray:
            os.kill(pid, signal.SIGKILL)
        return not stray

    def finish(self) -> tuple[int, str]:
        error = self.process.communicate()[1].decode()
        return self.process.returncode, error


def whole_run(command: Command, folder: Path) -> float:
    """Seconds."""
    begun = time.monotonic()
    code, error = Session(command.arguments, folder).finish()
    assert code in (0, 1), error
    return time.monotonic() - begun


def partial_files(folder: Path) -> list[Path]:
    return list(folder.rglob("*.partial"))


def fresh(given: Path) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="brittle-kill-"))
    shutil.copytree(given, folder / "given")
    return folder


def killed_once(command: Command, given: Path, delay: float, expected: Any) -> dict[str, Any]:
    folder = fresh(given)
    session = Session(command.arguments, folder)
    time.sleep(delay)
    early = session.process.poll() is not None
    session.process.kill()
    session.finish()
    row: dict[str, Any] = {"ended_before": early, "violations": [] if session.gone() else ["stray process"]}
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("out/cells/*.json")}
    row["left_partial"], row["kept"] = len(partial_files(folder)), len(kept)
    resumed = command.again if (folder / "run.npz").exists() else []
    row["resumed"] = bool(resumed)
    code, error = Session([*command.arguments, *resumed], folder).finish()
    checks = {
        f"exit code {code} of the second run: {error.strip()}": code == 0,
        "another result": code == 0 and command.result(folder) == expected,
        "a finished cell was measured again": all(path.stat().st_mtime_ns == when for path, when in kept.items()),
        "a partial file": not partial_files(folder),
    }
    row["violations"] += [name for name, good in checks.items() if not good]
    shutil.rmtree(folder)
    return row


def signalled_once(command: Command, given: Path, delay: float, number: signal.Signals) -> dict[str, Any]:
    folder = fresh(given)
    session = Session(command.arguments, folder)
    time.sleep(delay)
    early = session.process.poll() is not None
    begun = time.monotonic()
    if not early:
        os.killpg(session.process.pid, number)
    code, error = session.finish()
    gone = session.gone()
    seconds = time.monotonic() - begun
    word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]
    lines = [line for line in error.splitlines() if line.startswith(f"brittle: {word}")]
    checks = {
        f"exit code {code}": code == 128 + number,
        f"{len(lines)} lines: {error.strip()[-200:]}": len(lines) == 1,
        "a traceback": "Traceback" not in error,
        "stray process": gone,
        "a partial file": not partial_files(folder),
        f"{seconds:.2f} s": seconds <= LIMIT,
    }
    finished = early or (code == 0 and not lines)  # the work was done when the signal came
    shutil.rmtree(folder)
    violations = [] if finished else [name for name, good in checks.items() if not good]
    return {"ended_before": finished, "seconds": seconds, "violations": violations}


def prepare(folder: Path) -> None:
    """The network and the data that commands are given."""
    folder.mkdir()
    files = ["--out", "net.npz", "--data-out", "data.npz"]
    code, error = Session(["train", *NETWORK, "--until", "loss=0.1", *files], folder).finish()
    assert code == 0, error


def kills(chosen: dict[str, Command], count: int, given: Path, dice: random.Random) -> list[dict[str, Any]]:
    rows = []
    for place, (name, command) in enumerate(chosen.items()):
        folder = fresh(given)
        seconds = whole_run(command, folder)
        expected = command.result(folder)
        shutil.rmtree(folder)
        runs = [
            killed_once(command, given, dice.uniform(0, seconds), expected) for _ in range(place, count, len(chosen))
        ]
        rows.append({"command": name, "whole_seconds": seconds, **_summed(runs)})
        _show(rows[-1])
    return rows


def signals(chosen: dict[str, Command], count: int, given: Path, dice: random.Random) -> list[dict[str, Any]]:
    rows = []
    for place, (name, command) in enumerate(chosen.items()):
        folder = fresh(given)
        seconds = whole_run(command, folder)
        shutil.rmtree(folder)
        numbers = [signal.SIGTERM if turn % 3 == 2 else signal.SIGINT for turn in range(place, count, len(chosen))]
        runs = [signalled_once(command, given, dice.uniform(0.1, seconds), number) for number in numbers]
        caught = [run["seconds"] for run in runs if not run["ended_before"]]
        longest = max(caught, default=None)
        rows.append({"command": name, "whole_seconds": seconds, "longest_seconds": longest, **_summed(runs)})
        _show(rows[-1])
    return rows


def _summed(runs: list[dict[str, Any]]) -> dict[str, Any]:
    counted = ("ended_before", "left_partial", "kept", "resumed")
    sums = {name: sum(run[name] for run in runs) for name in counted if runs and name in runs[0]}
    return {"runs": len(runs), **sums, "violations": [each for run in runs for each in run["violations"]]}


def _show(row: dict[str, Any]) -> None:
    shown = {**row, "violations": len(row["violations"])}
    print(
        "  ".join(
            f"{name} {value:.2f}" if isinstance(value, float) else f"{name} {value}" for name, value in shown.items()
        )
    )
    for violation in row["violations"]:
        print(f"    {violation}")
    sys.stdout.flush()


def main() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in the background, by children too
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--signals", type=int, default=33)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=SIGNALLED, metavar="NAME", help=", ".join(SIGNALLED))
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    if options.json:
        require_writable(options.json)
    dice = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as place:
        given = Path(place) / "given"
        prepare(given)
        wanted = options.only or list(SIGNALLED)
        killed = kills({n: c for n, c in KILLED.items() if options.kills and n in wanted}, options.kills, given, dice)
        ended = signals(
            {n: c for n, c in SIGNALLED.items() if options.signals and n in wanted}, options.signals, given, dice
        )
    if options.json:
        write_json(options.json, {"kills": killed, "signals": ended})
    violations = sum(len(row["violations"]) for row in [*killed, *ended])
    print(f"{violations} violations")
    return int(violations > 0)


if __name__ == "__main__":
    sys.exit(main())
