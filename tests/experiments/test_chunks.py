"""Certificates and attacks in chunks: the same from any engine, and from a run that was stopped on the way."""

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from brittle.attacks import PGD, MinimumNorm, Restriction, Universal
from brittle.attacks import base as attacks_base
from brittle.certificates import Dual, Exact
from brittle.cli import main
from brittle.common.errors import InputError
from brittle.data import Data, DataInfo, save_data
from brittle.experiments import pieces as chunks
from brittle.experiments.engines import Engine, Local
from brittle.experiments.pieces import (
    CertifiedChunk,
    Executor,
    PieceTask,
    attack_in_chunks,
    certify_in_chunks,
    fingerprint,
    prove_in_chunks,
)
from brittle.networks import Convolution, TorchLinearInit, save_network
from brittle.proving import prove
from brittle.proving.program import programs_of
from proofcheck.__main__ import main as proofcheck


@pytest.fixture
def subject(rng, monkeypatch):
    monkeypatch.setattr(chunks, "CERTIFIED_AT_ONCE", 3)
    monkeypatch.setattr(chunks, "ATTACKED_AT_ONCE", 3)
    network = TorchLinearInit().draw(5, 12, rng)
    X = torch.randn(10, 5, generator=rng, dtype=torch.float64)
    y = network.predict(X)
    y[4] = -y[4]  # an error
    return network, Data(X, y, X[:4], y[:4])


class Dying(Engine):
    """Finishes so many chunks, and is gone."""

    def __init__(self, count: int) -> None:
        self.count = count

    def run(self, work, tasks):
        yield from list(Local().run(work, tasks[: self.count]))
        raise KeyboardInterrupt


class Counting(Engine):
    def __init__(self) -> None:
        self.pieces = []

    def run(self, work, tasks):
        self.pieces += [task.piece for task in tasks]
        yield from Local().run(work, tasks)


class Backwards(Engine):
    def run(self, work, tasks):
        yield from Local().run(work, tasks[::-1])


def same(first, second):
    return all(
        torch.equal(getattr(first, name), getattr(second, name)) for name in ("lower", "upper", "exact", "nodes")
    )


def test_chunks_give_what_the_method_gives(subject):
    network, data = subject
    found = certify_in_chunks(network, data, Exact(gap=1e-4), Executor())
    whole = Exact(gap=1e-4).bound(network, data, rng=torch.Generator().manual_seed(0))
    assert torch.allclose(found.lower, whole.lower, rtol=2e-4)
    assert (found.status, found.cap, found.reason) == (whole.status, whole.cap, whole.reason)
    assert found.status[4] == "error"


@pytest.mark.parametrize("attack", [MinimumNorm(), PGD(budget=0.5), MinimumNorm(limit=0.01)], ids=repr)
def test_chunks_give_what_the_attack_gives(subject, attack):
    network, data = subject
    found = attack_in_chunks(network, data, attack, Executor(Backwards()))
    assert type(found) is attack.result
    whole = attack.run(network, data, rng=torch.Generator().manual_seed(0))
    assert torch.equal(found.success, whole.success)
    assert torch.allclose(found.norms, whole.norms, rtol=1e-6)
    assert torch.allclose(found.perturbations, whole.perturbations, atol=1e-6)


def test_what_needs_all_examples_is_not_cut(subject):
    with pytest.raises(InputError, match="the attack universal looks at all examples together"):
        attack_in_chunks(*subject, Universal(), Executor())


def test_a_run_that_was_stopped_goes_on_to_the_same_bounds(subject, tmp_path):
    others = Counting()
    with pytest.raises(KeyboardInterrupt):
        certify_in_chunks(*subject, Dual(), Executor(Dying(2), tmp_path))
    resumed = certify_in_chunks(*subject, Dual(), Executor(others, tmp_path))
    assert [len(piece.data) for piece in others.pieces] == [3, 1]
    assert same(resumed, certify_in_chunks(*subject, Dual(), Executor()))


def proof_of(subject, crew):
    """The proof of seven examples, in three chunks, and its file as it is written."""
    found = certify_in_chunks(*subject, Dual(), crew, flips=True)
    proof = prove_in_chunks(*subject, found.lower, found.flips, crew)
    proof.save("proof.npz")
    return proof, Path("proof.npz").read_bytes()


@pytest.mark.parametrize("network", ["two layers", "deep"])
def test_a_proof_in_chunks_is_the_same_however_often_it_was_stopped(subject, tmp_path, monkeypatch, rng, network):
    monkeypatch.chdir(tmp_path)
    known = TorchLinearInit().draw_deep(5, [4, 3], rng) if network == "deep" else subject[0]
    subject = known, Data(subject[1].X[:7], known.predict(subject[1].X[:7]))
    with pytest.raises(KeyboardInterrupt):
        proof_of(subject, Executor(Dying(2), tmp_path / "kept"))
    certify_in_chunks(*subject, Dual(), Executor(None, tmp_path / "kept"), flips=True)
    with pytest.raises(KeyboardInterrupt):
        proof_of(subject, Executor(Dying(2), tmp_path / "kept"))
    resumed, written = proof_of(subject, Executor(Backwards(), tmp_path / "kept"))
    assert written == proof_of(subject, Executor())[1]
    found = certify_in_chunks(*subject, Dual(), Executor(), flips=True)
    whole = prove(*subject, found.lower, found.flips)
    assert (resumed.rows, resumed.radii) == (whole.rows, whole.radii)
    assert len(resumed.rows) == int((found.lower > 0).sum())
    known, programs = whole.claims(), programs_of(whole.claims(), whole.network.parts[-1].stop, 5)
    again = replace(whole, programs=tuple(programs)).claims()
    assert known.keys() == again.keys()
    assert all(known[name].dtype == again[name].dtype and np.array_equal(known[name], again[name]) for name in known)


def test_certify_writes_a_proof_from_kept_chunks(files, capsys):
    command = ["certify", "net.npz", "--data", "data.npz", "--keep", "kept", "--proof", "proof.npz", "--examples", "6"]
    assert main([*command, "--jobs", "2"]) == 0
    first = (files / "proof.npz").read_bytes()
    for place, path in enumerate(sorted((files / "kept").iterdir())):
        if place % 2:
            path.unlink()
    assert main(command) == 0
    assert (files / "proof.npz").read_bytes() == first
    assert "the proof holds 5 of 5 radii" in capsys.readouterr().err
    assert proofcheck(["proof.npz", "--network", "net.npz", "--data", "data.npz"]) == 0
    assert capsys.readouterr().out.count("no flip within") == 5


def test_examples_that_know_their_clusters_are_cut(subject, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    network, data = subject
    means, labels = torch.eye(2, 5, dtype=torch.float64), torch.tensor([1.0, -1.0], dtype=torch.float64)
    cluster = torch.arange(10) % 2
    clustered = replace(
        data, truth=DataInfo(means=means, mean_labels=labels, cluster=cluster, cluster_test=cluster[:4])
    )
    assert same(
        certify_in_chunks(network, clustered, Dual(), Executor()), certify_in_chunks(network, data, Dual(), Executor())
    )
    monkeypatch.setattr(attacks_base, "AT_ONCE", 15)
    assert len(MinimumNorm().run(network, clustered).norms) == 10
    save_network(network, "net.npz")
    save_data(clustered, "data.npz")
    for options, count in ((["--examples", "3"], 3), (["--examples", "99"], 10), (["--examples", "3", "--test"], 3)):
        assert main(["certify", "net.npz", "--data", "data.npz", "--json", "-", *options]) == 0
        assert len(json.loads(capsys.readouterr().out)["lower"]) == count


def test_a_chunk_takes_nothing_along_that_it_does_not_need(subject, tmp_path):
    network, data = subject
    counting = Counting()
    certify_in_chunks(network, data, Dual(), Executor(counting, tmp_path))
    assert [piece.data.X_test for piece in counting.pieces] == [None] * 4
    assert torch.equal(torch.cat([piece.data.X for piece in counting.pieces]), data.X)


def test_whatever_changes_the_numbers_changes_the_name(subject):
    network, data = subject
    moved = type(network)(network.W * 2, network.b, network.v)
    basis = torch.eye(5, dtype=torch.float64)
    pieces = [
        CertifiedChunk(network, data, Dual(), None, 1.0, 0),
        CertifiedChunk(moved, data, Dual(), None, 1.0, 0),
        CertifiedChunk(network, data.take(torch.arange(5)), Dual(), None, 1.0, 0),
        CertifiedChunk(network, data, Dual(refined=True), None, 1.0, 0),
        CertifiedChunk(network, data, Dual(), (-9.0, 9.0), 1.0, 0),
        CertifiedChunk(network, data, Dual(), None, 2.0, 0),
        CertifiedChunk(network, data, Dual(), None, 1.0, 1),
        *(chunks.AttackedChunk(network, data, MinimumNorm(subspace=Restriction(basis[:, part])), None, 0)
          for part in (slice(0, 2), slice(1, 3), slice(2, 5))),
    ]  # fmt: skip
    assert len({fingerprint(piece) for piece in pieces}) == len(pieces)
    again = CertifiedChunk(replace(network, W=network.W.clone()), data, Dual(), None, 1.0, 0)
    assert fingerprint(pieces[0]) == fingerprint(again)


def test_other_code_of_a_part_of_ones_own_changes_the_name(subject, tmp_path, monkeypatch):
    """The part is not brittle's: its file is read from where it was imported."""
    monkeypatch.syspath_prepend(tmp_path)
    keys = []
    for number in (1, 2):
        module = f"own_attack_{number}"
        text = "from brittle.attacks import MinimumNorm\nclass Own(MinimumNorm):\n    name = 'own'\n"
        (tmp_path / f"{module}.py").write_text(f"{text}VERSION = {number}\n")
        own = importlib.import_module(module).Own
        piece = chunks.AttackedChunk(*subject, own(), None, 0)
        keys.append(PieceTask.of(piece).code)
    assert keys[0] != keys[1]
    assert keys[0] == PieceTask.of(chunks.AttackedChunk(*subject, sys.modules["own_attack_1"].Own(), None, 5)).code


def test_a_stride_and_one_number_of_many_change_the_name():
    kernel, bias = torch.zeros(1, 1, 3, 3, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    maps = [Convolution(kernel, bias, (1, 9, 9), stride=(step, step)) for step in (1, 2)]
    large = torch.zeros(2000, 2000)
    changed = large.clone()
    changed[1000, 1000] = 1e-30
    modules = [torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]
    assert len(set(map(fingerprint, [*maps, large, changed, *modules]))) == 6


def test_a_chunk_that_fails_is_named_and_the_others_are_kept(subject, tmp_path, monkeypatch):
    network, data = subject
    bound = Dual._enclose

    def broken(self, margins, example, enclosure):
        if float(example.x[0]) == float(data.X[7, 0]):
            raise ArithmeticError("no")
        return bound(self, margins, example, enclosure)

    with monkeypatch.context() as patch:
        patch.setattr(Dual, "_enclose", broken)
        with pytest.raises(InputError, match=r"1 of 4 chunks failed .* ArithmeticError: no"):
            certify_in_chunks(network, data, Dual(), Executor(folder=tmp_path))
    counting = Counting()
    certify_in_chunks(network, data, Dual(), Executor(counting, tmp_path))
    assert [torch.equal(piece.data.X, data.X[6:9]) for piece in counting.pieces] == [True]


@pytest.fixture
def files(subject, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    network, data = subject
    save_network(network, "net.npz")
    save_data(data, "data.npz")
    return tmp_path


def test_certify_keeps_chunks_in_a_folder(files, capsys):
    command = ["certify", "net.npz", "--data", "data.npz", "--json", "-"]
    written = []
    for _ in range(2):
        assert main([*command, "--keep", "kept"]) == 0
        written.append(json.loads(capsys.readouterr().out))
    assert written[0] == written[1]  # seconds too: the second run read everything
    assert len(list((files / "kept").iterdir())) == 4
    assert main([*command, "--engine", "else"]) == 2
    assert "--engine is 'else'; it must be local or dask://host:port" in capsys.readouterr().err


def test_attacks_of_two_processes_are_those_of_one(files, capsys):
    command = ["attack", "net.npz", "--data", "data.npz", "--seed", "3"]
    assert main([*command, "--jobs", "2", "--out", "two.npz"]) == 0
    assert main([*command, "--keep", "kept", "--out", "one.npz"]) == 0
    with np.load("two.npz") as two, np.load("one.npz") as one:
        assert sorted(two) == sorted(one)
        assert all(np.array_equal(two[name], one[name]) for name in two)
    assert [path.name for path in files.iterdir() if path.is_dir()] == ["kept"]
    assert main([*command, "--attack", "universal", "--jobs", "2"]) == 2
