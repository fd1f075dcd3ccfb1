"""Anybody's attack by its true excess, anybody's verifier by soundness and tightness."""

import csv
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from brittle.attacks import Attack, AttackResult
from brittle.certificates import Certificate
from brittle.common.errors import InputError, require
from brittle.common.files import replacing
from brittle.common.result import Result
from brittle.truth.made import TruthProblem, proof_files
from proofcheck.balls import Refused
from proofcheck.proof import Proof, read_data, read_network, read_proof

CLOSE = 0.01  # an excess below this counts as found
ROUNDING = 1e-9  # by which a bound may exceed the flip that refutes it, relatively
ALL = "all"
COLUMNS = ("problem", "example", "lower")


@dataclass(frozen=True)
class AttackScore(Result):
    """How much longer than the true radius an attack's flips are, on one problem or on all.

    problem: its name, or `all`; instances: how many; flipped: the share that the attack flipped at all; mean_excess,
    median_excess, worst_excess: of norm/radius - 1 over those; within: the share of all instances with an excess of at
    most 1 %; impossible: flips shorter than the proved radius, which would refute the proof; seconds: processor time.
    """

    problem: str
    instances: int
    flipped: float
    mean_excess: float
    median_excess: float
    worst_excess: float
    within: float
    impossible: int
    seconds: float


@dataclass(frozen=True)
class BoundScore(Result):
    """How good lower bounds are, on one problem or on all.

    problem: its name, or `all`; instances: how many; given: how many bounds there were; unsound: bounds above a flip
    that exists; mean_share, worst_share: of bound/radius over those given; within: the share of all instances whose
    bound is sound and at least 99 % of the radius; seconds: processor time, NaN where it is unknown.
    """

    problem: str
    instances: int
    given: int
    unsound: int
    mean_share: float
    worst_share: float
    within: float
    seconds: float


@dataclass(frozen=True, eq=False)
class MeasuredMethod:
    """What an attack or a verifier said of one problem: values (n,), NaN where nothing."""

    problem: TruthProblem
    values: Tensor
    seconds: float


def measure_attack(attack: Attack[AttackResult], problem: TruthProblem, seed: int = 0) -> MeasuredMethod:
    """The norms of the flips, measured on the network; infinite where there is none."""
    began = time.process_time()
    found = attack.run(problem.network, problem.data, rng=torch.Generator().manual_seed(seed))
    norms = torch.where(found.success, found.norms, torch.inf)
    return MeasuredMethod(problem, norms, time.process_time() - began)


def measure_certificate(certificate: Certificate, problem: TruthProblem, seed: int = 0) -> MeasuredMethod:
    """The certificate's lower bounds."""
    began = time.process_time()
    found = certificate.bound(problem.network, problem.data, rng=torch.Generator().manual_seed(seed))
    return MeasuredMethod(problem, found.lower, time.process_time() - began)


def attack_scores(measured: Iterable[MeasuredMethod]) -> list[AttackScore]:
    """One for every problem, and one for all."""
    parts = list(measured)
    return [_attack_score(part.problem.name, [part]) for part in parts] + [_attack_score(ALL, parts)]


def bound_scores(measured: Iterable[MeasuredMethod]) -> list[BoundScore]:
    """One for every problem, and one for all."""
    parts = list(measured)
    return [_bound_score(part.problem.name, [part]) for part in parts] + [_bound_score(ALL, parts)]


def _attack_score(name: str, parts: list[MeasuredMethod]) -> AttackScore:
    norms, lower, upper, seconds = _joined(parts)
    found = norms.isfinite()
    excess = (norms[found] / upper[found] - 1).clamp(min=0)
    nothing = float("nan")
    return AttackScore(
        problem=name,
        instances=len(norms),
        flipped=float(found.double().mean()),
        mean_excess=float(excess.mean()) if len(excess) else nothing,
        median_excess=float(excess.median()) if len(excess) else nothing,
        worst_excess=float(excess.max()) if len(excess) else nothing,
        within=float((excess <= CLOSE).double().sum()) / len(norms),
        impossible=int((norms < lower * (1 - ROUNDING)).sum()),
        seconds=seconds,
    )


def _bound_score(name: str, parts: list[MeasuredMethod]) -> BoundScore:
    bounds, _, upper, seconds = _joined(parts)
    given = ~bounds.isnan()
    share = bounds[given] / upper[given]
    sound = share <= 1 + ROUNDING
    nothing = float("nan")
    return BoundScore(
        problem=name,
        instances=len(bounds),
        given=int(given.sum()),
        unsound=int((~sound).sum()),
        mean_share=float(share.mean()) if len(share) else nothing,
        worst_share=float(share.min()) if len(share) else nothing,
        within=float((sound & (share >= 1 - CLOSE)).double().sum()) / len(bounds),
        seconds=seconds,
    )


def _joined(parts: list[MeasuredMethod]) -> tuple[Tensor, Tensor, Tensor, float]:
    values = torch.cat([part.values for part in parts])
    lower = torch.cat([part.problem.lower for part in parts])
    upper = torch.cat([part.problem.upper for part in parts])
    return values, lower, upper, sum(part.seconds for part in parts)


def read_stated_bounds(path: Path, problems: Iterable[TruthProblem]) -> list[MeasuredMethod]:
    """The bounds of a file: .csv with columns problem, example, lower, or .json {problem: [lower, ...]}."""
    given = _from_json(path) if path.suffix.lower() == ".json" else _from_csv(path)
    require(any(given.values()), f"{path}: there are no bounds in it")
    problems = list(problems)
    unknown = given.keys() - {problem.name for problem in problems}
    require(not unknown, f"{path}: the problem {min(unknown, default='')!r} is not in the folder")
    measured = []
    for problem in problems:
        values = torch.full((len(problem.data),), torch.nan, dtype=torch.float64)
        for row, bound in given.get(problem.name, {}).items():
            fits = 0 <= row < len(values)
            require(fits, f"{path}: {problem.name} has the examples 0 to {len(values) - 1}, not {row}")
            require(bound >= 0, f"{path}: {problem.name}, example {row}: {bound} is no radius")
            values[row] = bound
        measured.append(MeasuredMethod(problem, values, float("nan")))
    return measured


def _from_json(path: Path) -> Mapping[str, dict[int, float]]:
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        return {name: {row: float(bound) for row, bound in enumerate(bounds)} for name, bounds in content.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: {error}; {{problem: [lower, ...]}} is needed") from None


def _from_csv(path: Path) -> Mapping[str, dict[int, float]]:
    given: dict[str, dict[int, float]] = {}
    with path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets put a mark before the first column's name
        lines = csv.DictReader(file)
        try:
            require(set(COLUMNS) <= set(lines.fieldnames or ()), f"{path}: columns {', '.join(COLUMNS)} are needed")
            for line in lines:
                name, row, bound = _row(f"{path}, line {lines.line_num}", line)
                bounds = given.setdefault(name, {})
                require(row not in bounds, f"{path}, line {lines.line_num}: {name}, example {row} is there twice")
                bounds[row] = bound
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(f"{path}: {error}; a table of the columns {', '.join(COLUMNS)} is needed") from None
    return given


def _row(place: str, line: Mapping[str, str | None]) -> tuple[str, int, float]:
    name, row, bound = (line[column] for column in COLUMNS)
    try:
        return str(name), int(row or ""), float(bound or "")
    except ValueError:
        raise InputError(f"{place}: {row!r} and {bound!r} must be an example's number and a radius") from None


# Instances in the form of the verifiers' competition: an SMT-LIB text that asks for a flip within a radius.
#
# VNN-LIB's benchmarks have boxes; an ℓ2 ball is one quadratic inequality, which the language allows and few tools read.


INSIDE, OUTSIDE = 0.999, 1.001  # of the enclosure: no flip within the first radius, a flip within the second


def query(problem: TruthProblem, row: int, radius: float) -> str:
    """Satisfiable if and only if some point within the radius has another class at least level with the label's."""
    x, y = problem.data.X[row].tolist(), problem.data.y[row]
    outputs = max(2, problem.network.classes) if problem.network.classes > 1 else 1
    lines = [f"(declare-const X_{i} Real)" for i in range(len(x))]
    lines += [f"(declare-const Y_{k} Real)" for k in range(outputs)]
    squares = " ".join(f"(* (- X_{i} {_number(value)}) (- X_{i} {_number(value)}))" for i, value in enumerate(x))
    lines.append(f"(assert (<= (+ {squares}) {_number(radius**2)}))")
    if outputs == 1:
        lines.append(f"(assert ({'<=' if y > 0 else '>='} Y_0 0))")
    else:
        rivals = " ".join(f"(and (>= Y_{k} Y_{int(y)}))" for k in range(outputs) if k != int(y))
        lines.append(f"(assert (or {rivals}))")
    return "\n".join(lines) + "\n"


def write_queries(problem: TruthProblem, folder: Path) -> int:
    """Two for every example, one on each side of its radius, with instances.csv; how many were written."""
    place = folder / problem.name / "vnnlib"
    place.mkdir(parents=True, exist_ok=True)
    rows = list(_written(problem, place))
    with replacing(place / "instances.csv") as file:
        file.write("".join(f"../network.onnx,{name},{answer}\n" for name, answer in rows).encode())
    return len(rows)


def _written(problem: TruthProblem, place: Path) -> Iterator[tuple[str, str]]:
    for row in range(len(problem.data)):
        sides = ((problem.lower, INSIDE, "unsat"), (problem.upper, OUTSIDE, "sat"))
        for radii, factor, answer in sides:
            name = f"{row}-{answer}.vnnlib"
            with replacing(place / name) as file:
                file.write(query(problem, row, factor * float(radii[row])).encode())
            yield name, answer


def _number(value: float) -> str:
    """Exactly, as SMT-LIB writes decimals: no exponent, no sign."""
    text = format(Decimal(abs(value)), "f")
    text = text if "." in text else f"{text}.0"
    return f"(- {text})" if value < 0 else text


# The proofs of the truth set, read again by `proofcheck` and nothing else.


NO_LIMIT = float("inf")  # of seconds: the checksum says that it is the file that was made here


class Count(NamedTuple):
    """How many radii are said to be proved, and how many of them are."""

    proved: int
    again: int


def check_proofs(problem: TruthProblem, folder: Path) -> Count:
    """Radii of the record that the file proves whole."""
    said = {row: radius for row, radius in enumerate(problem.proved.tolist()) if radius > 0}
    if not said:
        return Count(0, 0)
    path, network_path, data_path = proof_files(folder, problem.name)
    try:
        network = read_network(network_path)
        proof = read_proof(path, network, *read_data(data_path, network), NO_LIMIT)
    except (Refused, KeyError, IndexError, ValueError, TypeError):
        return Count(len(said), 0)
    rows = proof.found["rows"].tolist()
    with np.errstate(all="ignore"):  # NaN and infinity prove nothing
        again = {row for place, row in enumerate(rows) if _proves(proof, place, said.get(row))}
    return Count(len(said), len(again))


def _proves(proof: Proof, place: int, radius: float | None) -> bool:
    """Whether the claim holds and is no less than the radius."""
    try:
        return radius is not None and proof.check(place) >= radius
    except Refused:
        return False
