"""Remedies on bad input: one line each, and the network stays as it was."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

import brittle as bt
from brittle.auditing.budget import WorkBudget
from brittle.auditing.remedy import RemedyContext
from brittle.auditing.trained_on import AdversarialTraining, LipschitzLayers, RadiusTraining, Trades
from brittle.auditing.verdict import write_verdict
from brittle.common.errors import InputError
from brittle.data import Data
from brittle.networks import Adapter, TorchLinearInit
from brittle.training import GradientDescent, MaximumRadius, Steps

TRAINED_ON = (
    AdversarialTraining(steps=10, inner_steps=2),
    Trades(steps=10, inner_steps=2),
    RadiusTraining(steps=10),
    LipschitzLayers(steps=10),
)
OTHERS = ("remove-off-subspace", "smaller-initialisation", "weight-decay", "robust-construction", "cluster-labels")
EVERY = (*TRAINED_ON, *OTHERS)


@pytest.fixture(scope="module")
def subject():
    rng = torch.Generator().manual_seed(0)
    X = torch.randn(12, 4, generator=rng, dtype=torch.float64)
    data = Data(X, X[:, 0].sign())
    return GradientDescent(until=Steps(200), rate=0.5).train(TorchLinearInit().draw(4, 6, rng), data).network, data


BAD = {
    "one class": (lambda data: Data(data.X, torch.ones(12).double()), "all 12 examples have the label 1"),
    "two labels": (
        lambda data: Data(torch.cat([data.X, data.X[3:4]]), torch.cat([data.y, -data.y[3:4]])),
        "rows 3 and 12 are the same example with two labels",
    ),
    "wrong everywhere": (lambda data: Data(data.X, -data.y), "the network misclassifies all 12 examples"),
}


@pytest.mark.parametrize("name", BAD)
def test_data_that_nothing_can_be_learned_from(name, subject):
    network, data = subject
    change, reason = BAD[name]
    before = {key: value.clone() for key, value in network.arrays.items()}
    found = bt.audit(network, change(data), budget=3.0, examples=6, remedies=EVERY)
    for treatment in found.remedies:
        assert treatment.applied or (treatment.reason and "\n" not in treatment.reason)
    for treatment in found.remedies[: len(TRAINED_ON)]:
        assert (treatment.applied, treatment.network) == (False, None)
        assert reason in treatment.reason
    assert all(torch.equal(value, before[key]) for key, value in network.arrays.items())


def test_without_held_out_examples_the_training_examples_judge(subject):
    network, data = subject
    found = bt.audit(network, data, budget=2.0, examples=6, remedies=RadiusTraining(steps=60, target=0.5))
    (treatment,) = found.remedies
    assert (treatment.applied, treatment.judged_on) == (True, "training")
    assert treatment.accuracy_after == treatment.network.accuracy(data.X, data.y)
    better = replace(treatment, radius_after=2 * treatment.radius_before, proved_after=None)
    assert "at a training accuracy of" in write_verdict(found.vulnerability, None, (better,), [], cut=[])


class Fixed(nn.Module):
    """A classifier without parameters."""

    def forward(self, X):
        return torch.tanh(X[:, 0])


def test_a_module_that_cannot_be_trained(subject):
    _, data = subject
    frozen = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)).double().requires_grad_(False)
    with torch.no_grad():
        frozen[0].weight.copy_(torch.eye(3, 4))
        frozen[2].weight.copy_(torch.eye(1, 3))
    cases = {"every parameter of the module is frozen": frozen, "has no parameters": Adapter(Fixed(), shape=(4,))}
    for reason, model in cases.items():
        found = bt.audit(model, data, budget=2.0, examples=6, remedies=TRAINED_ON[1:3])
        assert not any(treatment.applied for treatment in found.remedies)
        assert all(reason in treatment.reason for treatment in found.remedies)
    assert not any(each.requires_grad for each in frozen.parameters())


def test_a_module_that_is_partly_frozen_is_not_trained_whole(subject):
    _, data = subject
    module = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1)).double()
    module[0].requires_grad_(False)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    line = r"2 of 4 parameters of the module are frozen \(0\.weight, 0\.bias\), and training would move all"
    for regime in (MaximumRadius(), GradientDescent(until=Steps(2))):
        with pytest.raises(InputError, match=line):
            regime.train(module, data, torch.Generator())
    found = bt.audit(
        module, data, budget=2.0, examples=6, remedies=["maximum-radius", "weight-decay", "cluster-labels"]
    )
    for treatment in found.remedies:
        assert not treatment.applied
        assert "2 of 4 parameters of the module are frozen" in treatment.reason
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


@pytest.mark.parametrize("remedy", [AdversarialTraining(), Trades(), RadiusTraining()], ids=lambda each: each.name)
def test_what_cannot_be_afforded_costs_nothing(remedy, subject):
    """The distances between all examples alone would be too dear."""
    network, data = subject
    many = Data(data.X.repeat(2000, 1), data.y.repeat(2000))
    budget = WorkBudget(0.05)
    patient = RemedyContext(network, many, None, 1.0)
    with pytest.raises(InputError, match="the budget affords 0 of its 800 steps"):
        remedy.apply(patient, torch.Generator(), budget)
    with pytest.raises(InputError, match=r"the budget affords training on .* examples: too few to say anything"):
        remedy.examples(patient, WorkBudget(1e-6))
    assert budget.spent == 0


@pytest.mark.parametrize("budget", ["60", math.nan, math.inf, -1, 0, True, None])
def test_a_budget_that_is_no_amount_of_work(budget, subject):
    with pytest.raises(InputError, match=f"budget is {budget!r}; it must be a (positive finite )?number"):
        bt.audit(*subject, budget=budget)


def test_arrays_that_are_not_numbers_cost_nothing(subject):
    """A quantised module keeps types and tuples beside its weights."""

    class Packed(nn.Linear):
        def get_extra_state(self):
            return torch.qint8, (1, 2)

        def set_extra_state(self, state):
            pass

    module = nn.Sequential(nn.Linear(4, 6), nn.GELU(), Packed(6, 1))
    assert bt.auditing.plan_audit(module, *(subject[1].X, subject[1].y), budget=1.0).examples >= 6
