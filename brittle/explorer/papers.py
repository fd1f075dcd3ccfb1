"""The settings of the four papers: data, start and training as each describes them, and its theorems on the way."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Generator, Tensor

from brittle.attacks import DIRECTIONS, Universal
from brittle.common.threads import one_torch_thread
from brittle.data import AlmostOrthogonal, Clusters, Data, Setting, Sphere, Subspace
from brittle.explorer import points, requests
from brittle.explorer.plane import describe_flips, grid, on_instance
from brittle.explorer.requests import Clock, JsonQuery
from brittle.explorer.start import goal, make_start, train_to_marks
from brittle.kkt import residual, solve
from brittle.networks import TwoLayer
from brittle.theorems import Theorem, find
from brittle.training import LazyTraining, Logistic, Steps


def frames(asked: JsonQuery) -> Iterator[dict[str, Any]]:
    """First the network as it was drawn, then one frame for every mark of the log-loss."""
    clock, data = Clock(), points.read_points(asked)
    goal(asked)  # what is wrong with it is said before the first frame
    start = make_start(asked, data)
    yield describe_frame(asked, start, data, math.nan, 0)
    steps = 0
    with one_torch_thread():
        for training in train_to_marks(asked, data, start, clock):
            steps += training.steps
            yield describe_frame(asked, training.network, data, training.log_loss, steps, training.message)


def describe_frame(
    asked: JsonQuery, network: TwoLayer, data: Data, log_loss: float, steps: int, message: str = ""
) -> dict[str, Any]:
    """What is drawn of one moment; the KKT residual where every point is classified."""
    found = {"log_loss": log_loss, "steps": steps, "message": message, "network": requests.weights(network)}
    return found | progress(network, data) | {"grid": grid(network, asked)}


def progress(network: TwoLayer, data: Data) -> dict[str, Any]:
    """Margin and residual: the least over all multipliers, as for `brittle kkt`."""
    margins = network.margins(data.X, data.y)
    found: dict[str, Any] = {"margin": float(margins.min()), "stationarity": None, "normalised_margin": None}
    if network.homogeneous and found["margin"] > 0:
        measured = residual(network, data, margin_tolerance=math.inf)
        found |= {"stationarity": measured.stationarity, "normalised_margin": measured.normalised_margin}
    return found


MOST_DIM, MOST_EXAMPLES, MOST_WIDTH = 4000, 120, 1000
FRESH = 40  # examples that the theorems on fresh ones look at
LAZY_MARKS = tuple(2**power for power in range(10))  # steps
LAZY_RATE = 0.5
CURVE = 81  # sizes along the universal direction


@dataclass(frozen=True)
class Control:
    """A slider: its `label`, `least` and `most` values and what it is `set` to; `log` where it moves in powers."""

    label: str
    least: float
    most: float
    set: float
    log: bool = False
    whole: bool = True

    def check(self, asked: JsonQuery, name: str) -> None:
        """What is asked for lies on the slider."""
        if self.whole:
            asked.whole(name, int(self.set), int(self.least), int(self.most))
        else:
            asked.number(name, self.set, self.least, self.most)


@dataclass(frozen=True)
class LaboratoryPaper:
    """One paper's setting: its `title`, what the laboratory shows of it (`about`), its `controls`, its `theorems` and
    the `direction` of its universal perturbation; `draws` says what data are drawn. `start` and `training` are how its
    networks begin and go on, with `biases` or without; `jumps` says whether its theorems are about KKT points."""

    title: str
    about: str
    controls: dict[str, Control]
    theorems: tuple[str, ...]
    direction: str
    draws: Callable[[JsonQuery, int], "Draw"]
    start: str = "pytorch"
    training: str = "flow"
    biases: bool = True
    jumps: bool = True


@dataclass(frozen=True)
class Draw:
    """So many `examples` of a `setting`, with further `options` of its `sample`."""

    setting: Setting
    examples: int
    options: dict[str, Any] = field(default_factory=dict)

    def data(self, seed: int) -> Data:
        return self.setting.sample(self.examples, Generator().manual_seed(seed), **self.options)


SHARED = {"dim": Control("dimension d", 10, MOST_DIM, 1000, log=True), "examples": Control("examples n", 2, 100, 20)}
WIDTH = Control("width m", 2, MOST_WIDTH, 100, log=True)
SCALE = Control("start divided by", 0.1, 1000, 1, log=True, whole=False)


def _nearly_orthogonal(asked: JsonQuery, dim: int) -> Draw:
    coherence = min(asked.number("coherence", 5.0, 0, 1e3), float(dim))
    return Draw(AlmostOrthogonal(dim, coherence), _count(asked, 20), {"in_span": True})


def _clusters(asked: JsonQuery, dim: int) -> Draw:
    count, k = _count(asked, 100), asked.whole("clusters", 2, 2, 20)
    options = {"test": FRESH, "in_span": k + count + FRESH < dim}
    return Draw(Clusters(dim, k, asked.number("noise", 0.03, 0, 2)), count, options)


def _subspace(asked: JsonQuery, dim: int) -> Draw:
    return Draw(Subspace(dim, asked.whole("codimension", 700, 0, MOST_DIM)), _count(asked, 20))


def _unit(asked: JsonQuery, dim: int) -> Draw:
    return Draw(Sphere(dim, radius=1.0), _count(asked, 10))


def _count(asked: JsonQuery, default: int) -> int:
    return asked.whole("examples", default, 2, MOST_EXAMPLES)


PAPERS = {
    "vardi2022": LaboratoryPaper(
        "Gradient methods provably converge to non-robust networks",
        "Nearly orthogonal examples of norm √d. Where there are few enough of them, every KKT point has one direction "
        "that flips all of them at once.",
        SHARED
        | {"coherence": Control("largest inner product p", 0, 60, 5, whole=False), "width": WIDTH, "scale": SCALE},
        ("vardi2022/4.1", "vardi2022/C4.1", "vardi2022/3.1"),
        "examples",
        _nearly_orthogonal,
    ),
    "frei2023": LaboratoryPaper(
        "The double-edged sword of implicit bias",
        "Noise round a few long means. KKT points classify fresh examples, and a direction made of the means flips "
        "them, though a robust network exists.",
        {
            "dim": Control("dimension d", 10, MOST_DIM, 800, log=True),
            "examples": Control("examples n", 2, MOST_EXAMPLES, 100),
            "clusters": Control("clusters k", 2, 20, 2),
            "noise": Control("noise σ", 0.001, 1, 0.03, log=True, whole=False),
            "width": WIDTH,
            "scale": SCALE,
        },
        ("frei2023/A2.2", "frei2023/4.2", "frei2023/3.1"),
        "means",
        _clusters,
    ),
    "melamed2023": LaboratoryPaper(
        "Adversarial examples exist in two-layer ReLU networks for low dimensional linear subspaces",
        "Data on a subspace. Training never moves the weights off it, and what they were at the start is what an "
        "attacker uses. A smaller start helps.",
        {
            "dim": Control("dimension d", 10, 2000, 800, log=True),
            "codimension": Control("codimension ℓ", 0, 1990, 700),
            "examples": Control("examples n", 2, 60, 20),
            "width": Control("width m", 2, 300, 40, log=True),
            "scale": SCALE,
        },
        ("melamed2023/4.1", "melamed2023/5.1", "melamed2023/6.1", "melamed2023/C6.1"),
        "weights",
        _subspace,
        start="kaiming",
        biases=False,
        jumps=False,
    ),
    "wang2022": LaboratoryPaper(
        "Adversarial robustness is at odds with lazy training",
        "Unit examples and weights that stay near their start. One gradient step of length about 1/√d flips such a "
        "network.",
        {
            "dim": Control("dimension d", 10, 2000, 400, log=True),
            "examples": Control("examples n", 2, 40, 10),
            "width": Control("width m", 2, MOST_WIDTH, 600, log=True),
            "ball": Control("ball C₀ (radius C₀/√m)", 0.05, 20, 1, log=True, whole=False),
        },
        ("wang2022/B.5", "wang2022/L4.2", "wang2022/3.1-proof", "wang2022/B.7"),
        "gradients",
        _unit,
        start="lazy",
        training="lazy",
        biases=False,
        jumps=False,
    ),
}


def paper(asked: JsonQuery) -> Iterator[dict[str, Any]]:
    """The frames of a training in a paper's setting, and the KKT point where its theorems are about one."""
    chosen, draw, own = choose_setting(asked)
    clock, data = Clock(), draw.data(own.whole("seed", 0, 0, 2**31))
    start = make_start(own, data, MOST_WIDTH)
    yield frame(chosen, start, data, "start", None, 0, own)
    with one_torch_thread():
        network, steps = start, 0
        runs = _lazily(own, data, start) if chosen.training == "lazy" else train_to_marks(own, data, start, clock)
        for training in runs:
            network, steps = training.network, training.steps + (0 if chosen.training == "lazy" else steps)
            yield frame(chosen, network, data, chosen.training, training.log_loss, steps, own, training.message)
        if chosen.jumps and bool((network.margins(data.X, data.y) > 0).all()):
            yield frame(chosen, solve(network, data, watch=clock).network, data, "KKT point", None, steps, own)


def choose_setting(asked: JsonQuery) -> tuple[LaboratoryPaper, Draw, JsonQuery]:
    """The paper, its data, and the request with the paper's own start where nothing else was asked for."""
    chosen = PAPERS[asked.word("paper", tuple(PAPERS), "vardi2022")]
    controls = {name: control.set for name, control in chosen.controls.items()}
    layers = "all" if chosen.jumps else "first"
    goal(asked)
    own = JsonQuery({"start": chosen.start, "biases": chosen.biases, "layers": layers, **controls, **asked.values})
    for name, control in chosen.controls.items():
        control.check(own, name)
    return chosen, chosen.draws(own, own.whole("dim", 1000, 2, MOST_DIM)), own


def _lazily(asked: JsonQuery, data: Data, start: TwoLayer) -> Iterator[Any]:
    """Each time from the start, for the ball is round it; the batch is the whole set."""
    radius = asked.number("ball", 1.0, 1e-3, 1e3)
    for steps in LAZY_MARKS:
        regime = LazyTraining(
            Steps(steps), radius=radius, loss=Logistic(), rate=LAZY_RATE, batch=len(data), biases=False
        )
        training = regime.train(replace(start, start=None), data, Generator().manual_seed(0))
        yield training
        if training.steps < steps:  # it has come to the edge of the ball
            return


def frame(
    chosen: LaboratoryPaper,
    network: TwoLayer,
    data: Data,
    where: str,
    log_loss: float | None,
    steps: int,
    asked: JsonQuery,
    message: str = "",
) -> dict[str, Any]:
    """One moment: the curves, the universal perturbation, and the hypotheses with their slack."""
    found: dict[str, Any] = {"where": where, "log_loss": log_loss, "steps": steps, "message": message}
    found |= {"neurons": network.width, "columns": data.columns}
    found |= progress(network, data) | {"theorems": on_instance(data, network, statements(chosen, asked))}
    return found | {"universal": _universal(chosen, network, data)}


def statements(chosen: LaboratoryPaper, asked: JsonQuery) -> list[Theorem]:
    """The paper's theorems, about the ball that was asked for where they are about one."""
    found = [find(name) for name in chosen.theorems]
    if "ball" not in chosen.controls:
        return found
    ball = asked.number("ball", 1.0, 1e-3, 1e3)
    return [replace(each, radius=ball) if hasattr(each, "radius") else each for each in found]  # type: ignore[type-var]


def _universal(chosen: LaboratoryPaper, network: TwoLayer, data: Data) -> dict[str, Any]:
    """Along the paper's direction: where each example flips, and every margin on the way there."""
    attack = Universal(direction=DIRECTIONS[chosen.direction])
    found = attack.run(network, data)
    reach = _reach(found.smallest, found.intervals.start)
    sizes = torch.linspace(0, reach, CURVE, dtype=torch.float64)
    steps = -data.y[:, None] * found.z
    margins = torch.stack([network.margins(data.X + size * steps, data.y) for size in sizes.tolist()], 1)
    return {
        "direction": chosen.direction,
        "smallest": found.smallest,
        "reach": reach,
        "margins": requests.pack_float32(margins),
        **describe_flips(found.considered, found.intervals),
    }


def _reach(smallest: float, starts: Tensor) -> float:
    """How far the picture goes: half as far again as what is to be seen."""
    seen = [smallest, *([float(starts.max())] if len(starts) else [])]
    return 1.5 * next((each for each in seen if 0 < each < float("inf")), 1.0)


def describe_papers() -> dict[str, Any]:
    """What the browser has to know of the papers."""
    return {
        name: {
            "title": each.title,
            "about": each.about,
            "theorems": each.theorems,
            "controls": {key: vars(control) for key, control in each.controls.items()},
            "jumps": each.jumps,
        }
        for name, each in PAPERS.items()
    }
