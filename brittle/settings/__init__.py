"""Where data come from."""

from brittle.settings.base import Data, Setting, Truth

__all__ = ["Data", "Setting", "Truth"]
