"""Certificates in chunks: the same bounds from any engine, and from a run that was stopped on the way."""

import json

import pytest
import torch

from brittle.certificates import Dual, Exact
from brittle.cli import main
from brittle.common.errors import InputError
from brittle.experiments import chunks
from brittle.experiments.chunks import Certifying
from brittle.experiments.sweep import Engine, Local
from brittle.networks import PyTorch, save_network
from brittle.settings import Data, save_data


@pytest.fixture
def subject(rng, monkeypatch):
    monkeypatch.setattr(chunks, "SIZE", 3)
    network = PyTorch().draw(5, 12, rng)
    X = torch.randn(10, 5, generator=rng, dtype=torch.float64)
    y = network.predict(X)
    y[4] = -y[4]  # an error
    return network, Data(X, y)


class Dying(Engine):
    """Finishes so many chunks, and is gone."""

    def __init__(self, count: int) -> None:
        self.count = count

    def run(self, work, tasks):
        yield from list(Local().run(work, tasks[: self.count]))
        raise KeyboardInterrupt


class Counting(Engine):
    def __init__(self) -> None:
        self.tasks = []

    def run(self, work, tasks):
        self.tasks += tasks
        yield from Local().run(work, tasks)


def same(first, second):
    return all(
        torch.equal(getattr(first, name), getattr(second, name)) for name in ("lower", "upper", "exact", "nodes")
    )


def test_chunks_give_what_the_method_gives(subject, tmp_path):
    network, data = subject
    found = Certifying(network, data, Exact(gap=1e-4)).run(tmp_path)
    whole = Exact(gap=1e-4).bound(network, data, rng=torch.Generator().manual_seed(0))
    assert torch.allclose(found.lower, whole.lower, rtol=2e-4)
    assert (found.status, found.cap, found.reason) == (whole.status, whole.cap, whole.reason)
    assert found.status[4] == "error"


def test_a_run_that_was_stopped_goes_on_to_the_same_bounds(subject, tmp_path):
    work, others = Certifying(*subject, Dual()), Counting()
    with pytest.raises(KeyboardInterrupt):
        work.run(tmp_path / "stopped", Dying(2))
    resumed = work.run(tmp_path / "stopped", others)
    assert [task.params["first"] for task in others.tasks] == [6, 9]
    assert same(resumed, work.run(tmp_path / "whole"))


def test_another_network_method_cap_or_seed_has_chunks_of_its_own(subject):
    network, data = subject
    moved = type(network)(network.W * 2, network.b, network.v)
    works = [
        Certifying(network, data, Dual()),
        Certifying(moved, data, Dual()),
        Certifying(network, data, Dual(refined=True)),
        Certifying(network, data, Dual(), seed=1),
        Certifying(network, data, Dual(), cap=3.0),
    ]
    keys = [chunk.key for work in works for chunk in work.chunks]
    assert len(set(keys)) == len(keys) == 20
    assert [chunk.key for chunk in Certifying(network, data, Dual()).chunks] == keys[:4]


def test_a_chunk_that_fails_is_named_and_the_others_are_kept(subject, tmp_path, monkeypatch):
    network, data = subject
    work = Certifying(network, data, Dual())
    bound = Dual._enclose

    def broken(self, margins, example, enclosure):
        if float(example.x[0]) == float(data.X[7, 0]):
            raise ArithmeticError("no")
        return bound(self, margins, example, enclosure)

    with monkeypatch.context() as patch:
        patch.setattr(Dual, "_enclose", broken)
        with pytest.raises(InputError, match=r"1 of 4 chunks failed .* ArithmeticError: no"):
            work.run(tmp_path)
    counting = Counting()
    work.run(tmp_path, counting)
    assert [task.params["first"] for task in counting.tasks] == [6]


def test_certify_keeps_chunks_in_a_folder(subject, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    network, data = subject
    save_network(network, "net.npz")
    save_data(data, "data.npz")
    command = ["certify", "net.npz", "--data", "data.npz", "--json", "-"]
    written = []
    for _ in range(2):
        assert main([*command, "--out", "kept"]) == 0
        written.append(json.loads(capsys.readouterr().out))
    assert written[0] == written[1]  # seconds too: the second run read everything
    assert len(list((tmp_path / "kept").iterdir())) == 4
    assert main([*command, "--jobs", "2"]) == 2
    assert "--jobs and --engine need --out DIR" in capsys.readouterr().err
