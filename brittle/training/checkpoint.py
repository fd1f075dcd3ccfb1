"""A run on disk: plain arrays only, so that a resumed run ends in the same network bit for bit."""

import hashlib
import time
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.common import interrupts
from brittle.common.errors import require
from brittle.common.files import read_npz, require_writable, write_npz
from brittle.training.run import LEAST_BETWEEN_CHECKPOINTS, MOST_BETWEEN_CHECKPOINTS, PathPoint, Record, Run, Saver

Arrays = dict[str, np.ndarray]
COUNTERS = ("steps", "evaluations", "seconds")
NAMES = ("theta", "counters", "scalars", "path", "marks", "fingerprint")


class Checkpoint(Saver):
    """Writes a run to `path` now and then, and when it is asked to."""

    wanted = True

    def __init__(self, path: str | Path, fingerprint: str) -> None:
        self.path, self.fingerprint = Path(path), fingerprint
        require_place(self.path)
        self.written, self.took = time.monotonic(), 0.0
        self.remembered: Arrays | None = None

    def if_due(self, run: Run, record: Record) -> None:
        """Often, but not so often that more than a hundredth of the time goes into it; every minute at the latest."""
        wait = min(MOST_BETWEEN_CHECKPOINTS, max(LEAST_BETWEEN_CHECKPOINTS, 100 * self.took))
        if time.monotonic() - self.written > wait:
            self.now(run, record)

    def now(self, run: Run, record: Record) -> None:
        began = time.monotonic()
        self.remember(run, record)
        self.last()
        self.took = self.written - began

    def last(self) -> None:
        with interrupts.held():
            if self.remembered is not None:
                write_npz(self.path, self.remembered)
            self.written, self.remembered = time.monotonic(), None

    def remember(self, run: Run, record: Record) -> None:
        arrays: Arrays = {
            "theta": run.snapshot().numpy(),
            "counters": np.array([float(getattr(run, name)) for name in COUNTERS]),
            "scalars": np.array(run.scalars(), dtype=float),
            "path": np.array([astuple(point) for point in record.points]).reshape(-1, len(fields(PathPoint))),
            "marks": np.array([record.next_steps, record.next_depth]),
            "fingerprint": np.frombuffer(bytes.fromhex(self.fingerprint), dtype=np.uint8),
        }
        if run.rng is not None:
            arrays["generator"] = run.rng.get_state().numpy()
        self.remembered = arrays | {f"run_{name}": value.numpy() for name, value in run.arrays().items()}

    def load(self, run: Run) -> Record:
        """Put the run where the checkpoint left it."""
        extra = [f"run_{name}" for name in run.arrays()]
        names = (*NAMES, "generator", *extra)
        arrays = _read(self.path, names)
        same = arrays["fingerprint"].tobytes().hex() == self.fingerprint
        require(same, f"{self.path}: belongs to other data, another network or another regime; resume with the same")
        run.theta = torch.from_numpy(arrays["theta"].copy())
        for name, value in zip(COUNTERS, arrays["counters"].tolist(), strict=True):
            setattr(run, name, float(value) if name == "seconds" else int(value))
        if run.rng is not None:
            run.rng.set_state(torch.from_numpy(arrays["generator"].copy()))
        run.restore(arrays["scalars"].tolist())
        run.restore_arrays({name.removeprefix("run_"): torch.from_numpy(arrays[name].copy()) for name in extra})
        return Record([_point(row) for row in arrays["path"].tolist()], *arrays["marks"].tolist())


def require_place(path: Path) -> None:
    """A checkpoint can be written there, and nothing but an older one is overwritten and removed."""
    require_writable(path)
    if path.exists():
        _read(path, NAMES)


def _read(path: Path, names: tuple[str, ...]) -> Arrays:
    arrays = read_npz(path, names)
    missing = [name for name in NAMES if name not in arrays]
    require(not missing, f"{path}: is not a checkpoint of brittle (it has no array '{(missing or ['?'])[0]}')")
    return arrays


def _point(row: list[float]) -> PathPoint:
    return PathPoint(int(row[0]), int(row[1]), *row[2:])


def fingerprint(settings: dict[str, Any], *tensors: Tensor) -> str:
    """What must agree between a checkpoint and the run that resumes it."""
    digest = hashlib.sha256(repr(sorted(settings.items())).encode())
    for tensor in tensors:
        digest.update(np.ascontiguousarray(tensor.detach().numpy()).tobytes())
    return digest.hexdigest()
