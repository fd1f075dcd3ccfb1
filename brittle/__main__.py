"""`python -m brittle` and the `brittle` command."""

import sys

from brittle.cli import main


def run() -> None:
    sys.exit(main())


if __name__ == "__main__":
    run()
