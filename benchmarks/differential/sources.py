"""Random PyTorch modules as source text. Lines that run on a batch of zeros are kept: shapes need no formulas."""

import itertools
import linecache
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROWS = 2  # of the batch on which a line is tried
LARGEST = 150  # numbers of one example
HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n\n\n"
PLAIN: dict[str, float] = {}
_names = itertools.count()


@dataclass(frozen=True)
class Source:
    """A generated module.

    Attributes:
        text: The source of its class `Net`.
        core: The same without the step that makes probabilities of the logits; the text itself where there is none.
        shape: The shape of one input.
        dtype: The float type of its numbers.
        kinds: The operations in it.
        style: How its numbers are drawn.
    """

    text: str
    core: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    kinds: tuple[str, ...]
    style: str

    def module(self, seed: int, core: bool = False) -> nn.Module:
        """The module with numbers that follow from the seed, in evaluation mode."""
        text = self.core if core else self.text
        name = f"<generated module {next(_names)}>"  # TorchScript looks the lines up again
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        space: dict[str, Any] = {"__name__": "generated"}
        exec(compile(text, name, "exec"), space)
        module: nn.Module = space["Net"]()
        module = module.to(self.dtype).eval()
        _fill(module, np.random.default_rng(seed), self.style)
        return module


def _fill(module: nn.Module, rng: np.random.Generator, style: str) -> None:
    for name, value in (*module.named_parameters(), *module.named_buffers()):
        if not value.is_floating_point():
            continue
        drawn = rng.normal(size=tuple(value.shape))
        if style == "whole numbers":
            drawn = rng.integers(-2, 3, size=tuple(value.shape)).astype(np.float64)
        elif style == "few":
            drawn = drawn * (rng.random(size=tuple(value.shape)) < 0.5)
        if name.endswith("running_var"):
            drawn = np.abs(drawn) + 0.5
        if value.ndim > 1 and style != "whole numbers":
            drawn = drawn / np.sqrt(max(1, drawn[0].size) / 2)
        with torch.no_grad():
            value.copy_(torch.from_numpy(np.asarray(drawn)))


@dataclass
class Writer:
    """Writes `__init__` and `forward` line by line; `values` are the shapes of one example's values by name."""

    rng: np.random.Generator
    shape: tuple[int, ...]
    members: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    values: dict[str, tuple[int, ...]] = field(default_factory=dict)
    current: str = "x"
    _proposed: dict[str, str] = field(default_factory=dict)  # lines by the member that they make
    _count: int = 0

    def __post_init__(self) -> None:
        self._module = nn.Module()
        self._space: dict[str, Any] = {"self": self._module, "x": torch.zeros(ROWS, *self.shape)}
        self._globals = {"torch": torch, "nn": nn, "F": F, "Tensor": Tensor}
        self.values["x"] = self.shape

    # What templates draw.

    @property
    def now(self) -> tuple[int, ...]:
        return self.values[self.current]

    def whole(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def flag(self, chance: float = 0.5) -> bool:
        return bool(self.rng.random() < chance)

    def one(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def number(self, low: float = -2, high: float = 2) -> float:
        value = float(np.round(self.rng.uniform(low, high), 2))
        return value if value else 0.5

    def member(self, made: str) -> str:
        """A module, parameter or number of the module's own."""
        self._count += 1
        name = f"m{self._count}"
        self._proposed[f"self.{name}"] = f"self.{name} = {made}"
        return f"self.{name}"

    def buffer(self, *shape: int) -> str:
        self._count += 1
        name = f"b{self._count}"
        self._proposed[f"self.{name}"] = f'self.register_buffer("{name}", torch.zeros({shape}))'
        return f"self.{name}"

    def fresh(self) -> str:
        self._count += 1
        return f"h{self._count}"

    def alike(self) -> str:
        """A value of the current one's shape, often the current one itself."""
        return str(self.one(*(name for name, shape in self.values.items() if shape == self.now)))

    # What is kept of them.

    def step(self, kind: str, template: "Template") -> bool:
        """Try a template's lines on zeros and keep them if they run and keep the examples apart by their shape."""
        self._proposed = {}
        name = self.fresh()
        space = dict(self._space)
        try:
            text = template(self, self.current).replace("$", name)
            words = set(re.findall(r"self\.\w+", text))  # a template makes the members of all of its choices
            members = [line for name, line in self._proposed.items() if name in words]
            with torch.no_grad():
                for line in members:
                    exec(line, self._globals, space)
                self._module.eval()
                exec(text, self._globals, space)
            value = space.get(name, space[self.current])
            fits = value.is_floating_point() and value.shape[:1] == (ROWS,) and 0 < value[0].numel() <= LARGEST
        except Exception:  # of the arguments that were drawn, not all go together
            return False
        if not fits or value.ndim > 4:
            return False
        self.current = name if name in space else self.current
        self._space = space
        self.values[self.current] = tuple(value.shape[1:])
        self.members += members
        self.lines += text.split("\n")
        self.kinds.append(kind)
        return True

    def text(self, last: str = "") -> str:
        members = "".join(f"        {line}\n" for line in ["super().__init__()", *self.members])
        lines = "".join(
            f"        {line}\n" for line in [*self.lines, *([last] if last else []), f"return {self.current}"]
        )
        return f"{HEAD}class Net(nn.Module):\n    def __init__(self):\n{members}\n    def forward(self, x):\n{lines}"


Template = Callable[[Writer, str], str]


def _conv(axes: int) -> Template:
    def write(w: Writer, h: str) -> str:
        channels = w.now[0]
        groups = w.one(1, 1, 1, channels, 2 if channels % 2 == 0 else 1)
        outputs = groups * w.whole(1, 3)
        kernel = tuple(w.whole(1, 3) for _ in range(axes))
        padding = w.one(0, 0, 1, tuple(w.whole(0, 2) for _ in range(axes)), "same", "valid")
        stride = 1 if isinstance(padding, str) else tuple(w.whole(1, 2) for _ in range(axes))
        mode = w.one(*["zeros"] * 20, "reflect", "circular", "replicate")
        options = f"stride={stride}, padding={padding!r}, dilation={w.whole(1, 2)}, groups={groups}, bias={w.flag()}"
        return (
            f"$ = {w.member(f'nn.Conv{axes}d({channels}, {outputs}, {kernel}, {options}, padding_mode={mode!r})')}({h})"
        )

    return write


def _pool(kind: str, axes: int) -> Template:
    def write(w: Writer, h: str) -> str:
        kernel = tuple(w.whole(1, 3) for _ in range(axes))
        options = f"stride={w.one(None, tuple(w.whole(1, 3) for _ in range(axes)))}, padding={w.one(0, 0, 1)}"
        options += f", ceil_mode={w.flag()}"
        if kind == "max":
            options += f", dilation={w.one(1, 1, 2)}"
        else:
            options += f", count_include_pad={w.flag()}"
            if axes == 2 and w.flag(0.3):
                options += f", divisor_override={w.whole(1, 5)}"
        if w.flag():
            return f"$ = {w.member(f'nn.{kind.title()}Pool{axes}d({kernel}, {options})')}({h})"
        return f"$ = F.{kind}_pool{axes}d({h}, {kernel}, {options})"

    return write


def _adaptive(kind: str, axes: int) -> Template:
    return lambda w, h: f"$ = F.adaptive_{kind}_pool{axes}d({h}, {tuple(w.whole(1, 3) for _ in range(axes))})"


def _norm(w: Writer, h: str) -> str:
    axes, channels = len(w.now), w.now[0]
    eps, own = w.one(1e-5, 1e-3, 0.1), f"affine={w.flag(0.7)}"
    way = w.rng.random()
    if way < 0.85 or axes == 1:
        by_batch = "" if way < 0.97 else ", track_running_stats=False"
        return f"$ = {w.member(f'nn.BatchNorm{max(1, axes - 1)}d({channels}, eps={eps}, {own}{by_batch})')}({h})"
    if way < 0.95:
        options = f"{channels}, eps={eps}, {own}, track_running_stats={w.flag(0.8)}"
        return f"$ = {w.member(f'nn.InstanceNorm{axes - 1}d({options})')}({h})"
    return f"$ = {w.member(f'nn.GroupNorm(1, {channels}, {own})')}({h})"


def _again(w: Writer, h: str) -> str:
    """A layer that was used before: its weights are shared."""
    layers = [line.split(" = ")[0] for line in w.members if " = nn." in line and "List" not in line]
    return f"$ = {w.one(*layers)}({h})"


def _dim(w: Writer) -> int:
    """An axis of the current value, from either side, and never that of the examples."""
    axis = w.whole(1, len(w.now))
    return axis if w.flag() else axis - len(w.now) - 1


def _sliced(w: Writer, h: str) -> str:
    axis = w.whole(1, len(w.now))
    length = w.now[axis - 1]
    start, end = sorted(w.rng.integers(-length, length + 1, size=2).tolist())
    places = [":"] * axis + [w.one(f"{start}:{end}", f"{start}:", f":{end}", f"::{w.whole(1, 2)}", f"{start}:{end}:2")]
    return f"$ = {h}[{', '.join(places)}]"


def _reshaped(w: Writer, h: str) -> str:
    count = int(np.prod(w.now))
    divisors = [each for each in range(1, count + 1) if count % each == 0]
    first = w.one(*divisors)
    shape = w.one(f"{first}, {count // first}", f"{first}, -1", f"-1, {first}", f"{count}")
    rows = w.one("-1", f"{h}.size(0)", f"{h}.shape[0]") if "-1" not in shape else w.one(f"{h}.size(0)", f"{h}.shape[0]")
    call = w.one("view", "reshape")
    return str(w.one(f"$ = {h}.{call}({rows}, {shape})", f"$ = torch.reshape({h}, ({rows}, {shape}))"))


def _permuted(w: Writer, h: str) -> str:
    axes = [0, *(1 + w.rng.permutation(len(w.now))).tolist()]
    return str(w.one(f"$ = {h}.permute({', '.join(map(str, axes))})", f"$ = {h}.transpose({_dim(w)}, {_dim(w)})"))


def _reduced(w: Writer, h: str) -> str:
    call = w.one("sum", "mean", "amax", "max")
    if call == "max":
        return f"$ = {h}.max({_dim(w)}, keepdim={w.flag()})[0]"
    axes = w.one(f"{_dim(w)}", f"({_dim(w)},)", f"{tuple(range(1, len(w.now) + 1))}")
    return str(w.one(f"$ = {h}.{call}({axes}, keepdim={w.flag()})", f"$ = torch.{call}({h}, {axes})"))


def _padded(w: Writer, h: str) -> str:
    axes = w.whole(1, len(w.now))
    sides = tuple(w.one(-1, 0, 1, 1, 2) for _ in range(2 * axes))
    value = f"value={w.number()}"
    mode = w.one(*["", f", {value}", f", mode='constant', {value}"] * 4, ", mode='reflect'", ", mode='replicate'")
    return f"$ = F.pad({h}, {sides}{mode})"


def _joined(w: Writer, h: str) -> str:
    other = w.alike()
    axis = _dim(w)
    return str(
        w.one(
            f"$ = torch.cat([{h}, {other}], {axis})", f"$ = torch.stack([{other}, {h}], {w.whole(1, len(w.now) + 1)})"
        )
    )


def _with_other(w: Writer, h: str) -> str:
    other = w.alike()
    return str(w.one(
        f"$ = {h} + {other}", f"$ = {h} - {other}", f"$ = torch.add({h}, {other}, alpha={w.number()})",
        f"$ = torch.sub({other}, {h}, alpha={w.number()})", f"$ = torch.maximum({h}, {other})",
        f"$ = torch.minimum({h}, {other})", f"$ = torch.rsub({h}, {other}, alpha={w.number()})",
    ))  # fmt: skip


def _with_number(w: Writer, h: str) -> str:
    k = w.one(w.number(), w.number(), w.whole(1, 5))
    return str(w.one(
        f"$ = {h} * {k}", f"$ = {h} + {k}", f"$ = {k} - {h}", f"$ = {h} / {k}", f"$ = -{h}", f"$ = {h}.sub({k})",
        f"$ = torch.rsub({h}, {k})", f"$ = torch.add({h}, {k}, alpha=2)", f"$ = {h}.neg()", f"$ = {h}.mul({k})",
    ))  # fmt: skip


def _with_buffer(w: Writer, h: str) -> str:
    b = w.buffer(*w.one(w.now, (1, *w.now), w.now[-1:], (*([1] * (len(w.now) - 1)), w.now[-1]), (*w.now[:-1], 1)))
    return str(w.one(
        f"$ = {h} * {b}", f"$ = {h} + {b}", f"$ = {b} - {h}", f"$ = torch.maximum({h}, {b})",
        f"$ = torch.min({b}, {h})", f"$ = {h} / ({b}.abs() + 0.5)", f"$ = torch.clamp({h}, {b}, {b} + 1.0)",
        f"$ = {h} * torch.sigmoid({b})", f"$ = torch.addcmul({b}, {h}, {b})", f"$ = torch.where({b} > 0, {h}, {b})",
    ))  # fmt: skip


def _bend(w: Writer, h: str) -> str:
    low = w.number()
    high = round(low + abs(w.number()), 2)
    return str(w.one(
        f"$ = torch.relu({h})", f"$ = F.relu({h})", f"$ = {w.member('nn.ReLU()')}({h})", f"$ = {h}.relu()",
        f"$ = F.leaky_relu({h}, {w.one(0.01, 0.3, -0.5, 2.0)})", f"$ = F.relu6({h})",
        f"$ = F.hardtanh({h}, {low}, {high})", f"$ = {w.member(f'nn.Hardtanh({low}, {high})')}({h})",
        f"$ = torch.clamp({h}, {low}, {high})", f"$ = {h}.clamp(min={low})", f"$ = {h}.clamp(max={low})",
        f"$ = torch.clamp_min({h}, {low})", f"$ = {h}.abs()",
        f"$ = {w.member(f'nn.PReLU({w.one(1, w.now[0])})')}({h})", f"$ = F.hardsigmoid({h}) * {low}",
        f"$ = torch.clamp({h}, {high}, {low})", f"$ = {w.member('nn.LeakyReLU(0.2)')}({h})",
        f"$ = {w.member('nn.ReLU6()')}({h})", f"$ = {h}.clip({low}, {high})", f"$ = F.relu({h}).clone()",
    ))  # fmt: skip


def _smooth(w: Writer, h: str) -> str:
    return str(w.one(
        f"$ = torch.tanh({h})", f"$ = torch.sigmoid({h})", f"$ = F.gelu({h})", f"$ = F.elu({h}, {w.number(0.1, 2)})",
        f"$ = F.silu({h})", f"$ = F.softplus({h})", f"$ = F.hardswish({h})", f"$ = F.gelu({h}, approximate='tanh')",
        f"$ = F.layer_norm({h}, {w.now[-1:]})", f"$ = F.softmax({h}, {_dim(w)})", f"$ = {h} * {h}",
        f"$ = F.log_softmax({h}, {_dim(w)})", f"$ = {h} * torch.sigmoid({h})", f"$ = F.softshrink({h})",
        f"$ = F.selu({h})", f"$ = {h} / ({h}.abs() + 1)", f"$ = torch.exp({h} * 0.01)", f"$ = F.mish({h})",
        f"$ = {h}.pow(2)", f"$ = F.threshold({h}, {w.number()}, 0.0)",
    ))  # fmt: skip


def _in_place(w: Writer, h: str) -> str:
    k, other = w.number(), w.alike()
    safe = f"$ = {h}.clone()\n" if w.flag(0.7) else ""
    v = "$" if safe else h
    b = w.buffer(w.now[-1])
    return safe + str(w.one(
        f"{v}.mul_({k})", f"{v}.add_({other})", f"{v} *= {k}", f"{v} += {other}", f"{v}.clamp_(min={k})",
        f"{v}.neg_()", f"{v}.relu_()", f"F.relu({v}, inplace=True)", f"v = {v}.view(-1, {w.now[-1]})\nv.mul_({k})",
        f"{v}.sub_({b})", f"v = {v}[:, :1]\nv.neg_()", f"{v}[:, 0] = {k}", f"{v}[:, :1] = {v}[:, -1:]",
        f"torch.neg_({v})", f"v = {v}.transpose(0, -1)\nv.add_({k})", f"v = {v}.detach()\nv.sub_({k})",
        f"{v}.copy_({other})", f"{v}.zero_()", f"F.hardtanh({v}, -1.0, 1.0, inplace=True)",
        f"F.leaky_relu_({v}, 0.1)", f"v = {v}.flatten(1)\nv.abs_()", f"v = {v}.contiguous()\nv.mul_({k})",
        f"{v}.div_({k})", f"v = {v}.unsqueeze(1)\nv.add_({k})", f"{v}.abs_()", f"v = {v}\nv.mul_({k})",
        f"{v}.squeeze().mul_({k})", f"{v}.fill_({k})", f"v = {v}.to(x.dtype)\nv.neg_()",
        f"{b}.mul_(1.0)\n{v}.add_({b})", f"v = F.dropout({v}, 0.5, False)\nv.neg_()", f"v = {v}.float()\nv.mul_({k})",
    ))  # fmt: skip


def _typed(w: Writer, h: str) -> str:
    back = "type_as(x)"
    return str(w.one(
        f"$ = {h}.to(torch.float64).{back}", f"$ = {h}.float().{back}", f"$ = {h}.double().{back}",
        f"$ = {h}.half().{back}", f"$ = {h}.to(torch.int32).{back}", f"$ = {h}.bfloat16().{back}",
        f"$ = {h}.long().{back}", f"$ = torch.floor({h})", f"$ = torch.round({h})", f"$ = torch.trunc({h})",
        f"$ = torch.sign({h})", f"$ = {h} * ({h} > 0)", f"$ = torch.where({h} > 0, {h}, 0.1 * {h})",
        f"$ = {h}.masked_fill({h} < 0, 0.0)", f"$ = torch.fmod({h}, 2.0)", f"$ = {h}.to(x.dtype)",
        f"$ = {h}.type_as(x)", f"$ = {h} // 1.0", f"$ = torch.div({h}, 2.0, rounding_mode='floor')",
        f"$ = {h}.sum(1, keepdim=True, dtype=torch.int64).{back}", f"$ = {h}.bool().{back}",
        f"$ = {h}.to(torch.uint8).{back}",
    ))  # fmt: skip


def _mixing(w: Writer, h: str) -> str:
    return str(w.one(
        f"$ = {h} - {h}.mean(0, keepdim=True)", f"$ = {h} + {h}.sum()", f"$ = {h} * {h}.size(0)",
        f"$ = {h} + {h}.max()", f"$ = torch.flip({h}, [0])", f"$ = {h} - {h}[:1]", f"$ = {h}.cumsum(0)",
        f"$ = {h} / {h}.shape[0]", f"$ = {h}.roll(1, 0)", f"$ = {h} + {h}.mean()", f"$ = F.softmax({h}, 0)",
        f"$ = {h} - {h}[0]", f"$ = {h}.reshape(-1).reshape({h}.shape)", f"$ = torch.cat([{h}[1:], {h}[:1]])",
        f"$ = F.batch_norm({h}, None, None, training=True)", f"$ = {h}.t().reshape({h}.shape)",
        f"$ = F.dropout({h}, 0.0, training=True)", f"$ = {h} + len({h})",
    ))  # fmt: skip


def _chosen(w: Writer, h: str) -> str:
    """Choices, numbers and loops that TorchScript keeps in its text."""
    k = w.member(str(w.one(2.7, -0.5, 3, 2, -1.5, True)))
    layer = w.member(f"nn.ModuleList([nn.Linear({w.now[-1]}, {w.now[-1]}) for _ in range(2)])")
    return str(w.one(
        f"$ = {h} * int({k})", f"$ = {h} + float({k})", f"$ = {h} * {k}", f"$ = {h} * ({k} % 4)",
        f"$ = {h} * ({k} // 2)", f"$ = {h} if {k} > 2 else -{h}",
        f"$ = {h}\nfor layer in {layer}:\n    $ = torch.relu(layer($))", f"$ = {h} + ({k} - 1) * {k}",
        f"$ = {h} / ({k} + 0.25)", f"$ = {h} * float({k} > 1)", f"$ = {h} * abs({k})", f"$ = {h} + round({k})",
        f"$ = {h} * min({k}, 1.5)", f"$ = {h} - {k} ** 2", f"$ = {h} * -{k}", f"$ = {h} * (not self.training)",
        f"$ = {h} + int({k}) / 2", f"$ = -{h} if {h}.dim() == 2 else {h}", f"$ = {h} + {h}.size(1)",
        f"$ = {h} * {h}.shape[-1]", f"$ = {h}\nfor i in range(3):\n    $ = $ + {k}",
        f"$ = {h} * (7 // 2) - 7 % 4 + -7 // 2",
    ))  # fmt: skip


def _linear(w: Writer, h: str) -> str:
    inputs, outputs = w.now[-1], w.whole(1, 6)
    return str(w.one(
        f"$ = {w.member(f'nn.Linear({inputs}, {outputs}, bias={w.flag(0.8)})')}({h})",
        f"$ = {w.member(f'nn.Linear({inputs}, {outputs}, bias={w.flag(0.8)})')}({h})",
        f"$ = {h} @ {w.buffer(inputs, outputs)}", f"$ = torch.matmul({h}, {w.buffer(outputs, inputs)}.t())",
        f"$ = F.linear({h}, {w.buffer(outputs, inputs)}, {w.buffer(outputs)})",
        f"$ = torch.addmm({w.buffer(outputs)}, {h}, {w.buffer(inputs, outputs)}, beta={w.number()}, alpha=1.5)",
        f"$ = torch.mm({h}, {w.buffer(inputs, outputs)})",
        f"$ = torch.einsum('ni,oi->no', {h}, {w.buffer(outputs, inputs)})",
        f"$ = torch.matmul({w.buffer(outputs, w.now[0])}, {h})",
        f"$ = {w.member(f'nn.utils.parametrizations.weight_norm(nn.Linear({inputs}, {outputs}))')}({h})",
    ))  # fmt: skip


def _flat(w: Writer, h: str) -> str:
    return str(w.one(
        f"$ = torch.flatten({h}, 1)", f"$ = {h}.flatten(1)", f"$ = {w.member('nn.Flatten()')}({h})",
        f"$ = {h}.view({h}.size(0), -1)", f"$ = {h}.reshape(-1, {int(np.prod(w.now))})",
        f"$ = {h}.flatten(start_dim=1, end_dim=-1)",
    ))  # fmt: skip


def _shaped(w: Writer, h: str) -> str:
    return str(w.one(
        f"$ = {h}.unsqueeze({w.whole(1, len(w.now) + 1)})", f"$ = {h}.squeeze({_dim(w)})",
        f"$ = {h}.select({_dim(w)}, {w.one(0, -1)})", f"$ = {h}.unflatten({_dim(w)}, (1, -1))",
        f"$ = {h}.narrow({_dim(w)}, 0, 1)", f"$ = {h}.flip({_dim(w)})", f"$ = {h}.contiguous()",
        f"$ = {h}.chunk(2, {_dim(w)})[{w.one(0, -1)}]", f"$ = {h}.split(1, {_dim(w)})[0]",
        f"$ = {h}.expand(-1, *{h}.shape[1:])", f"$ = {h}.movedim(1, -1)", f"$ = {h}.swapaxes({_dim(w)}, {_dim(w)})",
        f"$ = {h}.squeeze()", f"$ = F.dropout({h}, 0.5, False)", f"$ = {w.member('nn.Dropout(0.5)')}({h})",
        f"$ = {w.member('nn.Identity()')}({h})", f"$ = {h}.repeat(1, 2)", f"$ = {h}[..., 0]",
        f"$ = {h}.roll(1, {_dim(w)})", f"$ = {h}[:, None]", f"$ = {h}.mT.contiguous()",
        f"$ = F.pixel_shuffle({h}, 2)",
    ))  # fmt: skip


ANYWHERE: dict[str, tuple[Template, float]] = {  # and how often they are tried
    "activation": (_bend, 6), "smooth": (_smooth, 0.25), "in place": (_in_place, 1.2), "types": (_typed, 0.25),
    "mixing": (_mixing, 0.25), "number": (_with_number, 1.5), "buffer": (_with_buffer, 1),
    "other value": (_with_other, 1.5), "slice": (_sliced, 0.7), "reshape": (_reshaped, 0.6),
    "permute": (_permuted, 0.5), "reduce": (_reduced, 0.5), "pad": (_padded, 0.6), "join": (_joined, 0.8),
    "norm": (_norm, 1), "shape": (_shaped, 1), "linear": (_linear, 3), "choice": (_chosen, 0.4), "again": (_again, 0.5),
    "flatten": (_flat, 0.3),
}  # fmt: skip
ALONG_AXES: dict[str, tuple[Callable[[int], Template], float]] = {
    "convolution": (_conv, 5), "max pooling": (lambda axes: _pool("max", axes), 2),
    "average pooling": (lambda axes: _pool("avg", axes), 2),
    "adaptive pooling": (lambda axes: _adaptive("avg", axes), 0.4),
    "adaptive maximum": (lambda axes: _adaptive("max", axes), 0.1),
}  # fmt: skip
ENDINGS = (
    "F.softmax({}, 1)",
    "torch.softmax({}, dim=-1)",
    "F.log_softmax({}, 1)",
    "torch.sigmoid({})",
    "torch.tanh({})",
)


def draw_source(rng: np.random.Generator, more: Mapping[str, float] = PLAIN) -> Source:
    """A module of 2 to 10 operations and a last linear layer; `more` changes how often kinds are tried."""
    axes = int(rng.choice([0, 1, 2], p=[0.5, 0.15, 0.35]))
    shape = (
        (int(rng.integers(1, 6)),) if axes == 0 else (int(rng.integers(1, 4)), *rng.integers(2, 7, size=axes).tolist())
    )
    w = Writer(rng, shape)
    wanted = int(rng.integers(2, 11))
    for _ in range(4 * wanted):
        if len(w.kinds) < wanted:
            _one_more(w, more)
    if not w.now or (len(w.now) > 1 and not w.step("flatten", _flat)):
        w.current = "x"
        w.step("flatten", lambda w, h: f"$ = {h}.flatten(1)")
    if w.flag(0.85) or w.kinds[-1:] == ["activation"] or "smooth" in w.kinds:
        outputs = w.one(1, 1, 2, 3)
        w.step("last linear", lambda w, h: f"$ = {w.member(f'nn.Linear({w.now[-1]}, {outputs})')}({h})")
    if w.flag(0.15):
        w.step("in place at the end", _in_place)
    if w.flag(0.1) and w.now[-1] == 1:
        w.step("no last axis", lambda w, h: f"$ = {h}.squeeze(1)" if w.flag() else f"$ = {h}[:, 0]")
    core = w.text()
    last = str(rng.choice(ENDINGS)) if w.flag(0.08) and len(w.now) == 1 else ""
    text = w.text(f"{w.current} = {last.format(w.current)}") if last else core
    dtype = torch.float64 if w.flag(0.5) else torch.float32
    style = str(rng.choice(["normal", "normal", "whole numbers", "few"]))
    kinds = (*w.kinds, *(["probabilities"] if last else []), *(["float64"] if dtype == torch.float64 else []))
    return Source(text, core, shape, dtype, kinds, style)


def _one_more(w: Writer, more: Mapping[str, float]) -> None:
    table = {kind: (template, weight) for kind, (template, weight) in ANYWHERE.items()}
    if len(w.now) in (2, 3):
        axes = len(w.now) - 1
        table |= {kind: (make(axes), weight) for kind, (make, weight) in ALONG_AXES.items()}
    weights = np.array([weight * more.get(kind, 1.0) for kind, (_, weight) in table.items()])
    kind = list(table)[int(w.rng.choice(len(table), p=weights / weights.sum()))]
    w.step(kind, table[kind][0])
