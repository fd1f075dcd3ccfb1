"""From options to a training regime: the same for every command that can train."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Annotated, Any, Literal

import typer

from brittle.common.errors import require
from brittle.training import Adversarial, Descent, Flow, Lazy, Recipe, Regime, parse_stops
from brittle.training.losses import LOSSES, LossFunction

REGIMES: dict[str, type[Regime]] = {
    "flow": Flow,
    "recipe": Recipe,
    "descent": Descent,
    "lazy": Lazy,
    "adversarial": Adversarial,
}
METAVARS = {int: "N", float: "NUMBER", str: "WORD", bool: None}


def _option(kind: Any, flag: str, text: str) -> Any:
    return Annotated[kind | None, typer.Option(flag, help=text, metavar=METAVARS[kind])]


PARAMETERS = {
    "loss": _option(str, "--loss", f"{' or '.join(LOSSES)}."),
    "reduction": _option(str, "--reduction", "The loss is the 'mean' or the 'sum' over the examples."),
    "rate": _option(float, "--rate", "Step size; recipe: that of the first steps."),
    "batch": _option(int, "--batch", "Examples per step."),
    "layers": _option(str, "--layers", "flow, descent: train 'all' layers or the 'first'."),
    "precision": _option(str, "--precision", "flow, lazy: float64 or float32."),
    "tolerance": _option(float, "--tolerance", "flow: error of a step, as a share of the weights' norm."),
    "pair": _option(str, "--pair", "flow: heun, bogacki-shampine or dormand-prince."),
    "span": _option(bool, "--span/--no-span", "flow: train in the span of the data; by default where n < d."),
    "decay": _option(float, "--decay", "descent: λ of (λ/2)‖W‖²."),
    "decay_on": _option(str, "--decay-on", "descent: 'weights' of the first layer, 'first' layer, 'all' layers."),
    "growth": _option(float, "--growth", "recipe: factor of the rate, every --every steps."),
    "every": _option(int, "--every", "recipe: steps from one raise of the rate to the next."),
    "ball": _option(float, "--ball", "lazy, adversarial: C0, where no hidden weight moves farther than C0/√width."),
    "check": _option(str, "--check", "lazy: look at the ball after every 'step' or every 'epoch'."),
    "budget": _option(float, "--budget", "adversarial: ℓ2 norm R of the perturbations."),
    "inner_steps": _option(int, "--inner-steps", "adversarial: PGD steps."),
    "project": _option(str, "--project", "adversarial: back into the ball after every 'epoch' or every 'step'."),
    "patience": _option(int, "--patience", "adversarial: epochs in which robust accuracy may fail to rise."),
}
RENAMED = ("loss", "reduction", "ball")  # options that are not fields of the same name


def with_regime(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command all these options; in their place it receives `options`, those that were given."""

    @wraps(command)
    def wrapped(**values: Any) -> Any:
        options = {name: values.pop(name) for name in PARAMETERS}
        given = {name: value for name, value in options.items() if value is not None}
        return command(options=given, **values)

    signature = inspect.signature(command)
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [each.replace(kind=keyword) for name, each in signature.parameters.items() if name != "options"]
    new = [inspect.Parameter(name, keyword, default=None, annotation=kind) for name, kind in PARAMETERS.items()]
    wrapped.__signature__ = signature.replace(parameters=own + new)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in own + new}
    return wrapped


def regime_from(name: str, until: list[str] | None, options: dict[str, Any]) -> Regime:
    """The regime of that name with the options that were given; one that it does not know is a mistake."""
    require(name in REGIMES, f"--regime is {name!r}; it must be one of {', '.join(REGIMES)}")
    part = REGIMES[name]
    known = {field.name for field in fields(part)} | {"reduction"} | ({"ball"} if "radius" in _names(part) else set())
    for option in options:
        require(option in known, f"--{option.replace('_', '-')} does not belong to the regime {name}")
    chosen = {option: value for option, value in options.items() if option not in RENAMED}
    if "loss" in options or "reduction" in options:
        chosen["loss"] = _loss(part, options.get("loss"), options.get("reduction"))
    if "ball" in options:
        chosen["radius"] = options["ball"]
    if until:
        chosen["until"] = parse_stops(until)
    return part(**chosen)


def _names(part: type[Regime]) -> set[str]:
    return {field.name for field in fields(part)}


def _loss(part: type[Regime], name: str | None, reduction: Literal["mean", "sum"] | None) -> LossFunction:
    """The regime's own loss with what is given; the loss refuses any other reduction itself."""
    usual: LossFunction = part().loss  # type: ignore[attr-defined]
    require(name is None or name in LOSSES, f"--loss is {name!r}; it must be one of {', '.join(LOSSES)}")
    kind = type(usual) if name is None else LOSSES[name]
    return kind(usual.reduction if reduction is None else reduction)
