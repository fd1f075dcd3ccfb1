"""The whole audit: the same in every format, within its budget, with remedies that do what they say."""

import json
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch
from torch import nn

import brittle as bt
from brittle.auditing.budget import WorkBudget
from brittle.auditing.causes import without_off_subspace_weights
from brittle.auditing.remedies import PARTS
from brittle.auditing.remedy import Diagnostics, Remedy, RemedyContext
from brittle.auditing.trained_on import RadiusTraining, TrainedOn
from brittle.auditing.treatment import Baseline, RemedyResult, as_good, best
from brittle.auditing.verdict import describe_unaffordable, little_help, not_alone, write_verdict
from brittle.auditing.vulnerability import Radii, in_reach
from brittle.common.errors import InputError
from brittle.data import Data, Orthogonal, Sphere, Subspace
from brittle.data.orthogonal import halves
from brittle.kkt import residual
from brittle.networks import Deep, orthogonal_kkt, save_network
from brittle.theorems.helpers import kkt_network
from brittle.training import Flow, Logistic, LogLoss, Steps


@pytest.fixture(scope="module")
def trained():
    """A network with untrained directions: 8 dimensions of data in 40."""
    rng = torch.Generator().manual_seed(3)
    data = Subspace(dim=40, codimension=32).sample(16, rng)
    start = bt.networks.TorchLinearInit(scale=0.5).draw(40, 60, rng)
    return Flow(loss=Logistic(), until=(LogLoss(-4), Steps(4000))).train(start, data).network, data


def quick(model, data, **options):
    options = {"remedies": ("remove-off-subspace",), "examples": 12, "budget": 300.0} | options
    return bt.audit(model, data, **options)


def test_radii_of_a_network_whose_radius_is_known():
    data = Orthogonal(dim=40).sample(10)
    network = orthogonal_kkt(data.X, data.y).network
    found = quick(network, data, remedies=()).vulnerability
    radius = math.sqrt(40 / 10)
    assert found.free.norms.tolist() == pytest.approx([radius] * 10, rel=1e-6)
    assert found.certified.lower.tolist() == pytest.approx([radius] * 10, rel=1e-3)
    assert found.on.median == pytest.approx(radius, rel=1e-6)
    assert math.isinf(found.off.median)  # the weights of this network have no part off the data
    assert min(one.smallest for one in found.universal) == pytest.approx(radius, rel=1e-6)


def test_off_subspace_weights_are_found_and_removed(trained):
    network, data = trained
    found = quick(network, data, examples=16)
    assert found.geometry.codimension == 32
    assert found.explanation.initial_share_of_weights_off == pytest.approx(1)
    assert found.weaknesses[0].startswith("Off-subspace weights")
    treatment = found.remedy("remove-off-subspace")
    assert treatment.predictions_changed == 0
    assert treatment.radius_after == pytest.approx(found.vulnerability.on.median, rel=1e-6)
    assert treatment.factor > 1.15


def test_the_kkt_conditions_are_measured_once(monkeypatch):
    """The regime asks for them, and so does every theorem about KKT points."""
    rng = torch.Generator().manual_seed(5)
    data = replace(Sphere(dim=4000).sample(4, rng, in_span=True), y=halves(4))
    network, measured = kkt_network(data, rng), []

    def counted(*arguments, **options):
        measured.append(residual(*arguments, **options))
        return measured[-1]

    for place in ("brittle.theorems.instance", "brittle.auditing.regime"):
        monkeypatch.setattr(f"{place}.residual", counted)
    found = quick(network, data, remedies=())
    assert found.regime.name == "kkt"
    assert {"vardi2022/4.1", "vardi2022/C4.1"} <= {row.id for row in found.theorems if row.applies}
    assert [each.stationarity for each in measured] == [found.regime.kkt_residual]


def test_every_format_gives_the_same_audit(trained, tmp_path):
    network, data = trained
    linear = nn.Sequential(nn.Linear(40, 60), nn.ReLU(), nn.Linear(60, 1, bias=False)).double()
    with torch.no_grad():
        for parameter, value in zip(linear.parameters(), (network.W, network.b, network.v[None]), strict=True):
            parameter.copy_(value)
    save_network(network, tmp_path / "net.npz")
    torch.save(linear.state_dict(), tmp_path / "net.pt")
    subjects = (network, linear, bt.networks.load_network(tmp_path / "net.npz"))
    subjects += (bt.networks.load_network(tmp_path / "net.pt", activation="relu"),)
    found = [quick(subject, data) for subject in subjects]
    for other in found[1:]:
        for name in ("free", "on", "off", "gradient_step"):
            ours, theirs = getattr(found[0].vulnerability, name), getattr(other.vulnerability, name)
            assert torch.allclose(ours.norms, theirs.norms, rtol=1e-6)
        ours, theirs = found[0].remedies[0], other.remedies[0]
        assert ours.radius_after == pytest.approx(theirs.radius_after, rel=1e-6)


def test_arrays_and_a_start_may_be_given(trained):
    network, data = trained
    bare = Deep.dense((network.W, network.v[None]), (network.b, torch.zeros(1).double()))
    begun = Deep.dense((network.start.W, network.start.v[None]), (network.start.b, torch.zeros(1).double()))
    found = bt.audit(bare, data.X, data.y, start=begun, remedies=(), examples=5, budget=300.0)
    assert found.regime.relative_move == pytest.approx(quick(network, data).regime.relative_move)
    with pytest.raises(InputError, match="y is missing"):
        bt.audit(bare, data.X)


def test_the_audit_is_json_and_a_table(trained):
    found = quick(*trained)
    text = json.dumps(found.to_json(), allow_nan=False)
    assert json.loads(text)["vulnerability"]["free"]["median"] == found.vulnerability.free.median
    assert "<table>" in found._repr_html_()


def test_multi_class_networks_are_audited(rng):
    X = torch.randn(30, 6, generator=rng, dtype=torch.float64)
    network = bt.networks.TorchLinearInit().draw_deep(6, (12,), rng, outputs=3)
    found = quick(network, Data(X, network.predict(X)))
    assert found.vulnerability.free.norms.isfinite().all()
    assert (found.vulnerability.certified.lower <= found.vulnerability.certified.upper + 1e-12).all()


def test_unknown_remedies_are_named(trained):
    with pytest.raises(InputError, match=r"remedy is 'prayer'; it must be one of remove-off-subspace"):
        quick(*trained, remedies=("prayer",))


def test_every_remedy_is_applied_or_says_why(trained, rng):
    network, data = trained
    patient = RemedyContext(network, data, data.truth.basis, 0.5)
    with pytest.raises(InputError, match="no class falls apart into clusters"):
        PARTS["cluster-labels"]().apply(patient, rng, WorkBudget(120.0))
    others = [part for name, part in PARTS.items() if name != "cluster-labels"]
    for remedy in (part(steps=40) if issubclass(part, TrainedOn) else part() for part in others):
        treated = remedy.apply(patient, rng, WorkBudget(120.0))
        assert treated.accuracy(data.X, data.y) > 0.8
    full = RemedyContext(network, data, torch.eye(40, dtype=torch.float64), 0.5)
    with pytest.raises(InputError, match="span all 40 dimensions"):
        PARTS["remove-off-subspace"]().apply(full, rng, WorkBudget(3.0))


def treatment(name, radius, *proved):
    proved_before, proved_after = proved or (None, None)
    data = Data(torch.eye(2, dtype=torch.float64), torch.tensor([1.0, -1.0]))
    network = bt.networks.TorchLinearInit().draw(2, 3, torch.Generator())
    before = Baseline(data, torch.ones(2, dtype=torch.float64), None, Diagnostics(None, None))
    known = RemedyResult.untried(Careless(), RemedyContext(network, data, None, 1.0), before)
    proofs = {"proved_before": proved_before, "proved_after": proved_after, "proved_examples": len(proved)}
    return replace(known, name=name, applied=True, radius_after=radius, **proofs)


def test_the_best_remedy_is_one_that_helps():
    tried = (treatment("strong", 3.0), treatment("mild", 1.4), treatment("none", 1.01))
    assert best(tried).name == "strong"
    assert best(tried[2:]) is None
    assert best((replace(tried[0], applied=False), *tried[1:])).name == "mild"


def test_the_best_remedy_is_judged_by_what_is_proved():
    loose, tight = treatment("loose", 3.0, 0.9, 0.8), treatment("tight", 1.4, 0.9, 1.2)
    assert best((loose, tight)).name == "tight"  # the other proves less than before
    assert best((loose,)) is None
    assert best((treatment("unproved", 2.0), tight)).name == "tight"
    assert best((treatment("nothing to compare", 2.0, 0.0, 0.5),)) is None


def test_proofs_of_a_few_examples_are_no_match_for_proofs_of_all():
    few = replace(treatment("few", 2.7, 0.5, 1.4), proved_examples=1)
    every = treatment("all", 3.1, 0.8, 1.7)
    assert few.proved_factor > every.proved_factor
    assert best((few, every)).name == "all"


def test_who_does_about_as_much_as_the_best_is_named():
    tried = (treatment("strong", 3.0), treatment("near", 2.9), treatment("also", 2.95), treatment("mild", 1.4))
    assert as_good(tried) == ["near", "also"]
    assert not_alone(tried) == " near and also do about as much."
    assert not_alone(tried[2:]) == ""
    unproved = (treatment("proved", 1.4, 0.5, 0.9), treatment("attacked", 1.8, 0.5, 0.4))
    assert not_alone(unproved) == " By attack alone attacked moves it farther (times 1.80)."
    assert as_good(tried[:0]) == []


def test_what_only_an_attack_says_is_said_to_be_that():
    assert "None of the remedies" in little_help([treatment("mild", 1.01)])
    told = little_help([treatment("mild", 1.2), treatment("loose", 3.0, 0.9, 0.8)])
    assert told.startswith("loose moves the median radius from 1 to 3 by attack (times 3.00), but what is proved goes")
    assert told.endswith("from 0.9 to 0.8: whether it helps is open.")


def test_remedies_that_the_budget_does_not_pay_for_are_counted(trained):
    network, data = trained
    found = bt.audit(network, data, budget=0.2, examples=6, remedies=["weight-decay", "remove-off-subspace"])
    dear, done = found.remedies
    assert (dear.applied, dear.unaffordable) == (False, True)
    assert "the budget affords" in dear.reason
    assert (done.applied, done.unaffordable) == (True, False)
    said = "For 1 of the 2 remedies this budget is too small: what they would do is not known."
    assert describe_unaffordable(found.remedies) == said
    assert said in write_verdict(found.vulnerability, None, (dear, replace(done, radius_after=0.0)), [], cut=[])
    assert describe_unaffordable((dear,)) in write_verdict(found.vulnerability, None, (dear,), [], cut=[])
    assert describe_unaffordable((done,)) == ""


def test_what_lies_beyond_all_sizes_is_no_flip(trained):
    """A projected first layer keeps the rounding of the weights that were removed."""
    network, data = trained
    radii = Radii.of(torch.tensor([1.0, 1e8, 1e13]), 3)
    far = in_reach(radii, data)
    assert far.norms.tolist() == [1.0, 1e8, math.inf]
    basis = data.truth.basis
    projected = without_off_subspace_weights(network, basis)
    found = bt.audit(projected, data, budget=1.0, examples=6, remedies="none")
    assert found.vulnerability.off.median == math.inf


def test_a_remedy_is_trained_on_some_examples_where_all_are_too_many(trained, rng):
    """A network for all of the data keeps the weights that some of them do not see."""
    network, data = trained
    patient = RemedyContext(network, Data(data.X.repeat(200, 1), data.y.repeat(200)), data.truth.basis, 0.5)
    remedy = PARTS["maximum-radius"](steps=20)
    count = remedy.examples(patient, WorkBudget(0.2))
    assert 100 <= count < len(patient.data)
    assert remedy.examples(patient, WorkBudget(1e6)) == len(patient.data)
    given = patient.fewer(count, rng)
    assert given.part
    assert len(given.data) == count
    off = torch.eye(40, dtype=torch.float64) - data.truth.basis @ data.truth.basis.T
    for patient, kept in ((given, True), (replace(given, part=False), False)):
        W = remedy.apply(patient, rng, WorkBudget(2.0)).W
        assert ((W @ off).norm() > 1e-6 * W.norm()) == kept


@dataclass(frozen=True)
class Careless(Remedy):
    """Forgets one label."""

    name: ClassVar = "careless"
    explains: ClassVar = "every label is taken for 1"

    def apply(self, patient, rng, budget):
        return replace(patient.network, v=patient.network.v.abs())


def test_a_remedy_that_costs_accuracy_is_refused_with_the_accuracy_that_judged_it(trained):
    network, data = trained
    test = Subspace(dim=40, codimension=32).sample(20, torch.Generator().manual_seed(5)).X
    held = replace(data, X_test=test, y_test=network.predict(test))
    (found,) = quick(network, held, remedies=(Careless(),)).remedies
    assert (found.applied, found.network, found.judged_on) == (False, None, "held-out")
    after = replace(network, v=network.v.abs()).accuracy(test, held.y_test)
    assert found.accuracy_before == 1
    assert found.accuracy_after == after < 0.9
    assert f"{after:.1%}" in found.reason
    assert quick(network, data, remedies=(Careless(),)).remedies[0].judged_on == "training"


def test_training_for_the_radius_is_a_remedy_that_helps():
    rng = torch.Generator().manual_seed(0)
    data = Sphere(20).sample(12, rng)
    network = (
        Flow(until=LogLoss(-3.0), loss=Logistic()).train(bt.networks.TorchLinearInit().draw(20, 16, rng), data).network
    )
    found = bt.audit(network, data, budget=15, remedies=RadiusTraining(steps=150))
    (treatment,) = found.remedies
    assert treatment.applied
    assert treatment.factor > 1.2
    assert treatment.proved_before is not None
    assert treatment.proved_after is not None
    assert treatment.proved_after > 1.1 * treatment.proved_before
    assert "maximum-radius helps most" in found.verdict
    assert found.limit is not None
    assert f"{found.limit.share:.0%} of what the data allow" in found.verdict


def test_training_for_the_radius_says_where_the_budget_is_too_short():
    rng = torch.Generator().manual_seed(0)
    data = Sphere(20).sample(16, rng)
    network = (
        Flow(until=LogLoss(-3.0), loss=Logistic()).train(bt.networks.TorchLinearInit().draw(20, 30, rng), data).network
    )
    (treatment,) = bt.audit(network, data, budget=0.5, remedies="maximum-radius").remedies
    assert not treatment.applied
    assert "of its 800 steps: too few to say anything" in treatment.reason
