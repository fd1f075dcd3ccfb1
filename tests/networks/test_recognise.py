"""Modules that are affine maps and ReLUs become exactly that; what is not stays a black box, with a reason."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from brittle.data import Data
from brittle.networks import Adapter, Convolution, Deep, Folded, Layered, TwoLayer, circuit, recognise, terms
from brittle.training import GradientDescent, Steps

DOUBLE = torch.float64


class Does(nn.Module):
    """A forward that is given."""

    def __init__(self, forward, *parts):
        super().__init__()
        self.parts, self.does = nn.ModuleList(parts), forward

    def forward(self, X: Tensor) -> Tensor:
        return self.does(X, *self.parts)


def pictures(*layers, channels=1):
    """Some layers on (2, 6, 6) between a convolution and a linear layer."""
    first = nn.Conv2d(channels, 2, 3, padding=1)
    return nn.Sequential(first, *layers, nn.Flatten(), nn.LazyLinear(3)), (channels, 6, 6)


def rows(*layers):
    return nn.Sequential(nn.Linear(5, 6), *layers, nn.LazyLinear(2)), (5,)


def does(forward, *parts, shape=(5,)):
    return Does(forward, *parts), shape


RELUS = {
    "relu": torch.relu, "functional": functional.relu, "method": lambda X: X.relu(), "in place": lambda X: X.relu_(),
    "function in place": torch.relu_, "clamp": lambda X: X.clamp(min=0), "clamp_min": lambda X: torch.clamp_min(X, 0),
    "maximum": lambda X: torch.maximum(X, torch.zeros(())), "maximum of zeros": lambda X: torch.max(X, torch.zeros(6)),
    "threshold at zero": lambda X: functional.relu(X, inplace=True),
}  # fmt: skip

MODULES = {
    **{f"relu as {name}": does(lambda X, a, b, relu=relu: b(relu(a(X))), nn.Linear(5, 6), nn.Linear(6, 2))
       for name, relu in RELUS.items()},
    "stride, dilation, groups": pictures(nn.ReLU(), nn.Conv2d(2, 4, 3, stride=2, dilation=2, padding=3, groups=2)),
    "same padding": pictures(nn.ReLU(), nn.Conv2d(2, 2, 4, padding="same", dilation=1), nn.ReLU()),
    "one axis": (nn.Sequential(nn.Conv1d(2, 3, 3, stride=2, padding=1, dilation=2), nn.BatchNorm1d(3), nn.ReLU(),
                               nn.MaxPool1d(2, ceil_mode=True), nn.AvgPool1d(2, padding=1), nn.AdaptiveAvgPool1d(2),
                               nn.Flatten(), nn.LazyLinear(2)), (2, 13)),
    "no biases": (nn.Sequential(nn.Linear(5, 4, bias=False), nn.ReLU(), nn.Linear(4, 1, bias=False)), (5,)),
    "batch norms": pictures(nn.BatchNorm2d(2), nn.ReLU(), nn.BatchNorm2d(2, affine=False), nn.Dropout2d()),
    "batch norm first": (nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 1)), (5,)),
    "normalised input": does(lambda X, net: net((X - torch.tensor([0.3, 0.1])[:, None, None]) / 0.25),
                             pictures(nn.ReLU(), channels=2)[0], shape=(2, 6, 6)),
    "arithmetic": does(lambda X, a, b: 1 - b((2 * a(X) + 1).relu() / 3).neg() * 2, nn.Linear(5, 4), nn.Linear(4, 2)),
    "leaky": pictures(nn.LeakyReLU(0.2)),
    "prelu": pictures(nn.PReLU(2)),
    "prelu of one slope": rows(nn.PReLU()),
    "hardtanh": rows(nn.Hardtanh(-0.2, 0.3)),
    "relu6": rows(nn.ReLU6()),
    "hardsigmoid": rows(nn.Hardsigmoid()),
    "clamped from above": does(lambda X, a, b: b(a(X).clamp(max=0.1)), nn.Linear(5, 4), nn.Linear(4, 2)),
    "absolute values": does(lambda X, a, b: b(a(X).abs()), nn.Linear(5, 4), nn.Linear(4, 2)),
    "max pooling": pictures(nn.ReLU(), nn.MaxPool2d(2)),
    "max pooling of negative numbers": pictures(nn.MaxPool2d(3, stride=2, padding=1)),
    "max pooling with dilation and ceil": pictures(nn.ReLU(), nn.MaxPool2d((2, 3), 2, dilation=2, ceil_mode=True)),
    "max pooling of the input": (nn.Sequential(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(9, 2)), (1, 6, 6)),
    "average pooling": pictures(nn.ReLU(), nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False)),
    "global average": pictures(nn.ReLU(), nn.AdaptiveAvgPool2d(1)),
    "mean of pictures": does(lambda X, a, b: b(a(X).relu().mean((2, 3))), nn.Conv2d(1, 3, 2), nn.Linear(3, 2),
                             shape=(1, 4, 4)),
    "padding": pictures(nn.ReLU(), nn.ConstantPad2d((1, 0, 2, 1), 0.7), nn.Conv2d(2, 2, 3)),
    "permuted": does(lambda X, a, b: b(a(X).relu().permute(0, 2, 3, 1).contiguous().view(len(X), -1)),
                     nn.Conv2d(1, 2, 2), nn.Linear(18, 2), shape=(1, 4, 4)),
    "slices": does(lambda X, a, b: b(a(X).relu()[:, 1:5:2]) + X[:, :2], nn.Linear(5, 6), nn.Linear(2, 2)),
    "linear on every row of a table": does(lambda X, a, b: b(a(X).relu().flatten(1)), nn.Linear(3, 2), nn.Linear(8, 2),
                                           shape=(4, 3)),
    "residual": does(lambda X, a, b, c: c(torch.relu(b(a(X).relu()) + X)), nn.Linear(5, 6), nn.Linear(6, 5),
                     nn.Linear(5, 2)),
    "before its activation": does(lambda X, a, b, c: c((h := a(X)) + b(h.relu()).relu()), nn.Linear(5, 6),
                                  nn.Linear(6, 6), nn.Linear(6, 2)),
    "concatenated": does(lambda X, a, b, c: c(torch.cat([h := a(X).relu(), b(h).relu(), X], 1)), nn.Linear(5, 6),
                         nn.Linear(6, 4), nn.Linear(15, 2)),
    "the larger of two": does(lambda X, a, b: torch.maximum(a(X), b(X).relu()), nn.Linear(5, 2), nn.Linear(5, 2)),
    "the smaller of two": does(lambda X, a, b: torch.minimum(a(X), b(X).relu()), nn.Linear(5, 2), nn.Linear(5, 2)),
    "the largest of three": does(lambda X, a, b: b(a(X).view(-1, 2, 3).amax(2)), nn.Linear(5, 6), nn.Linear(2, 2)),
    "the largest, and where": does(lambda X, a, b: b(a(X).view(-1, 2, 3).max(1)[0]), nn.Linear(5, 6), nn.Linear(3, 2)),
    "one output, squeezed": does(lambda X, a, b: b(a(X).relu()).squeeze(), nn.Linear(5, 6), nn.Linear(6, 1)),
    "stacked": does(lambda X, a, b: torch.stack([a(X).relu(), b(X)], 1).sum(1), nn.Linear(5, 2), nn.Linear(5, 2)),
    "two linear layers in a row": (nn.Sequential(nn.Linear(5, 3), nn.Linear(3, 2)), (5,)),
    "relu of a relu": rows(nn.ReLU(), nn.ReLU(), nn.ReLU()),
    "detached": does(lambda X, a, b: b(a(X).relu().detach().clone()), nn.Linear(5, 4), nn.Linear(4, 1)),
}  # fmt: skip


def drawn(module, shape, seed=0):
    """With statistics and parameters that are not those of the beginning."""
    torch.manual_seed(seed)
    with torch.no_grad():
        module(torch.randn(8, *shape))  # lazy layers get their shapes, and normalisations their statistics
    for name, value in module.named_buffers():
        if name.endswith("running_var"):
            value.uniform_(0.5, 2)
    return module.eval()


def assert_same(network, module, shape, atol=1e-12):
    X = 2 * torch.randn(32, network.dim, dtype=DOUBLE)
    expected = module.double()(X.reshape(32, *shape)).reshape(network.logits(X).shape)
    torch.testing.assert_close(network.logits(X), expected, rtol=0, atol=atol)


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize(("module", "shape"), MODULES.values(), ids=MODULES)
def test_it_is_the_same_function(module, shape):
    module = drawn(module, shape).double()
    network, seen = recognise(module, shape)
    assert isinstance(network, Layered), str(seen)
    assert_same(network, module, shape)
    assert seen.difference < 1e-12


def layers(draw, channels, size):
    """A random small network on (channels, size, size)."""
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["conv", "norm", "relu", "leaky", "max", "average", "pad", "block"]))
        if kind == "conv":
            after = draw(st.integers(1, 3))
            stride, padding = draw(st.integers(1, 2)), draw(st.integers(0, 1))
            kernel = draw(st.integers(1, min(3, size)))
            yield nn.Conv2d(channels, after, kernel, stride, padding, bias=draw(st.booleans()))
            channels, size = after, (size + 2 * padding - kernel) // stride + 1
        elif kind in ("max", "average") and size > 1:
            yield (nn.MaxPool2d if kind == "max" else nn.AvgPool2d)(2, 1)
            size -= 1
        elif kind == "pad":
            yield nn.ZeroPad2d((1, 0, 0, 1))
            size += 1
        elif kind == "block":
            inner = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU())
            yield Does(lambda X, inner: inner(X) + X, inner)
        else:
            yield {"norm": nn.BatchNorm2d(channels), "relu": nn.ReLU(), "leaky": nn.LeakyReLU(0.1)}.get(kind, nn.ReLU())


@settings(max_examples=25)
@given(st.data())
def test_random_architectures_are_recognised(data):
    module = nn.Sequential(*layers(data.draw, 2, 4), nn.Flatten(), nn.LazyLinear(2))
    module = drawn(module, (2, 4, 4)).double()
    network, seen = recognise(module, (2, 4, 4))
    assert isinstance(network, Layered), str(seen)
    assert_same(network, module, (2, 4, 4), atol=1e-10)


def test_nothing_is_folded_in_float32():
    """In float32 the folded numbers would be others than those of the module."""
    module, shape = pictures(nn.BatchNorm2d(2), nn.ReLU())
    module = drawn(module, shape)
    network, seen = recognise(module, shape)
    assert network.dtype == DOUBLE
    assert 0 < seen.difference < 1e-5
    assert_same(network, module, shape)
    plain, shape = pictures(nn.ReLU())
    assert recognise(drawn(plain, shape), shape)[0].dtype == torch.float32


@pytest.mark.parametrize(
    ("last", "through"),
    [
        (nn.Softmax(1), nn.Softmax(1)),
        (nn.LogSoftmax(-1), nn.LogSoftmax(1)),
        (nn.Sigmoid(), nn.Sigmoid()),
        (nn.Tanh(),) * 2,
    ],
)
def test_what_keeps_the_order_of_the_logits_is_cut_off(last, through):
    module = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3), last).double()
    network, seen = recognise(module)
    X = torch.randn(9, 5, dtype=DOUBLE)
    assert isinstance(network, Deep)
    torch.testing.assert_close(through(network.logits(X)), module(X))
    assert "is cut off" in str(seen)


HARD = {
    "hardsigmoid": nn.Hardsigmoid(), "hardtanh": nn.Hardtanh(0, 1),
    "relu6": Does(lambda X: functional.relu6(X + 3) / 6),
    "clamp": Does(lambda X: X.clamp(0, 1)), "one limit after the other": Does(lambda X: X.relu().clamp(max=1).view(-1)),
    "turned": Does(lambda X: 1 - functional.hardsigmoid(X)), "half of a sign": Does(lambda X: X.clamp(-1, 1) / 2 + 0.5),
    "clipped": Does(lambda X: functional.hardsigmoid(X).clamp(1e-3, 1 - 1e-3)),
}  # fmt: skip


@pytest.mark.parametrize("last", HARD.values(), ids=HARD)
def test_a_probability_of_relus_decides_at_one_half(last, notes):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 1), last).double()
    network, seen = recognise(module)
    X = 4 * torch.randn(50, 5, dtype=DOUBLE)
    assert isinstance(network, Folded)
    torch.testing.assert_close(network.logits(X), module(X).reshape(-1) - 0.5, rtol=0, atol=1e-12)
    assert "1/2 is taken" in str(seen)
    assert "the label changes at 1/2" in notes.text


@pytest.mark.parametrize(
    ("last", "outputs"), [(nn.Hardtanh(), 1), (nn.ReLU6(), 1), (nn.ReLU(), 1), (nn.Hardsigmoid(), 2)]
)
def test_what_is_no_single_probability_decides_as_it_is(last, outputs, notes):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, outputs), last).double()
    network, _ = recognise(module)
    X = 4 * torch.randn(50, 5, dtype=DOUBLE)
    torch.testing.assert_close(network.logits(X), module(X).reshape(network.logits(X).shape), rtol=0, atol=1e-12)
    assert not notes.records


def test_it_says_what_it_saw():
    module, shape = pictures(nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2))
    _, seen = recognise(drawn(module, shape), shape)
    start = (
        "a Folded network of 4 layers, 1 convolution, 1 batch norm folded, 1 max pooling as 72 ReLUs, 1 linear layer; "
    )
    assert str(seen).startswith(start)
    assert str(seen).endswith("on 64 inputs")


def test_kernels_stay_kernels():
    module, shape = pictures(nn.BatchNorm2d(2), nn.ReLU(), nn.Conv2d(2, 3, 2), nn.ReLU())
    network, _ = recognise(drawn(module, shape), shape)
    assert type(network) is Deep
    assert [type(layer) for layer in network.layers[:2]] == [Convolution] * 2
    one = nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 1))
    assert type(recognise(one, (1, 3, 3))[0]) is Deep


class Counts(nn.Module):
    """Another function at every call."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.calls = nn.Linear(5, 2), 0

    def forward(self, X: Tensor) -> Tensor:
        self.calls += 1
        return self.calls * self.linear(X)


class Writes(nn.Module):
    """What it writes into a view is seen through the view's base."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(5, 4), nn.Linear(4, 2)

    def forward(self, X: Tensor) -> Tensor:
        hidden = self.first(X)
        hidden[:, :2].relu_()
        return self.last(hidden)


LINEAR = nn.Linear(5, 2)
OPAQUE = {
    "gelu": (rows(nn.GELU()), "gelu is no ReLU"),
    "layer norm": (rows(nn.LayerNorm(6)), "native_layer_norm"),
    "softmax inside": (rows(nn.Softmax(1)), "softmax is no affine map"),
    "attention": (does(lambda X, a: a(X) * X[:, :2], LINEAR), "multiplies two values"),
    "control flow": (does(lambda X, a: a(X) if X.std() > 9 else -a(X), LINEAR), "decides by the numbers"),
    "the largest of the batch": (does(lambda X, a: a(X) / X.max(), LINEAR), "mixes the examples"),
    "numbers taken out": (does(lambda X, a: a(X) * float(X[0, 0]), LINEAR), "decides by the numbers"),
    "numbers taken out as an array": (does(lambda X, a: a(X) * X.detach().numpy().max(), LINEAR), "with 'numpy'"),
    "the batch": (does(lambda X, a: a(X - X.mean(0)), LINEAR), "mixes the examples"),
    "the size of the batch": (does(lambda X, a: a(X) * len(X), LINEAR), "batches of 3 and 5 examples"),
    "another function at every call": ((Counts(), (5,)), "differ"),
    "written into a view": ((Writes(), (5,)), "overwritten in place"),
    "normalised by the batch": (rows(nn.BatchNorm1d(6, track_running_stats=False)), "by the batch"),
    "divided by the input": (does(lambda X, a: a(1 / (1 + X * X)), LINEAR), "'reciprocal' is not known"),
    "a constant": (does(lambda X, a: a(torch.ones(len(X), 5)), LINEAR), "does not depend on the input"),
}  # fmt: skip


@pytest.mark.parametrize(("case", "reason"), OPAQUE.values(), ids=OPAQUE)
def test_what_is_no_such_network_stays_a_black_box(case, reason):
    module, shape = case
    network, seen = recognise(drawn(module, shape), shape)
    assert isinstance(network, Adapter)
    assert reason in seen.reason


class Late(Counts):
    """Another function only after two traces, four examples together and alone, and the four sizes of inputs."""

    def forward(self, X: Tensor) -> Tensor:
        self.calls += 1
        return self.linear(X) + (self.calls > 11)


TYPES = {
    "whole numbers": lambda X: X.to(torch.int32).to(X.dtype), "halves": lambda X: X.half().to(X.dtype),
    "short floats": lambda X: X.bfloat16().to(X.dtype), "rounded sums": lambda X: X.sum(1, True, dtype=torch.int64) / 1,
    "halves inside": lambda X: torch.softmax(X, 1, dtype=torch.float16).to(X.dtype),
    "truth values": lambda X: X.to(torch.bool).to(X.dtype),
}  # fmt: skip


@pytest.mark.parametrize("steps", TYPES.values(), ids=TYPES)
def test_other_types_of_numbers_are_seen_however_small_their_effect(steps):
    """A term that both classes share hides the difference in the outputs' rounding."""
    module = does(lambda X, a: torch.cat([3e4 * a(X) + steps(X)[:, :1], 3e4 * a(X)], 1), nn.Linear(5, 1))[0]
    network, seen = recognise(module, (5,))
    assert isinstance(network, Adapter), str(seen)


def test_both_plain_types_of_floats_are_one():
    module = does(lambda X, a: a(X.double().float().to(torch.float64, copy=True).float()).relu(), nn.Linear(5, 2))[0]
    assert isinstance(recognise(module, (5,))[0], Layered)


LEAKS = {
    "indices": lambda X, a: a(X) + X.max(1, True)[1],
    "noise": lambda X, a: a(X) + torch.randn(1), "its own state": lambda X, a: a(X) + a.calls.add_(1),
    "a view of the output": lambda X, a: [out := a(X), out[:, :1].mul_(1.0001)][0],
}  # fmt: skip


@pytest.mark.parametrize("forward", LEAKS.values(), ids=LEAKS)
def test_what_depends_on_the_input_or_the_call_is_no_constant(forward):
    """Each effect is smaller than the rounding of the outputs in float32."""
    layer = nn.Linear(5, 2)
    with torch.no_grad():
        layer.weight.mul_(1e6)
    layer.register_buffer("calls", torch.zeros(()))
    network, seen = recognise(does(forward, layer)[0], (5,))
    assert isinstance(network, Adapter), str(seen)


def test_a_sum_of_everything_is_no_error():
    network, seen = recognise(does(lambda X, a: a(X) + 0 * X.sum(), nn.Linear(5, 2))[0], (5,))
    assert isinstance(network, Adapter)
    assert "mixes the examples" in seen.reason


def test_real_inputs_are_compared_too():
    assert isinstance(recognise(Late())[0], Layered)
    network, seen = recognise(Late(), examples=torch.ones(3, 5))
    assert isinstance(network, Adapter)
    assert "differ" in seen.reason


def test_what_would_be_too_large_stays_a_black_box(monkeypatch):
    module, shape = pictures(nn.ReLU(), nn.MaxPool2d(2))
    module = drawn(module, shape)
    with monkeypatch.context() as changed:
        changed.setattr(circuit, "LARGEST_NEURONS", 100)
        network, seen = recognise(module, shape)
        assert isinstance(network, Adapter)
        assert "more than 100 neurons" in seen.reason
    monkeypatch.setattr(terms, "LARGEST_ENTRIES", 50)
    assert "50 are the most" in recognise(module, shape)[1].reason


def test_training_moves_what_the_module_has(rng):
    """Kernels stay shared, and carried values and pooling as they are."""
    module = drawn(*pictures(nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2))).double()
    network, _ = recognise(module, (1, 6, 6))
    assert isinstance(network, Folded)
    trainable, X = network.module(), torch.randn(6, 36, generator=rng, dtype=DOUBLE)
    torch.testing.assert_close(trainable(X), network.logits(X))
    shapes = sorted(tuple(each.shape) for each in trainable.parameters())
    assert shapes == sorted(tuple(each.shape) for each in module.parameters())
    trainable(X).square().sum().backward()
    with torch.no_grad():
        for parameter in trainable.parameters():
            parameter -= 0.01 * parameter.grad
    trained = network.loaded(trainable)
    assert isinstance(trained, Folded)
    torch.testing.assert_close(trained.logits(X), trainable(X))
    assert not torch.allclose(trained.logits(X), network.logits(X))
    torch.testing.assert_close(trained.start.logits(X), network.logits(X))
    torch.testing.assert_close(trained.to(torch.float32).logits(X).double(), trained.logits(X), rtol=1e-4, atol=1e-4)


def test_a_regime_trains_it_and_gives_it_back(rng):
    module = drawn(*pictures(nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2))).double()
    network, _ = recognise(module, (1, 6, 6))
    data = Data(torch.randn(12, 36, generator=rng, dtype=DOUBLE), torch.arange(12) % 3)
    training = GradientDescent(until=Steps(30), rate=0.1).train(network, data)
    assert isinstance(training.network, Folded)
    assert training.accuracy > network.accuracy(data.X, data.y)
    assert training.accuracy == training.network.accuracy(data.X, data.y)


def test_one_output_with_two_layers_is_a_two_layer_network():
    module = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1), nn.Flatten(0)).double()
    assert type(recognise(drawn(module.float(), (5,)))[0]) is TwoLayer


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_short_numbers_are_the_same_in_float32(dtype):
    module, shape = pictures(nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2))
    module = drawn(module, shape).to(dtype)
    network, seen = recognise(module, shape)
    assert isinstance(network, Layered), str(seen)
    assert_same(network, module, shape)
    plain, shape = rows(nn.ReLU())
    network, _ = recognise(drawn(plain, shape).to(dtype), shape)
    assert network.dtype == torch.float32


def test_a_compiled_module_is_looked_at_uncompiled():
    class Compiled(nn.Module):
        """As torch.compile wraps it, without the seconds that this takes."""

        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self._orig_mod = inner

        def forward(self, X: Tensor) -> Tensor:
            raise AssertionError("it is compiled")

    module, shape = rows(nn.ReLU())
    network, _ = recognise(Compiled(drawn(module, shape)), shape)
    assert_same(network.to(DOUBLE), module, shape)
