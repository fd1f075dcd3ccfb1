"""What a user should know although nothing is wrong, one line each.

The library does not print: the line goes to the logger `brittle`, which without further ado ends on standard error.
"""

import logging

from brittle.common.errors import one_line

LOGGER = logging.getLogger("brittle")


def note(message: str) -> None:
    LOGGER.warning(one_line(message))
