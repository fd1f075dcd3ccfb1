"""Solvers pass frozen states on: a step leaves its state alone, and taken again it leads to the same place."""

import dataclasses

import pytest
import torch

from brittle.common.progress import silent
from brittle.data import Clusters
from brittle.kkt.examples import find_columns, gather
from brittle.kkt.interior_point import Quadratic
from brittle.kkt.residual import Polish, homogeneous, stationarity_problem
from brittle.kkt.restricted_master import solve_master
from brittle.kkt.working_set import ColumnGeneration, ConvexConcave, WorkingSetMethod
from tests.kkt.reference import fitted, gaussian, generator


def tensors(value):
    """Every tensor inside a state, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    return [part for item in value for part in tensors(item)] if isinstance(value, tuple | list) else []


def problem(data, width=60, seed=0):
    X, weights = homogeneous(fitted(data, width, seed), data, True)
    return gather(X, data.y), weights


def column_generation():
    examples, weights = problem(gaussian(16, 8, 0), width=150)
    pool = find_columns(examples.X @ weights.W.T, weights.v.sign(), examples.y).distinct()
    solver = ColumnGeneration(examples, pool, 0.01, silent)
    return solver, solver.start()


def convex_concave():
    generation, state = column_generation()
    generated = generation.step(state)
    solver = ConvexConcave(generation.examples, generated.columns, generated.solved, silent)
    return solver, solver.start()


def working_set():
    examples, weights = problem(Clusters(100, clusters=6, noise=0.5).sample(320, generator(1)), width=400)
    solver = WorkingSetMethod(examples, weights, 0.05, silent)
    return solver, solver.start()


def polish():
    X, weights = homogeneous(fitted(gaussian(9, 4, 2), 30, 2), gaussian(9, 4, 2), True)
    stationarity = stationarity_problem(X, gaussian(9, 4, 2).y, weights, 0.05)
    start = Quadratic(stationarity.arrow(), stationarity.rhs()).minimise(1.0, 1e-3)
    solver = Polish(stationarity, 1.0)
    lam, s, _ = start.values
    return solver, solver.start(type(stationarity.rhs())(lam, torch.minimum(s, lam[stationarity.kinks[:, 0]])))


@pytest.mark.parametrize("solver_and_state", [column_generation, convex_concave, working_set, polish])
def test_a_step_leaves_its_state_alone_and_can_be_taken_again(solver_and_state):
    solver, state = solver_and_state()
    before = [tensor.clone() for tensor in tensors(state)]
    first, second = solver.step(state), solver.step(state)
    assert before
    assert all(torch.equal(a, b) for a, b in zip(before, tensors(state), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(tensors(first), tensors(second), strict=True))
    assert not all(a is b for a, b in zip(tensors(state), tensors(first), strict=False))
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.solved = None


def test_a_master_that_is_solved_already_is_not_solved_again():
    generation, state = column_generation()
    solved = solve_master(generation.examples, state.columns, 1e-3)
    assert solve_master(generation.examples, state.columns, 1e-2, solved) is solved
    finer = solve_master(generation.examples, state.columns, 1e-8, solved)
    assert (finer.programs, finer.steps) == (solved.programs + 1, solved.steps + finer.iterate.steps)
