"""A cell: one point of a figure's grid, as a frozen dataclass whose fields are its parameters."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar

from brittle.experiments.code import code_hash

Params = Mapping[str, Any]  # plain JSON values: the fields of a cell by their names
Point = dict[str, Any]  # plain JSON values: the parameters of a cell and what was measured there


@dataclass(frozen=True)
class Task:
    """A cell as it travels to a worker, which may have other code: named by all that its numbers depend on.

    Examples:
        >>> import brittle as bt
        >>> task = bt.experiments.find("vardi2022/fig1a")[0].cells("smoke")[0].task
        >>> task.family
        'vardi2022/universal'
    """

    family: str  # which kind of cell it is
    params: Params  # the cell's fields
    code: str  # the hash of the code with which the asking run would measure it

    @property
    def key(self) -> str:
        """The name of the finished cell's file, without its ending."""
        text = json.dumps([self.family, self.params, self.code], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


class Cell(ABC):
    """One measurement. A subclass is a frozen dataclass of plain JSON values, `seed` among them, in a file of its own.

    Cells of one family are shared by all figures that have them in common. The order of the fields is that of the
    columns of `points.csv`.

    Examples:
        >>> import brittle as bt
        >>> cell = bt.experiments.find("vardi2022/fig1a")[0].cells("smoke")[0]
        >>> cell.family, sorted(cell.to_json())
        ('vardi2022/universal', ['alpha', 'at', 'dim', 'law', 'loss', 'seed', 'width'])
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # what makes a subclass a dataclass to a type checker
    family: ClassVar[str]  # paper/name
    seed: int  # all randomness comes from it

    @abstractmethod
    def measure(self) -> Point:
        """What is measured here, by itself, in plain JSON values.

        `reached: False` marks a cell whose training missed its stop. Timings go into a dictionary `seconds`.
        """

    def cost(self) -> float:
        """Seconds that it takes on one core of `machine.REFERENCE`, roughly."""
        return 1.0

    def to_json(self) -> dict[str, Any]:
        """The parameters by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def task(self) -> Task:
        """What a worker needs to know of it."""
        return Task(self.family, self.to_json(), self.code())

    @property
    def key(self) -> str:
        """The name of the finished cell's file, without its ending."""
        return self.task.key

    @classmethod
    def code(cls) -> str:
        """The hash of all code that `measure` uses."""
        return code_hash(cls.__module__)
