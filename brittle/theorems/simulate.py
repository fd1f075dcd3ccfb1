"""Theorems at dimensions that nobody could store: data sampled in their span, where d = 10^9 costs what d = n costs."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Generator

from brittle.common.errors import InputError, require_count
from brittle.common.progress import Progress, Watch, silent
from brittle.common.result import Result
from brittle.data import Clusters, Data, Sphere
from brittle.data.orthogonal import halves
from brittle.theorems.check import CheckResult, check_instance
from brittle.theorems.frei2023.groups import count_needed_examples
from brittle.theorems.helpers import kkt_network
from brittle.theorems.instance import Instance
from brittle.theorems.registry import find
from brittle.theorems.vardi2022.groups import sphere_at_its_limit


@dataclass(frozen=True)
class Simulation(Result):
    """A theorem's `verdict` on one KKT point in R^`dim`.

    `columns` is how many numbers stand for one example. There are `examples` to train on and `fresh_examples`; for
    clusters, `clusters` of noise `noise`. `seconds_to_solve` of the `seconds` went into data and KKT point.
    """

    verdict: CheckResult
    dim: int
    columns: int
    examples: int
    fresh_examples: int
    clusters: int | None
    noise: float | None
    seconds_to_solve: float
    seconds: float


@dataclass(frozen=True)
class Request:
    """What to simulate: `examples` in R^`dim`; for clusters, `clusters` of noise `noise` with `test` fresh examples.

    None stands for the largest number of examples, or the smallest that a theorem asks for.
    """

    dim: int
    examples: int | None = None
    clusters: int = 2
    noise: float = 1.0
    test: int = 1000


def simulate(identity: str, request: Request, rng: Generator, watch: Watch = silent) -> Simulation:
    """Sample in the span, solve for a KKT point, check the theorem there."""
    require_count("dim", request.dim, least=2)
    theorem = find(identity)
    if theorem.id not in SAMPLERS:
        raise InputError(f"{theorem.id} cannot be simulated in the span; {', '.join(SAMPLERS)} can")
    begun = time.perf_counter()
    data = SAMPLERS[theorem.id](request, rng)
    watch(Progress(0.1, f"a KKT point for {len(data)} examples"))
    network = kkt_network(data, rng)
    solved = time.perf_counter()
    watch(Progress(0.8, "checking the theorem"))
    verdict = check_instance(theorem, Instance(data, network))
    fresh = 0 if data.X_test is None else len(data.X_test)
    shape = (request.dim, data.columns, len(data), fresh)
    grouped = None if data.truth.means is None else len(data.truth.means)
    return Simulation(verdict, *shape, grouped, data.truth.noise, solved - begun, time.perf_counter() - begun)


def sphere(request: Request, rng: Generator) -> Data:
    """As many points of the sphere as vardi2022/4.1 admits, or as were asked for, half of each label."""
    if request.examples is None:
        return sphere_at_its_limit(request.dim, rng)
    require_count("examples", request.examples, least=2)
    data = Sphere(request.dim).sample(request.examples, rng, in_span=True)
    return replace(data, y=halves(len(data)))


def clusters_with_fresh_examples(request: Request, rng: Generator) -> Data:
    """Random means, as few examples as the theorems ask for, and fresh ones sampled jointly with them."""
    require_count("test", request.test)
    examples = count_needed_examples(request.dim, request.clusters) if request.examples is None else request.examples
    setting = Clusters(request.dim, request.clusters, request.noise, random_means=True)
    return setting.sample(examples, rng, test=request.test, in_span=True)


SAMPLERS: dict[str, Callable[[Request, Generator], Data]] = {
    "vardi2022/4.1": sphere,
    "frei2023/3.1": clusters_with_fresh_examples,
    "frei2023/4.2": clusters_with_fresh_examples,
}
