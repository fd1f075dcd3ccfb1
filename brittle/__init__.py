"""brittle: why a ReLU network is not robust, how non-robust it is exactly, and what would help."""

from importlib import import_module
from typing import TYPE_CHECKING

from brittle.common.errors import InputError

__version__ = "0.3.0"  # the one place; what is built and installed takes it from here
ROOMS = (
    "data",
    "networks",
    "training",
    "kkt",
    "attacks",
    "certificates",
    "theorems",
    "auditing",
    "experiments",
    "report",
)
BORROWED = {"audit": "auditing", "citation": "theorems", "plot": "report"}  # from these rooms
__all__ = ["InputError", "__version__"]

if TYPE_CHECKING:
    from brittle import attacks as attacks
    from brittle import auditing as auditing
    from brittle import certificates as certificates
    from brittle import data as data
    from brittle import experiments as experiments
    from brittle import kkt as kkt
    from brittle import networks as networks
    from brittle import report as report
    from brittle import testing as testing
    from brittle import theorems as theorems
    from brittle import training as training
    from brittle.auditing import audit as audit
    from brittle.report import plot as plot
    from brittle.theorems import citation as citation
else:

    def __getattr__(name: str) -> object:
        """A folder is imported when it is first named, so that `import brittle` costs nothing."""
        if name in (*ROOMS, "testing"):
            return import_module(f"brittle.{name}")
        if name in BORROWED:
            return getattr(import_module(f"brittle.{BORROWED[name]}"), name)
        raise AttributeError(f"module 'brittle' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *ROOMS, *BORROWED, "testing"])
