"""PGD in a ball, its smallest ball, and subspaces (melamed2023's figure 4)."""

import pytest
import torch

from brittle.attacks import PGD, MinimumNorm, Restriction, pixels, restriction_for
from brittle.common.errors import InputError
from brittle.data import Data, Subspace
from brittle.networks import TorchLinearInit, TwoLayer

DOUBLE = torch.float64


def on_a_subspace(rng, dim=60, codimension=40, widths=(30, 30)):
    data = Subspace(dim=dim, codimension=codimension).sample(25, rng)
    network = TorchLinearInit().draw_deep(dim, list(widths), rng)
    return network, Data(data.X, network.logits(data.X).sign(), truth=data.truth)


def test_perturbations_lie_where_they_are_said_to(rng):
    network, data = on_a_subspace(rng)
    basis, complement = data.truth.basis, data.truth.complement
    on = PGD(subspace=restriction_for(data, "on")).run(network, data)
    off = PGD(subspace=restriction_for(data, "off")).run(network, data)
    free = PGD(subspace=restriction_for(data, "free")).run(network, data)
    assert on.success.any()
    assert off.success.any()
    assert (on.perturbations @ complement).abs().max() <= 1e-12
    assert (off.perturbations @ basis).abs().max() <= 1e-12
    both = on.success & off.success & free.success
    assert (free.norms[both] <= 1.05 * torch.minimum(on.norms, off.norms)[both]).double().mean() > 0.9


def test_a_linear_margin_needs_exactly_its_distance():
    """N(x) = φ(w·x) - φ(-w·x): the smallest ball has radius |w·x|/‖w‖, with a budget below it PGD must fail."""
    w = torch.tensor([3.0, 4.0], dtype=DOUBLE)
    network = TwoLayer(torch.stack([w, -w]), torch.zeros(2, dtype=DOUBLE), torch.tensor([1.0, -1.0], dtype=DOUBLE))
    X = torch.tensor([[1.0, 0.5], [-2.0, 0.0], [0.1, 0.1]], dtype=DOUBLE)
    data = Data(X, (X @ w).sign())
    distance = (X @ w).abs() / 5
    found = PGD().run(network, data)
    torch.testing.assert_close(found.norms, distance, rtol=1e-9, atol=0)
    torch.testing.assert_close(found.budgets, distance, rtol=1e-9, atol=0)
    inside = PGD(budget=float(distance.median()) * 0.99).run(network, data)
    assert inside.success.tolist() == (distance < distance.median()).tolist()
    assert (inside.norms <= float(distance.median())).all()
    axis = PGD(subspace=pixels(torch.tensor([0, 1]))).run(network, data)
    torch.testing.assert_close(axis.norms, (X @ w).abs() / 4, rtol=1e-9, atol=0)


def test_the_budget_is_kept_and_more_of_it_flips_more(rng):
    network, data = on_a_subspace(rng)
    rates = []
    for budget in (0.1, 0.5, 2.0, 8.0):
        result = PGD(budget=budget).run(network, data)
        assert result.norms.max() <= budget * (1 + 1e-12)
        rates.append(result.rate)
    assert rates == sorted(rates)
    assert rates[-1] > rates[0]


def test_the_search_comes_near_the_shortest_flip(rng):
    network = TorchLinearInit().draw(20, 50, rng)
    X = torch.randn(30, 20, generator=rng, dtype=DOUBLE)
    data = Data(X, network.logits(X).sign())
    shortest, found = MinimumNorm().run(network, data), PGD().run(network, data)
    assert found.rate > 0.9
    ratio = found.norms[found.success] / shortest.norms[found.success]
    assert ratio.mean() < 1.1
    assert ratio.min() > 0.9


def test_a_box_and_a_subspace_together(rng):
    network, data = on_a_subspace(rng)
    low, high = float(data.X.min()) - 0.2, float(data.X.max()) + 0.2
    result = PGD(subspace=restriction_for(data, "on")).run(network, data, bounds=(low, high))
    moved = data.X + result.perturbations
    assert moved.min() >= low - 1e-12
    assert moved.max() <= high + 1e-12
    assert (result.perturbations @ data.truth.complement).abs().max() <= 1e-12


def test_any_basis_spans_its_subspace(rng):
    skew = torch.randn(12, 3, generator=rng, dtype=DOUBLE) @ torch.diag(torch.tensor([1.0, 1e-3, 1e3]).double())
    vectors = torch.randn(5, 12, generator=rng, dtype=DOUBLE)
    on, off = Restriction(skew).project(vectors), Restriction(skew, off=True).project(vectors)
    torch.testing.assert_close(on + off, vectors)
    torch.testing.assert_close(on, vectors @ torch.linalg.pinv(skew).T @ skew.T, rtol=1e-8, atol=1e-8)
    twice = Restriction(torch.cat([skew, skew], 1))
    torch.testing.assert_close(twice.project(vectors), on, rtol=1e-8, atol=1e-8)
    with pytest.raises(InputError, match="basis has shape"):
        Restriction(torch.ones(3))
    with pytest.raises(InputError, match="no known basis"):
        restriction_for(Data(vectors, torch.tensor([1.0, -1, 1, -1, 1])), "on")
    with pytest.raises(InputError, match="'beside'"):
        restriction_for(Data(vectors, torch.tensor([1.0, -1, 1, -1, 1])), "beside")


def test_a_limit_below_the_budget_is_kept(rng):
    network = TorchLinearInit().draw(6, 20, rng)
    X = torch.randn(10, 6, generator=rng, dtype=torch.float64)
    data = Data(X, network.logits(X).sign())
    result = PGD(budget=3.0, limit=0.25).run(network, data)
    assert result.norms.max() <= 0.25 * (1 + 1e-12)
    assert (result.budgets == 0.25).all()
