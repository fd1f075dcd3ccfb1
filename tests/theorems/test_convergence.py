"""Theorem 2.1: gradient flow is confirmed, and what is not gradient flow of this problem is refuted."""

import math
from dataclasses import replace

import pytest
import torch

from brittle.data import Data
from brittle.networks import TwoLayer
from brittle.theorems import CheckOutcome, Instance, check_default, check_instance
from brittle.theorems.frei2023.statements import FlowOnClustersFindsKKT
from brittle.theorems.vardi2022.convergence import FALL, RATE, SPREAD, TURN, FlowFindsKKT, Trajectory, walk
from brittle.training import Exponential, Flow, LogLoss

FLOW = Flow(loss=Exponential("sum"))


def started(seed: int) -> Instance:
    return FlowFindsKKT().default(torch.Generator().manual_seed(seed))


def judged(instance: Instance, networks: tuple[TwoLayer, ...]):
    return check_instance(FlowFindsKKT(), Instance(instance.data, instance.network, Trajectory(networks)))


def broken(verdict) -> set[str]:
    return {promise.name for promise in verdict.bound if not promise.holds}


@pytest.mark.parametrize("theorem", [FlowFindsKKT(), FlowFindsKKT(logistic=True), FlowOnClustersFindsKKT()])
def test_gradient_flow_is_confirmed(theorem):
    verdict = check_default(theorem, torch.Generator().manual_seed(1))
    assert verdict.verdict is CheckOutcome.CONFIRMED, verdict.advice


@pytest.mark.parametrize("seed", [0, 1])
def test_frozen_biases_are_refuted(seed):
    instance = started(seed)
    verdict = judged(instance, walk(replace(FLOW, biases=False), instance.two_layer, instance.data, -1e3))
    assert verdict.verdict is CheckOutcome.VIOLATED
    assert RATE in broken(verdict)


def test_the_gradient_of_other_examples_is_refuted():
    instance = started(1)
    other = Data(instance.data.X * torch.tensor([0.3, 1, 1, 1]).double()[:, None], instance.data.y)
    networks = tuple(n for n in walk(FLOW, instance.two_layer, other, -1e3) if _classifies(n, instance.data))
    assert len(networks) > 8
    verdict = judged(instance, networks)
    assert verdict.verdict is CheckOutcome.VIOLATED
    assert RATE in broken(verdict)


def _classifies(network: TwoLayer, data: Data) -> bool:
    return bool((network.margins(data.X, data.y) > 0).all())


def test_weights_that_are_only_scaled_do_not_converge():
    """Every promise on margins and norms alone holds for θ(t0) times a growing factor."""
    instance = started(1)
    network = instance.two_layer.scaled(1.2)
    verdict = judged(instance, tuple(network.scaled(10 ** (power / 8)) for power in range(14)))
    assert broken(verdict) >= {RATE}
    assert verdict.verdict is CheckOutcome.VIOLATED


def test_the_way_back_is_refuted():
    instance = started(1)
    networks = walk(FLOW, instance.two_layer, instance.data, -1e3)
    assert FALL in broken(judged(instance, networks[::-1]))


def test_a_jump_turns_further_than_its_margin_pays_for():
    """From one run to another: the margin grows, and the direction does by no means come to rest."""
    instance = started(1)
    here = walk(FLOW, instance.two_layer, instance.data, -1e3)
    away = instance.two_layer
    mirrored = TwoLayer(away.W.flip(0), away.b.flip(0), away.v.flip(0))  # the same function elsewhere
    there = walk(FLOW, mirrored, instance.data, -1e3)
    assert TURN in broken(judged(instance, here[:8] + there[8:]))


def test_a_short_way_decides_nothing():
    verdict = check_default(FlowFindsKKT(width=400, until=-50.0), torch.Generator().manual_seed(0))
    assert verdict.verdict is CheckOutcome.INCONCLUSIVE
    assert RATE in verdict.advice


@pytest.mark.parametrize("logistic", [False, True])
def test_the_mean_below_one_over_n_is_what_classifies(logistic):
    """One example of margin 0 costs 1, in the exponential loss and in the logistic one to base 2."""
    theorem = FlowOnClustersFindsKKT(logistic=logistic)
    X = torch.tensor([[1.0], [-1.0]]).double()
    network = TwoLayer(X, torch.zeros(2).double(), torch.tensor([800.0, 0.0]).double())
    (hypothesis,) = theorem.hypotheses(Instance(Data(X, torch.tensor([1.0, -1.0])), network))
    assert hypothesis.value == pytest.approx(1 / 2)
    assert not hypothesis.holds


def test_the_walk_lands_on_its_decades():
    instance = started(1)
    networks = walk(FLOW, instance.two_layer, instance.data, -100.0)
    losses = [FLOW.loss.total(network.margins(instance.data.X, instance.data.y)) for network in networks]
    assert losses[4::4] == pytest.approx([-10, -100], rel=1e-3)
    assert FLOW.until == LogLoss(-70)


def test_two_decades_are_compared():
    """θ times a factor: no log-loss between -10 and -100, and both are measured."""
    instance = started(1)
    least = float(instance.two_layer.margins(instance.data.X, instance.data.y).min())
    networks = tuple(instance.two_layer.scaled(math.sqrt(margin / least)) for margin in (20.0, 200.0))
    measures = FlowFindsKKT().witness(replace(instance, facts=Trajectory(networks))).measures
    first, last = (value for name, value in measures.items() if name.startswith("δ at log-loss"))
    assert measures[SPREAD] == pytest.approx(last / first)
