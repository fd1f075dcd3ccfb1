"""Affine maps as named arrays, and back."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from brittle.common.errors import InputError, about, require
from brittle.common.limits import LARGEST_TEXT
from brittle.common.torch_files import Named, Notes
from brittle.networks.affine import Affine, Convolution, Dense
from brittle.networks.folded import Folded
from brittle.networks.graph import Builder, Graph, GraphValue, of_type
from brittle.networks.sparse import Sparse

WHOLE = ("window", "columns", "starts", "features")  # arrays of whole numbers
LARGEST_LENGTH = 2**25


def map_arrays(layer: Affine, mark: str, place: int) -> Named:
    """`weight.0`; `kernel.0` and its `window.0`; or `values.0` with `columns.0`, `starts.0`, `features.0`; `bias.0`."""
    arrays = {"weight": layer.matrix} if isinstance(layer, Dense) else {}
    if isinstance(layer, Convolution):
        lengths = (*layer.image, *layer.stride, *layer.padding, *layer.dilation, layer.groups)
        arrays = {"kernel": layer.kernel, "window": torch.tensor(lengths)}
    if isinstance(layer, Sparse):
        arrays = {"values": layer.values, "columns": layer.columns, "starts": layer.starts}
        arrays["features"] = torch.tensor([layer.features])
    return {f"{mark}{name}.{place}": value for name, value in {**arrays, "bias": layer.parameters[1]}.items()}


def is_whole(name: str) -> bool:
    """Whether the array of this name holds whole numbers."""
    return name.removeprefix("start.").partition(".")[0] in WHOLE


def maps_of(path: str | Path, arrays: Named, mark: str, count: int) -> tuple[Affine, ...]:
    try:
        return tuple(_map(arrays, mark, place) for place in range(count))
    except KeyError as error:
        raise InputError(f"{path}: array '{error.args[0]}' is missing") from None
    except InputError as error:
        raise about(path, error) from None


def _map(arrays: Named, mark: str, place: int) -> Affine:
    def array(name: str) -> Tensor:
        return arrays[f"{mark}{name}.{place}"]

    if f"{mark}kernel.{place}" in arrays:
        lengths = _whole(f"{mark}window.{place}", array("window"), 10)
        image, stride, padding, dilation = lengths[:3], lengths[3:5], lengths[5:7], lengths[7:9]
        positive = min(*image, *stride, *dilation, lengths[9]) > 0
        require(positive and array("kernel").ndim == 4, f"array '{mark}kernel.{place}' is no kernel for {lengths}")
        c, h, w = image
        options = ((stride[0], stride[1]), (padding[0], padding[1]), (dilation[0], dilation[1]), lengths[9])
        return Convolution(array("kernel"), array("bias"), (c, h, w), *options)
    if f"{mark}values.{place}" in arrays:
        (features,) = _whole(f"{mark}features.{place}", array("features"), 1)
        columns, starts = array("columns"), array("starts")
        flat = all(each.dtype == torch.int64 and each.ndim == 1 for each in (columns, starts)) and len(starts) > 1
        require(flat, f"arrays '{mark}columns.{place}' and '{mark}starts.{place}' must be lists of whole numbers")
        return Sparse(array("values"), array("bias"), columns, starts, features)
    return Dense(array("weight"), array("bias"))


def _whole(name: str, value: Tensor, count: int) -> list[int]:
    fits = value.dtype == torch.int64 and tuple(value.shape) == (count,)
    fits = fits and bool(((value >= 0) & (value <= LARGEST_LENGTH)).all())
    require(fits, f"array '{name}' must hold {count} whole numbers from 0 to {LARGEST_LENGTH}")
    return [int(each) for each in value]


# A folded network in a file: the numbers of its graph as named arrays, the operations as a note in JSON.


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
    if isinstance(argument, GraphValue):
        return {"value": argument.name}
    if isinstance(argument, dict):
        return {name: _plain(each) for name, each in argument.items()}
    return [_plain(each) for each in argument] if isinstance(argument, list | tuple) else argument


def _read(arguments: dict[str, Any]) -> dict[str, Any]:
    def value(argument: Any) -> Any:
        if isinstance(argument, dict):
            return GraphValue(str(argument["value"]))
        return [value(each) for each in argument] if isinstance(argument, list) else argument

    return {str(name): value(argument) for name, argument in arguments.items()}
