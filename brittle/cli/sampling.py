"""From options to data: the same for every command that can sample."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from brittle.cli.parts import Family, options_of, take_values, with_part
from brittle.cli.signatures import Command, Values, offering, own_parameters, parameter
from brittle.common.errors import InputError, require
from brittle.common.parts import Given, build_part, flag_of, option, parameters

if TYPE_CHECKING:
    from torch import Generator

    from brittle.data import Data, Setting

SETTINGS = Family("setting", "data", "Setting")


def _count_or_all(text: str, given: Given) -> int | None:
    if text == "all":
        return None
    try:
        return int(text)
    except ValueError:
        raise InputError(f"--test is {text!r}; it must be a whole number, or: all") from None


@dataclass(frozen=True)
class SampleOptions:
    """What is taken from a setting, and what is done to it."""

    examples: int | None = field(default=None, metadata=option("How many to train on; all where the set has an end."))
    test: int | None = field(default=0, metadata=option("How many to hold out, or: all.", kind=str, read=_count_or_all))
    in_span: bool = field(
        default=False, metadata=option("Coordinates in the data's own span: any d costs what d = n costs.", "--in-span")
    )
    downsample: int | None = field(default=None, metadata=option("Resize pictures to this many pixels a side."))
    pca: int | None = field(
        default=None, metadata=option("Project on this many principal components of the training examples.")
    )
    centred: bool = field(default=False, metadata=option("With --pca: move the mean to the origin.", "--centred"))
    unit_norm: bool = field(
        default=False, metadata=option("Divide every example by its norm, after the above.", "--unit-norm")
    )

    def __post_init__(self) -> None:
        require(self.pca is not None or not self.centred, "--centred goes with --pca")


@dataclass(frozen=True)
class Sampling:
    """A setting and what is taken from it."""

    setting: "Setting"
    treatment: SampleOptions = field(default_factory=SampleOptions)

    def draw(self, rng: "Generator") -> "Data":
        from brittle.data import downsample, principal, unit_norm

        way = self.treatment
        data = self.setting.sample(way.examples, rng, test=way.test, in_span=way.in_span)
        if way.downsample is not None:
            data = downsample(data, way.downsample)
        if way.pca is not None:
            data = principal(data, way.pca, centred=way.centred)
        return unit_norm(data) if way.unit_norm else data


def with_sampling(command: Command) -> Command:
    """Gives a command all these options; in their place it receives `sampling`, a `Sampling` or None."""
    own = own_parameters(command)
    own.pop("sampling")
    options = options_of({"": parameters(SampleOptions)}, "What is taken from --setting")
    offered = {name: parameter(name, kind) for name, kind in {"setting": str, **options}.items()}

    def arguments(values: Values) -> Values:
        setting, given = values.pop("setting"), take_values(values, options)
        require(setting is not None or not given, f"{', '.join(map(flag_of, given))} needs {SETTINGS.flag}")
        treatment = build_part(SampleOptions, given, "a sample")
        return {**values, "sampling": None if setting is None else Sampling(setting, treatment)}

    return with_part(SETTINGS)(offering(command, {**offered, **own}, arguments))
