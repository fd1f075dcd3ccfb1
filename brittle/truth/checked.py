"""The proofs of the truth set, read again by `proofcheck` and nothing else."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from brittle.truth.made import Problem, proof_files
from proofcheck.balls import Refused
from proofcheck.proof import Proof, read_data, read_network, read_proof

NO_LIMIT = float("inf")  # of seconds: the checksum says that it is the file that was made here


class Count(NamedTuple):
    """How many radii are said to be proved, and how many of them are."""

    proved: int
    again: int


def checked(problem: Problem, folder: Path) -> Count:
    """Radii of the record that the file proves whole."""
    said = {row: radius for row, radius in enumerate(problem.proved.tolist()) if radius > 0}
    if not said:
        return Count(0, 0)
    path, network_path, data_path = proof_files(folder, problem.name)
    try:
        network = read_network(network_path)
        proof = read_proof(path, network, *read_data(data_path, network), NO_LIMIT)
    except (Refused, KeyError, IndexError, ValueError, TypeError):
        return Count(len(said), 0)
    rows = proof.found["rows"].tolist()
    with np.errstate(all="ignore"):  # NaN and infinity prove nothing
        again = {row for place, row in enumerate(rows) if _proves(proof, place, said.get(row))}
    return Count(len(said), len(again))


def _proves(proof: Proof, place: int, radius: float | None) -> bool:
    """Whether the claim holds and is no less than the radius."""
    try:
        return radius is not None and proof.check(place) >= radius
    except Refused:
        return False
