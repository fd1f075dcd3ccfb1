"""Foreign modules: which are layers, what the adapter makes of the rest, and what it refuses."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from brittle.attacks import PGD, GradientStep, MinimumNorm, Ray
from brittle.common.errors import InputError
from brittle.data import Data
from brittle.networks import Adapter, Deep, Folded, TorchLinearInit, TwoLayer, as_network


class Custom(nn.Module):
    """Named layers and a forward of its own; `form` chooses how it is written."""

    def __init__(self, form, outputs=1):
        super().__init__()
        self.form = form
        self.first, self.second = nn.Linear(6, 5), nn.Linear(5, outputs)
        self.unused = nn.Dropout(0.5)

    def forward(self, X):
        if self.form == "functional":
            return self.second(functional.relu(self.first(X.flatten(1))))
        if self.form == "method":
            return self.second(self.unused(self.first(X.view(X.size(0), -1)).relu())).squeeze(-1)
        if self.form == "residual":
            hidden = self.first(X)
            return self.second(torch.relu(hidden) + hidden)
        if self.form == "scaled":
            return 2 * self.second(torch.relu(self.first(X)))
        if self.form == "relu on top":
            return torch.relu(self.second(torch.relu(self.first(X))))
        if self.form == "linear":
            return self.second(self.first(X))
        if self.form == "shared input":
            return self.second(torch.relu(self.first(X))) + X.sum(1, keepdim=True)
        if X.sum() > 0:  # control flow
            return self.second(torch.relu(self.first(X)))
        return self.second(torch.relu(self.first(X)))


HIDDEN = [nn.Linear(6, 5), nn.ReLU()]
SHAPED = [nn.Flatten(), nn.Sequential(nn.Linear(6, 5), nn.Identity(), nn.ReLU()), nn.Dropout()]

EXACT = {
    "sequential": (nn.Sequential(*HIDDEN, nn.Linear(5, 1)), TwoLayer),
    "nested, with flatten and dropout": (nn.Sequential(*SHAPED, nn.Linear(5, 1)), TwoLayer),
    "classes": (nn.Sequential(nn.Linear(6, 5), nn.ReLU(inplace=True), nn.Linear(5, 3)), Deep),
    "three layers": (nn.Sequential(*HIDDEN, nn.Linear(5, 4, bias=False), nn.ReLU(), nn.Linear(4, 1)), Deep),
    "functional": (Custom("functional"), TwoLayer),
    "method": (Custom("method"), TwoLayer),
    "linear model": (nn.Linear(6, 1), TwoLayer),
    "linear classes": (nn.Linear(6, 3), Deep),
    "trainable two-layer": (TorchLinearInit().draw(6, 5, torch.Generator().manual_seed(0)).module(), TwoLayer),
    "trainable deep": (
        TorchLinearInit().draw_deep(6, [5, 4], torch.Generator().manual_seed(0), outputs=3).module(),
        Deep,
    ),
    **{form: (Custom(form), Folded) for form in ("residual", "relu on top", "linear", "shared input")},
    "scaled": (Custom("scaled"), TwoLayer),
    "normalised": (nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 1)), TwoLayer),
    "leaky": (nn.Sequential(nn.Linear(6, 5), nn.LeakyReLU(), nn.Linear(5, 1)), Folded),
    "parametrised": (
        nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 5)), nn.ReLU(), nn.Linear(5, 1)),
        TwoLayer,
    ),
    "double": (nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 1)).double(), TwoLayer),
}

FOREIGN = {
    "control flow": Custom("control flow"),
    "tanh": nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2)),
}


@pytest.mark.parametrize(("module", "kind"), EXACT.values(), ids=EXACT)
def test_affine_maps_and_relus_are_recognised(module, kind, rng):
    network = as_network(module)
    assert type(network) is kind
    X = torch.randn(9, 6, generator=rng, dtype=torch.float64).to(network.dtype)
    expected = module.eval()(X.to(next(module.parameters()).dtype)).reshape(network.logits(X).shape)
    assert torch.allclose(network.logits(X), expected.to(network.dtype), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("module", FOREIGN.values(), ids=FOREIGN)
def test_anything_else_is_adapted(module, rng):
    network = as_network(module)
    assert type(network) is Adapter
    X = torch.randn(9, 6, generator=rng)
    assert torch.equal(network.logits(X), module.eval()(X).reshape(network.logits(X).shape))


def test_what_a_hook_does_is_seen():
    module = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 1))
    before = as_network(module)
    module[0].register_forward_hook(lambda *arguments: arguments[-1] + 1)
    assert torch.allclose(as_network(module).b, before.b.double() + 1)
    module[0].register_forward_hook(lambda *arguments: arguments[-1].tanh())
    assert type(as_network(module)) is Adapter


def test_networks_pass_through(rng):
    network = TorchLinearInit().draw(3, 4, rng)
    assert as_network(network) is network
    with pytest.raises(InputError, match="list is no network"):
        as_network([1])


def test_the_module_itself_is_left_alone():
    module = nn.Sequential(nn.Linear(6, 5), nn.Dropout(), nn.Tanh(), nn.Linear(5, 1)).train()
    network = as_network(module)
    assert module.training
    assert all(parameter.requires_grad for parameter in module.parameters())
    before = network.logits(torch.ones(1, 6))
    with torch.no_grad():
        module[0].weight.zero_()
    assert torch.equal(network.logits(torch.ones(1, 6)), before)


def test_images_are_reshaped_from_rows(rng):
    module = nn.Sequential(nn.Conv2d(2, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(12, 4)).double()
    network = as_network(module, shape=(2, 3, 3))
    X = torch.randn(1500, 18, generator=rng, dtype=torch.float64)
    assert network.dim == 18
    assert network.classes == 4
    assert torch.allclose(network.logits(X), module(X.reshape(-1, 2, 3, 3)))
    gradients = network.margin_gradients(X, torch.zeros(1500, dtype=torch.int64))
    assert gradients.shape == X.shape
    with pytest.raises(InputError, match="input shape of the module Sequential is not clear"):
        as_network(module)


def test_training_and_loading_change_the_copy_alone(rng):
    network = as_network(nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 1)))
    X = torch.randn(5, 6, generator=rng)
    module = network.module()
    module(X).sum().backward()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += parameter.grad
    trained = network.loaded(module)
    assert torch.equal(trained.logits(X), module(X))
    assert not torch.equal(trained.logits(X), network.logits(X))
    assert type(as_network(module)) is Adapter


@pytest.mark.parametrize("kind", [Adapter, as_network])
def test_a_pair_of_classes_is_a_sign_network(kind, rng):
    module = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)).double()
    network, X = kind(module), torch.randn(8, 6, generator=rng, dtype=torch.float64)
    logits = network.logits(X)
    pair = network.pair(2, 0)
    assert pair.classes == 1
    assert torch.allclose(pair.logits(X), logits[:, 2] - logits[:, 0])
    for bad in ((0, 0), (0, 3), (-1, 0)):
        with pytest.raises(InputError, match="two different classes"):
            network.pair(*bad)
    with pytest.raises(InputError, match="one output"):
        pair.pair(0, 1)


class Viewed(nn.Module):
    """Fails on no rows, as many modules do: nothing tells how long each of them is."""

    def __init__(self, outputs):
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, outputs)

    def forward(self, X):
        return self.last(functional.gelu(self.first(X)).view(X.size(0), -1))


@pytest.mark.parametrize("outputs", [1, 3])
def test_no_rows_have_no_outputs_and_no_gradients(outputs):
    network, none = as_network(Viewed(outputs)), torch.zeros(0, 4)
    y = torch.zeros(0, dtype=torch.int64) if outputs > 1 else torch.zeros(0)
    assert network.logits(none).shape == ((0, 3) if outputs > 1 else (0,))
    assert network.margin_gradients(none, y).shape == (0, 4)
    assert network.margins(none, y).shape == (0,)


@pytest.mark.parametrize("attack", [GradientStep(), MinimumNorm(), PGD(), Ray()], ids=lambda each: each.name)
def test_attacks_where_every_example_is_misclassified(attack):
    """No ray is left to follow then."""
    module, X = Viewed(3), torch.randn(5, 4)
    found = attack.run(module, (X, (module(X).argmax(1) + 1) % 3))
    assert found.success.all()
    assert not found.norms.any()


def test_a_constant_module_has_no_gradient():
    class Constant(nn.Module):
        def forward(self, X):
            return torch.ones(len(X), dtype=X.dtype)

    network = Adapter(Constant(), (3,))
    assert network.dtype == torch.float64
    assert torch.equal(network.margin_gradients(torch.ones(2, 3), torch.ones(2)), torch.zeros(2, 3).double())


class Returns(nn.Module):
    def __init__(self, output):
        super().__init__()
        self.output = output

    def forward(self, X):
        return self.output


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (torch.zeros(()), r"the shape \(\) for 2 rows"),
        (torch.zeros(2, 0), r"the shape \(2, 0\)"),
        (torch.zeros(2, 3, 4), r"the shape \(2, 3, 4\)"),
        (torch.zeros(1, 3), r"the shape \(1, 3\)"),
        (torch.zeros(2, dtype=torch.int64), "a float tensor"),
        ((torch.zeros(2), 1), "returns a tuple"),
    ],
)
def test_outputs_of_another_shape_are_refused(output, words):
    with pytest.raises(InputError, match=words):
        as_network(Returns(output), shape=(3,))


def test_a_module_that_fails_says_why_in_one_line():
    with pytest.raises(InputError, match=r"fails on an input of shape \(2, 4\)") as caught:
        as_network(nn.Sequential(nn.Linear(6, 5), nn.Tanh()), shape=(4,))
    assert "\n" not in str(caught.value)


class OneOfTwo(nn.Module):
    """The probability of the second of two classes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.Linear(8, 2))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.layers(X).softmax(1)[:, 1]


ONE_PROBABILITY = {
    "sigmoid": lambda: nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.Linear(8, 1), nn.Sigmoid()),
    "sigmoid, laid flat": lambda: nn.Sequential(
        nn.Linear(3, 8), nn.GELU(), nn.Linear(8, 1), nn.Sigmoid(), nn.Flatten(0)
    ),
    "one of two": OneOfTwo,
}


@pytest.mark.parametrize("make", ONE_PROBABILITY.values(), ids=ONE_PROBABILITY)
def test_one_probability_of_a_black_box_changes_the_label_at_a_half(make, caplog):
    torch.manual_seed(0)
    module, X = make(), 3 * torch.randn(200, 3)
    network = as_network(module)
    assert isinstance(network, Adapter)
    assert ((network.predict(X) > 0) == (module(X).reshape(-1) > 0.5)).all()
    assert set(network.predict(X).tolist()) == {-1, 1}
    assert "a probability: the label changes at 1/2" in caplog.text
    torch.testing.assert_close(network.module()(X), network.logits(X))  # what is trained
    assert network.loaded(network.module()).probabilities
    assert set(network.inner.state_dict()) == set(module.state_dict())


def test_an_attack_moves_a_saturated_probability():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.Linear(8, 1), nn.Sigmoid()).double()
    with torch.no_grad():
        module[2].weight *= 40
    X = torch.randn(20, 3, dtype=torch.float64)
    y = 2.0 * (module(X).reshape(-1) > 0.5) - 1
    result = MinimumNorm().run(as_network(module), Data(X, y))
    flipped = X + result.perturbations
    assert result.success.all()
    assert ((module(flipped).reshape(-1) > 0.5) != (y > 0)).all()


def test_probabilities_of_several_classes_keep_their_order_and_their_slopes():
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.Linear(8, 3))
    network, X = as_network(nn.Sequential(*layers, nn.Softmax(1))), torch.randn(50, 3)
    differences = layers(X)[:, 0] - layers(X)[:, 2]
    torch.testing.assert_close(network.pair(0, 2).logits(X), differences, rtol=1e-3, atol=1e-4)
    assert (network.predict(X) == layers(X).argmax(1)).all()


def test_a_sign_between_minus_one_and_one_stays_a_sign():
    module = nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.Linear(8, 1), nn.Tanh())
    nn.init.constant_(module[2].bias, 1e6)  # positive wherever one looks
    network = Adapter(module)
    assert not network.probabilities
    assert (network.logits(torch.randn(5, 3)) == 1).all()


@pytest.mark.parametrize("kind", ["chance", "the batch"])
def test_outputs_that_are_no_function_of_one_example_are_said(kind, caplog):
    class Mixes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, X: torch.Tensor) -> torch.Tensor:
            return self.layer(X + torch.randn_like(X) if kind == "chance" else X - X.mean(0))

    as_network(Mixes())
    assert "gives one input different outputs, by chance or by the other inputs of its batch" in caplog.text
