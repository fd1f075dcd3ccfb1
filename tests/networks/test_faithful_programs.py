"""A program that is read computes what PyTorch computes with it; where that is not certain it is refused."""

import warnings

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from brittle.common.errors import InputError
from brittle.networks import load_network
from brittle.networks.graph import Builder, GraphValue
from brittle.networks.output_layers import without_ending
from tests.networks.test_programs import save_exported, save_script


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(2, 8), nn.Linear(8, 1)
        self.share, self.low = 2.7, -0.5

    def net(self, X: Tensor) -> Tensor:
        return self.last(torch.relu(self.first(X)))


class Negated(Base):
    def forward(self, X: Tensor) -> Tensor:
        output = self.net(X)
        output.mul_(-1.0)
        return output


class NegatedTwice(Base):
    def forward(self, X: Tensor) -> Tensor:
        output = self.net(X)
        output.mul_(-1.0)
        output.sub_(0.5)
        return output * 2.0


class ShiftedByAView(Base):
    def forward(self, X: Tensor) -> Tensor:
        output = self.net(X)
        view = output.view(-1, 1)
        view.sub_(3.0)
        return output


class ViewOfWhatChanged(Base):
    def forward(self, X: Tensor) -> Tensor:
        output = self.net(X)
        view = output.view(-1, 1)
        output.sub_(3.0)
        return view


class HiddenLayerChanged(Base):
    def forward(self, X: Tensor) -> Tensor:
        hidden = self.first(X)
        view = hidden.view(-1, 8)
        view.neg_()
        return self.last(torch.relu(hidden))


class InputChanged(Base):
    def forward(self, X: Tensor) -> Tensor:
        X.mul_(2.0)
        return self.net(X)


class OneStorage(Base):
    def __init__(self) -> None:
        super().__init__()
        both = torch.ones(8, dtype=torch.float64)
        self.register_buffer("lower", both)
        self.register_buffer("upper", both.view(8))

    def forward(self, X: Tensor) -> Tensor:
        self.lower.clamp_(-3.0, -1.0)
        return self.last(torch.relu(self.first(X)) * self.upper)


class CutOff(Base):
    def forward(self, X: Tensor) -> Tensor:
        return self.net(X) - int(self.share)


class CutOffToZero(Base):
    def forward(self, X: Tensor) -> Tensor:
        return self.net(X) * int(self.low) + X[:, :1]


class CutOffData(Base):
    def forward(self, X: Tensor) -> Tensor:
        return self.net(X) - int(X.sum(1)[0])


class SumOfWholeNumbers(Base):
    def forward(self, X: Tensor) -> Tensor:
        return self.net(X) + torch.sum(X, [1], True, dtype=torch.int64) * 1.0


class SumInDouble(Base):
    def forward(self, X: Tensor) -> Tensor:
        return self.net(X) + torch.sum(X, [1], True, dtype=torch.float64)


class HalfSoftmax(Base):
    def forward(self, X: Tensor) -> Tensor:
        return self.net(X) + torch.softmax(X, 1, dtype=torch.bfloat16).sum(1, True)


class Rounded(Base):
    def forward(self, X: Tensor) -> Tensor:
        return torch.div(self.net(X), 0.5, rounding_mode="floor")


class TimesTheBatch(Base):
    def forward(self, X: Tensor) -> Tensor:
        return self.net(X) * X.size(0)


class CutAtTheBatch(Base):
    def forward(self, X: Tensor) -> Tensor:
        return self.net(X) + X[:, : X.size(0)].sum(1, True)


class ShapedByTheBatch(Base):
    def forward(self, X: Tensor) -> Tensor:
        return self.net(X.view(X.size(0), X.size(1)))


class HalfConstants(Base):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("large", torch.full((1,), 300.0))

    def forward(self, X: Tensor) -> Tensor:
        return self.net(X) + self.large * self.large


class AlwaysDropping(Base):
    def forward(self, X: Tensor) -> Tensor:
        return self.last(functional.dropout(torch.relu(self.first(X)), 0.5, training=True))


class DroppingInTraining(Base):
    def forward(self, X: Tensor) -> Tensor:
        return self.last(functional.dropout(torch.relu(self.first(X)), 0.5, training=self.training))


def save_traced(module, path):
    with warnings.catch_warnings(action="ignore"):
        torch.jit.trace(module, torch.randn(3, 2, dtype=torch.float64)).save(str(path))
    return path


FORMS = {
    "scripted": lambda module, folder: save_script(module, folder / "net.pt"),
    "traced": lambda module, folder: save_traced(module, folder / "net.pt"),
    "exported": lambda module, folder: save_exported(module, folder / "net.pt2", 2),
}
FOLLOWED = [
    (Negated, "scripted"), (Negated, "traced"), (Negated, "exported"), (NegatedTwice, "scripted"),
    (InputChanged, "scripted"), (CutOff, "scripted"), (CutOffToZero, "scripted"), (SumInDouble, "scripted"),
    (SumInDouble, "exported"), (ShapedByTheBatch, "scripted"), (ShapedByTheBatch, "traced"),
    (ShapedByTheBatch, "exported"),
]  # fmt: skip
REFUSED = {
    (ShiftedByAView, "scripted"): "overwritten in place", (ShiftedByAView, "traced"): "overwritten in place",
    (ShiftedByAView, "exported"): "overwritten in place", (ViewOfWhatChanged, "scripted"): "overwritten in place",
    (HiddenLayerChanged, "scripted"): "overwritten in place", (HiddenLayerChanged, "traced"): "overwritten in place",
    (OneStorage, "scripted"): "overwrites one of its own constants", (CutOffData, "scripted"): "is not read",
    (SumOfWholeNumbers, "scripted"): "dtype=4", (SumOfWholeNumbers, "exported"): "dtype=torch.int64",
    (HalfSoftmax, "scripted"): "dtype=15", (HalfSoftmax, "exported"): "dtype=torch.bfloat16",
    (TimesTheBatch, "scripted"): "depends on the number of examples", (TimesTheBatch, "traced"): "number of examples",
    (TimesTheBatch, "exported"): "number of examples", (CutAtTheBatch, "scripted"): "depends on the number of examples",
    (Rounded, "scripted"): "rounding_mode", (Rounded, "exported"): "rounding_mode",
}  # fmt: skip


def saved(kind, form, folder):
    torch.manual_seed(0)
    module = kind().double().eval()
    return module, FORMS[form](module, folder)


@pytest.mark.parametrize(("kind", "form"), FOLLOWED)
def test_a_program_is_read_as_what_it_computes(kind, form, tmp_path):
    module, path = saved(kind, form, tmp_path)
    X = torch.randn(9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(load_network(path, shape=(2,)).logits(X), module(X.clone()).reshape(-1), rtol=0, atol=1e-13)


@pytest.mark.parametrize(("case", "words"), REFUSED.items())
def test_a_program_that_cannot_be_followed_is_refused(case, words, tmp_path):
    with pytest.raises(InputError, match=words):
        load_network(saved(*case, tmp_path)[1], shape=(2,))


@pytest.mark.parametrize("form", ["scripted", "exported"])
def test_constants_of_short_floats_are_not_computed_in_longer_ones(form, tmp_path):
    """In float16 the square of 300 is infinite."""
    module = HalfConstants().double().eval()
    module.large = module.large.half()
    with pytest.raises(InputError, match=r"computes with constants in torch.float16"):
        load_network(FORMS[form](module, tmp_path))


def test_one_of_the_probabilities_over_all_numbers_is_no_logit():
    """The sign of a logit is not whether its probability is more than that of the others."""
    builder = Builder("net", "x", {})
    probabilities = builder.add("softmax_rows", GraphValue("x"))
    assert without_ending(builder.finished(probabilities.name))[1] == "Softmax"
    one = builder.add("slice", probabilities, 1, 1, 2)
    assert without_ending(builder.finished(one.name))[1] == ""


@pytest.mark.parametrize("form", ["scripted", "exported"])
def test_dropout_that_is_always_on_is_left_out_with_a_note(form, tmp_path, notes):
    module, path = saved(DroppingInTraining, form, tmp_path)
    X = torch.randn(9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(load_network(path).logits(X), module(X).reshape(-1), rtol=0, atol=1e-13)
    assert "dropout" not in notes.text
    again = saved(AlwaysDropping, form, tmp_path)[1]
    assert torch.allclose(load_network(again).logits(X), module(X).reshape(-1), rtol=0, atol=1e-13)
    assert "applies dropout in evaluation too" in notes.text
