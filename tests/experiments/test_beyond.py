"""The figures of our own: what their cells measure, against something else that measures the same."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import LinearConstraint, minimize

from brittle.data import Data, Sphere
from brittle.experiments import EXPERIMENTS
from brittle.experiments.beyond.linear_cells import max_margin
from brittle.experiments.beyond.manifold_cells import MANIFOLDS, ManifoldCell
from brittle.experiments.beyond.noise_cells import NoiseCell
from brittle.experiments.beyond.universal_cells import OPTIMISERS, VariedCell, walk
from brittle.networks import TorchLinearInit

NORMS = VariedCell(dim=40, examples=10, width=60, ratio=4.0, biases=True, by="flow", seed=1)


def test_norms_lie_between_their_ends(rng):
    norms = VariedCell(**{**vars(NORMS), "examples": 400}).sampled(rng).X.norm(dim=1) / math.sqrt(40)
    assert norms.min() >= 0.5
    assert norms.max() <= 2
    assert norms.max() / norms.min() > 3.5
    assert norms.log().mean() == pytest.approx(0, abs=0.1)


def test_without_biases_there_are_none():
    assert VariedCell(**{**vars(NORMS), "biases": False}).measure()["largest_bias"] == 0
    assert NORMS.measure()["largest_bias"] > 0


@pytest.mark.parametrize("name", OPTIMISERS)
def test_an_optimiser_walks_down_to_the_loss(name, rng):
    data = Sphere(20).sample(5, rng)
    walked = walk(name, TorchLinearInit().draw(20, 30, rng), data, -20.0)
    assert walked.reached
    log_loss = float(torch.logsumexp(-walked.network.margins(data.X, data.y), 0)) - math.log(5)
    assert -25 < log_loss <= -20


def test_the_linear_classifier_has_the_largest_margin(rng):
    data = Sphere(6).sample(5, rng)
    data = Data(data.X + 3.0, data.y)  # away from the origin a bias is needed
    linear = max_margin(data)
    signed = (data.y[:, None] * torch.cat([data.X, torch.ones(5, 1, dtype=torch.float64)], 1)).numpy()
    found = minimize(
        lambda theta: 0.5 * float(theta[:-1] @ theta[:-1]),
        np.append(linear.w.numpy(), linear.b) * 2,
        jac=lambda theta: np.append(theta[:-1], 0.0),
        constraints=LinearConstraint(signed, 1, np.inf),
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert float(linear.radii(data).min()) == pytest.approx(1 / np.linalg.norm(found.x[:-1]), rel=1e-4)


@pytest.mark.parametrize("name", MANIFOLDS)
def test_tangents_are_orthonormal_and_normal_to_the_point(name, rng):
    sample = MANIFOLDS[name](10, 7, rng)
    dimensions = {"curve": 1, "torus": 5, "sphere": 9}[name]
    assert sample.points.norm(dim=1).tolist() == pytest.approx([math.sqrt(10)] * 7)
    gram = sample.tangents.mT @ sample.tangents
    assert torch.allclose(gram, torch.eye(dimensions, dtype=torch.float64).expand_as(gram), atol=1e-12)
    assert float((sample.points[:, None] @ sample.tangents).abs().max()) < 1e-12


def test_the_tangent_of_the_curve_is_its_derivative():
    """The same draws with an angle that is a little larger."""
    sample = MANIFOLDS["curve"](8, 1, torch.Generator().manual_seed(0))
    angle, j = float(sample.angles), torch.arange(1, 5, dtype=torch.float64)
    after = math.sqrt(2) * torch.cat([(j * (angle + 1e-6)).cos(), (j * (angle + 1e-6)).sin()])
    secant = after - sample.points[0]
    assert abs(float(secant @ sample.tangents[0, :, 0])) == pytest.approx(float(secant.norm()), rel=1e-8)


def test_the_gradient_off_the_span_is_nothing_where_the_span_is_everything():
    point = ManifoldCell(manifold="curve", dim=20, span=20, examples=15, width=40, seed=0).measure()
    assert point["off_span"] < 1e-12
    assert point["over_promised"] is None
    assert point["across_in_span"] > 0.1


def test_without_noise_the_weights_off_the_subspace_do_not_move():
    still, moved = (
        NoiseCell(dim=30, inside=6, examples=9, width=30, noise=noise, seed=0).measure() for noise in (0.0, 0.3)
    )
    assert still["moved"] < 1e-12 < moved["moved"]


def test_claims_fail_on_numbers_that_say_the_contrary():
    manifold = {"span": 40, "dim": 40, "flip": 0.9, "over_promised": 0.9}
    noise = [{"dim": 50, "noise": level, "off": off} for level, off in ((0.0, 1.0), (0.1, 0.7))]
    norms = [{"dim": 64, "ratio": r, "size": None if r > 1 else 1.0, "over_shortest": r} for r in (1.0, 2.0)]
    wrong = {
        "beyond/manifold": [{**manifold, "manifold": name} for name in MANIFOLDS],
        "beyond/noise": noise,
        "beyond/linear": [{"dim": 40, "examples": n, "gain": gain} for n, gain in ((4, 0.5), (8, 2.0))],
        "beyond/biases": [{"dim": 64, "biases": some, "size": 2.0 - some} for some in (True, False)],
        "beyond/optimisers": [{"dim": 64, "by": name, "size": 1.0, "beside_flow": 1.3} for name in OPTIMISERS],
        "beyond/norms": norms,
    }
    failing = {name: [claim.holds for claim in EXPERIMENTS[name].judge(points)] for name, points in wrong.items()}
    assert failing["beyond/manifold"] == [False] * 4
    assert failing["beyond/noise"] == [False] * 2
    assert failing["beyond/linear"] == [False] * 2
    assert failing["beyond/biases"] == [True, False]
    assert failing["beyond/optimisers"] == [True] + [False] * 4
    assert failing["beyond/norms"][:2] == [False, False]
