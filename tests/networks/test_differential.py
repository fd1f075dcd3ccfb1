"""The differential fuzz of the readers finds wrong readings, and nothing where rounding is all there is."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from benchmarks.differential import modules, onnx_graphs, pipelines, programs
from benchmarks.differential.__main__ import run
from benchmarks.differential.compare import disagreement
from benchmarks.differential.eager import Eager
from benchmarks.differential.tally import ReadingTally
from brittle.common.errors import InputError
from brittle.networks import Adapter, as_network, load_network, onnx_shapes, recognise
from brittle.networks.graph import Builder
from brittle.networks.lowering import LOWERED
from brittle.networks.operations import OPERATIONS
from tests.networks.test_programs import save_script

SEED = 2
MOST = 300  # cases within which a planted fault must show


class TwoPaths(nn.Module):
    """Logits that have a large term in common."""

    def __init__(self, common: float, dtype: torch.dtype) -> None:
        super().__init__()
        rng = torch.Generator().manual_seed(0)
        self.hidden = nn.Linear(4, 6, dtype=dtype)
        self.own, self.shared = nn.Linear(6, 2, dtype=dtype), nn.Linear(6, 1, dtype=dtype)
        for parameter in self.parameters():
            parameter.data = torch.randn(parameter.shape, generator=rng, dtype=torch.float64).to(dtype)
        self.common = common

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.hidden(x))
        output: Tensor = self.own(h) + self.common * (self.shared(h) + 1.0)
        return output


class Kernel(nn.Module):
    """A convolution whose kernel is square."""

    def __init__(self, transposed: bool = False) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 2, 3, dtype=torch.float64)
        weights = torch.randn(2, 1, 3, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        self.convolution.weight.data = weights.transpose(2, 3) if transposed else weights
        self.convolution.bias.data = torch.zeros(2, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.convolution(x)).amax((2, 3))


def compared(read: nn.Module, reference: nn.Module, shape: tuple[int, ...], dtype: torch.dtype) -> str | None:
    network = as_network(read.eval(), shape)
    return disagreement(network, Eager(reference.eval(), shape, dtype), np.random.default_rng(0))


@pytest.mark.parametrize(("common", "dtype"), [(1e4, torch.float64), (1e6, torch.float64), (10.0, torch.float32)])
def test_a_thousandth_of_one_logit_is_noticed_beside_a_large_common_term(common, dtype):
    read, reference = TwoPaths(common, dtype), TwoPaths(common, dtype)
    assert compared(read, reference, (4,), dtype) is None
    with torch.no_grad():
        read.own.weight[1] *= 1.001
    assert compared(read, reference, (4,), dtype) is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rounding_beside_a_large_common_term_is_no_disagreement(dtype):
    assert compared(TwoPaths(1e5, dtype), TwoPaths(1e5, dtype), (4,), dtype) is None


def test_a_sign_and_a_transposed_kernel_are_noticed():
    read, reference = TwoPaths(1.0, torch.float32), TwoPaths(1.0, torch.float32)
    with torch.no_grad():
        read.own.weight[0, 3] *= -1
    assert compared(read, reference, (4,), torch.float32) is not None
    assert compared(Kernel(), Kernel(), (1, 4, 5), torch.float64) is None
    assert compared(Kernel(transposed=True), Kernel(), (1, 4, 5), torch.float64) is not None


def test_an_output_that_depends_on_its_batch_is_noticed():
    class Centred(TwoPaths):
        def forward(self, x: Tensor) -> Tensor:
            output = super().forward(x)
            return output - output.mean(0) * (len(x) < 5)

    assert compared(TwoPaths(1.0, torch.float64), Centred(1.0, torch.float64), (4,), torch.float64) is not None


def test_a_few_dozen_models_of_each_kind_are_read_rightly(tmp_path):
    counts = {"modules": 24, "programs": 6, "onnx": 24, "pipelines": 10}
    totals = run(counts, seed=SEED, keep=tmp_path, jobs=1)
    assert [each for total in totals.values() for each in total.violations] == []
    assert {name: total.cases for name, total in totals.items()} == counts
    assert all(total.compared >= counts[name] / 5 for name, total in totals.items())

    again = run(counts, seed=SEED, keep=tmp_path, jobs=1)  # from the folder
    assert again == totals


def first_found(examine: Callable[..., ReadingTally], more: dict[str, float]) -> str:
    """The first disagreement; operations that the fault concerns are drawn more often than others."""
    for case in range(MOST):
        for violation in examine(case, more).violations:
            return violation
    return ""


IN_PLACE, POOLING = {"in place": 30.0, "activation": 0.3}, {"pooling": 10.0, "last Gemm": 0.0}
ARITHMETIC, BATCHES = {"whole numbers": 60.0}, {"computed shape": 40.0}


def test_operations_in_place_that_are_forgotten_are_found(monkeypatch):
    remember = Builder._remember
    monkeypatch.setattr(Builder, "_remember", lambda self, name, step: remember(self, name.removesuffix("_"), step))
    assert "instead of" in first_found(programs.examine, IN_PLACE)


def test_a_ceil_mode_that_is_ignored_is_found(monkeypatch):
    def flat(run: Any, pool: Any) -> tuple[Any, Any]:
        def lowered(lowering: Any, **options: Any) -> Any:
            return run(lowering, **options | ({"ceil_mode": False} if "ceil_mode" in options else {}))

        @wraps(pool)
        def computed(*arguments: Any, **options: Any) -> Any:
            return pool(**signature(pool).bind(*arguments, **options).arguments | {"ceil_mode": False})

        return lowered, computed

    for name in ("max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d"):
        lowered, computed = flat(LOWERED[name], OPERATIONS[name])
        monkeypatch.setitem(LOWERED, name, lowered)
        monkeypatch.setitem(OPERATIONS, name, computed)
    assert "instead of" in first_found(onnx_graphs.examine, POOLING)


def test_whole_numbers_that_are_rounded_down_are_found(monkeypatch):
    monkeypatch.setitem(onnx_shapes.FOLDS, "Div", lambda values, *_: np.floor_divide(*values))
    assert "instead of" in first_found(onnx_graphs.examine, ARITHMETIC)


def test_a_shape_that_depends_on_the_batch_is_found(monkeypatch):
    monkeypatch.setattr(onnx_shapes.Shapes, "check_fixed", lambda *_: None)
    assert "instead of" in first_found(onnx_graphs.examine, BATCHES)


def test_an_unforeseen_exception_is_found(monkeypatch):
    def failing(*_: Any) -> Any:
        raise KeyError("no such place")

    monkeypatch.setattr("brittle.networks.estimators._scaled", failing)
    found = (violation for case in range(MOST) for violation in pipelines.examine(case).violations)
    assert any("KeyError" in violation for violation in found)


def test_a_case_can_be_repeated_from_its_number():
    assert modules.described(7) == modules.described(7) != modules.described(8)
    assert onnx_graphs.described(7) == onnx_graphs.described(7)
    first, again = onnx_graphs.examine(3), onnx_graphs.examine(3)
    assert first == again
    assert programs.described(5) == programs.described(5)
    assert pipelines.described(5) == pipelines.described(5)


def test_defaults_of_onnx_are_floats_of_32_bits(tmp_path):
    nodes = [helper.make_node("HardSigmoid", ["x"], ["h"]), helper.make_node("Gemm", ["h", "W"], ["y"])]
    inputs, outputs = (helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["N", 2]) for name in ("x", "y"))
    weights = numpy_helper.from_array(np.eye(2), "W")
    model = helper.make_model(
        helper.make_graph(nodes, "graph", [inputs], [outputs], [weights]),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=8,
    )
    onnx.save(model, tmp_path / "net.onnx")
    X = np.array([[0.5, -1.0], [2.0, 0.25]])
    expected = np.float64(np.float32(0.2)) * X + 0.5  # 0.2 itself is 3e-9 away
    assert np.allclose(load_network(tmp_path / "net.onnx").logits(torch.from_numpy(X)).numpy(), expected, atol=1e-15)


class Squeezed(nn.Module):
    """A batch of one example loses its first axis, and what is joined then is joined along another one."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(4, 3, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        h = self.hidden(x).unsqueeze(2).squeeze()
        return torch.stack([h, 2 * h], 1).reshape(-1, 6)


class FirstExample(nn.Module):
    """Every output is taken relative to the batch's first one."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(1, 2, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        h = x.amax(-1)
        return self.last((h - h[0])[:, None])


@pytest.mark.parametrize("module", [Squeezed(), FirstExample()])
def test_modules_whose_outputs_depend_on_the_batch_are_black_boxes(module):
    network, seen = recognise(module.eval(), (4,))
    assert isinstance(network, Adapter)
    assert "name the axis" in seen.reason or "mixes" in seen.reason


def test_a_squeeze_that_no_batch_is_read_differently_for_is_still_read():
    layers = nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1), nn.Flatten(0)
    assert not isinstance(as_network(nn.Sequential(*layers), (4,)), Adapter)


class SqueezedAtTheEnd(nn.Module):
    """What follows the squeeze is a function of each number alone, whatever the shape."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.last = nn.Linear(4, 3, dtype=torch.float64), nn.Linear(3, 1, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        return 2 * torch.relu(self.last(torch.relu(self.hidden(x))).squeeze()) - 1


class FirstAxis(nn.Module):
    """Only a batch of one example has a first axis that is squeezed."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(4, 3, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        return self.hidden(x).squeeze(0)


@pytest.mark.parametrize(("module", "words"), [(Squeezed(), "name the axis"), (FirstAxis(), "mixes the examples")])
def test_files_that_squeeze_a_single_example_are_refused(module, words, tmp_path):
    with pytest.raises(InputError, match=words):
        load_network(save_script(module.eval(), tmp_path / "net.pt"))


def test_a_squeeze_before_functions_of_each_number_is_read_from_files(tmp_path):
    module = SqueezedAtTheEnd()
    network = load_network(save_script(module.eval(), tmp_path / "net.pt"))
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 4)))
    assert torch.allclose(network.logits(X), module(X), atol=1e-12)
    assert torch.allclose(network.logits(X[:1]), module(X[:1]).reshape(1), atol=1e-12)
