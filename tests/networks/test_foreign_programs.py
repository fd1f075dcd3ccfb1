"""Programs of strangers: rebuilt exactly from known operations, never run, and refused by name where they do more."""

import json
import warnings
import zipfile

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from brittle.common.errors import InputError
from brittle.common.torch_files import write_safetensors
from brittle.networks import Adapter, Deep, Folded, TwoLayer, load_network, save_network
from tests.networks.test_programs import _rewritten, save_exported, save_script


class Residual(nn.Module):
    """Branches, operations in place, and a shape that is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 1, 3, padding=1), nn.BatchNorm2d(1)
        self.pool, self.last = nn.AvgPool2d(2), nn.Linear(4, 3)

    def forward(self, X: Tensor) -> Tensor:
        hidden = functional.relu(self.norm(self.conv(X)), inplace=True)
        hidden += X
        pooled = self.pool(2 * hidden - 0.5)
        return self.last(pooled.view(pooled.size(0), -1))


class OneAxis(nn.Module):
    """Padded, cut and pooled."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.last = nn.Conv1d(2, 3, 3), nn.Linear(3, 3)
        self.average, self.largest = nn.AvgPool1d(2, padding=1), nn.MaxPool1d(3, stride=2, padding=1)

    def forward(self, X: Tensor) -> Tensor:
        hidden = nn.functional.pad(self.conv(X)[:, 1:, 1:6], (1, 2), value=0.7)
        hidden = self.largest(self.average(nn.functional.pad(hidden, (-1, 2))).relu())
        return hidden.flatten(1)[:, 1::2] @ self.last.weight.T


class Padded(nn.Module):
    """Sides and ways of a padding that is refused."""

    def __init__(self, sides: list[int], mode: str) -> None:
        super().__init__()
        self.sides, self.mode = sides, mode

    def forward(self, X: Tensor) -> Tensor:
        return nn.functional.pad(X, self.sides, self.mode).flatten(1)


class Overwriting(nn.Module):
    """What is overwritten is used again."""

    def forward(self, X: Tensor) -> Tensor:
        hidden = X + 1
        return torch.relu_(hidden.view(-1, 16)) + hidden.view(-1, 16)


def pictures(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 2, 3), *layers)


def rows(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(5, 4), *layers)


FLAT = (nn.Flatten(), nn.Linear(16, 4), nn.ReLU(), nn.Dropout(), nn.Linear(4, 1))
POOLED = (nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 3))
MODULES = {
    "classes": (rows(nn.ReLU(inplace=True), nn.Linear(4, 3)), (5,), Deep),
    "three layers": (rows(nn.ReLU(), nn.Linear(4, 4, bias=False), nn.ReLU(), nn.Linear(4, 1)), (5,), Deep),
    "flattened": (nn.Sequential(*FLAT), (16,), TwoLayer),
    "pictures as rows": (nn.Sequential(*FLAT), (1, 4, 4), TwoLayer),
    "tanh": (rows(nn.Tanh(), nn.Linear(4, 2), nn.Softmax(1)), (5,), Adapter),
    "normalised": (rows(nn.BatchNorm1d(4), nn.LeakyReLU(0.2), nn.Linear(4, 1)), (5,), Folded),
    "pooled": (pictures(*POOLED), (1, 4, 4), Folded),
    "averaged": (pictures(nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Sigmoid()), (1, 4, 4), Folded),
    "residual": (Residual(), (1, 4, 4), Folded),
    "one axis": (OneAxis(), (2, 9), Folded),
}


def save_traced(module, path, *shape):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(module, torch.randn(2, *shape, dtype=torch.float64)).save(str(path))
    return path


def save_frozen(module, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.freeze(torch.jit.script(module)).save(str(path))
    return path


FORMS = {
    "scripted": lambda module, folder, shape: save_script(module, folder / "net.pt"),
    "traced": lambda module, folder, shape: save_traced(module, folder / "net.pt", *shape),
    "frozen": lambda module, folder, shape: save_frozen(module, folder / "net.pt"),
    "exported": lambda module, folder, shape: save_exported(module, folder / "net.pt2", *shape),
}


def up_to_logits(module):
    """Without the probabilities at its end."""
    ends = isinstance(module, nn.Sequential) and isinstance(module[-1], nn.Softmax | nn.Sigmoid)
    return module[:-1] if ends else module


@pytest.mark.parametrize("form", ["traced", "exported"])
@pytest.mark.parametrize(
    ("sides", "mode", "words"),
    [([1, 1], "reflect", "'reflect', not constant"), ([0, 0, 0, 0, 1, -1], "constant", "mixes the examples")],
)
def test_another_padding_is_refused(form, sides, mode, words, tmp_path):
    path = FORMS[form](Padded(sides, mode).double(), tmp_path, (2, 6))
    with pytest.raises(InputError, match=words):
        load_network(path, shape=(2, 6))


def test_an_enormous_padding_is_refused_before_it_is_made(tmp_path):
    path = save_exported(Padded([0, 2**26], "constant").double(), tmp_path / "net.pt2", 2, 6)
    with pytest.raises(InputError, match="'pad' makes the network too large"):
        load_network(path, shape=(2, 6))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("module", "shape", "kind"), MODULES.values(), ids=MODULES)
def test_a_module_is_rebuilt_as_it_was(form, module, shape, kind, tmp_path):
    torch.manual_seed(0)
    module = module.double().eval()
    network = load_network(FORMS[form](module, tmp_path, shape), shape=shape)
    X = torch.randn(7, network.dim, dtype=torch.float64)
    expected = up_to_logits(module)(X.reshape(7, *shape)).reshape(network.logits(X).shape)
    assert type(network) is kind
    assert torch.allclose(network.logits(X), expected, rtol=0, atol=1e-13)


def test_an_exported_program_knows_the_shape_of_its_input(tmp_path):
    module = MODULES["pooled"][0].double().eval()
    assert load_network(save_exported(module, tmp_path / "net.pt2", 1, 4, 4)).image == (1, 4, 4)


def test_a_batch_of_fixed_size_does_not_matter(tmp_path):
    module = MODULES["residual"][0].double().eval()
    with warnings.catch_warnings(action="ignore"):
        program = torch.export.export(module, (torch.randn(3, 1, 4, 4, dtype=torch.float64),))
        torch.export.save(program, tmp_path / "net.pt2")
    X = torch.randn(5, 16, dtype=torch.float64)
    expected = module(X.reshape(5, 1, 4, 4))
    assert torch.allclose(load_network(tmp_path / "net.pt2").logits(X), expected, rtol=0, atol=1e-13)


def test_what_is_used_after_it_was_overwritten_is_refused(tmp_path):
    with pytest.raises(InputError, match="overwritten in place"):
        load_network(save_script(Overwriting().double(), tmp_path / "net.pt"), shape=(1, 4, 4))


@pytest.mark.parametrize("suffix", [".pt2", ".pt"])
def test_the_expressions_of_an_exported_program_are_never_evaluated(suffix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = save_exported(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).double(), tmp_path / "net.pt2", 2)

    def poisoned(name, content):
        if not name.endswith("models/model.json"):
            return content
        command = "__import__('os').system('touch harmed')"

        def poison(part):
            if isinstance(part, dict):
                return {key: command if key == "expr_str" else poison(value) for key, value in part.items()}
            return [poison(each) for each in part] if isinstance(part, list) else part

        model = poison(json.loads(content))
        model["guards_code"] = [command]
        model["range_constraints"] = {command: {"min_val": 0, "max_val": None}}
        return json.dumps(model).encode()

    network = load_network(_rewritten(source, tmp_path / f"bad{suffix}", poisoned))
    assert isinstance(network, TwoLayer)
    assert not (tmp_path / "harmed").exists()


def retargeted(folder, target):
    source = save_exported(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).double(), folder / "net.pt2", 2)
    return _rewritten(
        source, folder / "bad.pt2", lambda name, content: content.replace(b"torch.ops.aten.relu.default", target)
    )


@pytest.mark.parametrize(
    ("target", "word"),
    [(b"torch.ops.aten.sin.default", "'sin'"), (b"torch.ops.aten.from_file.default", "'from_file'"),
     (b"os.system", "'os.system'"), (b"torch.ops.own.relu.default", "'own.relu.default'"), (b"", "''")],
)  # fmt: skip
def test_another_operation_of_an_exported_program_is_refused_by_name(target, word, tmp_path):
    with pytest.raises(InputError, match=r"is not read; save module\.state_dict") as caught:
        load_network(retargeted(tmp_path, target))
    assert word in str(caught.value)


class Writes(nn.Module):
    def forward(self, X: Tensor) -> Tensor:
        return X + torch.from_file("harmed", True, 16).fill_(65).sum()


class Hangs(nn.Module):
    def forward(self, X: Tensor) -> Tensor:
        i = 1
        while i >= 0:
            i = i * 2 % 7
        return X


class Swallows(nn.Module):
    def forward(self, X: Tensor) -> Tensor:
        return X + torch.ones(1200000000).sum()


class Chooses(nn.Module):
    def forward(self, X: Tensor) -> Tensor:
        if bool(X.sum() > 0):
            return X
        return -X


class Counts(nn.Module):
    def forward(self, X: Tensor) -> Tensor:
        for _ in range(1000000000):
            X = X + 1
        return X


HARMFUL = {
    Writes: "the operation 'from_file'", Hangs: "of the kind While", Swallows: "the operation 'ones'",
    Chooses: "is not read", Counts: "of the kind For",
}  # fmt: skip


@pytest.mark.parametrize(("module", "words"), HARMFUL.items(), ids=[each.__name__ for each in HARMFUL])
def test_a_script_that_writes_hangs_or_swallows_memory_is_refused_unrun(module, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=words) as caught:
        load_network(save_script(module(), tmp_path / "net.pt"), shape=(16,))
    assert "state_dict" in str(caught.value)
    assert not (tmp_path / "harmed").exists()


class Loaded(nn.Module):
    """TorchScript runs `__setstate__` as soon as a file is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 1)

    @torch.jit.export
    def __getstate__(self) -> int:
        return 16

    @torch.jit.export
    def __setstate__(self, size: int) -> None:
        torch.from_file("harmed", True, size).fill_(65)
        self.training = False

    def forward(self, X: Tensor) -> Tensor:
        return self.linear(X)


def test_a_script_does_nothing_when_it_is_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"net\.pt: "):
        load_network(save_script(Loaded(), tmp_path / "net.pt"))
    assert not (tmp_path / "harmed").exists()


def rewritten_code(folder, forward):
    """A scripted linear layer whose code is another."""
    source = save_script(nn.Linear(2, 1), folder / "net.pt")

    def change(name, content):
        code = f"class Linear(Module):\n  def forward(self, x: Tensor) -> Tensor:\n{forward}\n"
        return code.encode() if name.endswith(".py") else content

    return _rewritten(source, folder / "bad.pt", change)


BAD_CODE = {
    "itself": ("    return (self).forward(x, )", "nested too deeply"),
    "itself twice": ("    y = (self).forward(x, )\n    return (self).forward(y, )", "nested too deeply"),
    "nested": (f"    return {'torch.relu(' * 5000}x{')' * 5000}", r"bad\.pt: "),
    "brackets": (f"    return {'[' * 15000}", r"bad\.pt: "),
    "signs": (f"    return {'-' * 15000}1", r"bad\.pt: "),
    "dots": (f"    return x{'.a' * 9000}", r"bad\.pt: "),
    "long integer": (f"    return {'9' * 10000}", r"bad\.pt: "),
    "long line": (f"    return {' ' * 30000}x", "more than 20000 characters"),
    "python": ("    return __import__('os').system('touch harmed')", r"bad\.pt: "),
    "lambda": ("    return (lambda: x)()", r"bad\.pt: "),
    "comprehension": ("    return [x for i in range(10)]", "ListComp"),
    "powers": ("".join("    x = torch.mul(9, 9)\n" for _ in range(3)) + "    return x", "does not return one tensor"),
    "growing numbers": ("    a = 9\n" + "    a = torch.mul(a, a)\n" * 60 + "    return a", "64 bits"),
    "no file": ("    return self.nothing", "has no 'nothing'"),
    "no function": ("    return __torch__.nothing(x, )", "is missing"),
    "no constant": ("    return torch.add(x, CONSTANTS.c5)", "'c5' is missing"),
    "nonsense": ("    return \0\1", r"bad\.pt: "),
    "too many steps": ("    x = torch.relu(x)\n" * 10050 + "    return x", "10000 operations"),
}  # fmt: skip


@pytest.mark.parametrize(("forward", "words"), BAD_CODE.values(), ids=BAD_CODE)
def test_code_that_is_odd_is_refused_in_one_line(forward, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=words) as caught:
        load_network(rewritten_code(tmp_path, forward))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "harmed").exists()


def test_functions_that_call_each_other_twice_end(tmp_path):
    functions = "".join(
        f"def f{n}(x: Tensor) -> Tensor:\n  y = __torch__.f{n + 1}(x, )\n  return __torch__.f{n + 1}(y, )\n"
        for n in range(60)
    )
    source = rewritten_code(tmp_path, "    return __torch__.f0(x, )")
    with zipfile.ZipFile(source, "a") as archive:
        stem = archive.namelist()[0].partition("/")[0]
        archive.writestr(f"{stem}/code/__torch__.py", functions + "def f60(x: Tensor) -> Tensor:\n  return x\n")
    with pytest.raises(InputError, match="statements to follow"):
        load_network(source)


FOLDED = [name for name, (_, _, kind) in MODULES.items() if kind is Folded]


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize("name", FOLDED)
def test_a_folded_network_comes_back_as_one_that_can_be_trained(name, suffix, tmp_path):
    module, shape, _ = MODULES[name]
    network = load_network(FORMS["traced"](module.double().eval(), tmp_path, shape), shape=shape)
    moved = network.module()
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.mul_(1.1)
    trained = network.loaded(moved)
    save_network(trained, tmp_path / f"kept{suffix}")
    back = load_network(tmp_path / f"kept{suffix}")
    X = torch.randn(7, network.dim, dtype=torch.float64)
    assert isinstance(back, Folded)
    assert (back.start is None) == (trained.start is None)
    torch.testing.assert_close(back.logits(X), trained.logits(X), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(back.module()(X), trained.logits(X), rtol=1e-9, atol=1e-9)


WRONG_GRAPHS = {
    "not even JSON": "{",
    "a list": "[]",
    "nothing": "{}",
    "nested": "[" * 100_000,
    "no such constant": '{"input": "x", "output": "x", "image": [5], "steps": [], "constants": ["a"] }',
    "no such operation": '{"input": "x", "output": "y", "image": [5], "steps": [["eval", {}, "y"]], "constants": []}',
    "no such value": '{"input": "x", "output": "y", "image": [5], "constants": [],'
    ' "steps": [["relu", {"self": {"value": "z"}}, "y"]]}',
    "a word for a step": '{"input": "x", "output": "y", "image": [5], "steps": ["relu"], "constants": []}',
    "an enormous image": '{"input": "x", "output": "y", "image": [1000000000000], "constants": [],'
    ' "steps": [["relu", {"self": {"value": "x"}}, "y"]]}',
}


@pytest.mark.parametrize("text", WRONG_GRAPHS.values(), ids=WRONG_GRAPHS)
def test_a_wrong_graph_in_a_file_is_refused_in_one_line(text, tmp_path):
    path = tmp_path / "net.safetensors"
    write_safetensors(path, {"b": torch.zeros(1)}, {"brittle_network": "folded", "brittle_graph": text})
    with pytest.raises(InputError) as refusal:
        load_network(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)
