"""The fenced blocks of a page, run from top to bottom as a reader would.

`python` blocks share one namespace, `sh` blocks hold commands of brittle; both work in one folder. A block without a
language is what something prints: after a `python` block and the word "prints" it is compared. What cannot be run says
why, on the line before it: `<!-- not run: it takes a minute -->`. What a reader has anyway, such as a network of his
own, is made by `<!-- given: ... -->`, which is run as Python and not shown.
"""

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"(?ms)^([ ]*)```(\w*)[^\n]*\n(.*?)^\1```[ ]*$|^<!-- (given): *(.*?)-->")
SKIPPED = re.compile(r"<!-- not run: ([^\n]*?) -->\s*\Z")
PRINTS = re.compile(r"\s*prints\s*\Z")
NUMBER = re.compile(r"[\d.]*\d(?:e[+-]?\d+)?")
MADE = ("commands", "changelog", "contributing")  # by tools.generated, from what is among the others
CLOSE = 0.05  # rounding steers adaptive steps, so that numbers agree nearly


@dataclass(frozen=True)
class Block:
    """The `text` of a block in a `language`, on this `line` of its page.

    `reason` says why it is not run; `printed` is what it is to print, where the page shows that.
    """

    language: str
    text: str
    line: int
    reason: str = ""
    printed: str | None = None

    @property
    def runs(self) -> bool:
        """Whether it is code, and nothing speaks against it."""
        return self.language in ("python", "sh", "given") and not self.reason


def blocks(page: str) -> list[Block]:
    """Every block of a page, in order."""
    found: list[Block] = []
    end = 0
    for match in BLOCK.finditer(page):
        before, end = page[end : match.start()], match.end()
        line = page.count("\n", 0, match.start()) + 1
        if match[4]:
            found.append(Block("given", dedent(match[5]), line))
        elif not match[2] and found and PRINTS.match(before):
            last = found[-1]
            found[-1] = Block(last.language, last.text, last.line, last.reason, dedent(match[3]))
        else:
            reason = SKIPPED.search(before)
            found.append(Block(match[2], dedent(match[3]), line, reason[1] if reason else ""))
    return found


def pages() -> dict[str, Path]:
    """Everything that a reader may copy from, by its name."""
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {str(path.relative_to(ROOT)): path for path in files if path.stem not in MADE}


@dataclass
class Reader:
    """Follows a page: `names` are what its Python has defined so far."""

    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})

    def follow(self, block: Block) -> str:
        """Run a block and say what it printed; a command that fails is an error."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            if block.language == "sh":
                for command in commands(block.text):
                    self._command(command)
            else:
                exec(compile("\n" * block.line + block.text, "page", "exec"), self.names)
        return output.getvalue()

    @staticmethod
    def _command(words: list[str]) -> None:
        from brittle.cli import main

        assert words[0] == "brittle", f"{words[0]} is no command of brittle: say `not run` and why"
        assert main(words[1:]) == 0, f"{shlex.join(words)} failed"


def commands(text: str) -> Iterator[list[str]]:
    """The commands of a block, without comments."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def same(ours: str, theirs: str) -> bool:
    """The same words, and nearly the same numbers."""
    if NUMBER.sub("#", ours) != NUMBER.sub("#", theirs):
        return False
    pairs = zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True)
    return all(abs(float(a) - float(b)) <= CLOSE * abs(float(b)) + 1e-12 for a, b in pairs)
