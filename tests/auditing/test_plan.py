"""Work is counted: the same seed gives the same audit, whatever the machine does meanwhile."""

import json
import subprocess
import sys

import pytest
import torch

import brittle as bt
from brittle.auditing import budget as budgets
from brittle.auditing import vulnerability
from brittle.auditing.budget import Deadline, WorkBudget
from brittle.auditing.costs import AuditPlan, Costs, largest, operations, spectrum
from brittle.auditing.pieces import run_serially
from brittle.auditing.proofs import CertifiedSubject, certify
from brittle.auditing.trained_on import AdversarialTraining
from brittle.common.errors import InputError
from brittle.common.time_limit import TimeLimit
from brittle.data import Data
from brittle.experiments.engines import Engine, Local
from brittle.experiments.pieces import Executor
from brittle.networks import Convolution, Deep, Dense, Network, TorchLinearInit
from brittle.training import GradientDescent, Steps

REMEDIES = (AdversarialTraining(steps=60, inner_steps=3), "smaller-initialisation", "remove-off-subspace")


@pytest.fixture(scope="module")
def subject():
    """Two layers on 40 examples in 7 of 10 dimensions, with 20 held out."""
    rng = torch.Generator().manual_seed(0)
    X = torch.randn(60, 10, generator=rng, dtype=torch.float64)
    X[:, 7:] = 0
    y = X[:, 0].sign()
    data = Data(X[:40], y[:40], X[40:], y[40:])
    return GradientDescent(until=Steps(300), rate=0.5).train(TorchLinearInit().draw(10, 30, rng), data).network, data


def plain(value):
    """JSON without its seconds."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if name != "seconds"}
    return [plain(each) for each in value] if isinstance(value, list) else value


def test_the_same_seed_gives_the_same_audit_with_any_threads_beside_a_busy_process(subject):
    def audited():
        rng = torch.Generator().manual_seed(4)
        return bt.audit(*subject, budget=1.5, examples=12, remedies=REMEDIES, rng=rng)

    threads, found = torch.get_num_threads(), []
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(audited())
            busy.kill()
    finally:
        torch.set_num_threads(threads)
        busy.kill()
        busy.wait()
    first, second = (json.dumps(plain(each.to_json())) for each in found)
    assert found[0].reproducible
    assert first == second
    assert found[0].work <= found[0].budget * 1.2


class Backwards(Engine):
    """Does the last task first, and counts them."""

    def __init__(self) -> None:
        self.done = 0

    def run(self, work, tasks):
        self.done += len(tasks)
        yield from Local().run(work, tasks[::-1])


def test_the_audit_is_the_same_whoever_does_its_pieces(subject, tmp_path, monkeypatch):
    monkeypatch.setattr(vulnerability, "AT_ONCE", 5)  # so that there are several

    def audited(crew=run_serially):
        return bt.audit(*subject, budget=1.0, examples=12, remedies="none", crew=crew)

    engine = Backwards()
    kept = Executor(engine, tmp_path)
    found = [json.dumps(plain(each.to_json())) for each in (audited(), audited(kept), audited(kept))]
    assert found[0] == found[1] == found[2]
    assert engine.done == len(list(tmp_path.iterdir())) > 10  # the second time nothing was left to do


@pytest.mark.parametrize(("budget", "remedies"), [(0.5, "none"), (3.0, REMEDIES)])
def test_the_budget_is_spent_where_there_is_work_left(budget, remedies, subject):
    found = bt.audit(*subject, budget=budget, remedies=remedies)
    assert 0.8 * budget <= found.work <= 1.2 * budget
    assert not found.partial


def test_a_larger_budget_refines_the_advice_and_does_not_reverse_it(subject):
    few, many = (bt.audit(*subject, budget=budget, examples=12, remedies=REMEDIES) for budget in (1.0, 3.0))
    assert any(before.applied for before in few.remedies)
    for before, after in zip(few.remedies, many.remedies, strict=True):
        assert after.applied or not before.applied
        assert not before.applied or (before.factor >= 1.05) == (after.factor >= 1.05)


def test_the_hard_stop_is_admitted(subject, monkeypatch):
    monkeypatch.setattr(budgets, "COMPUTING", 1e-9)
    found = bt.audit(*subject, budget=1.0, examples=60, remedies=("remove-off-subspace",))
    assert not found.reproducible
    assert {"theorems", "remedy remove-off-subspace", "certificates"} <= set(found.partial)
    assert "not reproducible at this budget" in found.verdict
    assert not found.remedies[0].applied
    assert "Of the remedies" not in found.verdict
    assert found.to_json()["reproducible"] is False


def test_what_a_job_leaves_stays_for_others():
    whole = WorkBudget(10.0)
    job = whole.grant(4.0)
    job.charge(1.5)
    assert (job.left, whole.left) == (2.5, 8.5)
    assert job.steps(0.5) == 5
    assert whole.grant(100.0).seconds == 8.5
    assert job.limit == whole.limit
    with pytest.raises(InputError, match="larger budget"):
        job.stops(3.0)
    steps, deadline = job.stops(0.5)
    assert steps.value == 5
    assert str(deadline) == "the time limit"
    assert not deadline.reached(None, ())
    assert Deadline(TimeLimit.after(-1, 10)).reached(None, ())
    assert Deadline(TimeLimit.after(10, -1)).reached(None, ())


def test_the_plan_depends_on_sizes_alone(subject):
    network, data = subject
    other = Data(data.X.flip(0), data.y, data.X_test, data.y_test)
    plans = [bt.auditing.plan_audit(network, each, budget=5.0) for each in (data, other)]
    assert plans[0] == plans[1]
    assert bt.auditing.plan_audit(network, data, budget=5.0, test=True).examples <= 20
    small, large = (bt.auditing.plan_audit(network, data, budget=each).examples for each in (0.5, 50.0))
    assert 6 <= small < large == 40


def test_large_data_and_networks_are_planned_for_what_they_cost():
    rng = torch.Generator().manual_seed(0)
    data = Data(torch.zeros(600, 500), torch.ones(600).double())
    small, wide = (
        AuditPlan.of(TorchLinearInit().draw(500, width, rng), data, 600, 10.0, 200, 5) for width in (10, 2000)
    )
    assert small.examples > 50 > wide.examples >= 6
    assert small.kkt
    assert small.theorems
    poor = AuditPlan.of(TorchLinearInit().draw(500, 2000, rng), data, 600, 0.1, 200, 5)
    assert not poor.kkt
    assert not poor.theorems
    assert spectrum(largest(50_000, lambda rows: spectrum(rows, 3072), 6.0), 3072) <= 6.0
    assert largest(50_000, lambda rows: spectrum(rows, 3072), 1e9) == 50_000


def test_operations_are_counted_by_hand():
    network = TorchLinearInit().draw_deep(6, (9, 7), torch.Generator().manual_seed(0), outputs=3)
    assert operations(network) == 2 * (6 * 9 + 9 * 7 + 7 * 3 + 9 + 7 + 3)  # biases are parameters too
    kernel = torch.zeros(4, 1, 3, 3, dtype=torch.float64)
    first = Convolution(kernel, torch.zeros(4, dtype=torch.float64), (1, 8, 8), stride=(1, 1))
    last = Dense(torch.zeros(2, first.outputs, dtype=torch.float64), torch.zeros(2, dtype=torch.float64))
    pictures = Deep((first, last))
    assert operations(pictures) == 2 * (2 * 9 * first.outputs + 2 * first.outputs)  # convolutions count twice
    assert [Network.products.fget(each) for each in (network, pictures)] == [network.products, pictures.products]


def test_certificates_close_what_their_work_pays_for(subject):
    _, data = subject
    network = TorchLinearInit().draw_deep(10, (8, 8), torch.Generator().manual_seed(1)).to(torch.float64)
    data = Data(data.X[:8], network.predict(data.X[:8]))
    flips = bt.attacks.MinimumNorm().run(network, data).perturbations
    poor, rich = WorkBudget(Costs.of(network).dual() * 5.1 / 0.8), WorkBudget(6.0)
    (few,), (more,) = (certify([CertifiedSubject(network, flips)], data, each) for each in (poor, rich))
    assert len(few.rows) == 5
    assert len(more.rows) == 8
    assert more.method == "dual, exact"
    assert more.counts["exact"] > few.counts["exact"]
    assert (more.lower[:5] >= few.lower).all()
    assert (more.lower <= more.upper).all()
    assert 0 < rich.spent <= 6.0 + Costs.of(network).branch()


def test_examples_that_are_wrong_cost_a_proof_nothing(subject):
    network, data = subject
    y = torch.where(torch.arange(8) % 2 == 0, 1.0, -1.0) * network.predict(data.X[:8])
    half = Data(data.X[:8], y)
    flips = bt.attacks.MinimumNorm().run(network, half).perturbations
    budget = WorkBudget(Costs.of(network).dual() * 3.1 / 0.8)
    (found,) = certify([CertifiedSubject(network, flips)], half, budget)
    assert len(found.rows) == 6
    assert found.status.count("error") == 3


def test_wide_inputs_cost_the_dual_bound_one_product():
    rng = torch.Generator().manual_seed(0)
    narrow, wide = (Costs.of(TorchLinearInit().draw_deep(dim, (500,), rng, outputs=10)).dual() for dim in (1000, 3000))
    assert wide - narrow == pytest.approx(2 * 500**2 * 2000 / 2e10)


def test_both_proofs_and_attacks_are_compared_before_and_after(subject):
    found = bt.audit(*subject, budget=4.0, examples=10, remedies=("remove-off-subspace",))
    weak, treatment = found.vulnerability, found.remedies[0]
    assert len(weak.certified.rows) == 10
    assert treatment.proved_before == weak.certified.median_lower
    assert treatment.proved_after <= treatment.radius_after * (1 + 1e-9)
    assert set(weak.certified.status) <= {"exact", "proved", "open", "error"}


def test_held_out_examples_are_audited(subject):
    network, data = subject
    found = bt.audit(network, data, budget=2.0, test=True, remedies=()).vulnerability
    assert found.held_out
    assert (found.available, sorted(found.examples.tolist())) == (20, list(range(20)))
    norms = bt.attacks.MinimumNorm().run(network, data.test.take(found.examples)).norms
    assert torch.allclose(found.free.norms, norms, rtol=0.2)
    with pytest.raises(InputError, match="no test examples"):
        bt.audit(network, Data(data.X, data.y), test=True)
