"""The attributes of ONNX nodes: whatever a reader does not ask for must have the operator's default value."""

from typing import Any

import numpy as np

from brittle.common.errors import InputError, require


class Attributes:
    """The attributes of one node, held against the operator's definition in the file's version of ONNX.

    Every attribute that is asked for is noted. `finished` refuses the node if another one is set to anything but its
    default, so that no attribute is ever ignored silently.
    """

    def __init__(self, stored: Any, opset: int) -> None:
        from onnx import defs

        self.kind, self.opset = stored.op_type, opset
        try:
            schema = defs.get_schema(self.kind, opset, "")
        except defs.SchemaError:
            raise InputError(f"is no operator of version {opset}") from None
        count = len(stored.input)
        require(count <= schema.max_input, f"takes {count} inputs; {schema.max_input} are the most")
        self._attributes = {each.name: each for each in stored.attribute}
        require(len(self._attributes) == len(stored.attribute), "has two attributes of one name")
        for name, each in self._attributes.items():
            known = name in schema.attributes and not each.ref_attr_name
            require(known, f"has the attribute '{name[:60]}', which version {opset} of the operator does not know")
            fits = each.type == int(getattr(schema.attributes[name].type, "value", 0))
            require(fits, f"has the attribute '{name}' of another type than the operator's")
        self._schema = schema.attributes
        self._read: set[str] = set()

    def finished(self) -> None:
        """Refuse what nobody asked for."""
        for name, each in self._attributes.items():
            usual = self._schema[name].default_value.SerializeToString()
            read = name in self._read or each.SerializeToString() == usual
            require(read, f"has an attribute '{name}' that is not the default, which is not read")

    def ignore(self, *names: str) -> None:
        """These do not change what the node gives."""
        self._read.update(names)

    def integer(self, name: str, default: int) -> int:
        return int(self._attributes[name].i) if self.given(name) else default

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.integer(name, int(default))
        require(value in (0, 1), f"has {value} as '{name}'; 0 or 1 is needed")
        return bool(value)

    def number(self, name: str, default: float) -> float:
        """Attributes are floats of 32 bits, and so are the defaults of the standard."""
        return float(self._attributes[name].f if self.given(name) else np.float32(default))

    def list(self, name: str, default: list[int]) -> list[int]:
        return [int(each) for each in self._attributes[name].ints] if self.given(name) else default

    def text(self, name: str, default: str) -> str:
        return self._attributes[name].s.decode("latin1") if self.given(name) else default

    def tensor(self, name: str) -> Any:
        return self._attributes[name].t if self.given(name) else None

    def given(self, name: str) -> bool:
        self._read.add(name)
        return name in self._attributes
