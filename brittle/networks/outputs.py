"""Modules that return more than one tensor: which of them is the logits."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from brittle.common.errors import InputError, note, require

Choice = int | str  # the place of an output in a tuple, or its name
LOGITS = "logits"
HOW = "choose one with output=NAME or output=PLACE, on the command line --output"


class Output(nn.Module):
    """A module of which one output is taken."""

    def __init__(self, inner: nn.Module, output: Choice) -> None:
        super().__init__()
        self.inner, self.output = inner, output

    def forward(self, X: Tensor) -> Tensor:
        values: Tensor = take_output(self.inner(X), self.output, type(self.inner).__name__)
        return values


def unwrap_output(module: nn.Module) -> nn.Module:
    return module.inner if isinstance(module, Output) else module


def of_one_output(module: nn.Module, returned: Any, output: Choice | None) -> nn.Module:
    """The module where it `returned` one tensor, otherwise with the output that was asked for or that must be meant."""
    if output is None and isinstance(returned, Tensor):
        return module
    kind = type(module).__name__
    if output is None:
        output = _meant(returned, kind)
        note(f"the module {kind} returns {describe_outputs(returned)}; of these '{output}' is taken (else {HOW})")
    take_output(returned, output, kind)
    return Output(module, output)


def of_program(path: object, outputs: dict[Choice, Any], output: Choice | None) -> Any:
    """The output of a program in a file, by its place or name; without one its logits by name, or the only one."""
    shown = ", ".join(f"'{name}'" for name in list(outputs)[:8])
    if output is None and LOGITS in outputs and len(outputs) > 1:
        output = LOGITS
        note(f"{path}: returns {shown}; of these '{output}' is taken (else {HOW})")
    if output is None:
        require(len(outputs) == 1, f"{path}: returns {shown}; {HOW}")
        return next(iter(outputs.values()))
    place = int(output) if isinstance(output, str) and output.isdecimal() and len(output) < 9 else output
    known = output in outputs or place in outputs
    require(known, f"{path}: output is {output!r}, and the program returns {shown or 'one tensor'}")
    return outputs[output if output in outputs else place]


def take_output(returned: Any, output: Choice, kind: str) -> Any:
    """One of the things that were returned, by its place or name."""
    outputs = entries(returned)
    if output not in outputs and isinstance(output, str) and output.isdecimal() and len(output) < 9:
        output = int(output)
    if output in outputs:
        return outputs[output]
    raise InputError(f"output is {output!r}, and the module {kind} returns {describe_outputs(returned)}")


def entries(returned: Any) -> dict[Choice, Any]:
    """What was returned by names, or by places where there are none."""
    if isinstance(returned, Tensor):
        return {}
    if isinstance(returned, Mapping):
        return {str(name): value for name, value in returned.items()}
    if isinstance(returned, tuple | list):
        outputs: dict[Choice, Any] = dict(enumerate(returned))
        return outputs | {str(name): getattr(returned, name) for name in getattr(returned, "_fields", ())}
    if dataclasses.is_dataclass(returned):
        return {each.name: getattr(returned, each.name) for each in dataclasses.fields(returned)}
    return {LOGITS: getattr(returned, LOGITS)} if hasattr(returned, LOGITS) else {}


def _meant(returned: Any, kind: str) -> Choice:
    """The logits by name, or the only matrix of floats."""
    outputs = entries(returned)
    if LOGITS in outputs:
        return LOGITS
    found = {id(value): name for name, value in reversed(outputs.items()) if _is_matrix(value)}
    known = len(outputs) > 0
    require(known, f"the module {kind} returns a {type(returned).__name__}; a float tensor of logits is needed")
    require(len(found) == 1, f"the module {kind} returns {describe_outputs(returned)}; {HOW}")
    return next(iter(found.values()))


def _is_matrix(value: Any) -> bool:
    return isinstance(value, Tensor) and value.ndim == 2 and value.is_floating_point()


def describe_outputs(returned: Any) -> str:
    """A tuple of '0': (2, 4), '1': (2, 2)"""
    shown = [f"'{name}': {_shape(value)}" for name, value in list(entries(returned).items())[:8]]
    return f"a {type(returned).__name__}" + (f" of {', '.join(shown)}" if shown else "")


def _shape(value: Any) -> str:
    if not isinstance(value, Tensor):
        return type(value).__name__
    kind = "" if value.is_floating_point() else f" of {str(value.dtype).removeprefix('torch.')}"
    return f"{tuple(value.shape)}{kind}"


def run_module(module: nn.Module, X: Tensor) -> Any:
    """What the module returns, or None where it fails."""
    try:
        with torch.no_grad():
            return module(X)
    except Exception:  # a foreign module may raise anything; whoever runs it next says what
        return None
