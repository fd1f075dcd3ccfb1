"""Causes with their measures: those that the audit names lie beyond their marks."""

import pytest
import torch

import brittle as bt
from brittle.auditing.found import Mechanism
from brittle.data import Data, Subspace


def mechanism(value, threshold=0.2, harmless=1.0, worst=0.0):
    return Mechanism("m", "", value, threshold, harmless, worst, None, "", False, "")


def test_a_scale_goes_from_harmless_to_worst():
    assert mechanism(1.0).strength == 0
    assert mechanism(0.25).strength == 0.75
    assert mechanism(-3.0).strength == 1
    assert mechanism(None).strength is None
    assert mechanism(0.0).mark == pytest.approx(0.8)
    assert mechanism(1.5, 1.15, 1.0, 2.0).strength == 0.5


def test_named_causes_come_first_and_lie_beyond_their_marks():
    """Data on a subspace and a start that is large off it: that cause is named."""
    rng = torch.Generator().manual_seed(0)
    points = Subspace(dim=60, codimension=54).sample(10, rng)
    network = bt.networks.TorchLinearInit().draw(60, 40, rng)
    data = Data(points.X, network.predict(points.X))
    found = bt.audit(network, data, start=network, examples=10, budget=5.0, remedies="none")
    rows = found.mechanisms
    named = [row for row in rows if row.named]
    assert [row.sentence for row in named] == list(found.weaknesses)
    assert list(rows[: len(named)]) == named
    assert "off-subspace weights" in [row.name for row in named]
    for row in named:
        if row.strength is not None:
            assert row.strength >= row.mark
    off = next(row for row in rows if row.name == "off-subspace weights")
    weak = found.vulnerability
    assert off.factor == pytest.approx(weak.on.median / weak.free.median)
    assert found.to_json()["mechanisms"][0]["name"] == rows[0].name
