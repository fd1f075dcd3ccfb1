"""Random PyTorch modules in files, scripted, traced or exported; the reference is the module itself."""

import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.differential.eager import Eager
from benchmarks.differential.outcomes import outcome, quiet
from benchmarks.differential.sources import Source, draw_source
from benchmarks.differential.tally import ReadingTally, shortened, skipped
from brittle.networks import read_network

OFTEN = {"in place": 2.0, "choice": 4.0, "types": 1.5, "smooth": 0.5}
ROWS = 4  # of the example that a program is made with


def drawn(case: int, more: Mapping[str, float] = OFTEN) -> tuple[Source, str, np.random.Generator]:
    """The module of a case, how it is written, and the generator of its inputs.

    `more` changes how often kinds of operations are tried.
    """
    rng = np.random.default_rng([2, case])
    way = str(rng.choice(list(WAYS)))
    return draw_source(rng, more), way, rng


def examine(case: int, more: Mapping[str, float] = OFTEN) -> ReadingTally:
    """One program."""
    source, way, rng = drawn(case, more)
    reference = Eager(source.module(case, core=True), source.shape, source.dtype)
    kinds = [f"{way}: {kind}" for kind in source.kinds] + [way]
    with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng(devices=[]):
        torch.manual_seed(case)  # of dropout, where a module asks for it
        path = Path(folder) / ("net.pt2" if way.startswith("exported") else "net.pt")
        try:
            _quietly(WAYS[way], source.module(case), torch.ones(ROWS, *source.shape, dtype=source.dtype), path)
        except Exception as error:  # PyTorch does not write every module
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            return skipped(f"not {way}: {shortened(reason)[:60]}")
        name = f"program {case} ({way})"
        tally = outcome(name, lambda: read_network(path, shape=source.shape), reference, kinds, rng, path=str(path))
        whole = Eager(source.module(case), source.shape, source.dtype)
        if tally.violations and _written_otherwise(source, path, whole):
            return skipped(f"{way}: PyTorch wrote another function")
        return tally


def _written_otherwise(source: Source, path: Path, reference: Eager) -> bool:
    """Whether the file, run by PyTorch itself, is another function than the module."""
    load: Callable[[Path], Any] = torch.jit.load
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(5, int(np.prod(source.shape)))))
    try:
        program = torch.export.load(path).module() if path.suffix == ".pt2" else load(path)
        written = Eager(program, source.shape, source.dtype)
    except Exception:
        return False
    for rows in (X, X[:1]):
        try:
            if not torch.allclose(written.outputs(rows), reference.outputs(rows), rtol=1e-4, atol=1e-6):
                return True
        except Exception:  # a program for batches of another size
            continue
    return False


def described(case: int) -> str:
    """The source of a case, and how it is written."""
    source, way, _ = drawn(case)
    return f"{source.text}\n# {way}; inputs of the shape {source.shape}, {source.dtype}, numbers: {source.style}"


def _quietly(write: Callable[[nn.Module, Tensor, Path], None], module: nn.Module, X: Tensor, path: Path) -> None:
    with warnings.catch_warnings(), quiet("torch"):
        warnings.simplefilter("ignore")
        write(module, X, path)


def _scripted(module: nn.Module, X: Tensor, path: Path) -> None:
    save: Callable[[Any, str], None] = torch.jit.save
    save(torch.jit.script(module), str(path))


def _frozen(module: nn.Module, X: Tensor, path: Path) -> None:
    """Frozen as for deployment: weights become constants of the program."""
    save: Callable[[Any, str], None] = torch.jit.save
    freeze: Callable[[Any], Any] = torch.jit.freeze
    save(freeze(torch.jit.script(module)), str(path))


def _traced(module: nn.Module, X: Tensor, path: Path) -> None:
    save: Callable[[Any, str], None] = torch.jit.save
    with torch.no_grad():
        save(torch.jit.trace(module, X, check_trace=False), str(path))  # type: ignore[no-untyped-call]


def _exported(module: nn.Module, X: Tensor, path: Path) -> None:
    rows = [{0: torch.export.Dim("rows", min=2)}]
    torch.export.save(torch.export.export(module, (X,), dynamic_shapes=rows), path)


def _exported_fixed(module: nn.Module, X: Tensor, path: Path) -> None:
    torch.export.save(torch.export.export(module, (X[:1],)), path)


def _decomposed(module: nn.Module, X: Tensor, path: Path) -> None:
    rows = [{0: torch.export.Dim("rows", min=2)}]
    torch.export.save(torch.export.export(module, (X,), dynamic_shapes=rows).run_decompositions(), path)


WAYS: dict[str, Callable[[nn.Module, Tensor, Path], None]] = {
    "scripted": _scripted,
    "frozen": _frozen,
    "traced": _traced,
    "exported": _exported,
    "exported for one example": _exported_fixed,
    "exported and decomposed": _decomposed,
}
