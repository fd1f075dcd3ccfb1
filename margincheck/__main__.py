"""How nearly is a margin proved to be the largest? Exit code 0: proved; 1: not; 2: a file cannot be used."""

import argparse
import sys
from pathlib import Path

import numpy as np

from margincheck.proof import read_data, read_proof
from proofcheck.balls import Refused


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m margincheck", description=__doc__)
    parser.add_argument("proof", type=Path, metavar="FILE")
    parser.add_argument("--data", type=Path, required=True, help="a .npz with X and y, which are -1 and 1")
    parser.add_argument("--seconds", type=float, default=86400.0, help="processor time, at most")
    given, path = parser.parse_args(arguments), None
    try:
        examples = read_data(path := given.data)
        proof = read_proof(path := given.proof, *examples, given.seconds)
    except (Refused, KeyError, IndexError, ValueError, TypeError, MemoryError) as error:
        print(*filter(str.isprintable, f"{path}: {str(error)[:200] or type(error).__name__}"), sep="", file=sys.stderr)
        return 2
    try:
        with np.errstate(all="ignore"):
            margin, upper = proof.margin(), proof.upper()
    except (Refused, MemoryError) as reason:
        print(f"NOT PROVED: {str(reason) or 'not enough memory'}")
        return 1
    gap = f", a gap of {upper / margin - 1:.3g}" if margin else ""
    print(f"the network in it has a margin of {margin!r} or more, no network of any width one above {upper!r}{gap}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
