"""Modules that return several things, and modules of whole numbers."""

import collections
import dataclasses
import types
import warnings

import pytest
import torch
from torch import Tensor, nn

from brittle.cli import main
from brittle.common.errors import InputError
from brittle.networks import Adapter, Deep, as_network, load_network, recognise, save_network
from tests.networks.test_faithful_programs import FORMS

Named = collections.namedtuple("Named", ["box", "logits"])


@dataclasses.dataclass
class Found:
    loss: Tensor | None
    scores: Tensor


class Detector(nn.Module):
    """A box and a kind, packed by a function."""

    def __init__(self, pack=lambda box, kind: (box, kind)) -> None:
        super().__init__()
        self.first, self.slope, self.box, self.kind = nn.Linear(2, 6), nn.PReLU(6), nn.Linear(6, 4), nn.Linear(6, 3)
        self.pack = pack

    def logits(self, X: Tensor) -> Tensor:
        return self.kind(self.slope(self.first(X)))

    def forward(self, X: Tensor):
        hidden = self.slope(self.first(X))
        return self.pack(self.box(hidden), self.kind(hidden))


class Pair(Detector):
    def forward(self, X: Tensor):
        hidden = torch.relu(self.first(X))
        return self.box(hidden), self.kind(hidden)


class ByName(Detector):
    def forward(self, X: Tensor):
        hidden = torch.relu(self.first(X))
        return {"box": self.box(hidden), "logits": self.kind(hidden)}


CLEAR = {
    "a dictionary with logits": lambda box, kind: {"box": box, "logits": kind},
    "a named tuple with logits": Named,
    "an object with logits": lambda box, kind: types.SimpleNamespace(box=box, logits=kind),
    "one matrix": lambda box, kind: (kind, box[:, 0], box.argmax(1)),
    "one matrix, twice": lambda box, kind: (kind, kind),
    "a record of one matrix": lambda box, kind: Found(None, kind),
}
CHOSEN = {
    "a place": (lambda box, kind: (box, kind), 1), "a place in words": (lambda box, kind: [box, kind], "1"),
    "a name": (lambda box, kind: {"box": box, "kind": kind}, "kind"),
    "another than the logits": (lambda box, kind: {"logits": box, "kind": kind}, "kind"),
    "a field": (lambda box, kind: Found(box, kind), "scores"), "of a named tuple": (Named, "logits"),
}  # fmt: skip


@pytest.fixture
def X() -> Tensor:
    return torch.randn(7, 2, generator=torch.Generator().manual_seed(1))


def drawn(module):
    torch.manual_seed(0)
    return module


@pytest.mark.parametrize("pack", CLEAR.values(), ids=CLEAR)
def test_the_logits_are_taken_with_a_note(pack, X, notes):
    module = Detector(pack)
    network = as_network(module)
    torch.testing.assert_close(network.logits(X.double()).float(), module.logits(X))
    assert isinstance(network, Deep)
    assert "is taken (else choose one with output=" in notes.text


@pytest.mark.parametrize(("pack", "output"), CHOSEN.values(), ids=CHOSEN)
def test_an_output_is_chosen_by_its_place_or_name(pack, output, X, notes):
    module = Detector(pack)
    torch.testing.assert_close(as_network(module, output=output).logits(X.double()).float(), module.logits(X))
    assert not notes.records


@pytest.mark.parametrize(
    ("pack", "output", "words"),
    [
        (
            lambda box, kind: (box, kind),
            None,
            r"a tuple of '0': \(2, 4\), '1': \(2, 3\); choose one with output=",
        ),
        (lambda box, kind: (box, kind), 2, "output is 2, and the module Detector returns a tuple"),
        (lambda box, kind: {"box": box}, "kind", "output is 'kind', and the module Detector returns a dict"),
        (lambda box, kind: kind, 0, "output is 0, and the module Detector returns a Tensor"),
        (lambda box, kind: "nothing", None, "returns a str; a float tensor of logits is needed"),
    ],
)
def test_what_is_not_clear_is_refused_in_one_line(pack, output, words):
    with pytest.raises(InputError, match=words):
        as_network(Detector(pack), output=output)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("kind", "output"), [(Pair, "1"), (Pair, 1), (ByName, None), (ByName, "logits")])
def test_programs_in_files_have_outputs_too(form, kind, output, X, tmp_path):
    module = drawn(kind)().double().eval()
    if kind is ByName and form != "scripted":
        pytest.skip("the tracer takes no dictionaries, and exported programs forget their keys")
    network = load_network(FORMS[form](_without_pack(module), tmp_path), output=output)
    expected = module(X.double())
    assert torch.allclose(network.logits(X.double()), expected[1] if kind is Pair else expected["logits"], atol=1e-12)
    with pytest.raises(InputError, match="output is 7, and the program returns"):
        load_network(FORMS[form](_without_pack(module), tmp_path), output=7)


def _without_pack(module):
    del module.pack  # TorchScript knows no functions of Python's as attributes
    module.pack = None
    return module


def test_a_black_box_of_one_output_is_saved_as_its_module(X, tmp_path):
    module = nn.Sequential(nn.Linear(2, 2), nn.GELU(), Detector())
    network = as_network(module, output=1)
    assert isinstance(network, Adapter)
    save_network(network, tmp_path / "net.pt")
    again = load_network(tmp_path / "net.pt", module, output=1)
    assert torch.equal(again.logits(X), network.logits(X))


def test_one_output_is_chosen_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    FORMS["traced"](_without_pack(drawn(Pair)().double().eval()), tmp_path)
    data = tmp_path / "data.csv"
    data.write_text("a,b,kind\n" + "".join(f"{n},{n / 7},{n % 3}\n" for n in range(9)))
    assert main(["certify", "net.pt", "--data", "data.csv"]) == 2
    assert "returns '0', '1'; choose one with output=NAME or output=PLACE" in capsys.readouterr().err
    assert main(["certify", "net.pt", "--data", "data.csv", "--output", "1"]) == 0


def quantised(kind: str) -> nn.Module:
    module = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1)).eval()
    with warnings.catch_warnings(action="ignore"):
        if kind == "dynamic":
            return torch.ao.quantization.quantize_dynamic(module, {nn.Linear})
        wrapped = nn.Sequential(torch.ao.quantization.QuantStub(), module, torch.ao.quantization.DeQuantStub()).eval()
        wrapped.qconfig = torch.ao.quantization.get_default_qconfig(torch.backends.quantized.engine)
        prepared = torch.ao.quantization.prepare(wrapped)
        prepared(torch.randn(9, 2))
        return torch.ao.quantization.convert(prepared)


@pytest.mark.filterwarnings("ignore")  # PyTorch's own, of its old quantisation
@pytest.mark.parametrize("kind", ["dynamic", "static"])
def test_a_quantised_module_is_refused_in_one_line(kind):
    module = quantised(kind)
    for shape in ((), (2,)):
        with pytest.raises(InputError, match=r"the module Sequential is quantised: .* pass the module of floats"):
            recognise(module, shape)


@pytest.mark.filterwarnings("ignore")
def test_the_state_of_a_quantised_module_is_refused_in_one_line(tmp_path):
    torch.save(quantised("dynamic").state_dict(), tmp_path / "net.pt")
    with pytest.raises(InputError, match=r"of a quantised module \(save the module of floats"):
        load_network(tmp_path / "net.pt")
