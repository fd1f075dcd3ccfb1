"""Every exported class and function shows how it is used, and what it shows is what happens."""

import doctest
from pathlib import Path

import pytest

import brittle
from tests.test_documented import EXPORTED

TOP = {name: getattr(brittle, name) for name in ("InputError", *brittle.BORROWED) if name != "plot"}
THINGS = {id(thing): name for name, thing in (EXPORTED | TOP).items()}  # a class that two rooms offer is run once
BY_NAME = {name: thing for name, thing in (EXPORTED | TOP).items() if THINGS[id(thing)] == name}
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FINDER = doctest.DocTestFinder(recurse=False)


def shown(name: str) -> list[doctest.Example]:
    """The examples of one docstring, as the parser sees them."""
    return [example for found in FINDER.find(BY_NAME[name], name, globs={}) for example in found.examples]


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.filterwarnings("ignore:Please import .gaussian_filter. from:DeprecationWarning")  # foolbox's own
def test_the_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (found,) = FINDER.find(BY_NAME[name], name, globs={})
    assert found.examples, "it has no example"
    said: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS, verbose=False).run(found, out=said.append)
    assert not said, "".join(said)


def test_most_examples_are_not_skipped() -> None:
    """Only what has to reach the network, or to read files that are not there everywhere."""
    skipped = {name for name in BY_NAME if any(doctest.SKIP in example.options for example in shown(name))}
    assert skipped == {"data.Cifar10", "data.FashionMnist", "data.Mnist", "data.fetch"}


def test_a_wrong_example_would_be_seen() -> None:
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    assert doctest.DocTestRunner(optionflags=OPTIONS, verbose=False).run(wrong, out=lambda _: None).failed == 1
