"""brittle: why a ReLU network is not robust, how non-robust it is exactly, and what would help."""

from importlib import import_module
from typing import Any

from brittle.common.errors import InputError

__version__ = "0.1.0"
ROOMS = (
    "settings",
    "networks",
    "training",
    "margin",
    "attacks",
    "certificates",
    "theorems",
    "audit",
    "experiments",
    "report",
)
__all__ = ["InputError", "__version__"]


def __getattr__(name: str) -> Any:
    """A folder is imported when it is first named, so that `import brittle` costs nothing."""
    if name in ROOMS:
        return import_module(f"brittle.{name}")
    raise AttributeError(f"module 'brittle' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *ROOMS])
