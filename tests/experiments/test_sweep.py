"""A sweep loses nothing: cells are skipped, run again, kept apart, whatever dies."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from threadpoolctl import threadpool_info

from brittle.common.errors import InputError
from brittle.experiments.cell import Task
from brittle.experiments.cells import conclude_figure, load_cells, run_cells
from brittle.experiments.code import code_hash
from brittle.experiments.engines import Dask, Local, attempt, engine
from tests.cases import ENGINES
from tests.experiments import toy

CELLS = toy.Squares().cells("smoke")


def points(found):
    return {cell.key: outcome["measured"] for cell, outcome in found}


def run(folder, work=toy.work, jobs=1, cells=CELLS):
    return list(run_cells(cells, folder, work, Local(jobs)))


def test_a_second_run_takes_everything_from_the_folder(tmp_path):
    first = run(tmp_path)

    def unwanted(cell):
        raise AssertionError("measured again")

    assert points(run(tmp_path, unwanted)) == points(first)


@pytest.mark.parametrize("place", [pytest.param(place, id=name) for name, place in ENGINES if isinstance(place, Local)])
def test_every_local_engine_measures_the_same(tmp_path, place):
    found = points(run_cells(CELLS, tmp_path, toy.work, place))
    assert found == {cell.key: toy.work(cell.task)["measured"] for cell in CELLS}


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"measured": 3, "seconds": {}}', '{"seconds": {}}'])
def test_a_damaged_cell_is_measured_again(tmp_path, damage):
    whole = points(run(tmp_path))
    path = tmp_path / f"{CELLS[0].key}.json"
    path.write_text(damage)
    assert CELLS[0].key not in load_cells(tmp_path, CELLS)
    assert points(run(tmp_path)) == whole
    assert json.loads(path.read_text())["measured"] == whole[CELLS[0].key]


def test_a_failing_cell_does_not_keep_the_others_from_being_measured(tmp_path):
    outcomes = {cell.key: outcome for cell, outcome in run(tmp_path, toy.failing, jobs=2)}
    failed = [cell for cell in CELLS if isinstance(outcomes[cell.key], Exception)]
    assert [cell.seed for cell in failed] == [2, 2]
    assert "ValueError: two is too many" in str(outcomes[failed[0].key])
    assert set(load_cells(tmp_path, CELLS)) == {cell.key for cell in CELLS if cell not in failed}


def test_the_cells_of_a_worker_that_died_are_run_again(tmp_path):
    cells = toy.marked(CELLS, tmp_path / "marker")
    found = run(tmp_path / "cells", toy.deadly_once, jobs=2, cells=cells)
    assert (tmp_path / "marker").exists()
    assert points(found) == points(run(tmp_path / "calm", cells=cells))


def test_cells_that_always_kill_their_worker_end_the_run(tmp_path):
    with pytest.raises(InputError, match="--jobs"):
        run(tmp_path, toy.deadly, jobs=2)


def test_an_interrupted_generator_leaves_whole_cells(tmp_path):
    walk = run_cells(CELLS, tmp_path, toy.work, Local())
    seen = [next(walk)[0] for _ in range(2)]
    walk.close()
    assert set(load_cells(tmp_path, CELLS)) == {cell.key for cell in seen}


def test_missed_stops_are_counted_and_carry_no_claim(tmp_path):
    outcomes = {cell.key: outcome for cell, outcome in run(tmp_path)}
    result = conclude_figure(toy.Squares(), "smoke", CELLS, [outcomes[cell.key] for cell in CELLS])
    assert [(point["offset"], point["seed"]) for point in result.unreached] == [(10, 1)]
    assert len(result.points) == len(CELLS) - 1
    assert result.claims[0].measured == "5 points"
    assert result.seconds["other"] == 2.0 * len(CELLS)
    assert "seconds" not in result.points[0]


def test_a_cell_is_named_by_its_parameters_and_its_code():
    cell = CELLS[0]
    task = cell.task
    others = [
        replace(cell, seed=7).task,
        Task(task.family, task.params, "other code"),
        Task("toy/cubes", task.params, task.code),
    ]
    assert len({each.key for each in [cell, *others]}) == 4
    shuffled = dict(reversed(task.params.items()))
    assert Task(task.family, shuffled, task.code).key == task.key == cell.key
    assert task.params == cell.to_json() == {"offset": 0, "seed": 0}
    assert task.code == code_hash("tests.experiments.toy")


def test_only_some_cells_and_other_seeds():
    some = toy.Squares().cells("smoke", {"offset": [10]}, first_seed=5)
    assert [cell.to_json() for cell in some] == [{"offset": 10, "seed": seed} for seed in (5, 6, 7)]
    with pytest.raises(InputError, match="0, 10"):
        toy.Squares().cells("smoke", {"offset": [3]})
    with pytest.raises(InputError, match="no such parameter"):
        toy.Squares().cells("smoke", {"depth": [3]})
    with pytest.raises(InputError, match="smoke, quick, full"):
        toy.Squares().cells("huge")


def test_a_cell_computes_with_one_thread_and_leaves_the_number_alone():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert attempt(lambda cell: {"threads": threads()}, CELLS[0].task) == {"threads": {1}}
        assert isinstance(attempt(lambda cell: {}["missing"], CELLS[0].task), RuntimeError)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def threads():
    """PyTorch's number, and those of NumPy's and SciPy's linear algebra."""
    return {torch.get_num_threads(), *(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")}


def test_engines_by_name():
    assert engine("local", 3) == Local(3)
    assert engine("dask://host:8786", 3) == Dask("host:8786")
    for wrong in ("ray://host", "dask://", "cluster"):
        with pytest.raises(InputError, match="dask://host:port"):
            engine(wrong, 1)
    with pytest.raises(InputError, match="jobs is 0"):
        Local(0)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made a folder"):
        run(Path(tmp_path / "file" / "cells"))
