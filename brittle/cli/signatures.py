"""Commands with options that several of them share: what Typer sees, and what the command itself is given."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

Command = Callable[..., Any]
Values = dict[str, Any]


def parameter(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def own_parameters(command: Command) -> dict[str, inspect.Parameter]:
    """Those of the command, all by keyword."""
    known = inspect.signature(command).parameters
    return {name: each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for name, each in known.items()}


def offering(
    command: Command, parameters: Mapping[str, inspect.Parameter], arguments: Callable[[Values], Values]
) -> Command:
    """The command with these parameters instead of its own; `arguments` makes its own from their values."""

    @wraps(command)
    def wrapped(**values: Any) -> Any:
        return command(**arguments(values))

    wrapped.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    wrapped.__annotations__ = {name: each.annotation for name, each in parameters.items()}
    return wrapped
