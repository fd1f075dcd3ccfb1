"""Round trips of every kind of network through every format, and files that are not what they claim."""

import io
import os
import zipfile
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from brittle.common.errors import InputError
from brittle.networks import (
    Convolution,
    Deep,
    Dense,
    NearestNeighbour,
    Sparse,
    TwoLayer,
    as_network,
    load_network,
    save_network,
)

W, b, v = np.ones((3, 2)), np.zeros(3), np.array([1.0, -1.0, 2.0])


def random_two_layer(seed, width, dim, dtype=torch.float64, bias=True, start=True):
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=rng, dtype=torch.float64).to(dtype)

    def draw(start):
        return TwoLayer(
            normal(width, dim), normal(width), normal(width), normal() if bias else torch.tensor(0.0), start
        )

    return draw(draw(None) if start else None)


def random_deep(seed, shape, dtype=torch.float64, start=True):
    rng = torch.Generator().manual_seed(seed)

    def draw(start):
        sizes = list(zip(shape[1:], shape[:-1], strict=True))
        weights = [torch.randn(size, generator=rng, dtype=torch.float64).to(dtype) for size in sizes]
        biases = [torch.randn(size[0], generator=rng, dtype=torch.float64).to(dtype) for size in sizes]
        return Deep.dense(tuple(weights), tuple(biases), start)

    return draw(draw(None) if start else None)


def parameters(network):
    if network is None:
        return []
    own = (
        [network.W, network.b, network.v, network.c]
        if isinstance(network, TwoLayer)
        else [*network.weights, *network.biases]
    )
    return own + parameters(network.start)


def assert_same(network, other):
    assert type(network) is type(other)
    pairs = list(zip(parameters(network), parameters(other), strict=True))
    assert all(torch.equal(one, two) and one.dtype == two.dtype for one, two in pairs)


types = st.sampled_from([torch.float32, torch.float64])


@given(
    st.integers(0, 99), st.integers(1, 5), st.integers(1, 4), types, st.booleans(), st.booleans(),
    st.sampled_from([".npz", ".pt", ".safetensors"]),
)  # fmt: skip
def test_two_layer_networks_come_back_as_they_went(tmp_path_factory, seed, width, dim, dtype, bias, start, suffix):
    path = tmp_path_factory.mktemp("round") / f"network{suffix}"
    network = random_two_layer(seed, width, dim, dtype, bias, start)
    save_network(network, path)
    assert_same(load_network(path), network)
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@given(
    st.integers(0, 99), st.lists(st.integers(1, 4), min_size=3, max_size=12), types, st.booleans(),
    st.sampled_from([".pt", ".safetensors"]),
)  # fmt: skip
def test_deep_networks_come_back_as_they_went(tmp_path_factory, seed, shape, dtype, start, suffix):
    path = tmp_path_factory.mktemp("round") / f"network{suffix}"
    network = random_deep(seed, shape, dtype, start)
    save_network(network, path)
    assert_same(load_network(path), network)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize("sizes", [[3, 5, 1], [3, 5, 2], [4] * 13, [3, 1], [3, 4]])
def test_the_state_of_a_foreign_sequential_is_recognised(tmp_path, suffix, sizes):
    layers = [part for pair in pairwise(sizes) for part in (nn.Linear(*pair), nn.ReLU())]
    module = nn.Sequential(*layers[:-1])
    path = tmp_path / f"state{suffix}"
    if suffix == ".pt":
        torch.save({"state_dict": module.state_dict()}, path)
    else:
        safetensors.torch.save_file(module.state_dict(), path)
    network, X = load_network(path, activation="relu"), torch.randn(7, sizes[0])
    assert isinstance(network, TwoLayer if sizes[-1] == 1 and len(sizes) <= 3 else Deep)
    assert torch.allclose(network.logits(X).reshape(7, -1), module(X), atol=1e-5)


def test_numbers_that_are_stored_as_negative_views_are_refused(tmp_path):
    """The file holds the numbers and, beside them, that they are to be negated."""
    weights = torch.complex(torch.ones(2, 3), torch.ones(2, 3)).conj().imag
    torch.save({"0.weight": weights}, tmp_path / "a.pt")
    with pytest.raises(InputError, match=r"'0.weight' is stored as a negative or conjugate view"):
        load_network(tmp_path / "a.pt")
    torch.save({"0.weight": weights.clone()}, tmp_path / "a.pt")
    assert load_network(tmp_path / "a.pt").classes == 2


def test_layers_without_bias_and_a_trained_two_layer_module(tmp_path, rng):
    module = nn.Sequential(nn.Linear(3, 4, bias=False), nn.ReLU(), nn.Linear(4, 1, bias=False))
    torch.save(module.state_dict(), tmp_path / "a.pt")
    X = torch.randn(5, 3, generator=rng)
    assert torch.allclose(load_network(tmp_path / "a.pt", activation="relu").logits(X), module(X)[:, 0], atol=1e-6)
    network = random_two_layer(0, 4, 3)
    torch.save(network.module().state_dict(), tmp_path / "b.pt")
    assert torch.equal(load_network(tmp_path / "b.pt").logits(X), network.logits(X))


def test_named_layers_follow_the_file_or_their_shapes(tmp_path, rng):
    def state(hidden, inner):
        sizes = {"first": (hidden, 3), "body": (inner, hidden), "an_end": (2, inner)}
        return {f"{name}.weight": torch.randn(size, generator=rng) for name, size in sizes.items()}

    torch.save(state(3, 3), tmp_path / "a.pt")
    safetensors.torch.save_file(state(4, 5), tmp_path / "b.safetensors")
    safetensors.torch.save_file(state(3, 3) | {"an_end.weight": torch.eye(3)}, tmp_path / "c.safetensors")
    assert load_network(tmp_path / "a.pt", activation="relu").shape == (3, 3, 3, 2)
    assert load_network(tmp_path / "b.safetensors", activation="relu").shape == (3, 4, 5, 2)
    refused(tmp_path / "c.safetensors", "order of the layers")


def convolution(activation=nn.ReLU):
    layers = nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), activation(), nn.Flatten(), nn.Linear(8, 3)
    return nn.Sequential(*layers).double()


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_convolutions_and_sparse_maps_come_back(tmp_path, suffix, rng):
    module = nn.Sequential(*convolution()[:3], nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 3)).double()
    network, path = as_network(module, shape=(1, 3, 3)), tmp_path / f"network{suffix}"
    assert [type(layer) for layer in network.layers] == [Convolution, Sparse, Dense, Dense]
    save_network(Deep(network.maps, Deep(network.maps)), path)
    again, X = load_network(path), torch.randn(5, 9, generator=rng, dtype=torch.float64)
    assert [type(layer) for layer in again.layers] == [type(layer) for layer in network.layers]
    assert torch.equal(again.logits(X), network.logits(X))
    assert torch.equal(again.start.logits(X), network.logits(X))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("window.0", torch.tensor([1, 3, 3, 0, 1, 0, 0, 1, 1, 1]), "is no kernel"),
        ("window.0", torch.tensor([1, 3, 3]), "10 whole numbers"),
        ("window.0", torch.tensor([1, 2**40, 3, 1, 1, 0, 0, 1, 1, 1]), "10 whole numbers"),
        ("columns.1", torch.full((8,), 99), "columns must be"),
        ("starts.1", torch.tensor([0, 9, 2, 3, 4, 5, 6, 7, 8]), "starts must rise"),
        ("features.1", torch.tensor([0]), "is empty"),
        ("features.1", None, "'features.1' is missing"),
    ],
)
def test_maps_that_are_damaged_are_refused(tmp_path, name, value, words):
    module = nn.Sequential(*convolution()[:3], nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 3)).double()
    save_network(Deep(as_network(module, shape=(1, 3, 3)).layers), tmp_path / "a.safetensors")
    with safetensors.safe_open(tmp_path / "a.safetensors", "pt") as file:
        notes, arrays = file.metadata(), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    arrays = {key: each for key, each in arrays.items() if key != name} | ({} if value is None else {name: value})
    safetensors.torch.save_file(arrays, tmp_path / "b.safetensors", notes)
    refused(tmp_path / "b.safetensors", words)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_a_foreign_module_comes_back_into_a_module_like_it(tmp_path, suffix, rng):
    network, path = as_network(convolution(nn.Tanh), shape=(1, 3, 3)), tmp_path / f"module{suffix}"
    save_network(network, path)
    X = torch.randn(5, 9, generator=rng, dtype=torch.float64)
    assert torch.equal(load_network(path, convolution(nn.Tanh)).logits(X), network.logits(X))
    refused(path, "state of a Sequential", "module=")
    refused(path, "does not fit the module", module=nn.Linear(3, 1))
    network.inner[0].bias.fill_(torch.nan)
    with pytest.raises(InputError, match=r"'0\.bias' holds NaN"):
        save_network(network, path)
    torch.save(network.inner.state_dict(), tmp_path / "state.pt")
    refused(tmp_path / "state.pt", "'0.bias' holds NaN", module=convolution())


def test_a_plain_state_is_read_into_a_module(tmp_path, rng):
    module = convolution().eval()
    torch.save(module.state_dict(), tmp_path / "state.pt")
    X = torch.randn(5, 9, generator=rng, dtype=torch.float64)
    network = load_network(tmp_path / "state.pt", convolution(), shape=(1, 3, 3))
    assert torch.allclose(network.logits(X), module(X.reshape(5, 1, 3, 3)), rtol=0, atol=1e-14)
    refused(tmp_path / "state.pt", "pass shape=", module=convolution())


def refused(path, *words, module=None):
    with pytest.raises(InputError) as caught:
        load_network(path, module)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    assert all(word in message for word in words), message


BAD_ARRAYS = {
    "missing b": ({"W": W, "v": v}, "'b' is missing"),
    "missing v0": ({"W": W, "b": b, "v": v, "W0": W, "b0": b}, "'v0' is missing"),
    "W flat": ({"W": b, "b": b, "v": v}, "'W' has shape (3,)"),
    "W empty": ({"W": W[:0], "b": b[:0], "v": v[:0]}, "'W' has shape (0, 2)"),
    "b long": ({"W": W, "b": np.zeros(4), "v": v}, "'b' has shape (4,)"),
    "c long": ({"W": W, "b": b, "v": v, "c": np.zeros(2)}, "'c' has shape (2,)"),
    "W0 other": ({"W": W, "b": b, "v": v, "W0": W[:2], "b0": b[:2], "v0": v[:2]}, "W0 has shape (2, 2)"),
    "whole numbers": ({"W": W.astype(int), "b": b, "v": v}, "'W' has type int64"),
    "texts": ({"W": W, "b": np.array(["a", "b", "c"]), "v": v}, "'b' has type <U1"),
    "complex": ({"W": W * 1j, "b": b, "v": v}, "'W' has type complex128"),
    "NaN": ({"W": W, "b": b, "v": v * np.nan}, "'v' holds NaN"),
    "infinity": ({"W": W, "b": b + np.inf, "v": v}, "'b' holds NaN or infinity"),
    "pickle": ({"W": W, "b": np.array([None, {}, 3], dtype=object), "v": v}, "'b' holds pickled objects"),
}


@pytest.mark.parametrize(("arrays", "words"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_a_bad_array_is_named(tmp_path, arrays, words):
    np.savez(tmp_path / "bad.npz", **arrays)
    refused(tmp_path / "bad.npz", words)


def test_numbers_of_another_byte_order_and_columns_first_are_read(tmp_path):
    order = np.asfortranarray(np.arange(6.0).reshape(3, 2)).astype(">f8")
    np.savez(tmp_path / "a.npz", W=order, b=b.astype(np.float32), v=v)
    network = load_network(tmp_path / "a.npz")
    assert network.W.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert network.b.dtype == torch.float64


def test_absurd_shapes_are_refused_before_memory_is_taken(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**9)})
    with zipfile.ZipFile(tmp_path / "huge.npz", "w") as archive:
        archive.writestr("W.npy", header.getvalue())
    refused(tmp_path / "huge.npz", "'W' declares the shape")
    torch.save({"W": torch.zeros(1).expand(10**9, 10**6), "b": torch.zeros(2), "v": torch.zeros(2)}, tmp_path / "h.pt")
    refused(tmp_path / "h.pt", "'W' declares the shape")


class Command:
    def __reduce__(self):
        return os.system, ("true",)


def test_code_is_refused(tmp_path):
    torch.save({"W": Command()}, tmp_path / "code.pt")
    refused(tmp_path / "code.pt", "pickled object", "system")
    torch.save(nn.Linear(2, 1), tmp_path / "module.pt")
    refused(tmp_path / "module.pt", "state_dict")


BAD_STATES = {
    "no tensors": ({}, "holds no array"),
    "a list": ([torch.zeros(2)], "holds a list"),
    "a number": ({"W": 3.0}, "'W' is a float"),
    "another chain": ({"0.weight": torch.zeros(3, 2), "2.weight": torch.zeros(1, 4)}, "'2.weight' takes 4 inputs"),
    "a bias of another length": ({"0.weight": torch.zeros(3, 2), "0.bias": torch.zeros(2)}, "'0.bias' has shape (2,)"),
    "a convolution": ({"0.weight": torch.zeros(3, 2, 3, 3)}, "'0.weight' has shape (3, 2, 3, 3)"),
    "no room for a ReLU": ({"0.weight": torch.zeros(3, 2), "1.weight": torch.zeros(1, 3)}, "no ReLU fits"),
    "batch normalisation": (nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).state_dict(), "running_mean"),
    "a missing layer": ({"brittle_network": "deep", "weight.0": torch.zeros(2, 2)}, "'bias.0' is missing"),
    "an unknown kind": ({"brittle_network": "quantum"}, "quantum"),
    "a sparse array": ({"W": torch.eye(2).to_sparse()}, "'W' is a sparse"),
}


@pytest.mark.parametrize(("content", "words"), BAD_STATES.values(), ids=BAD_STATES)
def test_a_bad_state_is_named(tmp_path, content, words):
    torch.save(content, tmp_path / "bad.pt")
    refused(tmp_path / "bad.pt", words)


@pytest.mark.parametrize("suffix", [".npz", ".pt", ".safetensors"])
def test_a_truncated_or_damaged_file_never_escapes_as_another_error(tmp_path, suffix):
    save_network(random_two_layer(0, 6, 5), tmp_path / f"whole{suffix}")
    whole = (tmp_path / f"whole{suffix}").read_bytes()
    path = tmp_path / f"part{suffix}"
    for length in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:length])
        refused(path)
    rng = np.random.default_rng(0)
    for _ in range(150):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] = rng.integers(256)
        path.write_bytes(damaged)
        with suppress(InputError):
            load_network(path)


@pytest.mark.parametrize("name", ["absent.npz", "absent.pt", "absent.safetensors", "network.pkl", "network"])
def test_absent_files_and_unknown_suffixes(tmp_path, name):
    refused(tmp_path / name)


@pytest.mark.parametrize("suffix", [".npz", ".pt", ".safetensors"])
def test_what_cannot_be_read_again_is_not_written(tmp_path, suffix):
    network = TwoLayer(torch.full((2, 2), torch.nan), torch.zeros(2), torch.zeros(2))
    with pytest.raises(InputError, match="'W' holds NaN"):
        save_network(network, tmp_path / f"a{suffix}")
    with pytest.raises(InputError, match="does not exist"):
        save_network(random_two_layer(0, 2, 2), tmp_path / "absent" / f"a{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_deep_networks_need_another_format_than_npz(tmp_path):
    with pytest.raises(InputError, match="two-layer networks only"):
        save_network(random_deep(0, [2, 3, 1]), tmp_path / "a.npz")


def test_rules_without_parameters_have_no_file(tmp_path):
    network = NearestNeighbour(torch.eye(2), torch.tensor([1.0, -1.0]))
    with pytest.raises(InputError, match="NearestNeighbour has no file format"):
        save_network(network, tmp_path / "a.pt")


class Pictures(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 3)
        )

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.layers(X).log_softmax(1)


@pytest.mark.parametrize("wrapper", ["", "module.", "_orig_mod.", "model.", "module.model."])
@pytest.mark.parametrize("key", ["", "state_dict", "net", "weights"])
@pytest.mark.parametrize("suffix", [".pt", ".pth", ".ckpt"])
def test_a_checkpoint_is_read_however_it_was_wrapped(wrapper, key, suffix, tmp_path):
    torch.manual_seed(0)
    module = Pictures()
    state = {wrapper + name: value for name, value in module.state_dict().items()}
    path = tmp_path / f"net{suffix}"
    torch.save({"epoch": 3, key: state} if key else state, path)
    X = torch.randn(5, 1, 4, 4)
    network = load_network(path, Pictures(), (1, 4, 4))
    torch.testing.assert_close(network.logits(X.flatten(1)).float().log_softmax(1), module.eval()(X))


def test_names_that_fit_no_wrapper_are_refused(tmp_path):
    state = {f"module.{name}": value for name, value in Pictures().state_dict().items()}
    torch.save({**state, "other": torch.zeros(1)}, tmp_path / "net.pt")
    with pytest.raises(InputError, match="does not fit the module"):
        load_network(tmp_path / "net.pt", Pictures(), (1, 4, 4))


@pytest.mark.parametrize("suffix", [".pt", ".safetensors", ".ckpt"])
def test_what_a_state_dict_does_not_say_is_not_guessed(suffix, tmp_path):
    path, state = tmp_path / f"net{suffix}", nn.Sequential(nn.Linear(2, 3), nn.GELU(), nn.Linear(3, 1)).state_dict()
    if suffix == ".safetensors":
        safetensors.torch.save_file(state, path)
    else:
        torch.save({"state_dict": state}, path)
    with pytest.raises(
        InputError, match=r"holds 2 linear layers and does not say .* activation='relu' .* --architecture"
    ):
        load_network(path)
    with pytest.raises(InputError, match="activation is 'gelu'; 'relu' is read without a module"):
        load_network(path, activation="gelu")


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_decomposed_program_is_read(tmp_path):
    torch.manual_seed(0)
    module, X = Pictures().eval(), torch.randn(5, 1, 4, 4)
    program = torch.export.export(module, (X,)).run_decompositions()
    torch.export.save(program, tmp_path / "net.pt2")
    network = load_network(tmp_path / "net.pt2")
    assert isinstance(network, Deep)
    torch.testing.assert_close(network.logits(X.flatten(1)).float().log_softmax(1), module(X))
