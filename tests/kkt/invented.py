"""Proofs of margins by hand and at random."""

from dataclasses import replace

import numpy as np
import torch

from brittle.data import Data
from brittle.kkt.any_width.checker import feasible, find_unconfirmed, rows
from brittle.kkt.any_width.proof import MarginProof, ProofLeaf, ProofPoint
from brittle.networks import TwoLayer
from tests.kkt.gains import featured
from tests.kkt.reference import gaussian


def by_hand():
    """e₁ and e₂ with opposite labels and no biases: two neurons of norm 1 each, γ* = ¼, and the proof of it."""
    data = Data(torch.eye(2, dtype=torch.float64), torch.tensor([1.0, -1.0], dtype=torch.float64))
    network = TwoLayer(torch.eye(2).double(), torch.zeros(2).double(), torch.tensor([1.0, -1.0]).double())
    nothing, free = np.zeros(2, dtype=np.int8), np.zeros((1, 2))
    points = tuple(ProofPoint(side, nothing, np.array([0.5]), free) for side in (1, -1))
    leaves = (ProofLeaf(0, nothing), ProofLeaf(1, nothing))
    return MarginProof(network, False, np.ones(2), 1 + 1e-12, points, leaves), data


def split(rng, own, n, depth):
    """A random tree over the own examples: signs of its leaves."""
    leaves = [np.zeros(n, dtype=np.int8)]
    for _ in range(depth):
        signs = leaves.pop(int(rng.integers(len(leaves))))
        free = [i for i in own if signs[i] == 0]
        if not free:
            leaves.append(signs)
            continue
        i = rng.choice(free)
        for sign in (1, -1):
            child = signs.copy()
            child[i] = sign
            leaves.append(child)
    return leaves


def arbitrary(seed, n=7, dim=3, biases=True):
    """A proof with random multipliers, feasible or not, of which only the curvatures are large enough."""
    rng, data = np.random.default_rng(seed), gaussian(n, dim, seed)
    X, y = featured(data, biases), data.y.numpy()
    lam = rng.random(n) * (rng.random(n) < 0.9)
    points, leaves = [], []
    for side in (1, -1):
        own, others = (y == side) & (lam > 0), (y == -side) & (lam > 0)
        for signs in split(rng, np.flatnonzero(own), n, 3):
            free, fixed = np.flatnonzero(own & (signs == 0)), np.flatnonzero(own & (signs != 0))
            order = np.r_[np.flatnonzero(others), fixed]
            C = 0.3 * rng.standard_normal((len(order), len(free) + 1)) / (len(free) + 1)
            C[:, 0] += np.where(signs[order] == 0, -lam[order] / 2, lam[order] * (signs[order] == 1))
            B = X[order].T @ feasible(C, lam[order], signs[order])[:, 1:] + X[free].T * lam[free] / 2
            points.append(ProofPoint(side, signs, 1.1 * np.abs(B.T @ B).sum(1) + 1e-3, C))
            leaves.append(ProofLeaf(len(points) - 1, signs))
    network = TwoLayer(torch.ones(1, dim).double(), torch.full((1,), float(biases)).double(), torch.ones(1).double())
    proof = MarginProof(network, biases, lam, 1.0, tuple(points), tuple(leaves))
    return replace(proof, ceiling=lowest(proof, data)), data


def lowest(proof, data):
    """The lowest ceiling that the checker has nothing against, by bisection."""
    X, y, low, high = rows(data, proof.biases), data.y.numpy(), 0.0, 1e4
    every = range(len(proof.leaves))
    assert not find_unconfirmed(proof, X, y, high, every)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if find_unconfirmed(proof, X, y, middle, every) else (low, middle)
    return high
