"""A run on disk: plain arrays only, so that a resumed run ends in the same network bit for bit."""

import hashlib
import time
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.common.errors import require
from brittle.common.files import read_npz, write_npz
from brittle.training.run import SECONDS_BETWEEN_CHECKPOINTS, PathPoint, Record, Run, Saver

COUNTERS = ("steps", "evaluations", "seconds")


class Checkpoint(Saver):
    """Writes a run to `path` now and then, and when it is asked to."""

    wanted = True

    def __init__(self, path: str | Path, fingerprint: str) -> None:
        self.path, self.fingerprint = Path(path), fingerprint
        require(self.path.parent.is_dir(), f"{self.path}: the folder {self.path.parent} does not exist")
        self.last = time.monotonic()

    def if_due(self, run: Run, record: Record) -> None:
        if time.monotonic() - self.last > SECONDS_BETWEEN_CHECKPOINTS:
            self.now(run, record)

    def now(self, run: Run, record: Record) -> None:
        self.last = time.monotonic()
        arrays: dict[str, np.ndarray] = {
            "theta": run.theta.numpy(),
            "counters": np.array([float(getattr(run, name)) for name in COUNTERS]),
            "scalars": np.array(run.scalars(), dtype=float),
            "path": np.array([astuple(point) for point in record.points]).reshape(-1, len(fields(PathPoint))),
            "marks": np.array([record.next_steps, record.next_depth]),
            "fingerprint": np.frombuffer(bytes.fromhex(self.fingerprint), dtype=np.uint8),
        }
        if run.rng is not None:
            arrays["generator"] = run.rng.get_state().numpy()
        arrays |= {f"run_{name}": value.numpy() for name, value in run.arrays().items()}
        write_npz(self.path, arrays)

    def load(self, run: Run) -> Record:
        """Put the run where the checkpoint left it."""
        extra = [f"run_{name}" for name in run.arrays()]
        names = ("theta", "counters", "scalars", "path", "marks", "fingerprint", "generator", *extra)
        arrays = read_npz(self.path, names)
        missing = [name for name in names[:6] if name not in arrays]
        require(not missing, f"{self.path}: is not a checkpoint of brittle (it has no array '{(missing or ['?'])[0]}')")
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


def _point(row: list[float]) -> PathPoint:
    return PathPoint(int(row[0]), int(row[1]), *row[2:])


def fingerprint(settings: dict[str, Any], *tensors: Tensor) -> str:
    """What must agree between a checkpoint and the run that resumes it."""
    digest = hashlib.sha256(repr(sorted(settings.items())).encode())
    for tensor in tensors:
        digest.update(np.ascontiguousarray(tensor.detach().numpy()).tobytes())
    return digest.hexdigest()
