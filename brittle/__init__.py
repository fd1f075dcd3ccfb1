"""brittle: why a ReLU network is not robust, how non-robust it is exactly, and what would help."""

from brittle.common.errors import InputError

__version__ = "0.1.0"
__all__ = ["InputError", "__version__"]
