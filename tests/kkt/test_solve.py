"""KKT points that are solved for: measured by the residual, compared with closed forms, refused where there is none."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from brittle import InputError
from brittle.data import Clusters, Data, Grid25, Line7, Sphere
from brittle.kkt import Status, residual, solve, solve_many
from brittle.networks import TorchLinearInit, TwoLayer
from brittle.training import Accuracy, Flow, LogLoss
from tests.kkt.reference import closed_form, fitted, gaussian, generator

seeds = st.integers(0, 10**6)


def started(data, width=60, seed=0, until=None):
    network = TorchLinearInit().draw(data.columns, width, generator(seed))
    return Flow(until=until or Accuracy(1.0)).train(network, data).network


def assert_kkt(point, data, tolerance=1e-9, biases=True):
    """The four conditions, from the network alone."""
    kkt = residual(point.network, data, biases=biases)
    assert point.status is Status.SOLVED
    assert kkt.stationarity <= tolerance
    assert kkt.complementarity <= tolerance
    assert kkt.balance <= tolerance
    assert kkt.norm_gap <= tolerance
    assert (kkt.multipliers >= 0).all()
    assert float(point.network.margins(data.X, data.y).min()) == pytest.approx(1, abs=1e-12)


DATA = {
    "sphere": Sphere(40).sample(12, generator(0)),
    "sphere in its span": Sphere(10**9).sample(12, generator(0), in_span=True),
    "as many examples as dimensions": Sphere(30).sample(30, generator(1)),
    "more examples than dimensions": Sphere(6).sample(25, generator(2)),
    "many more examples than dimensions": Sphere(4).sample(40, generator(4)),
    "clusters": Clusters(60, clusters=4, noise=0.3).sample(40, generator(3)),
    "line7": Line7().sample(),
    "grid25": Grid25().sample(),
    "rank deficient": Data(gaussian(12, 3, 4).X @ gaussian(3, 8, 5).X, gaussian(12, 3, 4).y),
    "a zero vector": Data(torch.cat([torch.zeros(1, 3).double(), gaussian(8, 3, 6).X]), gaussian(9, 3, 7).y),
    "one example": Data(torch.tensor([[3.0, 4.0]]), torch.tensor([1.0])),
    "large numbers": Data(1e4 * gaussian(10, 5, 8).X, gaussian(10, 5, 8).y),
    "small numbers": Data(1e-3 * gaussian(6, 20, 9).X, gaussian(6, 20, 9).y),
}


@pytest.mark.parametrize("name", DATA)
def test_the_solution_is_a_kkt_point(name):
    data = DATA[name]
    assert_kkt(solve(fitted(data, 150, 0), data), data)


@settings(max_examples=12)
@given(seeds, st.integers(2, 14), st.integers(2, 12))
def test_any_start_that_classifies_leads_to_a_kkt_point(seed, examples, dim):
    data = gaussian(examples, dim, seed)
    start = fitted(data, 80, seed)
    point = solve(start, data)
    assert_kkt(point, data)
    assert point.normalised_margin >= residual(start, data).normalised_margin * (1 - 1e-9)
    assert point.neurons <= start.width


@settings(max_examples=8)
@given(seeds)
def test_rotation_order_and_scale_of_the_start_do_not_matter(seed):
    data = gaussian(10, 6, seed)
    start = fitted(data, 50, seed)
    rng = generator(seed)
    Q = torch.linalg.qr(torch.randn(6, 6, generator=rng, dtype=torch.float64)).Q
    order = torch.randperm(10, generator=rng)
    moved = TwoLayer(start.W @ Q, start.b, start.v).scaled(3.0)
    points = solve(start, data), solve(moved, Data((data.X @ Q)[order], data.y[order]))
    assert points[1].normalised_margin == pytest.approx(points[0].normalised_margin, rel=1e-8)
    torch.testing.assert_close(points[1].multipliers.sum(), points[0].multipliers.sum())


def test_the_closed_form_is_found():
    network, data = closed_form(20, 20)
    point = solve(network, data)
    assert point.neurons == 2
    assert point.normalised_margin == pytest.approx(residual(network, data).normalised_margin, rel=1e-12)


def test_the_margin_beats_a_long_flow():
    data = Sphere(100).sample(10, generator(0))
    trained = started(data, width=100, until=LogLoss(-1000))
    assert solve(trained, data).normalised_margin > residual(trained, data).normalised_margin


def test_without_biases():
    data = gaussian(9, 12, 0)
    start = fitted(data, 60, 0)
    hidden = (data.X @ start.W.T).relu()
    v = torch.linalg.lstsq(hidden, data.y[:, None], driver="gelsd").solution[:, 0]
    start = TwoLayer(start.W, torch.zeros_like(start.b), v)
    point = solve(start, data, biases=False)
    assert_kkt(point, data, biases=False)
    assert (point.network.b == 0).all()
    assert solve(start, data).normalised_margin > point.normalised_margin


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_class_needs_one_bias(sign):
    """min ½‖θ‖² with every label equal: v = b = 1 and no weights, since every x̃ has a last entry of 1."""
    X = torch.cat([gaussian(6, 4, 0).X, -gaussian(6, 4, 0).X])
    data = Data(X, torch.full((12,), sign, dtype=torch.float64))
    point = solve(fitted(data, 60, 0), data)
    assert_kkt(point, data)
    assert point.normalised_margin == pytest.approx(0.5, abs=1e-10)
    torch.testing.assert_close(point.network.v, torch.tensor([sign]).double())


def test_duplicates_count_once():
    data = gaussian(9, 5, 1)
    twice = Data(torch.cat([data.X, data.X[:4]]), torch.cat([data.y, data.y[:4]]))
    start = fitted(data, 60, 1)
    points = solve(start, data), solve(start, twice)
    assert_kkt(points[1], twice)
    assert points[1].normalised_margin == pytest.approx(points[0].normalised_margin, rel=1e-9)


@pytest.mark.parametrize("distance", [1e-3, 1e-5, 1e-6, 1e-8, 1e-11])
def test_near_duplicates_are_solved_or_said(distance):
    data = gaussian(14, 10, 2)
    X = torch.cat([data.X, data.X[:4] + distance * gaussian(4, 10, 3).X])
    data = Data(X, torch.cat([data.y, data.y[:4]]))
    point = solve(fitted(data, 100, 2), data)
    error = max(point.residual.stationarity, point.residual.complementarity)
    assert error <= 1e-6
    assert (point.status is Status.SOLVED) == (error <= 1e-9)


def test_the_status_does_not_hide_what_was_missed():
    data = gaussian(14, 10, 2)
    point = solve(fitted(data, 100, 2), data, tolerance=1e-30)
    assert point.status is Status.INACCURATE
    assert "residual" in point.status.advice


def test_different_starts_give_distinct_points():
    data = gaussian(12, 6, 5)
    starts = [fitted(data, 40, seed) for seed in range(4)]
    points = solve_many([*starts, *starts[:2]], data)
    assert 2 <= len(points) <= 4
    margins = [point.normalised_margin for point in points]
    assert margins == sorted(margins, reverse=True)
    assert len(solve_many([starts[0], starts[0].scaled(2.0)], data)) == 1


def test_examples_that_do_not_carry_the_margin_are_left_out_and_checked():
    data = Clusters(400, clusters=8, noise=0.001).sample(500, generator(0))
    point = solve(fitted(data, 600, 0), data)
    assert_kkt(point, data)
    assert point.residual.on_margin.sum() < 100


def test_the_result_is_plain_json():
    data = gaussian(6, 4, 0)
    content = solve(fitted(data, 30, 0), data).to_json()
    assert content["status"] == "solved"
    assert len(content["multipliers"]) == 6
    assert content["neurons"] >= 1


def test_the_same_example_with_both_labels_is_an_error():
    data = gaussian(5, 3, 0)
    both = Data(torch.cat([data.X, data.X[2:3]]), torch.cat([data.y, -data.y[2:3]]))
    with pytest.raises(InputError, match=r"examples (2 and 5|5 and 2) are equal"):
        solve(fitted(data, 30, 0), both)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda n: TwoLayer(n.W, n.b, -n.v), "misclassifies"),
        (lambda n: TwoLayer(n.W, n.b, 0 * n.v), "misclassifies"),
        (lambda n: TwoLayer(n.W, n.b, n.v * math.inf), "v of the network"),
        (lambda n: TwoLayer(n.W, n.b, n.v, torch.tensor(1.0).double()), "output bias"),
    ],
)
def test_starts_that_cannot_work_are_errors(change, words):
    data = gaussian(6, 4, 0)
    with pytest.raises(InputError, match=words):
        solve(change(fitted(data, 30, 0)), data)


def test_progress_is_told():
    data, notes = gaussian(8, 4, 0), []
    solve(fitted(data, 40, 0), data, watch=notes.append)
    shares = [note.done for note in notes]
    assert shares == sorted(shares)
    assert 0 <= shares[0] < shares[-1] <= 1
