"""A class of the user's own on the command line: MODULE:CLASS, with its fields as options."""

import json

import pytest

from brittle.cli import main

OWN = '''
from dataclasses import dataclass, field
from typing import Literal

from brittle.common.parts import option
from brittle.training import GradientDescent


@dataclass(frozen=True)
class Halved(GradientDescent):
    """Descent at a fraction of the rate."""

    parts: int = field(default=2, metadata=option("Of the rate.", "--rate-parts"))
    steps: Literal["even", "odd"] = "even"
    batch: float = 1.0

    def begin(self, network, data, rng):
        return GradientDescent(until=self.until, rate=self.rate / self.parts).begin(network, data, rng)


@dataclass(frozen=True)
class Clashing(GradientDescent):
    seed: int = 1


class NoDataclass:
    pass
'''
TRAIN = ["train", "--setting", "sphere", "--dim", "10", "--examples", "6", "--width", "20", "--until", "steps=5"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_regimes.py").write_text(OWN)
    return tmp_path


def run(capsys, *arguments):
    assert main([*TRAIN, *arguments, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_regime_of_ones_own(capsys):
    own = run(capsys, "--regime", "own_regimes:Halved", "--rate", "0.4", "--rate-parts", "4", "--batch", "0.5")
    same = run(capsys, "--regime=descent", "--rate", "0.1")
    assert own["regime"] == "descent"
    assert own["log_loss"] == same["log_loss"] != run(capsys, "--regime", "own_regimes:Halved")["log_loss"]


def test_its_options_are_listed(capsys):
    assert main(["train", "--regime", "own_regimes:Halved", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Options of own_regimes:Halved:" in shown
    assert "--rate-parts N Of the rate." in shown
    assert main(["train", "--help"]) == 0
    assert "--rate-parts" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["--regime", "own_regimes:Halved", "--tolerance", "1"],
            "--tolerance does not belong to the regime own",
        ),
        (["--regime", "own_regimes:Halved", "--steps", "all"], "--steps is 'all'; it must be one of even, odd"),
        (
            ["--regime", "own_regimes:Halved", "--rate-parts", "few"],
            "--rate-parts is 'few'; it must be a valid integer",
        ),
        (["--regime", "own_regimes:Halved", "--rate", "0"], "rate is 0.0; it must be a positive"),
        (["--regime", "own_regimes:Clashing"], "own_regimes:Clashing has the option --seed, as the command has"),
        (["--regime", "own_regimes:NoDataclass"], "which is no dataclass that extends Trainer"),
        (["--regime", "own_regimes:Gone"], "--regime own_regimes:Gone cannot be imported"),
        (["--regime", "no_such_module:Gone"], "--regime no_such_module:Gone cannot be imported"),
        (["--regime", "flow:er"], "--regime flow:er cannot be imported"),
        (["--regime", ":"], "--regime is ':'; MODULE:CLASS is needed"),
        (["--rate-parts", "3"], "No such option: --rate-parts"),
    ],
)
def test_mistakes_end_in_one_line(arguments, line, capsys):
    assert main([*TRAIN, *arguments]) == 2
    seen = capsys.readouterr()
    assert line in seen.err
    assert seen.err.count("\n") == 1
