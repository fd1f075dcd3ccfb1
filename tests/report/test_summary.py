"""The summary of a pipeline: it says passed or failed, appends, and is Markdown whatever the names are."""

from dataclasses import replace

import pytest
import torch

import brittle as bt
from brittle.auditing.change import compare_audits
from brittle.data import Data, Sphere
from brittle.networks import TorchLinearInit
from brittle.report.svg import number, share
from brittle.report.words import summary, write_summary


@pytest.fixture(scope="module")
def found():
    rng = torch.Generator().manual_seed(0)
    network, points = TorchLinearInit().draw(6, 10, rng), Sphere(6).sample(8, rng)
    return bt.audit(network, Data(points.X, network.predict(points.X)), examples=8, budget=3.0, remedies="none")


def test_it_says_passed_or_failed(found):
    passed, failed = summary(found, "a_b*", None), summary(found, "net", "too short")
    assert passed.startswith("### ✅ a\\_b\\*\n")
    assert failed.startswith("### ❌ net: too short\n")
    assert f"| median distance to a flip | {number(found.vulnerability.free.median)} |" in passed
    assert "| | now |" in passed


def test_it_says_what_changed(found):
    shorter = replace(
        found, vulnerability=replace(found.vulnerability, free=replace(found.vulnerability.free, median=0.1234))
    )
    text = summary(found, "net", None, compare_audits(shorter.to_json(), found.to_json()))
    assert f"| median distance to a flip | 0.1234 | {number(found.vulnerability.free.median)} |" in text
    assert f"| training accuracy | {share(1.0)} | {share(1.0)} |" in text
    assert "Of 8 examples that both audits attacked" in text


def test_it_is_added_to_what_is_there(found, tmp_path):
    (tmp_path / "s.md").write_text("before\n")
    write_summary(tmp_path / "s.md", found, "net", None)
    assert (tmp_path / "s.md").read_text().startswith("before\n### ✅ net\n")
    with pytest.raises(bt.InputError, match="cannot be written"):
        write_summary(tmp_path, found, "net", None)
