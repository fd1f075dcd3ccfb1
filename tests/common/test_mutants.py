"""Mutation testing from its start to its end, with a mutant that never ends."""

import os
import subprocess
import sys

from benchmarks.mutant_changes import mutants, mutated
from benchmarks.mutants import HOME

SCRIPT = """
import sys
from benchmarks import mutant_runs, mutants
from benchmarks.mutant_targets import GROUPS, Group

file, tests = "brittle/geometry/vectors.py", "tests/geometry/test_rivals.py"
GROUPS.clear()
GROUPS["rivals"] = Group((file,), (tests,))
sys.argv = ["mutants", "--sample", "3", "--only", "[rows"]
mutants.main()
source = (mutants.HOME / file).read_text()
loop = mutant_runs.Job("loop", (tests,), (), mutant_runs.module_of(file), source + "\\nwhile True:\\n    pass\\n", 2)
asleep = mutant_runs.Job("asleep", (tests,), (), loop.module, source + "\\nimport time\\ntime.sleep(600)\\n", .4)
same = mutant_runs.Job("same", (tests,), (), loop.module, source)
for job, ran in mutant_runs.run([loop, asleep, same]):
    print(job.name, repr(ran.by))
"""


def test_three_mutants_end_to_end_and_one_that_never_ends() -> None:
    environment = {**os.environ, "PYTHONPATH": str(HOME)}
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=HOME, env=environment, capture_output=True, text=True, timeout=300
    )
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert "| all | 3 | 3 (100.0%) | 3 | 0 | 0 | 0 |" in lines
    assert {"loop 'time'", "asleep 'time'", "same ''"} <= set(lines)


SOURCE = '''
LIMIT = 4

def inside(values, low, tolerance=1e-9):
    """At least 1."""
    require(len(values) > 0, f"{1 + 1} values")
    if not values:
        raise ValueError
    best = min(values) + 3 * values[1 - 1]
    return bool(best >= low - 1e-6)
'''


def test_every_kind_of_change_is_made_once() -> None:
    found = list(mutants("a.py", SOURCE, frozenset()))
    assert [each.change for each in found] == [
        *("4 -> 8", "require(len(values) > 0, f'{1 + 1} values') -> pass", "if not values: raise ValueError -> pass"),
        "return bool(best >= low - 1e-06) -> return not bool(best >= low - 1e-06)",
        *("not values -> values", "min(values) + 3 * values[1 - 1] -> min(values) - 3 * values[1 - 1]"),
        "min(values) + 3 * values[1 - 1] -> min(values)",
        *(
            "len(values) > 0 -> len(values) <= 0",
            "min(values) -> max(values)",
            "3 * values[1 - 1] -> 3 / values[1 - 1]",
        ),
        *("best >= low - 1e-06 -> best < low - 1e-06", "0 -> 1", "3 -> 6"),
        *("low - 1e-06 -> low + 1e-06", "low - 1e-06 -> low", "1e-06 -> 1.0"),
    ]


def test_a_mutant_differs_in_its_one_place() -> None:
    for mutant in mutants("a.py", SOURCE, frozenset()):
        lines = mutated(mutant, SOURCE).splitlines()
        same = mutated(mutant, SOURCE.replace("LIMIT = 4", "LIMIT = 4.5")).splitlines()
        assert lines != same or mutant.function == "LIMIT"


def test_functions_that_are_left_out_have_no_mutants() -> None:
    assert {each.function for each in mutants("a.py", SOURCE, frozenset({"inside"}))} == {"LIMIT"}
