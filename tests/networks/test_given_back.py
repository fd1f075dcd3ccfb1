"""Hardened networks come back as they came: under the file's own names and types, or as ONNX."""

import numpy as np
import onnxruntime
import pytest
import safetensors.torch
import torch
from scipy.sparse import csr_array
from torch import nn

from brittle.common.errors import InputError
from brittle.data import Data
from brittle.networks import (
    Adapter,
    Deep,
    Folded,
    NearestNeighbour,
    TwoLayer,
    as_network,
    load_network,
    read_network,
    save_network,
)
from brittle.networks.affine import Convolution, Dense
from brittle.networks.given_back import StateDictForm, require_form
from brittle.networks.sparse import Sparse
from brittle.networks.store import require_format
from brittle.training import GradientDescent, Steps


class Net(nn.Module):
    """Names of its own, one layer without a bias."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 6)
        self.middle = nn.Linear(6, 5, bias=False)
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        return self.head(self.middle(self.body(x).relu()).relu())


def convolutional():
    return nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(2, 3))


def pooled():
    return nn.Sequential(
        nn.Conv2d(1, 4, 2, padding=1), nn.BatchNorm2d(4), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4, 3)
    )


def smooth():
    return nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.Linear(5, 3))


def normalised():
    """Batch norms after layers with and without a bias."""
    first = (nn.Conv2d(1, 3, 2, bias=False), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten())
    return nn.Sequential(*first, nn.Linear(3, 5), nn.BatchNorm1d(5, eps=0.1), nn.ReLU(), nn.Linear(5, 3))


MODULES = {
    "batch norms": (normalised, (1, 2, 2), Deep),
    "own names": (Net, (4,), Deep),
    "a convolution": (convolutional, (1, 2, 2), Deep),
    "pooled": (pooled, (1, 2, 2), Folded),
    "a black box": (smooth, (4,), Adapter),
}


def saved(make, path, dtype=torch.float32):
    torch.manual_seed(0)
    module = make().to(dtype).eval()
    for name, value in module.state_dict().items():
        if value.ndim == 1:  # batch norms as if they had been trained
            value.copy_(torch.rand(len(value)) + (0.5 if "var" in name else -0.3))
    write = torch.save if path.suffix == ".pt" else safetensors.torch.save_file
    write(module.state_dict(), path)
    return module


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize("name", MODULES)
def test_the_module_takes_what_comes_back(name, suffix, tmp_path):
    make, shape, kind = MODULES[name]
    module, path, out = saved(make, tmp_path / f"net{suffix}"), tmp_path / f"net{suffix}", tmp_path / f"out{suffix}"
    network, _ = read_network(path, make(), shape)
    assert isinstance(network, kind)
    form = require_form(path, network, out)
    X = torch.randn(12, 4, generator=torch.Generator().manual_seed(1)).double()
    trained = (
        GradientDescent(until=Steps(3), rate=0.1, biases=False).train(network, Data(X, torch.arange(12) % 3)).network
    )
    form.write(trained, out)
    fresh = make()
    state = torch.load(out) if suffix == ".pt" else safetensors.torch.load_file(out)
    fresh.load_state_dict(state, strict=True)
    assert {name: value.dtype for name, value in state.items()} == {n: v.dtype for n, v in module.state_dict().items()}
    with torch.no_grad():
        logits = fresh.eval()(X.float().reshape(12, *shape))
    assert torch.allclose(logits.double(), trained.logits(X).double(), atol=1e-5)
    assert not torch.allclose(trained.logits(X), network.logits(X), atol=1e-4)


def test_a_state_without_an_architecture_keeps_its_names(tmp_path):
    module = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1)).half()
    torch.save(module.state_dict(), tmp_path / "net.pt")
    network = load_network(tmp_path / "net.pt", activation="relu")
    assert isinstance(network, TwoLayer)
    StateDictForm.of(tmp_path / "net.pt", network).write(network.scaled(2.0), tmp_path / "out.pt")
    module.load_state_dict(torch.load(tmp_path / "out.pt"), strict=True)
    assert module[0].weight.dtype == torch.float16


def test_what_was_folded_for_good_is_refused_with_the_way_out(tmp_path):
    make = lambda: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 1))  # noqa: E731
    torch.manual_seed(0)
    module = make()
    module(torch.randn(50, 4))
    with torch.no_grad():
        module[1].weight[2] = 0  # what is multiplied by 0 cannot be had back
    torch.save(module.state_dict(), tmp_path / "net.pt")
    network, _ = read_network(tmp_path / "net.pt", make())
    with pytest.raises(InputError, match=r"net\.pt: the weights of layer 1 .* was folded into it; .*FILE\.onnx"):
        require_form(tmp_path / "net.pt", network, tmp_path / "out.pt")
    assert require_form(tmp_path / "net.pt", network, tmp_path / "out.onnx") is None


def test_another_width_and_a_new_bias_are_refused(tmp_path):
    saved(Net, tmp_path / "net.pt")
    network = read_network(tmp_path / "net.pt", Net())[0]
    form = StateDictForm.of(tmp_path / "net.pt", network)
    first, middle, last = network.layers
    twice = Dense(first.weight.repeat(2, 1), first.bias.repeat(2))
    wider = Deep((twice, Dense(middle.weight.repeat(1, 2), middle.bias), last))
    with pytest.raises(InputError, match=r"array 'body\.weight' has the shape \(6, 4\), and the new network another"):
        form.filled(wider)
    biased = Deep((first, Dense(middle.weight, middle.bias + 1), last))
    with pytest.raises(InputError, match="has no array for the bias of layer 2, which is not zero any more"):
        form.filled(biased)


def test_files_of_brittle_and_programs_have_no_form_of_their_own(tmp_path):
    saved(Net, tmp_path / "net.pt")
    network = read_network(tmp_path / "net.pt", Net())[0]
    save_network(network, tmp_path / "own.pt")
    assert StateDictForm.of(tmp_path / "own.pt", network) is None
    save_network(network, tmp_path / "net.onnx")
    assert StateDictForm.of(tmp_path / "net.onnx", network) is None


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


NETWORKS = {
    "one logit": TwoLayer(drawn(6, 4), drawn(6), drawn(7)[:6]),
    "several": Deep.dense((drawn(5, 4), drawn(6, 5), drawn(3, 6)), (drawn(5), drawn(6), drawn(3))),
    "convolutions": Deep(
        (
            Convolution(drawn(4, 1, 3, 2), drawn(4), (2, 6, 5), (2, 1), (1, 0), (1, 2), 2),
            Dense(drawn(3, 36) / 6, drawn(3)),
        )
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_an_onnx_file_computes_what_the_network_does(name, tmp_path):
    network = NETWORKS[name]
    save_network(network, tmp_path / "net.onnx")
    X = drawn(9, network.dim)
    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"), providers=["CPUExecutionProvider"])
    (computed,) = session.run(None, {"x": X.float().numpy()})
    assert np.allclose(computed.reshape(network.logits(X).shape), network.logits(X).numpy(), rtol=1e-4, atol=1e-4)
    again = load_network(tmp_path / "net.onnx")
    assert torch.allclose(again.logits(X).double(), network.logits(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NETWORKS)
def test_an_exported_program_computes_what_the_network_does(name, tmp_path):
    network, path = NETWORKS[name], tmp_path / "net.pt2"
    save_network(network, path)
    X = drawn(9, network.dim)
    program = torch.export.load(path).module()
    for rows in (X, X[:1]):
        assert torch.allclose(program(rows), network.logits(rows), rtol=0, atol=1e-12)
    again = load_network(path)
    assert type(again) is type(network)
    assert torch.allclose(again.logits(X), network.logits(X), rtol=0, atol=1e-12)


def test_sparse_layers_are_exported_as_matrices(tmp_path):
    sparse = Sparse.of(csr_array(np.eye(6, 4)), np.arange(6.0))
    network = Deep((sparse, Dense(drawn(3, 6), drawn(3))))
    save_network(network, tmp_path / "net.pt2")
    X = drawn(5, 4)
    assert torch.allclose(load_network(tmp_path / "net.pt2").logits(X), network.logits(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["pooled", "a black box"])
def test_foreign_networks_are_exported_too(name, tmp_path):
    make, shape, kind = MODULES[name]
    torch.manual_seed(0)
    network = as_network(make().eval(), shape)
    assert isinstance(network, kind)
    save_network(network, tmp_path / "net.pt2")
    X = drawn(5, network.dim).to(network.dtype)
    program = torch.export.load(tmp_path / "net.pt2").module()
    assert torch.allclose(program(X), network.logits(X), rtol=0, atol=1e-5)
    assert torch.allclose(load_network(tmp_path / "net.pt2").logits(X), network.logits(X), rtol=0, atol=1e-5)


class Undecided(nn.Module):
    """What it does depends on the numbers."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 3)

    def forward(self, x):
        return self.inner(x) if x.sum() > 0 else self.inner(-x)


UNWRITTEN = {
    "a decision": Adapter(Undecided(), (4,)),
    "neighbours": NearestNeighbour(drawn(3, 4), torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)),
}


@pytest.mark.parametrize("name", UNWRITTEN)
def test_what_cannot_be_exported_is_refused_before_the_work(name, tmp_path):
    with pytest.raises(InputError, match=r"net\.pt2: [^\n]*export[^\n]*$"):
        require_format(UNWRITTEN[name], tmp_path / "net.pt2")
    assert list(tmp_path.iterdir()) == []
