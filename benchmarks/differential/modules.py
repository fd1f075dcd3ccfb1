"""Random PyTorch modules, read from memory; the reference is the module itself."""

import numpy as np
import torch

from benchmarks.differential.eager import Eager
from benchmarks.differential.outcomes import outcome
from benchmarks.differential.sources import Source, draw_source
from benchmarks.differential.tally import ReadingTally, skipped
from brittle.networks import recognise


def drawn(case: int) -> tuple[Source, np.random.Generator]:
    """The module of a case, and the generator of its inputs."""
    rng = np.random.default_rng([1, case])
    return draw_source(rng), rng


def examine(case: int) -> ReadingTally:
    """One module."""
    source, rng = drawn(case)
    try:
        module = source.module(case)
    except Exception as error:
        return skipped(type(error).__name__)
    reference = Eager(source.module(case, core=True), source.shape, source.dtype)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(case)  # of dropout, where a module asks for it
        return outcome(
            f"module {case}", lambda: recognise(module, source.shape), reference, source.kinds, rng, transparent=False
        )


def described(case: int) -> str:
    """The source of a case."""
    source, _ = drawn(case)
    return f"{source.text}\n# inputs of the shape {source.shape}, {source.dtype}, numbers: {source.style}"
