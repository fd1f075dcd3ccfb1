"""Whoever follows a certificate through its folder only goes down: no file calls one that stands above it."""

import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

import brittle.certificates
from brittle.attacks import Ray
from brittle.certificates import Dual, Exact, LinearRelaxation, Lipschitz
from brittle.data import Data
from brittle.networks import TorchLinearInit

FOLDER = Path(brittle.certificates.__file__).parent
ORDER = [
    "base",
    *("exact", "dual", "lipschitz", "relaxation"),
    "settled_signs",
    "saddle",
    "dual_bound",
    "margins",
    "example",
    "layers",
    "rounding",
]
PARTS = [Exact(), Dual(), Dual(refined=True), Lipschitz("local"), Lipschitz("spectral"), LinearRelaxation(steps=2)]


def place(frame):
    """The folder's file that a frame belongs to, None outside."""
    path = Path(frame.f_code.co_filename)
    return path.stem if path.parent == FOLDER else None


@contextmanager
def recorded():
    """The calls from one file of the folder to another, through whatever lies between."""
    calls, before = set(), sys.getprofile()

    def look(frame, event, _):
        callee, above = place(frame), frame.f_back
        if event != "call" or callee is None:
            return
        while above is not None and place(above) is None:
            above = above.f_back
        if above is not None and place(above) != callee:
            calls.add((place(above), callee))

    sys.setprofile(look)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def upward(calls):
    return {(caller, callee) for caller, callee in calls if ORDER.index(callee) < ORDER.index(caller)}


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_a_certificate_only_calls_downwards(part, rng):
    network = TorchLinearInit().draw(6, 30, rng).to(torch.float64)
    X = torch.randn(3, 6, generator=rng, dtype=torch.float64)
    data = Data(X, torch.where(network.logits(X) > 0, 1.0, -1.0).double())
    with recorded() as calls:
        part.bound(network, data, attack=Ray())
    assert len(calls) > 3
    assert not upward(calls)


def test_a_callback_would_be_seen():
    """As if margins were handed a function of base."""
    names = {}
    for file, source in (("base", "def shorten(): pass"), ("margins", "def over(callback): callback()")):
        exec(compile(source, FOLDER / f"{file}.py", "exec"), names)
    with recorded() as calls:
        names["over"](names["shorten"])
    assert upward(calls) == {("margins", "base")}


def test_every_file_has_its_place():
    assert {path.stem for path in FOLDER.glob("*.py")} == {*ORDER, "__init__"}
