"""Which radii does a proof prove? Exit code 0: all that it claims; 1: not all; 2: a file cannot be used."""

import argparse
import sys
from pathlib import Path

import numpy as np

from proofcheck.balls import Refused
from proofcheck.proof import read_data, read_network, read_proof


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m proofcheck", description=__doc__)
    parser.add_argument("proof", type=Path, metavar="FILE")
    parser.add_argument("--network", type=Path, required=True, help="a .npz with W, b, v, c or weight.0, bias.0, ...")
    parser.add_argument("--data", type=Path, required=True, help="a .npz with X and y")
    parser.add_argument("--seconds", type=float, default=86400.0, help="processor time, at most")
    given, path = parser.parse_args(arguments), None
    try:
        network = read_network(path := given.network)
        examples = read_data(path := given.data, network)
        proof = read_proof(path := given.proof, network, *examples, given.seconds)
    except (Refused, KeyError, IndexError, ValueError, TypeError, MemoryError) as error:
        print(*filter(str.isprintable, f"{path}: {str(error)[:200] or type(error).__name__}"), sep="", file=sys.stderr)
        return 2
    refused, where = 0, f" in the box {proof.found['box'].tolist()}" if len(proof.found["box"]) else ""
    for claim, row in enumerate(proof.found["rows"]):
        try:
            with np.errstate(all="ignore"):
                print(f"example {row}: no flip within {proof.check(claim)!r}{where}")
        except (Refused, MemoryError) as reason:
            refused += 1
            print(f"example {row}: NOT PROVED: {str(reason) or 'not enough memory'}")
    return min(refused, 1)


if __name__ == "__main__":
    sys.exit(main())
