"""python -m proofcheck PROOF --network NET --data DATA [--test]: which radii are proved? Exit 0: all that are claimed; 1: a claim
is not; 2: a file cannot be used.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from proofcheck.network import Refused
from proofcheck.proof import BadInput, Proof, read_data, read_network


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m proofcheck", description=__doc__)
    parser.add_argument("proof", type=Path)
    parser.add_argument("--network", type=Path, required=True, help="W, b, v, c or weight.k, bias.k in a .npz")
    parser.add_argument("--data", type=Path, required=True, help="X and y in a .npz")
    parser.add_argument("--test", action="store_true", help="the examples are X_test and y_test")
    given = parser.parse_args(arguments)
    try:
        network = read_network(given.network)
        proof = Proof(given.proof, network, *read_data(given.data, network, given.test))
    except (BadInput, MemoryError) as error:
        print(error or "out of memory", file=sys.stderr)
        return 2
    return report(proof)


def report(proof: Proof) -> int:
    refused, cache = 0, {}
    within = "" if proof.box is None else f" in the box from {proof.box[0]:g} to {proof.box[1]:g}"
    for place, row in enumerate(proof.rows.tolist()):
        try:
            print(f"example {row}: no flip within {proof.check(place, cache)!r}{within}")
        except Refused as reason:
            refused += 1
            print(f"example {row}: NOT PROVED: {reason}")
    print(f"{len(proof.rows) - refused} of {len(proof.rows)} radii are proved")
    return 1 if refused else 0


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        sys.exit(main())
