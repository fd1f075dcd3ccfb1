"""`python -m brittle` and the `brittle` command."""

import os

from brittle.common import interrupts


def run() -> None:
    """Handles signals before anything heavy is imported: PyTorch takes seconds to load."""
    _fill_closed_streams()
    interrupts.install()
    try:
        from brittle.cli import main

        code = main()
        interrupts.finish()
    except interrupts.Interrupted as end:
        code = interrupts.announce(end)
    interrupts.leave(code)


def _fill_closed_streams() -> None:
    """Otherwise the next file that is opened would take the place of a closed standard stream."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)


if __name__ == "__main__":
    run()
