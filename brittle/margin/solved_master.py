"""Restricted masters one after the other, and what the solution of one says about the KKT point."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from brittle.margin.candidate import Candidate, Slope
from brittle.margin.columns import Columns
from brittle.margin.examples import Examples
from brittle.margin.interior_point import Iterate, follow
from brittle.margin.master_newton import linearise
from brittle.margin.restricted_master import Inequalities, RestrictedMaster


@dataclass(frozen=True, eq=False)
class SolvedMaster:
    """A restricted master of these examples and its solution, the best iterate.

    programs, steps: how many masters and interior-point steps there were, those of the masters before it included.
    """

    examples: Examples
    master: RestrictedMaster
    iterate: Iterate[Inequalities]
    programs: int
    steps: int

    def candidate(self) -> Candidate:
        """Which neurons live, which examples lie on the margin, which are kinks: each value against its multiplier."""
        master, values, duals = self.master, self.iterate.values, self.iterate.duals
        shape = master.columns.patterns.shape
        t = master.spread(values.t, torch.zeros(shape, dtype=values.t.dtype))
        kind = torch.where(duals.t > values.t, Slope.OFF, torch.where(duals.w > values.w, Slope.ON, Slope.KINK))
        slopes = master.spread(kind, torch.full(shape, Slope.KINK))
        margin = values.lam > duals.lam
        candidate = Candidate(self.examples, master.columns, values.lam, duals.slack, t, margin, slopes)
        return candidate.take(torch.nonzero(duals.slack > values.slack)[:, 0])


def solve_master(
    examples: Examples,
    columns: Columns,
    tolerance: float,
    last: SolvedMaster | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> SolvedMaster:
    """The restricted master of these columns to a gap of `tolerance`, or as far as it was at a `stop`.

    It is `last` itself if that is what is asked for.
    """
    if last is not None and last.master.columns is columns and last.iterate.gap <= tolerance:
        return last
    master = RestrictedMaster(examples.K, examples.y, columns)
    iterate = follow(partial(linearise, master), master.start(), tolerance, stop=stop)
    programs, steps = (last.programs, last.steps) if last is not None else (0, 0)
    return SolvedMaster(examples, master, iterate, programs + 1, steps + iterate.steps)
