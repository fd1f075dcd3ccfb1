"""Which radii does a proof prove? Exit code 0: all that it claims; 1: not all; 2: a file cannot be used."""

import argparse
import sys
from pathlib import Path

import numpy as np

from proofcheck.network import Refused
from proofcheck.proof import BadInput, Proof, read_data, read_network, read_proof


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m proofcheck", description=__doc__)
    parser.add_argument("proof", type=Path, metavar="FILE")
    parser.add_argument(
        "--network", type=Path, required=True, metavar="NPZ", help="W, b, v, c; or weight.0, bias.0, ..."
    )
    parser.add_argument("--data", type=Path, required=True, metavar="NPZ", help="X and y")
    parser.add_argument("--test", action="store_true", help="X_test and y_test instead")
    parser.add_argument("--seconds", type=float, default=86400.0, help="processor time, at most")
    given, path = parser.parse_args(arguments), None
    try:
        path, network = given.network, read_network(given.network)
        path, examples = given.data, read_data(given.data, network, given.test)
        path, proof = given.proof, read_proof(given.proof, network, *examples, given.seconds)
    except (BadInput, KeyError, IndexError, ValueError, TypeError, MemoryError) as error:
        print(f"{path}: {str(error)[:200] or type(error).__name__}", file=sys.stderr)
        return 2
    with np.errstate(all="ignore"):
        proved = [told(proof, claim) for claim in range(len(proof.found["rows"]))]
    return 0 if all(proved) else 1


def told(proof: Proof, claim: int) -> bool:
    """Print what is proved of one claim."""
    name, where = f"example {proof.found['rows'][claim]}", f" in the box {proof.box}" if proof.box else ""
    try:
        print(f"{name}: no flip within {proof.check(claim)!r}{where}")
        return True
    except (Refused, MemoryError) as reason:
        print(f"{name}: NOT PROVED: {str(reason) or 'not enough memory'}")
        return False


if __name__ == "__main__":
    sys.exit(main())
