"""At home in the shell: completion that does not wait, progress that does not disturb, versions and citations."""

import io
import os
import subprocess
import sys
import time

import pytest

import brittle
from brittle.cli import COMMANDS, console, main
from brittle.cli.console import PrintableConsole
from brittle.common.progress import Progress

ASK = "import sys, brittle.__main__ as m; sys.argv[0] = 'brittle'; m.run()"


def completed(*words: str) -> list[str]:
    """What bash would offer for the last word."""
    asked = {"_BRITTLE_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    seen = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", ASK], env=os.environ | asked, capture_output=True, text=True
    )
    assert " torch" not in seen.stderr, "completion waits for PyTorch"
    return seen.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["brittle", "aud"], {"audit"}),
        (["brittle", "train", "--regime", "ma"], {"maximum-radius"}),
        (["brittle", "train", "--res"], {"--resume"}),
        (["brittle", "audit", "--remedy", "robust"], {"robust-construction"}),
        (["brittle", "check", "vardi2022/5"], {"vardi2022/5.1"}),
        (["brittle", "cite", "wang"], {"wang2022"}),
        (["brittle", "reproduce", "all", "--preset", "f"], {"full"}),
    ],
    ids=lambda words: words[-1] if isinstance(words, list) else "",
)
def test_shells_complete_commands_options_and_names(words, offered):
    assert offered <= set(completed(*words))


def test_only_the_root_installs_completion(capsys):
    assert main(["--help"]) == 0
    assert "--install-completion" in capsys.readouterr().out
    for name in set(COMMANDS) - {"bench"}:
        main([name, "--help"])
        assert "--install-completion" not in capsys.readouterr().out, name


@pytest.fixture
def terminal(monkeypatch):
    """What a person would see."""
    stream = io.StringIO()
    shown = PrintableConsole(file=stream, force_terminal=True, width=100)
    monkeypatch.setattr(console, "PrintableConsole", lambda **_: shown)
    return stream


def until_seen(stream: io.StringIO) -> None:
    """A busy machine draws late; nothing waits for ever."""
    for _ in range(3000):
        if stream.getvalue():
            return
        time.sleep(0.01)


def work(seen: io.StringIO | None = None, fails: bool = False) -> None:
    with console.watching("a long job") as watch:
        watch(Progress(0.5, "half of it"))
        if seen is not None:
            until_seen(seen)
        if fails:
            raise RuntimeError


def test_long_work_shows_how_far_it_is(terminal, monkeypatch):
    monkeypatch.setattr(console, "PATIENCE", 0.0)
    work(terminal)
    assert "a long job" in terminal.getvalue()
    assert "half of it" in terminal.getvalue()


def test_short_work_shows_nothing(terminal, monkeypatch):
    monkeypatch.setattr(console, "PATIENCE", 1000.0)
    work()
    assert terminal.getvalue() == ""


def test_where_there_is_no_terminal_nothing_is_shown(monkeypatch, capsys):
    monkeypatch.setattr(console, "PATIENCE", 0.0)
    work()
    assert capsys.readouterr() == ("", "")


def test_an_error_ends_the_bar(terminal, monkeypatch):
    monkeypatch.setattr(console, "PATIENCE", 0.0)
    with pytest.raises(RuntimeError):
        work(terminal, fails=True)
    assert terminal.getvalue().endswith("\x1b[2K")  # the line is wiped


def test_the_version_is_that_of_the_package(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"brittle {brittle.__version__}\n"


def test_citations_are_bibtex(capsys):
    assert main(["cite"]) == 0
    assert f"version = {{{brittle.__version__}}}" in capsys.readouterr().out
    assert main(["cite", "melamed2023/4.1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("% melamed2023/4.1: ")
    assert (lines[1], lines[-1]) == ("@inproceedings{melamed2023,", "}")
    assert all(line.endswith(("},", "}")) for line in lines[2:])
    assert main(["cite", "nobody2020"]) == 2
    assert "it must be one of vardi2022, frei2023" in capsys.readouterr().err


def test_every_theorem_has_a_paper_to_cite():
    from brittle.theorems import PAPERS, THEOREMS

    assert {theorem.paper for theorem in THEOREMS.values()} == set(PAPERS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["attack", "net.pt", "--data", "d.npz", "--attack", "pgd", "--budget", "abc"],
            "--budget is 'abc'; it must be",
        ),
        (["audit", "--seed=-1"], "--seed is '-1'; it must be greater than or equal to 0"),
        (
            ["certify", "net.pt", "--data", "d.npz", "--jobs", "0"],
            "--jobs is '0'; it must be greater than or equal to 1",
        ),
        (["attack", "net.pt", "--data", "d.npz", "--architecture", "mine"], "MODULE:CLASS is needed"),
    ],
)
def test_a_number_that_is_none_is_named(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("net.pt", "d.npz"):
        (tmp_path / name).touch()
    assert main(arguments) == 2
    assert words in capsys.readouterr().err
