"""The options that mean the same in every command, and the look at the places where a command is to write."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from brittle.common.errors import require, resolve_path, suffix_of
from brittle.common.files import require_folder, require_writable

if TYPE_CHECKING:
    from torch import Generator

RESULTS = "Results"  # the section of the help that says where they are written
MOST_JOBS = 4096  # processes that a command may begin
LARGE, GUARD = "Large jobs", "Continuous integration"  # other sections
FILES, FOLDERS = "brittle.files", "brittle.folders"  # of this call, in its context
Check = Callable[[typer.Context, typer.CallbackParam, Any], Any]


def file_to_write(*suffixes: str) -> Check:
    """A callback that says what is wrong with a place before the work begins."""

    def check(context: typer.Context, option: typer.CallbackParam, value: Any) -> Any:
        if value is None or str(value) == "-" or context.resilient_parsing:
            return value
        path, flag = Path(value), option.opts[0]
        good = not suffixes or suffix_of(path) in suffixes or path.is_dir()
        require(good, f"{flag} is {path}; it must end in {' or '.join(suffixes)}")
        place = resolve_path(path)
        if resolve_path(path.parent) not in context.meta.get(FOLDERS, ()):
            require_writable(path)
        other = context.meta.setdefault(FILES, {}).setdefault(place, flag)
        require(other == flag, f"{other} and {flag} are both {path}; name two files")
        return value

    return check


def word_of(*words: str) -> Check:
    """A callback that takes these words and no other."""

    def check(context: typer.Context, option: typer.CallbackParam, value: Any) -> Any:
        good = value is None or value in words or context.resilient_parsing
        require(good, f"{option.opts[0]} is {value!r}; it must be {', '.join(words[:-1])} or {words[-1]}")
        return value

    return check


def suggesting(words: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """What a shell offers to complete a word with, looked up when it asks."""

    def complete(incomplete: str) -> list[str]:
        return list(dict.fromkeys(word for word in words() if word.startswith(incomplete)))

    return complete


def folder_to_write(context: typer.Context, option: typer.CallbackParam, value: Any) -> Any:
    """The same for a folder, which the command makes. Such an option is eager: files may then be put there."""
    if value is not None and not context.resilient_parsing:
        place = resolve_path(value)
        require_folder(value)
        context.meta.setdefault(FOLDERS, set()).add(place)
    return value


JsonFile = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE",
        callback=file_to_write(),
        help="Write the result as JSON; - for standard output.",
        rich_help_panel=RESULTS,
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**63 - 1, help="The same seed gives the same numbers.")]
ArraysOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        callback=file_to_write(".npz"),
        help="Where to write the result, as .npz.",
        rich_help_panel=RESULTS,
    ),
]


def generator(seed: int) -> "Generator":
    import torch

    return torch.Generator().manual_seed(seed)
