"""A folded network in a file: the numbers of its graph as named arrays, the operations as a note in JSON."""

import json
from pathlib import Path
from typing import Any

from brittle.common.errors import InputError, require
from brittle.common.limits import LARGEST_TEXT
from brittle.common.tensors import Named, Notes
from brittle.networks.folded import Folded
from brittle.networks.graph import Builder, Graph, Value, of_type

GRAPH = "brittle_graph"
MARK = "constant."


def graph_arrays(network: Folded) -> tuple[Named, Notes]:
    """Constants by their places, and the steps that name them."""
    graph = of_type(network.graph, network.dtype)
    steps = [[step.operation, _plain(step.arguments), step.output] for step in graph.steps]
    content = {"input": graph.input, "output": graph.output, "image": list(network.image), "steps": steps}
    arrays = {f"{MARK}{place}": value for place, value in enumerate(graph.constants.values())}
    return arrays, {GRAPH: json.dumps({**content, "constants": list(graph.constants)})}


def graph_of(path: str | Path, arrays: Named, notes: Notes) -> Graph:
    """The same way as from any stranger's file: every operation and value is checked before anything is computed."""
    try:
        text = notes[GRAPH]
        require(len(text) <= LARGEST_TEXT, f"{path}: holds a graph of {len(text)} letters; {LARGEST_TEXT} is the most")
        content = json.loads(text)
        constants = {str(name): arrays[f"{MARK}{place}"] for place, name in enumerate(content["constants"])}
        builder = Builder(path, str(content["input"]), constants)
        for operation, arguments, output in content["steps"]:
            builder.add(str(operation), output=str(output), **_read(arguments))
        shape = tuple(int(length) for length in content["image"])
        return builder.finished(str(content["output"]), shape)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"{path}: its note '{GRAPH}' describes no network ({str(error)[:100]})") from None


def _plain(argument: Any) -> Any:
    """Values as {"value": name}; all else is a plain number, word or list."""
    if isinstance(argument, Value):
        return {"value": argument.name}
    if isinstance(argument, dict):
        return {name: _plain(each) for name, each in argument.items()}
    return [_plain(each) for each in argument] if isinstance(argument, list | tuple) else argument


def _read(arguments: dict[str, Any]) -> dict[str, Any]:
    def value(argument: Any) -> Any:
        if isinstance(argument, dict):
            return Value(str(argument["value"]))
        return [value(each) for each in argument] if isinstance(argument, list) else argument

    return {str(name): value(argument) for name, argument in arguments.items()}
