"""What a file of PyTorch holds: tensors, a TorchScript program or an exported one."""

from pathlib import Path

from brittle.common.archives import opened
from brittle.common.errors import InputError
from brittle.common.paths import existing


def archive_kind(path: str | Path) -> str:
    """`script`, `exported` or `tensors`, by what the zip archive holds; damaged files are `tensors`."""
    existing(path)
    try:
        with opened(path, "an archive") as archive:
            if "constants.pkl" in archive:
                return "script"
            return "exported" if "archive_format" in archive else "tensors"
    except InputError:
        return "tensors"
