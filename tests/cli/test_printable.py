"""What a file calls its columns and classes never reaches a terminal as an order to it, or the printer as markup."""

import io
import json
import time

import pytest
from rich.table import Table

from brittle.cli import main
from brittle.cli.console import PrintableConsole, complain, say, watching
from brittle.common.errors import one_line, printable
from brittle.common.progress import Progress

HOSTILE = "cat\x1b]0;PWNED\x07\x1b[2J\x9b31m\r\b‮"
FINE = "naïve Ωμ 漢字 ‖δ‖ 🐈"


def is_harmless(text: str) -> bool:
    return all(each.isprintable() or each == "\n" for each in text)


def test_only_what_cannot_be_printed_is_replaced():
    assert printable(f"{FINE}\n{FINE}") == f"{FINE}\n{FINE}"
    assert printable("a\tb\u00a0c") == "a b c"
    assert printable("a\x1b[2Jb") == "a?[2Jb"
    assert one_line("a\nb") == "a b"
    assert is_harmless(printable(HOSTILE))


def test_names_in_a_table_of_data(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{number},{'[/red]cat' + HOSTILE[3:-3] if number % 2 else '[bold]dog'}\n" for number in range(6))
    (tmp_path / "e.csv").write_text(f"width\x1b[2J,label\n{rows}", newline="")
    assert main(["data", "show", "e.csv", "--json", "own\x1b[31m.json"]) == 0
    seen = capsys.readouterr()
    assert is_harmless(seen.out + seen.err)
    assert "[/red]cat?]0;PWNED" in seen.out
    assert "[bold]dog" in seen.out
    assert "wrote own?[31m.json" in seen.err
    assert json.loads((tmp_path / "own\x1b[31m.json").read_text())["truth"]["features"] == ["width\x1b[2J"]


@pytest.mark.parametrize("print_line", [say, complain])
def test_lines_on_standard_error(print_line, capsys):
    print_line(HOSTILE)
    seen = capsys.readouterr().err
    assert is_harmless(seen)
    assert "PWNED" in seen


def test_a_terminal_gets_colours_of_brittle_alone():
    table = Table(HOSTILE, title=HOSTILE, header_style="bold")
    table.add_row(HOSTILE)
    console = PrintableConsole(file=io.StringIO(), force_terminal=True)
    console.print(table)
    shown = console.file.getvalue().replace("\x1b[1m", "").replace("\x1b[3m", "").replace("\x1b[0m", "")
    assert is_harmless(shown)
    assert shown.count("PWNED") == 3


def test_the_label_of_a_progress_bar(monkeypatch, capsys):
    monkeypatch.setattr("brittle.cli.console.PATIENCE", 0.0)
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    monkeypatch.setenv("TERM", "xterm")
    with watching(f"[bold]{HOSTILE}") as watch:
        watch(Progress(0.5, HOSTILE))
        time.sleep(0.2)
    shown = capsys.readouterr().err
    assert "PWNED" in shown
    assert "\x1b]0;" not in shown
    assert "\x07" not in shown
