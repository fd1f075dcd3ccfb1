"""From options to data: the same for every command that can sample."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from torch import Generator

from brittle.common.errors import InputError, require, required
from brittle.settings import PARTS, Data, File, Setting, downsample, principal, unit_norm

CHOICES = tuple(name for name in PARTS if name != "given")


METAVARS = {int: "N", float: "NUMBER", str: "TEXT", Path: "PATH", bool: None}


def _option(kind: Any, flag: str, text: str) -> Any:
    return Annotated[kind | None, typer.Option(flag, help=text, metavar=METAVARS[kind])]


PARAMETERS = {
    "dim": _option(int, "--dim", "Dimension d of the space."),
    "radius": _option(float, "--radius", "sphere: the radius, √d unless given."),
    "variance": _option(float, "--variance", "gaussian: of each coordinate, 1/d unless given."),
    "coherence": _option(float, "--coherence", "almost-orthogonal: the largest inner product of two examples."),
    "clusters": _option(int, "--clusters", "clusters: how many."),
    "noise": _option(float, "--noise", "clusters: standard deviation σ round each mean."),
    "balance": _option(float, "--balance", "clusters: share of the clusters labelled -1."),
    "random_means": _option(bool, "--random-means/--orthogonal-means", "clusters: means uniform on the sphere."),
    "codimension": _option(int, "--codimension", "subspace: the number of dimensions ℓ that the data leave out."),
    "inner": _option(str, "--inner", "subspace: sphere, gaussian, line7 or a data file."),
    "classes": _option(str, "--classes", "pictures, file: two labels, such as 0,1, that become -1 and +1."),
    "folder": _option(Path, "--folder", "pictures: where the original files lie."),
    "verify": _option(bool, "--verify/--no-verify", "pictures: insist on the original files' SHA-256."),
    "path": _option(Path, "--path", "file: a .npz, .csv or .pt file."),
    "label": _option(str, "--label", "file: the .csv's label column, by name or number from 0 (-1: the last)."),
    "header": _option(bool, "--header/--no-header", "file: whether the .csv begins with names."),
}
TREATMENT = {
    "examples": _option(int, "--examples", "How many to train on; all where the set has an end."),
    "test": _option(str, "--test", "How many to hold out, or: all."),
    "in_span": _option(bool, "--in-span", "Coordinates in the data's own span: any d costs what d = n costs."),
    "downsample": _option(int, "--downsample", "Resize pictures to this many pixels a side."),
    "pca": _option(int, "--pca", "Project on this many principal components of the training examples."),
    "centred": _option(bool, "--centred", "With --pca: move the mean to the origin."),
    "unit_norm": _option(bool, "--unit-norm", "Divide every example by its norm, after the above."),
}
SETTING = _option(str, "--setting", f"One of {', '.join(CHOICES)}.")


@dataclass(frozen=True)
class Sampling:
    """A setting and what is taken from it."""

    setting: Setting
    examples: int | None = None
    test: int | None = 0
    in_span: bool = False
    downsample: int | None = None
    pca: int | None = None
    centred: bool = False
    unit_norm: bool = False

    def draw(self, rng: Generator) -> Data:
        require(self.pca is not None or not self.centred, "--centred goes with --pca")
        data = self.setting.sample(self.examples, rng, test=self.test, in_span=self.in_span)
        if self.downsample is not None:
            data = downsample(data, self.downsample)
        if self.pca is not None:
            data = principal(data, self.pca, centred=self.centred)
        return unit_norm(data) if self.unit_norm else data


def setting_from(name: str, **options: Any) -> Setting:
    """The setting of that name with the options that were given; None stands for one that was not."""
    require(name in CHOICES, f"--setting is {name!r}; it must be one of {', '.join(CHOICES)}")
    part = PARTS[name]
    given = {option: _parsed(option, value, options) for option, value in options.items() if value is not None}
    known = [field.name for field in fields(part)]
    for option in given:
        taken = ", ".join(_flag(other) for other in known) or "no options"
        require(option in known, f"{_flag(option)} does not belong to the setting {name}, which takes {taken}")
    for field in fields(part):
        needed = field.default is MISSING and field.name not in given
        require(not needed, f"the setting {name} needs {_flag(field.name)}")
    return part(**given)


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _parsed(option: str, value: Any, options: dict[str, Any]) -> Any:
    if option == "classes":
        return _two_classes(value)
    if option == "label":
        return int(value) if value.lstrip("-").isdigit() else value
    if option == "inner":
        return _inner(value, options)
    return value


def _two_classes(text: str) -> tuple[Any, Any]:
    labels = [label.strip() for label in text.split(",")]
    require(len(labels) == 2 and all(labels), f"--classes is {text!r}; give two labels, such as 0,1")
    low, high = (int(label) if label.isdigit() else label for label in labels)
    return low, high


def _inner(text: str, options: dict[str, Any]) -> Setting:
    if text in ("sphere", "gaussian"):
        both = (options.get("dim"), options.get("codimension"))
        dim, codimension = (required(each, "--inner needs --dim and --codimension") for each in both)
        return setting_from(text, dim=dim - codimension)
    if text == "line7":
        return setting_from(text)
    require(Path(text).is_file(), f"--inner is {text!r}; it must be sphere, gaussian, line7 or a data file")
    return File(text)


def sampling_from(setting: str | None, options: dict[str, Any]) -> Sampling | None:
    """All of it from options by their names; None without a setting."""
    given = {name: value for name, value in options.items() if value is not None}
    if setting is None:
        stray = ", ".join(_flag(name) for name in given)
        require(not given, f"{stray} needs --setting")
        return None
    part = setting_from(setting, **{name: options.get(name) for name in PARAMETERS})
    treatment = {name: given[name] for name in TREATMENT if name in given}
    if "test" in treatment:
        treatment["test"] = _count_or_all(treatment["test"])
    return Sampling(part, **treatment)


def _count_or_all(text: str) -> int | None:
    if text == "all":
        return None
    try:
        return int(text)
    except ValueError:
        raise InputError(f"--test is {text!r}; it must be a whole number, or: all") from None


def with_sampling(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command all these options; in their place it receives `sampling`, a `Sampling` or None."""
    added = {"setting": SETTING} | PARAMETERS | TREATMENT

    @wraps(command)
    def wrapped(**values: Any) -> Any:
        options = {name: values.pop(name) for name in added}
        return command(sampling=sampling_from(options.pop("setting"), options), **values)

    signature = inspect.signature(command)
    own = [parameter for name, parameter in signature.parameters.items() if name != "sampling"]
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [parameter.replace(kind=keyword) for parameter in own]
    new = [inspect.Parameter(name, keyword, default=None, annotation=kind) for name, kind in added.items()]
    wrapped.__signature__ = signature.replace(parameters=new + own)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in new + own}
    return wrapped
