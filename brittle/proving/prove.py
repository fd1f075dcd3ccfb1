"""From certified radii to a file that proves them again, with nothing in it that has to be trusted."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from brittle.certificates.margins import WeightSpan
from brittle.certificates.rounding import Array
from brittle.common.errors import require
from brittle.common.files import replacing
from brittle.common.progress import Progress, Watch, silent
from brittle.common.threads import one_blas_thread
from brittle.data import Data
from brittle.networks import Layered, Network, as_layered
from brittle.proving.deep import DeepProver
from brittle.proving.program import ChainProof, Line, Program, ProofNotFound, Rivals, programs_of, steps_of
from brittle.proving.two_layers import TwoLayerProver
from proofcheck.balls import Ball, Definite, Refused
from proofcheck.lagrangian import Margin, Step
from proofcheck.network import Network as Checked
from proofcheck.proof import CLOSE, MULTIPLIERS, digest, read_data, read_network
from proofcheck.proof import Proof as WrittenProof

SHARES = (1 - 1e-9, 1 - 1e-6, 1 - 1e-4, 1 - 1e-3, 0.99, 0.95, 0.8, 0.5, 0.25)  # of a radius, until one is proved
SMALL = 1024  # hidden neurons of a network whose branches are looked at
Box = tuple[float, float]
Known = dict[bytes, tuple[Definite, Ball]]


@dataclass(frozen=True, eq=False)
class Proof:
    """`radii` of the examples `rows` of the data, proved by `programs`, one for each rival of each; flips outside the
    `box` do not count. `certified` are the radii that were to be proved, of all examples.
    """

    network: Checked
    X: Array
    y: Array
    rows: tuple[int, ...]
    radii: tuple[float, ...]
    programs: tuple[Program, ...]
    certified: Array
    box: Box | None

    @property
    def losses(self) -> Array:
        """1 - radius/certified of all examples with a radius."""
        radii = np.zeros(len(self.certified))
        radii[list(self.rows)] = self.radii
        some = self.certified > 0
        return np.asarray(1 - radii[some] / self.certified[some])

    def __str__(self) -> str:
        losses = self.losses
        whole = int((losses <= 1e-8).sum())
        rest = losses[losses > 1e-8]
        words = f"; {len(rest)} others with a loss of {100 * rest.mean():.2g} % on average" if len(rest) else ""
        return f"the proof holds {whole} of {len(losses)} radii{words}"

    def save(self, path: str | Path) -> None:
        """Whole or not at all."""
        _write(path, self.arrays())

    def arrays(self) -> dict[str, np.ndarray]:
        """As docs/proofs.md describes them."""
        rows = list(self.rows)
        found = {
            "network": np.frombuffer(digest(self.network.parameters()), dtype=np.uint8),
            "data": np.frombuffer(digest([self.X[rows], self.y[rows]]), dtype=np.uint8),
            **self.claims(),
        }
        return found if self.box is None else {**found, "box": np.array(self.box)}

    def checked(self, claim: int, known: Known) -> bool:
        """Whether the checker takes a claim as it will be written, with what it has proved of curvatures before."""
        N, d = self.network.parts[-1].stop, self.X.shape[1]
        empty = {name: np.zeros((1, d if name == "walls" else N)) for name in MULTIPLIERS}
        box = np.array(self.box or ())
        written = WrittenProof(self.network, self.X, self.y, {**empty, "box": box, **self.claims()}, np.inf, known)
        try:
            return written.check(claim) == self.radii[claim]
        except Refused:
            return False

    def claims(self) -> dict[str, np.ndarray]:
        """The arrays that say what is claimed, and why; `programs_of` reads them."""
        lines = [line for program in self.programs for line in program]
        numbers = np.cumsum([line.step is not None for line in lines]) - 1
        places = [line.neuron if line.step is None else number for line, number in zip(lines, numbers, strict=True)]
        program = np.array([(line.code, place) for line, place in zip(lines, places, strict=True)], dtype=np.int64)
        return {
            "rows": np.array(self.rows, dtype=np.int64),
            "radii": np.array(self.radii, dtype=np.float64),
            "starts": np.cumsum([0, *map(len, self.programs)]),
            "program": program.reshape(-1, 2),
            **self._multipliers(list(steps_of(self.programs))),
        }

    def _multipliers(self, steps: list[Step]) -> dict[str, np.ndarray]:
        """Without arrays of zeros, and with one row for those that all steps share."""
        empty = np.zeros((0, self.network.parts[-1].stop))
        found = {name: np.array([getattr(step, name) for step in steps]) if steps else empty for name in MULTIPLIERS}
        found = {name: _shared(values) for name, values in found.items() if values.any()}
        kinds = np.array([step.kinds for step in steps], dtype=np.int8) if steps else empty.astype(np.int8)
        return {"kinds": kinds, "mu": np.array([step.mu for step in steps]), **found}


def prove(
    network: Network,
    data: Data,
    lower: Tensor,
    flips: Tensor,
    *,
    box: Box | None = None,
    seconds: float = 60.0,
    watch: Watch = silent,
) -> Proof:
    """A proof of the certified radii `lower` (n,), or of as much of each as is proved in some seconds.

    The flips (n, dim) say where to look; 0 is as good as unknown. With a box only flips inside it count.
    """
    layered = as_layered(network, "--proof").to(torch.float64)
    require(layered.depth >= 2, f"the network has {layered.depth} layers; a proof needs two or more")
    with torch.no_grad(), one_blas_thread(), np.errstate(all="ignore"):
        prover = _Prover.of(layered, data, box, seconds)
        claims = list(prover.claims(lower, flips, watch))
    rows, radii = tuple(row for row, _, _ in claims), tuple(radius for _, radius, _ in claims)
    programs = tuple(program for _, _, each in claims for program in each)
    return Proof(prover.network, prover.X, prover.y, rows, radii, programs, lower.numpy(), box)


def join_proofs(
    network: Network,
    data: Data,
    lower: Tensor,
    sizes: Sequence[int],
    claims: Sequence[Mapping[str, np.ndarray]],
    box: Box | None = None,
) -> Proof:
    """Return the proof of all data from the claims about parts of these sizes, in their order."""
    layered = as_layered(network, "--proof").to(torch.float64)
    net, X, y = _checkable(layered, data)
    starts = np.cumsum([0, *sizes]).tolist()
    rows = tuple(start + row for start, each in zip(starts, claims, strict=False) for row in each["rows"].tolist())
    radii = tuple(radius for each in claims for radius in each["radii"].tolist())
    programs = tuple(program for each in claims for program in programs_of(each, net.parts[-1].stop, X.shape[1]))
    return Proof(net, X, y, rows, radii, programs, lower.numpy(), box)


@dataclass(frozen=True, eq=False)
class _Prover:
    layered: Layered
    network: Checked
    X: Array
    y: Array
    box: Box | None
    seconds: float
    cache: Known

    @classmethod
    def of(cls, layered: Layered, data: Data, box: Box | None, seconds: float) -> "_Prover":
        return cls(layered, *_checkable(layered, data), box, seconds, {})

    @property
    def searches(self) -> bool:
        """Whether branches are looked at, or one dual point has to do."""
        return self.box is None and (len(self.network.parts) == 1 or self.network.parts[-1].stop <= SMALL)

    @cached_property
    def span(self) -> WeightSpan:
        return WeightSpan.of(self.network.weights[0])

    @cached_property
    def chained(self) -> ChainProof:
        return ChainProof.of(self.layered)

    def claims(self, lower: Tensor, flips: Tensor, watch: Watch) -> Iterator[tuple[int, float, list[Program]]]:
        for row, radius in enumerate(lower.tolist()):
            found = self._claim(row, radius, flips[row].double().numpy()) if radius > 0 else None
            if found is not None:
                yield row, *found
            watch(Progress((row + 1) / len(lower), f"{row + 1} of {len(lower)} proofs"))

    def _claim(self, row: int, certified: float, flip: Array) -> tuple[float, list[Program]] | None:
        for attempt, radius in enumerate(self._radii(row, certified)):
            deadline = time.process_time() + self.seconds / 2**attempt
            try:
                programs = self._programs(row, radius, flip, deadline)
            except ProofNotFound:
                continue
            one = Proof(self.network, self.X, self.y, (row,), (radius,), tuple(programs), self.X, self.box)
            if one.checked(0, self.cache):
                return radius, programs
        return None

    def _radii(self, row: int, certified: float) -> Iterator[float]:
        """What to try, until something is proved."""
        yield certified
        if not self.searches:
            certified = self._dual_radius(row, certified)
            yield certified
        yield from (certified * share for share in SHARES)

    def _margins(self, row: int, radius: float) -> list[Margin]:
        net, x = self.network, self.X[row]
        z = net.offsets(x)
        box = np.array(self.box or ())
        return [Margin(net, x, z, radius, c, c0, box, self.cache) for c, c0 in net.margins(float(self.y[row]))]

    def _programs(self, row: int, radius: float, flip: Array, deadline: float) -> list[Program]:
        def expired() -> bool:
            return time.process_time() > deadline

        margins = self._margins(row, radius)
        if self.searches and len(self.network.parts) == 1:
            try:
                return [TwoLayerProver(margin, self.span, expired).program(flip) for margin in margins]
            except ProofNotFound:  # the dual of all layers costs more and ends in polyhedra
                if self.network.parts[-1].stop > SMALL:
                    raise
        rivals = self._rivals(row, radius)
        order = np.argsort(rivals.distances)  # the nearest first: a radius that fails does so at once
        found = {int(rival): self._deep(margins[rival], rivals, int(rival), expired) for rival in order}
        return [found[rival] for rival in range(len(margins))]

    def _rivals(self, row: int, radius: float) -> Rivals:
        label = torch.tensor(self.y[row]) if len(self.network.biases[-1]) == 1 else torch.tensor(int(self.y[row]))
        return self.chained.around(torch.from_numpy(self.X[row]), radius, label, self.box)

    def _deep(self, margin: Margin, rivals: Rivals, rival: int, expired: Callable[[], bool]) -> Program:
        known = margin.network.first_intervals(margin.z, margin.radius)
        for step in (rivals.first, rivals.better)[: 1 if self.searches else 2]:
            try:
                margin.after(step(rival), known, narrow=False)
                return (Line(CLOSE, step(rival)),)
            except Refused:
                continue
        if not self.searches:
            raise ProofNotFound("one dual point is not enough")
        return DeepProver(margin, expired).program(rivals.first(rival))

    def _dual_radius(self, row: int, certified: float) -> float:
        """What one dual point for each rival proves: it does not depend on the radius that is asked for."""
        radius, rivals = certified, self._rivals(row, certified)
        for rival, margin in enumerate(self._margins(row, certified)):
            known = margin.network.first_intervals(margin.z, certified)
            for step in (rivals.first, rivals.better):
                proof, *quadratic = margin.chain(step(rival), known)
                floor = proof.floor(*quadratic)[0]
                if floor >= margin.enough():
                    break
            radius = min(radius, float(np.sqrt(max(2 * floor, 0.0))) * (1 - 1e-12))
        return radius


def _checkable(layered: Layered, data: Data) -> tuple[Checked, Array, Array]:
    """The network and the data as the checker has them."""
    return read_for_checker(layered), np.ascontiguousarray(data.X.double().numpy()), data.y.double().numpy()


def read_for_checker(layered: Layered) -> Checked:
    """The network as the checker has it."""
    weights, biases = (
        [np.ascontiguousarray(each.detach().numpy()) for each in part] for part in (layered.weights, layered.biases)
    )
    return Checked(weights, biases)


def _shared(values: Array) -> np.ndarray:
    """One row if all are the same; as float32 where that changes nothing."""
    values = values[:1] if (values == values[:1]).all() else values
    with np.errstate(over="ignore"):  # infinity is another number
        small = values.astype(np.float32)
    return small if (small == values).all() else values


def write_beside(proof: Proof, path: Path, network_path: Path | None, data_path: Path | None) -> list[Path]:
    """What the checker reads in the place of files that it cannot read: the network and the data, beside the proof."""
    written = []
    if not _is_network(proof, network_path):
        written.append(path.with_suffix(".network.npz"))
        _write(written[-1], _layers(proof.network))
    if not _is_data(proof, data_path):
        written.append(path.with_suffix(".data.npz"))
        _write(written[-1], {"X": proof.X, "y": proof.y})
    return written


def _is_network(proof: Proof, path: Path | None) -> bool:
    if path is None:
        return False
    try:
        return digest(read_network(path).parameters()) == digest(proof.network.parameters())
    except (Refused, KeyError, ValueError, IndexError, TypeError):
        return False


def _is_data(proof: Proof, path: Path | None) -> bool:
    rows = list(proof.rows)
    if path is None:
        return False
    try:
        X, y = read_data(path, proof.network)
        return max(rows, default=0) < len(X) and digest([X[rows], y[rows]]) == digest([proof.X[rows], proof.y[rows]])
    except (Refused, KeyError, ValueError, IndexError, TypeError):
        return False


def _write(path: str | Path, arrays: dict[str, np.ndarray]) -> None:
    with replacing(path) as stream:
        np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]


def _layers(network: Checked) -> dict[str, np.ndarray]:
    """weight.k and bias.k of every layer."""
    pairs = enumerate(zip(network.weights, network.biases, strict=True))
    return {name: values for k, (W, b) in pairs for name, values in ((f"weight.{k}", W), (f"bias.{k}", b))}
