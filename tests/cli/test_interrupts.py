"""Ctrl-C and SIGTERM at any time of a command: its own exit code, one line, no process and no partial file left."""

import signal

import pytest

from brittle.cli import main
from brittle.common.interrupts import Interrupted
from tests.processes import Session, needs_proc

pytestmark = needs_proc
BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
SPHERE = ["--setting", "sphere", "--dim", "300", "--examples", "60"]


def word(number):
    return {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]


def command(*arguments):
    return Session("-m", "brittle", *map(str, arguments))


def partial_files(folder):
    return list(folder.rglob("*.partial"))


@BOTH
@pytest.mark.parametrize("arguments", [["check", "wang2022/eq1"], ["reproduce", "vardi2022"]], ids=" ".join)
def test_while_pytorch_loads(number, arguments):
    with command(*arguments) as session:
        session.wait_until(lambda: session.loads("libtorch"))
        assert session.ended_by(number) == (128 + number, f"brittle: {word(number)}\n")


def reproducing(out):
    return command("reproduce", "vardi2022/fig1a", "--preset", "smoke", "--out", out, "--jobs", 2)


@BOTH
def test_while_the_workers_of_a_sweep_start(number, tmp_path):
    with reproducing(tmp_path) as session:
        session.wait_until(lambda: len(session.members()) >= 3)  # the command, its tracker, its fork server
        code, error = session.ended_by(number)
    line = f"brittle: {word(number)}; finished cells are in {tmp_path}/cells, and the same command goes on from there"
    assert code == 128 + number
    assert error.splitlines()[1:] == [line]


@BOTH
def test_in_the_middle_of_a_sweep(number, tmp_path):
    with reproducing(tmp_path) as session:
        session.wait_until(lambda: list(tmp_path.glob("cells/*.json")))
        code, error = session.ended_by(number)
    assert code == 128 + number
    assert error.splitlines()[-1].startswith(f"brittle: {word(number)}; finished cells are in")
    assert "Traceback" not in error
    assert not partial_files(tmp_path)


@BOTH
def test_training_leaves_a_checkpoint(number, tmp_path):
    out = tmp_path / "net.npz"
    arguments = ["train", *SPHERE, "--until", "log_loss=-1e12", "--out", out, "--data-out", tmp_path / "data.npz"]
    with command(*arguments) as session:
        session.wait_until((tmp_path / "data.npz").exists)
        code, error = session.ended_by(number)
    assert code == 128 + number
    assert error.count("\n") == 1
    assert error.startswith(f"brittle: {word(number)}")
    assert not out.exists()
    assert not partial_files(tmp_path)
    if "the run so far is in" in error:  # else the signal came before the first step
        assert main([str(each) for each in [*arguments[:-2], "--until", "seconds=0.01", "--resume"]]) == 2


BEGUN = """
from brittle.__main__ import run
from brittle.cli import console

watching = console.watching
console.watching = lambda label: (print("begun", flush=True), watching(label))[1]
run()
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    places = ["--data-out", folder / "data.npz", "--out", folder / "net.npz"]
    assert main([str(each) for each in ["train", *SPHERE, "--width", 400, "--until", "loss=0.1", *places]]) == 0
    return [folder / "net.npz", "--data", folder / "data.npz"]


LONG = [("certify", "--method", "exact"), ("audit", "--budget", 3600)]


@BOTH
@pytest.mark.parametrize(("name", "options"), [(name, options) for name, *options in LONG])
def test_in_the_middle_of_long_work(number, name, options, files, tmp_path):
    arguments = [name, *files, *options, "--json", tmp_path / "out.json"]
    with Session("-c", BEGUN, *map(str, arguments)) as session:
        assert session.process.stdout.readline() == b"begun\n"
        assert session.ended_by(number) == (128 + number, f"brittle: {word(number)}\n")
    assert list(tmp_path.iterdir()) == []


def test_a_search_for_the_largest_margin_leaves_its_proof(tmp_path, monkeypatch):
    """Cut off at the first proof that is kept; the next search goes on from it."""
    from brittle.cli import margins
    from brittle.kkt.any_width import largest

    data, proof = tmp_path / "data.npz", tmp_path / "proof.npz"
    assert main(["data", "sample", "--setting", "sphere", "--dim", "4", "--examples", "24", "--out", str(data)]) == 0
    keep = margins._Kept.__call__

    def cut_off(self, found):
        keep(self, found)
        raise Interrupted(signal.SIGINT)

    monkeypatch.setattr(largest, "KEEP_EVERY", 0.0)
    monkeypatch.setattr(margins._Kept, "__call__", cut_off)
    arguments = ["kkt", "--data", str(data), "--largest", "--proof", str(proof)]
    with pytest.raises(Interrupted) as ended:
        main(arguments)
    monkeypatch.undo()
    assert ended.value.kept == f"{proof} holds what was proved so far, and --resume {proof} goes on from there"
    assert main([*arguments, "--resume", str(proof)]) == 0
