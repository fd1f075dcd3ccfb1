"""Every argument of every operation is read as PyTorch reads it, or refused: all of ATen's schemas are walked."""

import inspect
import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from brittle.common.errors import InputError
from brittle.networks.graph import Builder, Graph, GraphValue, Interpreter
from brittle.networks.lowering import LOWERED
from brittle.networks.operations import ALIASES, BENEATH, OPERATIONS, SIGNATURES, Unread
from brittle.networks.rebuild import measure_graph
from brittle.networks.recognise import of_graph
from brittle.networks.terms import OpaqueError

ROWS = 4
RNG = torch.Generator().manual_seed(0)


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=RNG, dtype=torch.float64)


R, S, P, ONE = drawn(ROWS, 6), drawn(ROWS, 2, 6), drawn(ROWS, 2, 6, 6), drawn(ROWS, 1, 6)
W, WT, b, w6, w2 = drawn(3, 6), drawn(6, 3), drawn(3), drawn(6), drawn(2).abs()
K1, K2 = drawn(3, 2, 3), drawn(3, 2, 3, 3)
PLAIN = (
    "relu relu6 silu hardsigmoid hardswish sigmoid tanh abs neg exp log sqrt erf leaky_relu elu gelu hardtanh softplus"
)
BINARY = "add sub rsub mul div true_divide maximum minimum"
NORM = (P, w2, w2, w2, w2)
CALLS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys((*PLAIN.split(), "contiguous", "clone", "detach", "alias", "_to_copy"), (R,)),
    **dict.fromkeys(BINARY.split(), (R, w6)),
    **dict.fromkeys(("softmax", "log_softmax", "max", "unsqueeze"), (R, 1)),
    **dict.fromkeys(("_softmax", "_log_softmax"), (R, 1, False)),
    **{name: (P, [2]) for name in ("mean", "sum", "amax")},
    **{name: ([R, R], 1) for name in ("stack", "cat", "concat")},
    **dict.fromkeys(("dropout", "feature_dropout", "alpha_dropout"), (R, 0.5, False)),
    **{name: (P, [2, 2]) for name in ("max_pool2d", "max_pool2d_with_indices", "avg_pool2d", "adaptive_avg_pool2d",
                                      "_adaptive_avg_pool2d")},
    **{name: (S, [2]) for name in ("max_pool1d", "avg_pool1d", "adaptive_avg_pool1d")},
    **{name: (R, [ROWS, 2, 3]) for name in ("reshape", "view", "_unsafe_view")},
    "linear": (R, W, b), "addmm": (b, R, WT), "matmul": (R, WT), "mm": (R, WT), "pow": (R, 2),
    "convolution": (P, K2, b, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    "_convolution": (P, K2, b, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, False, False, True, True),
    "conv1d": (S, K1, b), "conv2d": (P, K2, b), "layer_norm": (R, [6], w6, w6),
    "batch_norm": (*NORM, False, 0.1, 1e-5, True), "native_batch_norm": (*NORM, False, 0.1, 1e-5),
    "_native_batch_norm_legit_no_training": (*NORM, 0.1, 1e-5), "prelu": (P, w2),
    "_prelu_kernel": (P, w2[:, None, None]),
    "clamp": (R, -0.5, 0.5), "clamp_min": (R, 0.1), "clamp_max": (R, 0.1), "flatten": (P, 1), "squeeze": (ONE, 1),
    "permute": (P, [0, 2, 1, 3]), "transpose": (P, 1, 2), "unflatten": (R, 1, [2, 3]), "select": (P, 1, 0),
    "slice": (R, 1, 0, 4), "constant_pad_nd": (R, [1, 1], 0.5), "pad": (R, [1, 1]),
}  # fmt: skip
OWN = {"softmax_rows", "log_softmax_rows", "mean_places", "reshape_rows", "prelu_spread", "identity"}  # not ATen's
LENGTHS = {"size", "sym_size", "t", "numpy_T"}  # of axes, and of matrices of constants
OTHERS = {
    "bool": [True, False], "int": [0, 1, 2, 3, -1], "number": [2, -1.5, 0.25], "float": [2.0, -1.5, 0.25],
    "str": ["none", "tanh", "floor", "trunc", "reflect", "replicate", "same", "valid"],
    "list": [[1], [2], [3], [0], [], [1, 1], [2, 1], [2, 3], [1, 2, 0, 1], [1, 1, 0, 0, 0, 0, 1, 0]],
    "dtype": [torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.bool], "tensor": [None, w6, b, w2],
}  # fmt: skip
HARMLESS = {"memory_format", "layout", "device", "pin_memory", "non_blocking"}  # no function depends on them
KNOWN = {("dropout", "train"), ("feature_dropout", "train"), ("alpha_dropout", "train")}  # left out, with a note


def schemas(name: str) -> list[Any]:
    found = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    return [each for each in found if not any(part.is_out for part in each.arguments)]


def others(argument: Any) -> list[Any]:
    kind = str(argument.type).removeprefix("Optional[").removesuffix("]")
    if argument.name == "dtype":
        return OTHERS["dtype"]
    kinds = {"List[int": "list", "Tensor": "tensor", "number": "number", "float": "float", "bool": "bool", "str": "str"}
    return OTHERS[next((value for key, value in kinds.items() if kind.startswith(key)), "int")]


def split(schema: Any, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """As PyTorch hands a call over: by place, with defaults between, and by name what has no place."""
    placed = [each for each in schema.arguments if not each.kwarg_only]
    last = max(place for place, each in enumerate(placed) if each.name in given)
    values = [given.get(each.name, each.default_value) for each in placed[: last + 1]]
    return values, {name: value for name, value in given.items() if name not in {each.name for each in placed}}


def outcome(name: str, schema: Any, given: dict[str, Any]) -> tuple[str, Any]:
    """What is made of a call: refused, or its result by the graph's own operations."""
    builder = Builder("call", "x", {}, rows=ROWS, beneath=True)
    inputs = [value for value in given.values() if isinstance(value, Tensor) and value.shape[:1] == (ROWS,)]
    inputs += [
        each for value in given.values() if isinstance(value, list) for each in value if isinstance(each, Tensor)
    ]

    def named(value: Any) -> Any:
        if isinstance(value, list):
            return [named(each) for each in value]
        if not isinstance(value, Tensor):
            return value
        if value is inputs[0]:
            return GraphValue("x")
        builder.constants[key := f"c{len(builder.constants)}"] = value
        builder.constant(key)
        return GraphValue(key)

    try:
        values, options = split(schema, given)
        output = builder.add(name, *map(named, values), **options)
        graph, shape = builder.finished(output.name), tuple(inputs[0].shape[1:])
        measure_graph("call", graph, shape)
    except InputError:
        return "refused", None
    assert "differ" not in why_opaque(graph, shape), (name, given)
    return "read", Interpreter(graph)(inputs[0])


def why_opaque(graph: Graph, shape: tuple[int, ...]) -> str:
    """Why a graph is no network of layers; '' where it is one, which was compared with the graph."""
    try:
        of_graph(graph, shape)
    except OpaqueError as reason:
        return str(reason)
    return ""


def compared(name: str, schema: Any, given: dict[str, Any]) -> str:
    """Whether the call is refused or equal to PyTorch's own; '' where PyTorch has no such call."""
    try:
        expected = getattr(torch.ops.aten, name)(**given)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return ""
    expected = expected[0] if isinstance(expected, tuple) else expected
    kind, result = outcome(name, schema, given)
    if kind == "read":
        assert result.shape == expected.shape, (name, given)
        torch.testing.assert_close(
            result, expected.double(), rtol=1e-5, atol=1e-5, equal_nan=True, msg=f"{name} {given}"
        )
        assert expected.dtype in (torch.float32, torch.float64), (name, given)
    return kind


def bound(schema: Any, call: tuple[Any, ...]) -> dict[str, Any] | None:
    names = [each.name for each in schema.arguments]
    return dict(zip(names, call, strict=False)) if len(call) <= len(names) else None


def test_every_operation_is_walked():
    assert set(CALLS) == (OPERATIONS.keys() | ALIASES.keys() | BENEATH.keys()) - OWN - LENGTHS


@pytest.mark.filterwarnings("ignore")  # PyTorch's own, of calls that it does not like
@pytest.mark.parametrize("name", CALLS)
def test_every_argument_is_read_as_pytorch_does_or_refused(name):
    tried, read = set(), 0
    for schema in schemas(name):
        given = bound(schema, CALLS[name])
        if given is None or compared(name, schema, given) == "":
            continue
        read += 1
        for argument in schema.arguments:
            rows = isinstance(given.get(argument.name), Tensor) and len(given[argument.name]) == ROWS
            if rows or argument.name in HARMLESS or (name, argument.name) in KNOWN:
                continue
            for value in others(argument):
                if compared(name, schema, {**given, argument.name: value}):
                    tried.add(argument.name)
    assert read > 0
    assert tried or all(len(each.arguments) <= 1 + len(HARMLESS) for each in schemas(name))


@pytest.mark.parametrize("name", sorted(OPERATIONS.keys() | ALIASES.keys() | BENEATH.keys()))
def test_an_argument_that_no_schema_has_is_refused(name):
    builder = Builder("call", "x", {"c": w6}, beneath=True)
    values = [GraphValue("x") if isinstance(value, Tensor) else value for value in CALLS.get(name, (R,))]
    with pytest.raises(InputError, match="other arguments here"):
        builder.add(name, *values, nonsense=1)


def test_every_lowering_takes_the_arguments_that_are_read():
    for name, lower in LOWERED.items():
        read = {key: each for key, each in SIGNATURES[name].parameters.items() if not _is_unread(each)}
        method = inspect.getclosurevars(lower).nonlocals.get("method")
        if method is None:  # an average, which runs the operation itself
            continue
        places = list(inspect.signature(method).parameters.values())[1:]
        names = {each.name for each in places}
        missing = [key for key in itertools.islice(read, 1 if "self" in read else 0, None) if key not in names]
        assert not missing, (name, missing)


def _is_unread(parameter: inspect.Parameter) -> bool:
    return any(isinstance(each, Unread) for each in getattr(parameter.annotation, "__metadata__", ()))
