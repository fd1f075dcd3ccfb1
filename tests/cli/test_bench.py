"""brittle bench: finds the benchmarks of the source tree and hands over their options."""

import pytest

from brittle.cli import main


@pytest.mark.parametrize("arguments", [[], ["-h"]])
def test_it_lists_the_benchmarks(capsys, arguments):
    assert main(["bench", *arguments]) == 0
    assert "flow" in capsys.readouterr().out


def test_options_belong_to_the_benchmark(capsys):
    assert main(["bench", "flow", "-h"]) == 0
    assert "--seeds" in capsys.readouterr().out
    assert main(["bench", "flow", "--no-such-option"]) == 2
    assert "--no-such-option" in capsys.readouterr().err


def test_an_unknown_benchmark_is_refused(capsys):
    assert main(["bench", "flows"]) == 2
    assert "there is no benchmark 'flows'" in capsys.readouterr().err
