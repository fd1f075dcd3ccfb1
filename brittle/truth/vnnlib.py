"""Instances in the form of the verifiers' competition: an SMT-LIB text that asks for a flip within a radius.

VNN-LIB's benchmarks have boxes; an ℓ2 ball is one quadratic inequality, which the language allows and few tools read.
"""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from brittle.common.files import replacing
from brittle.truth.made import Problem

INSIDE, OUTSIDE = 0.999, 1.001  # of the enclosure: no flip within the first radius, a flip within the second


def query(problem: Problem, row: int, radius: float) -> str:
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


def write_queries(problem: Problem, folder: Path) -> int:
    """Two for every example, one on each side of its radius, with instances.csv; how many were written."""
    place = folder / problem.name / "vnnlib"
    place.mkdir(parents=True, exist_ok=True)
    rows = list(_written(problem, place))
    with replacing(place / "instances.csv") as file:
        file.write("".join(f"../network.onnx,{name},{answer}\n" for name, answer in rows).encode())
    return len(rows)


def _written(problem: Problem, place: Path) -> Iterator[tuple[str, str]]:
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
