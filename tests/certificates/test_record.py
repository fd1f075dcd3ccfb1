"""The record: a tiny instance from training to the table, counts against closed forms; nothing flipped is proved."""

import json
from dataclasses import replace

import pytest
import torch
from scipy import stats
from torch import nn

from benchmarks import verdicts
from benchmarks.record import PROBLEMS, halves, table, train
from benchmarks.robust_training import Frame, RobustTraining, bounded, worst
from benchmarks.verdicts import Attacked, Branched, Tally, Verdict, judged, open_rows
from brittle.data import Data, Digits
from brittle.experiments.pieces import Executor
from brittle.networks import Deep

TINY = RobustTraining(width=24, components=12, budget=0.4, epochs=12, bend=0.5, batch=32, rate=1e-2)


def linear_network(rng):
    """Two layers that are linear together: φ(z) - φ(-z) = z."""
    A = torch.randn(4, 6, generator=rng, dtype=torch.float64)
    eye = torch.eye(6, dtype=torch.float64)
    zeros = [torch.zeros(count, dtype=torch.float64) for count in (12, 4)]
    return A, Deep.dense([torch.cat([eye, -eye]), torch.cat([A, -A], 1)], zeros)


def radii(A, X, y):
    """Signed: of a linear network, the nearest of its boundaries."""
    logits = X @ A.T
    found = []
    for row, own in enumerate(y.tolist()):
        rivals = [k for k in range(len(A)) if k != own]
        found.append(min(float((logits[row, own] - logits[row, k]) / (A[own] - A[k]).norm()) for k in rivals))
    return torch.tensor(found)


def test_verdicts_of_a_linear_network_are_those_of_its_radii():
    rng = torch.Generator().manual_seed(0)
    A, network = linear_network(rng)
    X = torch.randn(40, 6, generator=rng, dtype=torch.float64)
    y = (X @ A.T).topk(2).indices[torch.arange(40), (torch.arange(40) % 8 == 0).long()]  # every eighth label is wrong
    exact, radius = radii(A, X, y), 0.4
    assert float((exact - radius).abs().min()) > 1e-3
    found = Attacked(network, Data(X, y), radius)()["verdicts"]
    rows = open_rows(found)
    if len(rows):
        found[rows] = Branched(network, Data(X[rows], y[rows]), radius, nodes=50)()["verdicts"]
    expected = torch.where(exact <= 0, Verdict.WRONG, torch.where(exact < radius, Verdict.FLIPPED, Verdict.PROVED))
    assert found.tolist() == expected.tolist()
    tally = judged(network, Data(X, y), radius, 50, Executor())
    assert list(tally.counts.values()) == [int((expected == kind).sum()) for kind in Verdict]
    assert set(found.tolist()) == {Verdict.WRONG, Verdict.FLIPPED, Verdict.PROVED}


def test_what_an_attack_flips_is_not_asked_of_a_certificate(monkeypatch):
    rng = torch.Generator().manual_seed(0)
    A, network = linear_network(rng)
    X = torch.randn(30, 6, generator=rng, dtype=torch.float64)
    y = (X @ A.T).argmax(1)

    def credulous(method, network, data, radius, cap):
        return torch.full((len(data),), int(Verdict.PROVED))

    monkeypatch.setattr(verdicts, "decided", credulous)
    found = Attacked(network, Data(X, y), 0.4)()["verdicts"]
    assert (radii(A, X, y) < 0.2).sum() > 3
    assert (found[radii(A, X, y) < 0.2] == Verdict.FLIPPED).all()


def test_a_tiny_instance_goes_from_training_to_the_table(tmp_path, monkeypatch):
    data = Digits().sample(400, torch.Generator().manual_seed(0), test=60)
    problem = replace(PROBLEMS["mnist"], image=(1, 8, 8), radius=0.3, training=TINY)
    network, reached = train(problem, *halves(data))
    assert reached["accuracy"] > 0.5
    assert reached["under attack"] <= reached["accuracy"]
    tally = judged(network, data.test, problem.radius, 20, Executor(folder=tmp_path / "kept"))
    assert tally.examples == 60
    assert tally.counts["proved"] > 0
    right = int((network.margins(data.test.X, data.test.y) > 0).sum())
    assert tally.counts["wrong"] == 60 - right
    with monkeypatch.context() as patched:
        patched.setattr(verdicts, "decided", None)  # not asked again
        again = judged(network, data.test, problem.radius, 20, Executor(folder=tmp_path / "kept"))
    assert again == tally
    path = tmp_path / "found.json"
    path.write_text(json.dumps({"problem": "digits", "radius": 0.3, **tally.to_json()}), encoding="utf-8")
    assert f"| {tally.proved:.2%} |" in table([path])


@pytest.mark.parametrize(("proved", "others"), [(0, 9), (7, 3), (730, 270), (5, 0)])
def test_the_interval_is_that_of_the_binomial_tails(proved, others):
    tally = Tally.of(torch.tensor([Verdict.PROVED] * proved + [Verdict.OPEN] * others), 1.0)
    low, high = tally.interval
    assert tally.proved == proved / (proved + others)
    if proved:
        assert stats.binom.sf(proved - 1, proved + others, low) == pytest.approx(0.025)
    if others:
        assert stats.binom.cdf(proved, proved + others, high) == pytest.approx(0.025)
    assert 0 <= low <= tally.proved <= high <= 1


def test_the_network_of_pictures_is_the_one_that_was_trained():
    rng = torch.Generator().manual_seed(0)
    X = torch.randn(50, 9, generator=rng)
    frame = Frame.of(X, 4)
    module = nn.Sequential(nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 3))
    assert torch.allclose(frame.network(module).logits(X.double()).float(), module(frame(X)), atol=1e-5)


def test_the_attack_of_training_stays_in_its_ball_and_the_loss_is_bounded():
    rng = torch.Generator().manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 3))
    x, y = torch.randn(20, 4, generator=rng), torch.randint(3, (20,), generator=rng)
    delta = worst(module, x, y, 0.5, 4)
    assert float(delta.norm(dim=1).max()) <= 0.5 * (1 + 1e-6)
    assert bounded(module(x + delta), y) > bounded(module(x), y)
    assert float(bounded(torch.tensor([[-1e3, 1e3]]), torch.tensor([0]))) <= 2.0
