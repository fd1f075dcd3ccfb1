"""Certificates of small networks of every kind, written as proofs and judged by `proofcheck`, file by file.

Kinds and methods take turns: two layers, three to five, convolutions, classes, boxes, degenerate and far scales. What
is in a file must be proved by it, or it is a violation. Where the search for a proof fell short of a certified radius
within its seconds, the file claims less; that is counted.
"""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.forged import run as proofcheck
from benchmarks.fuzz import layered, ordinary
from benchmarks.fuzz.proofs import ProofTally
from brittle.attacks.base import Bounds as Box
from brittle.certificates import Certificate, Dual, Exact
from brittle.data import Data
from brittle.networks import Network
from brittle.proving import Proof, prove, write_beside

POINTS = layered.POINTS  # examples per network
KINDS = ("two layers", *layered.KINDS)
METHODS: tuple[Certificate, ...] = (Exact(gap=1e-4, seconds=2.0, nodes=200), Dual(refined=True), Dual())
SECONDS = 2.0  # of the search for one proof


def examine(seed: int) -> ProofTally:
    """One network by one method: its certificates, their proofs, and what the checker says of the file."""
    kind, method = KINDS[seed % len(KINDS)], METHODS[seed // len(KINDS) % len(METHODS)]
    network, data, box = _draw(np.random.default_rng(seed), kind)
    if box is not None:
        method = Dual(boxed=True)
    found = method.bound(network, data, cap=layered.CAP, bounds=box)
    proof = prove(network, data, found.lower, found.flips, box=box, seconds=SECONDS)
    tally = ProofTally(len(data), Counter(map(_words, proof.losses)))
    tally.outcomes["no radius"] = len(data) - len(proof.losses)
    said = _said(proof)
    if said is not None:
        tally.violations.append(f"seed {seed}, {kind}, {method.name}: {said}")
    return tally


def _draw(rng: np.random.Generator, kind: str) -> tuple[Network, Data, Box | None]:
    if kind != "two layers":
        return layered.draw(rng, layered.KINDS[kind])
    network, data = ordinary.draw(rng)
    return network, Data(data.X[:POINTS], data.y[:POINTS]), None


def _words(loss: float) -> str:
    return "whole" if loss <= 1e-8 else "nearly whole" if loss <= 1e-3 else "in part" if loss < 1 else "no proof found"


def _said(proof: Proof) -> str | None:
    """What the checker says of the written files, if that is not that all claims are proved."""
    if not proof.rows:
        return None
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "proof.npz"
        proof.save(path)
        passed, output = proofcheck(path, *write_beside(proof, path, None, None))
    proved = [f"example {row}: no flip within {radius!r}" for row, radius in zip(proof.rows, proof.radii, strict=True)]
    return None if passed and all(line in output for line in proved) else " ".join(output.split())[:300]
