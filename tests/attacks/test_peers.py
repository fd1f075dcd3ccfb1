"""Foolbox both ways."""

import pytest
import torch

from brittle.attacks import Foolbox, MinimumNorm, as_foolbox, from_foolbox
from brittle.common.errors import InputError
from brittle.data import Data
from brittle.networks import Deep, Folded, TorchLinearInit

foolbox = pytest.importorskip("foolbox")
DOUBLE = torch.float64


def problem(rng):
    network = TorchLinearInit().draw(10, 30, rng)
    X = torch.randn(12, 10, generator=rng, dtype=DOUBLE)
    return network, Data(X, network.logits(X).sign())


def test_its_attacks_are_measured_like_ours(rng):
    network, data = problem(rng)
    ours = MinimumNorm().run(network, data)
    for name, options in (("DDNAttack", {"steps": 100}), ("L2DeepFoolAttack", {}), ("L2FMNAttack", {"steps": 50})):
        theirs = Foolbox(name, options).run(network, data)
        assert theirs.success.double().mean() > 0.8
        assert (theirs.norms >= ours.norms * 0.95)[theirs.success].all()
    ball = Foolbox("L2PGD", budget=0.5).run(network, data)
    assert ball.norms.max() <= 0.5 * (1 + 1e-4)


def test_the_global_generators_are_left_alone(rng):
    network, data = problem(rng)
    state = torch.get_rng_state()
    Foolbox("L2PGD", budget=0.5).run(network, data)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_network_becomes_its_model(rng):
    network, data = problem(rng)
    model = as_foolbox(network, (-5, 5))
    logits = model(data.X.float())
    torch.testing.assert_close(logits[:, 1].double(), network.logits(data.X), rtol=1e-4, atol=1e-5)
    assert torch.equal(logits.argmax(1), (data.y > 0).long())


def test_its_models_become_networks(rng):
    inner = TorchLinearInit().draw_deep(10, [20], rng, outputs=3).to(torch.float32).module().eval()
    plain = from_foolbox(foolbox.PyTorchModel(inner, bounds=(0, 1)))
    assert isinstance(plain, Deep)
    treated = foolbox.PyTorchModel(inner, bounds=(0, 1), preprocessing={"mean": 0.5, "std": 2.0})
    network = from_foolbox(treated, shape=(10,))
    X = torch.rand(6, 10, generator=rng, dtype=DOUBLE)
    expected = inner(((X - 0.5) / 2).float())
    torch.testing.assert_close(network.logits(X).float(), expected)
    assert isinstance(network, Folded)
    result = MinimumNorm().run(network, Data(X, expected.argmax(1)), bounds=treated.bounds)
    logits = inner.double()((X + result.perturbations - 0.5) / 2)  # just past the boundary, which float32 may not see
    assert torch.equal(logits.argmax(1) != expected.argmax(1), result.success)


def test_wrong_names_are_named(rng):
    network, data = problem(rng)
    with pytest.raises(InputError, match="NoSuchAttack"):
        Foolbox("NoSuchAttack").run(network, data)
    with pytest.raises(InputError, match="unexpected keyword"):
        Foolbox("DDNAttack", {"stepps": 3}).run(network, data)
    with pytest.raises(InputError, match="not a foolbox"):
        from_foolbox(network)
