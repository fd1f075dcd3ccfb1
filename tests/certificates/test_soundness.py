"""Nothing may flip below a certificate: fuzz, brute force over activation regions, rational arithmetic."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.fuzz import checked, proofs
from benchmarks.fuzz.run import run
from brittle.attacks import first_flip
from brittle.certificates import Exact
from brittle.certificates.dual import first_iterate, solve_closed_form
from brittle.certificates.dual_bound import DualPoint, Kind, proven_radius, proven_value
from brittle.certificates.margins import WeightSpan, localise
from brittle.certificates.settled_signs import find_settled_signs
from brittle.data import Data
from brittle.networks import TwoLayer
from tests.certificates.reference import Margin, Proof, brute_force_radius


def test_no_attack_and_no_brute_force_lands_below_a_certificate():
    found = run(1430, seed=1, only="ordinary")["ordinary"]
    assert found.cases >= 1000
    assert found.violations == []
    assert found.worst < 1e-7
    assert sum(found.zero.values()) == 0


def test_no_certificate_passes_an_exact_flip_at_far_scales():
    found = run(341, seed=1, only="far")["far"]
    assert found.cases >= 80
    assert found.violations == []
    assert found.outcomes["claimed"] > 40


def test_bounds_hold_in_rational_arithmetic():
    outcomes = Counter(map(proofs.confirm, range(150)))
    assert outcomes["refuted"] == outcomes["zero"] == 0
    assert outcomes["confirmed"] + outcomes["confirmed with signs"] > 60
    assert outcomes["confirmed with signs"] > 10


def test_certificates_of_a_sample_are_proved_again_by_the_checker():
    kinds = ("two layers", "depth 3", "depth 4, classes", "convolution", "box, classes", "far scales, depth 3")
    found = proofs.ProofTally()
    for kind in kinds:
        found.add(checked.examine(checked.KINDS.index(kind)))
    assert found.cases == 2 * len(kinds)
    assert found.violations == []
    assert found.outcomes["whole"] > len(kinds)


def test_what_the_checker_does_not_confirm_is_a_violation(monkeypatch):
    monkeypatch.setattr(checked, "proofcheck", lambda *files: (False, "example 0: NOT PROVED: a branch is left open"))
    assert "left open" in checked.examine(1).violations[0]


def _plain(seed):
    rng = np.random.default_rng(seed)
    W, b, v, x = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=6), rng.normal(size=3)
    c = v * np.sign(np.maximum(W @ x + b, 0) @ v)
    margin = Margin(W, b, c, 0.0, x)
    return margin, localise(WeightSpan.of(W), *margin, ball=1.0)


def test_rational_arithmetic_refutes_a_radius_that_is_a_little_too_large():
    refuted = 0
    for seed in range(20):
        margin, model = _plain(seed)
        solved = solve_closed_form(model, first_iterate(model, np.zeros(3)))
        point = solved.dual_point
        radius = proven_radius(model, point)
        if 0 < radius < 1:
            proof = Proof.of(margin, model, point)
            assert proof.holds(radius)
            refuted += not proof.holds(radius * (1 + 1e-9))
    assert refuted > 5


def test_a_proof_with_too_much_curvature_is_worth_nothing():
    _, model = _plain(1)
    solved = solve_closed_form(model, first_iterate(model, np.zeros(3)))
    point = solved.dual_point
    assert proven_value(model, point) > 0
    too_much = type(point)(point.multiplier, point.slopes, 50 * point.curvatures, point.kinds)
    assert proven_value(model, too_much) == -np.inf
    for bad in (np.nan, np.inf):
        broken = type(point)(point.multiplier, np.full_like(point.slopes, bad), point.curvatures, point.kinds)
        assert proven_radius(model, broken) == 0


@pytest.mark.parametrize("width", [1, 3, 5, 7])
def test_exact_agrees_with_brute_force(width):
    rng = np.random.default_rng(width)
    W, b, v, X = rng.normal(size=(width, 3)), rng.normal(size=width), rng.normal(size=width), rng.normal(size=(12, 3))
    network = TwoLayer(*map(torch.from_numpy, (W, b, v)), torch.tensor(0.1, dtype=torch.float64))
    y = torch.where(network.logits(torch.from_numpy(X)) > 0, 1.0, -1.0).double()
    found = Exact(gap=1e-8).bound(network, Data(torch.from_numpy(X), y), cap=100.0)
    for row, x in enumerate(X):
        radius = min(brute_force_radius(W, b, v, 0.1, x, float(y[row])), 100.0)
        assert found.lower[row] == pytest.approx(radius, abs=1e-7)
        assert found.exact[row]


def test_the_ball_only_helps():
    """In a smaller ball more neurons are linear: the same radius or a larger one is proven, up to the ball."""
    for seed in range(10):
        _, model = _plain(seed)
        radii = []
        for ball in (1.0, 0.5):
            inside = model.within(ball)
            solved = solve_closed_form(inside, first_iterate(inside, np.zeros(3)))
            radii.append(proven_radius(inside, solved.dual_point))
        assert radii[1] >= min(0.5, radii[0]) * (1 - 1e-2)


def test_every_short_flip_has_the_agreed_signs():
    """Flips are sought by exact rays in many directions; the signs are those of the dual bound in the ball of each."""
    seen = settled = 0
    for seed in range(30):
        (W, b, c, _, x), model = _plain(seed)
        network = TwoLayer(*map(torch.from_numpy, (W, b, c)))
        directions = torch.from_numpy(np.random.default_rng(seed).normal(size=(400, 3)))
        directions /= directions.norm(dim=1, keepdim=True)
        X, y = torch.from_numpy(x).expand_as(directions), torch.ones(400, dtype=torch.float64)
        flips = first_flip(network, X, y, directions, torch.ones(400, dtype=torch.float64))
        short = flips < 1.0
        if not short.any():
            continue
        radius = float(flips[short].min()) * 1.05
        inside = model.within(min(radius, 1.0))
        solved = solve_closed_form(inside, first_iterate(inside, np.zeros(3)))
        signs = find_settled_signs(inside, solved.dual_point, inside.ball)
        steps = (flips * (1 + 1e-9))[:, None] * directions
        for step in steps[flips < inside.ball].numpy():
            z = inside.a + inside.W @ step
            assert (z * signs >= 0).all()
            seen += 1
        settled += int((signs != 0).sum())
    assert seen > 20
    assert settled > 10


def test_a_dual_point_that_proves_nothing_settles_no_sign():
    _, model = _plain(1)
    solved = solve_closed_form(model, first_iterate(model, np.zeros(3)))
    point = solved.dual_point
    too_much = type(point)(point.multiplier, point.slopes, 50 * point.curvatures, point.kinds)
    assert not find_settled_signs(model, too_much, model.ball).any()
    assert not find_settled_signs(model, point, 1e6).any()


def test_a_sign_by_hand():
    """margin = 1 + δ₁ - ½φ(δ₂ - ½): F = ½, A = diag(1, ½), z* = -½ and w·A⁻¹w = 2 at μ = 1, g = 0, κ = ½.

    Where the neuron is on, it lies ¼(z - ½)² above its parabola: (z + ½)²/2 + ½(z - ½)² is least at z = 0, and ¼ there.
    """
    W, b, c = np.eye(2), np.array([10.0, -0.5]), np.array([1.0, -0.5])
    model = localise(WeightSpan.of(W), W, b, c, -9.0, np.zeros(2), ball=1.2)
    point = DualPoint(1.0, np.zeros(1), np.array([0.5]), np.array([Kind.CONCAVE], dtype=np.int8))
    assert proven_value(model, point) == pytest.approx(0.5)
    limit = (1 + 0.25) ** 0.5  # where r² - 2F = z*²/(w·A⁻¹w) + κm²
    assert find_settled_signs(model, point, limit * (1 - 1e-9)).tolist() == [-1]
    assert find_settled_signs(model, point, limit * (1 + 1e-9)).tolist() == [0]
    slipping = replace(model, slips=np.array([0.1]))  # the network's own z may be nearer to 0 by this much
    limit = (1 + 0.4**2 / 2) ** 0.5
    assert find_settled_signs(slipping, point, limit * (1 - 1e-9)).tolist() == [-1]
    assert find_settled_signs(slipping, point, limit * (1 + 1e-9)).tolist() == [0]


def test_convex_neurons_keep_their_kinks():
    """Without them the bound could fall where no flip is, and exact would stop short of its gap."""
    rng = torch.Generator().manual_seed(160)
    W, b, v = (torch.randn(shape, generator=rng, dtype=torch.float64) for shape in ((60, 100), 60, 60))
    network, X = TwoLayer(W / 10, 0.3 * b, v), torch.randn(20, 100, generator=rng, dtype=torch.float64)
    data = Data(X, torch.where(network.logits(X) > 0, 1.0, -1.0).double())
    assert Exact(gap=1e-6).bound(network, data, rng=rng).exact.all()
