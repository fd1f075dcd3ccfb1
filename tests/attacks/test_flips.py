"""The exact ray against rational arithmetic, extended precision and dense evaluation."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from brittle.attacks import MinimumNorm, first_flip, flip_intervals, flips, pieces, step_past
from brittle.attacks.flips import bracket_flips
from brittle.common.errors import InputError
from brittle.data import Data
from brittle.geometry import unit_rows
from brittle.networks import Adapter, Deep, TorchLinearInit, TwoLayer
from tests.attacks.reference import rational_first_flip, scanned_first_flip

DOUBLE = torch.float64


def normal(*shape, rng):
    return torch.randn(*shape, generator=rng, dtype=DOUBLE)


def scan(network, X, y, U, limit=np.inf):
    arrays = (network.W, network.b, network.v, float(network.c), X, y, U)
    return torch.from_numpy(scanned_first_flip(*arrays, limit=limit))


def assert_same(found, expected):
    assert torch.equal(found.isinf(), expected.isinf())
    there = expected.isfinite()
    torch.testing.assert_close(found[there], expected[there], rtol=1e-9, atol=1e-9)


def test_ten_thousand_rays(rng):
    """Random ones, whole numbers (kinks hit exactly, several at once), zero directions, misclassified examples."""
    total, kinds = 0, torch.zeros(3)
    for dim, width, count in ((5, 20, 4000), (2, 12, 3000), (30, 40, 2000)):
        network = TorchLinearInit().draw(dim, width, rng)
        X, U = normal(count, dim, rng=rng), normal(count, dim, rng=rng)
        U[::97] = 0
        y = network.logits(X).sign()
        y[::31] *= -1
        found = first_flip(network, X, y, U)
        assert_same(found, scan(network, X, y, U))
        kinds += torch.tensor([(found == 0).sum(), found.isinf().sum(), ((found > 0) & found.isfinite()).sum()])
        total += count
    whole = TwoLayer(*(torch.randint(-2, 3, shape, generator=rng).double() for shape in ((9, 3), (9,), (9,))))
    X, U = (torch.randint(-3, 4, (1000, 3), generator=rng).double() for _ in range(2))
    y = torch.where(torch.rand(1000, generator=rng) < 0.8, whole.logits(X).sign(), 1.0).double()
    y[y == 0] = 1
    assert_same(first_flip(whole, X, y, U), scan(whole, X, y, U))
    assert total + 1000 == 10_000
    assert (kinds > 200).all()


NUMBERS = st.integers(-3, 3)


@settings(max_examples=200)
@given(st.data())
def test_whole_numbers_agree_with_rational_arithmetic(data):
    """Plateaus at zero, touching zero without crossing, duplicate breakpoints and N(x) = 0 are common here."""
    dim, width = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 6))
    draw = lambda count: data.draw(st.lists(NUMBERS, min_size=count, max_size=count))  # noqa: E731
    W, b, v = [draw(dim) for _ in range(width)], draw(width), draw(width)
    c, x, u, y = data.draw(NUMBERS), draw(dim), draw(dim), data.draw(st.sampled_from([-1, 1]))
    expected = rational_first_flip(W, b, v, c, x, y, u)
    network = TwoLayer(*(torch.tensor(e, dtype=DOUBLE) for e in (W, b, v)), torch.tensor(float(c)))
    found = first_flip(network, *(torch.tensor([e], dtype=DOUBLE) for e in (x, y, u)))
    assert float(found) == pytest.approx(float("inf") if expected is None else float(expected), rel=1e-12, abs=1e-12)


def hat(height: float) -> TwoLayer:
    """N(t) on the line: 1 at 0, falls to 0 at t = 1, stays there until 2, then goes on with slope `height`."""
    W = torch.tensor([[-1.0], [1.0]], dtype=DOUBLE)
    return TwoLayer(W, torch.tensor([1.0, -2.0], dtype=DOUBLE), torch.tensor([1.0, height], dtype=DOUBLE))


@pytest.mark.parametrize(("height", "expected"), [(-1.0, 2.0), (1.0, torch.inf), (0.0, torch.inf)])
def test_a_plateau_at_zero_is_not_a_flip(height, expected):
    x, y, u = torch.zeros(1, 1, dtype=DOUBLE), torch.ones(1, dtype=DOUBLE), torch.ones(1, 1, dtype=DOUBLE)
    found = first_flip(hat(height), x, y, u)
    assert float(found) == expected
    size = step_past(hat(height), x, y, u, found, torch.tensor([torch.inf]))
    assert float(size) == pytest.approx(expected, rel=1e-9)
    if expected < torch.inf:
        assert hat(height).margins(x + size * u, y) < 0


def test_the_limit_is_kept():
    x, y, u = torch.zeros(1, 1, dtype=DOUBLE), torch.ones(1, dtype=DOUBLE), torch.ones(1, 1, dtype=DOUBLE)
    assert first_flip(hat(-1.0), x, y, u, limit=1.9).isinf()
    assert first_flip(hat(-1.0), x, y, u, limit=torch.tensor([2.5])) == 2
    assert first_flip(hat(-1.0), x, y, u, limit=0.0).isinf()


def networks(rng):
    two = TorchLinearInit().draw(6, 15, rng)
    return {
        "two layers": two,
        "two layers as deep": Deep.dense((two.W, two.v[None]), (two.b, two.c[None])),
        "deep": TorchLinearInit().draw_deep(6, [12, 11, 10], rng),
        "three classes": TorchLinearInit().draw_deep(6, [12, 9], rng, outputs=3),
        "foreign": Adapter(TorchLinearInit().draw_deep(6, [12, 9], rng).module()),
    }


def labelled(network, X):
    logits = network.logits(X)
    return logits.sign() if network.classes == 1 else logits.argmax(1)


@pytest.mark.parametrize("name", ["two layers", "two layers as deep", "deep", "three classes", "foreign"])
def test_intervals_are_where_the_margin_is_negative(name, rng):
    network = networks(rng)[name]
    X, U = 0.3 * normal(40, 6, rng=rng), normal(40, 6, rng=rng)
    y = labelled(network, X)
    y[::10] = -y[::10] if network.classes == 1 else (y[::10] + 1) % 3
    found = flip_intervals(network, X, y, U, limit=6.0)
    assert len(found.start) > 15
    assert (found.stop > found.start).all()
    for t in torch.linspace(0.001, 5.999, 150, dtype=DOUBLE):
        margins = network.margins(X + t * U, y)
        inside = torch.zeros(len(X), dtype=torch.bool)
        inside[found.ray[(found.start < t) & (t < found.stop)]] = True
        clear = margins.abs() > 1e-8
        assert torch.equal(inside[clear], (margins < 0)[clear])
    torch.testing.assert_close(found.first(), first_flip(network, X, y, U, limit=6.0), rtol=1e-9, atol=1e-9)


def test_a_deep_network_of_two_layers_is_the_same_as_a_two_layer_one(rng):
    both = networks(rng)
    X, U = normal(200, 6, rng=rng), normal(200, 6, rng=rng)
    y = labelled(both["two layers"], X)
    one, other = (first_flip(both[name], X, y, U) for name in ("two layers", "two layers as deep"))
    assert_same(one, other)


def test_deep_rays_without_an_end(rng):
    network = TorchLinearInit().draw_deep(4, [8, 8], rng)
    X, U = normal(300, 4, rng=rng), normal(300, 4, rng=rng)
    y = labelled(network, X)
    found = first_flip(network, X, y, U)
    never = found.isinf()
    assert 20 < never.sum() < 280
    for t in torch.logspace(-3, 6, 200, dtype=DOUBLE):
        assert (network.margins(X[never] + t * U[never], y[never]) >= 0).all()
    at = X[~never] + found[~never, None] * U[~never]
    torch.testing.assert_close(network.margins(at, y[~never]), torch.zeros(len(at), dtype=DOUBLE), rtol=0, atol=1e-9)


def test_a_smooth_module_is_bisected():
    """tanh(x) - tanh(1) along a line changes sign at x = 1."""
    linear = torch.nn.Linear(1, 1, dtype=DOUBLE)
    torch.nn.init.ones_(linear.weight)
    torch.nn.init.zeros_(linear.bias)
    last = torch.nn.Linear(1, 1, dtype=DOUBLE)
    torch.nn.init.ones_(last.weight)
    torch.nn.init.constant_(last.bias, -float(np.tanh(1.0)))
    network = Adapter(torch.nn.Sequential(linear, torch.nn.Tanh(), last))
    x = torch.tensor([[3.0], [-1.0]], dtype=DOUBLE)
    y, u = torch.tensor([1.0, -1.0], dtype=DOUBLE), torch.tensor([[-1.0], [1.0]], dtype=DOUBLE)
    torch.testing.assert_close(first_flip(network, x, y, u), torch.tensor([2.0, 2.0], dtype=DOUBLE))
    assert first_flip(network, x, y, -u).isinf().all()


def test_wide_rays_in_chunks(rng, monkeypatch):
    network = TorchLinearInit().draw(5, 50, rng)
    X, U = normal(60, 5, rng=rng), normal(60, 5, rng=rng)
    y = labelled(network, X)
    whole, intervals = first_flip(network, X, y, U), flip_intervals(network, X, y, U)
    monkeypatch.setattr("brittle.attacks.pieces.NUMBERS_AT_ONCE", 350)
    assert_same(first_flip(network, X, y, U), whole)
    assert_same(flip_intervals(network, X, y, U).start, intervals.start)


def test_digits_lost_in_the_sum_are_found_again(rng):
    """Large weights that cancel: the accumulated value at the flip is off, the polished one is not."""
    network = TorchLinearInit().draw(4, 30, rng)
    big = 1e6 * normal(20, 4, rng=rng)
    W = torch.cat([network.W, big, big])
    v = torch.cat([network.v, torch.ones(20, dtype=DOUBLE), -torch.ones(20, dtype=DOUBLE)])
    noisy = TwoLayer(W, torch.cat([network.b, torch.zeros(40, dtype=DOUBLE)]), v)
    X, U = normal(100, 4, rng=rng), normal(100, 4, rng=rng)
    y = network.logits(X).sign()
    found, clean = first_flip(noisy, X, y, U), first_flip(network, X, y, U)
    steep = clean.isfinite() & (clean < 5)
    assert steep.sum() > 20
    torch.testing.assert_close(found[steep], clean[steep], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("directions", "limit", "words"),
    [
        (torch.zeros(3), 1.0, "directions has shape"),
        (torch.full((4,), torch.nan), 1.0, "NaN"),
        (torch.ones(4), -1.0, "limit"),
    ],
)
def test_bad_input_is_named(directions, limit, words, rng):
    network = TorchLinearInit().draw(4, 5, rng)
    X = normal(2, 4, rng=rng)
    with pytest.raises(InputError, match=words):
        first_flip(network, X, torch.ones(2, dtype=DOUBLE), directions, limit)


def test_a_few_points_show_a_flip_where_the_margin_is_zero():
    network, data = _deep(seed=3)
    rays = -unit_rows(network.margin_gradients(data.X, data.y))
    exact = first_flip(network, data.X, data.y, rays, 50.0)
    limits = torch.where(exact.isfinite(), 1.5 * exact, 1.0)
    seen = bracket_flips(network, data.X, data.y, rays, limits)
    found = seen.isfinite()
    assert found.sum() > 10
    assert (seen[found] >= exact[found] * (1 - 1e-12)).all()
    assert float((seen[found] - exact[found]).abs().median()) < 1e-12
    margins = network.margins(data.X[found] + seen[found, None] * rays[found], data.y[found])
    assert float(margins.abs().max()) < 1e-12
    assert bracket_flips(network, data.X, data.y, rays, 0.5 * limits.clamp(max=exact)).isinf().all()


@pytest.mark.parametrize("limit", [torch.inf, 2.0])
def test_a_search_in_a_network_with_many_pieces_finds_nearly_the_same_flips(monkeypatch, limit):
    network, data = _deep(seed=4)
    exact = MinimumNorm(limit=limit).run(network, data)
    monkeypatch.setattr(pieces, "LARGE_RAY", 0)
    quick = MinimumNorm(limit=limit).run(network, data)
    assert torch.equal(quick.success, exact.success)
    assert quick.success.sum() > 10
    right = quick.success & exact.success
    assert float((quick.norms / exact.norms)[right].mean()) < 1.01
    carried_on = MinimumNorm(limit=limit, tolerance=1e-9).run(network, data)
    assert carried_on.stationary[right].double().mean() > 0.9


def _deep(seed):
    rng = torch.Generator().manual_seed(seed)
    network = TorchLinearInit().draw_deep(8, [20, 20], rng, outputs=3)
    X = torch.randn(30, 8, generator=rng, dtype=DOUBLE)
    return network, Data(X, network.logits(X).argmax(1))


def test_only_a_margin_that_crosses_0_inside_a_piece_is_polished(monkeypatch):
    """1 - φ(x) crosses 0 at 1; φ(1 - x) - φ(x - 2) is 0 between 1 and 2 and negative from there on."""
    monkeypatch.setattr(flips, "_polished", lambda network, X, y, directions, at, *others: at + 0.25)
    one, zero = torch.ones(1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
    crossing = TwoLayer(one[None], 0 * one, -one, one[0])
    touching = TwoLayer(
        torch.tensor([[-1.0], [1.0]]).double(), torch.tensor([1.0, -2.0]).double(), torch.tensor([1.0, -1.0]).double()
    )
    assert first_flip(crossing, zero, one, one[None], 9.0).tolist() == [1.25]
    assert first_flip(touching, zero, one, one[None], 9.0).tolist() == [2.0]
