"""Pages for the tests: audits of small networks on digits, and what a page carries."""

import json
import re
from dataclasses import replace
from typing import Any

import torch

import brittle as bt
from brittle.auditing import Audit
from brittle.data import Data, Digits
from brittle.networks import Network

REMEDIES = ("remove-off-subspace", "robust-construction")


def audited_digits() -> tuple[Audit, Network, Data]:
    """Forty examples of two classes, two remedies; one of the labels is turned round, so that its radius is 0."""
    rng = torch.Generator().manual_seed(0)
    digits = Digits(classes=(3, 8)).sample(40, rng)
    start = bt.networks.TorchLinearInit().draw(64, 12, rng)
    training = bt.training.Flow(until=bt.training.LogLoss(-2.0), loss=bt.training.Logistic()).train(start, digits)
    y = digits.y.clone()
    y[5] = -y[5]
    data = Data(digits.X, y, truth=digits.truth)
    found = bt.audit(training.network, data, examples=40, budget=30.0, remedies=REMEDIES)
    return found, found.model, found.data


def loosened(found: Audit) -> Audit:
    """The same audit with fewer proofs: a fifth less proved of ten examples, and nothing of the last ten."""
    proofs = found.vulnerability.certified
    assert proofs is not None
    kept = len(proofs.rows) - 10
    lower, status = proofs.lower[:kept].clone(), list(proofs.status[:kept])
    for row in range(10):
        lower[row] *= 0.8
        status[row] = "proved" if status[row] == "exact" else status[row]
    fewer = replace(proofs, rows=proofs.rows[:kept], lower=lower, upper=proofs.upper[:kept], status=tuple(status))
    return replace(found, vulnerability=replace(found.vulnerability, certified=fewer))


def content_of(text: str) -> Any:
    """What the page's script works with."""
    found = re.search(r'<script type="application/json" id="content">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])
