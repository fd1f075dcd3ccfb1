"""What README and documentation show is what happens: every fenced block is run, or says why not."""

import re

import pytest

from tools.pages import ROOT, Reader, blocks, commands, pages, same

PAGES = {name: blocks(path.read_text()) for name, path in pages().items()}
RUN = [name for name, found in PAGES.items() if any(block.runs for block in found)]
BY_THEMSELVES = {"docs/extending.md"}  # tests/test_extending.py runs it as a stranger's module, and more of it


@pytest.mark.parametrize("name", [name for name in RUN if name not in BY_THEMSELVES])
def test_the_blocks_of_the_page_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reader = Reader()
    for block in PAGES[name]:
        if block.runs:
            printed = reader.follow(block)
            if block.printed is not None:
                assert same(printed, block.printed), f"line {block.line} prints\n{printed}"


@pytest.mark.parametrize("name", PAGES)
def test_every_command_is_marked_as_one(name):
    """A block of commands without a language would not be run, and nobody would notice."""
    bare = [block for block in PAGES[name] if not block.language and block.text.lstrip().startswith("brittle ")]
    assert not [block.line for block in bare if "  " not in block.text.splitlines()[0]], "say ```sh"


def test_what_is_not_run_has_a_reason():
    skipped = [block for found in PAGES.values() for block in found if block.reason]
    assert all(len(block.reason) > 8 for block in skipped)
    code = [block for found in PAGES.values() for block in found if block.language in ("python", "sh")]
    assert len(skipped) < len(code) / 3


def test_the_readme_links_to_what_exists():
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / "README.md").read_text())
    local = [link for link in links if not link.startswith("http")]
    assert local
    assert [link for link in local if not (ROOT / link).exists()] == []


def test_blocks_are_found_with_their_reasons_and_what_they_print():
    page = (
        "<!-- given: a = 2 -->\n```python\nprint(a + 1)\n```\n\nprints\n\n```\n3\n```\n"
        "<!-- not run: too long for a test -->\n```sh\nbrittle \\\n  audit  # all\n```\n  ```python\n  b\n  ```\n"
    )
    given, code, shell, indented = blocks(page)
    assert (given.text.strip(), code.printed, shell.reason) == ("a = 2", "3\n", "too long for a test")
    assert not shell.runs
    assert list(commands(shell.text)) == [["brittle", "audit"]]
    assert indented.text == "b\n"


def test_a_wrong_number_would_be_seen():
    assert same("1.02e-3 of 31\n", "1.00e-3 of 31\n")
    assert not same("1.2e-3 of 31\n", "1.0e-3 of 31\n")
    assert not same("1 example\n", "1 examples\n")


def test_a_failing_command_would_be_seen(capsys):
    (block,) = blocks("```sh\nbrittle check no/such\n```\n")
    with pytest.raises(AssertionError, match="failed"):
        Reader().follow(block)
    (block,) = blocks("```sh\nmake test\n```\n")
    with pytest.raises(AssertionError, match="no command of brittle"):
        Reader().follow(block)
