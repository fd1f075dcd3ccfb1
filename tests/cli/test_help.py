"""What `--help` says: in sections, whole sentences, and no wider than a terminal."""

import pytest

from brittle.cli import COMMANDS, GROUPS, main

SECTIONED = ("audit", "explore", "harden", "train", "kkt", "attack", "certify", "check")
FEW = 10  # options under one heading that a person still reads; those of parts are as many as the parts have


def helped(capsys, monkeypatch, *words):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*words, "--help"]) == 0
    return capsys.readouterr().out


def test_every_command_is_listed_once_in_a_group_with_all_of_its_words(capsys, monkeypatch):
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(COMMANDS)
    told = " ".join(helped(capsys, monkeypatch).split())
    assert [words for words in COMMANDS.values() if words not in told] == []
    assert [group for group in GROUPS if f"{group}:" not in told] == []


@pytest.mark.parametrize("words", [(), ("data",), ("truth",), *((name,) for name in COMMANDS if name != "bench")])
def test_no_line_is_cut_short_or_wider_than_the_terminal(capsys, monkeypatch, words):
    lines = helped(capsys, monkeypatch, *words).splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if line.endswith("...") and "ARGS" not in line] == []


@pytest.mark.parametrize("name", SECTIONED)
def test_options_stand_under_headings(capsys, monkeypatch, name):
    sections, now = {}, ""
    for line in helped(capsys, monkeypatch, name).splitlines():
        if line.endswith(":") and not line.startswith(" "):
            now = line.rstrip(":")
        if line.startswith("  -"):
            sections.setdefault(now, []).append(line.split()[0])
    assert "What a network's file does not say" in sections
    assert [heading for heading, options in sections.items() if len(options) > FEW and "--" not in heading] == []
