"""Something of the user's own, named as MODULE:NAME. It is imported, and so trusted."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from brittle.common.errors import InputError, require
from brittle.common.parts import describe_foreign_error


def import_object(flag: str, text: str) -> Any:
    """What MODULE:NAME stands for; modules in the current folder are found too."""
    place, _, name = text.partition(":")
    require(bool(place and name), f"{flag} is {text!r}; MODULE:CLASS is needed")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(import_module(place), name)
    except Exception as error:  # whatever the module does when it is imported
        raise InputError(f"{flag} {text} cannot be imported: {describe_foreign_error(error)}") from None
    finally:
        sys.path.pop(0)
