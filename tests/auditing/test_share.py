"""The audit says how much of the largest margin a network has, where that is proved in a moment."""

import pytest
import torch

from brittle.auditing.regime import AuditedInstance, training_regime
from brittle.kkt import gap
from tests.kkt.reference import closed_form, fitted, gaussian, smaller_norm


def test_a_kkt_point_with_the_largest_margin():
    network, data = closed_form(12, 6)
    regime = training_regime(AuditedInstance(data, network))
    assert regime.name == "kkt"
    assert regime.share_of_largest_margin == pytest.approx(1, abs=1e-6)
    assert regime.sentence.endswith("It has at least 99.99 % of the largest margin that any network could have.")


def test_a_network_without_biases_is_compared_with_others_without():
    network, data = smaller_norm(6)
    share = training_regime(AuditedInstance(data, network)).share_of_largest_margin
    assert share == gap(network, data, biases=False).share


def test_nothing_is_said_where_it_is_not_proved():
    data = gaussian(201, 300, 0)
    assert AuditedInstance(data, fitted(data, 400, 0)).share_of_largest_margin is None
    network, few = closed_form(6, 4)
    wrong = AuditedInstance(few, type(network)(network.W, network.b, -network.v))
    assert training_regime(wrong).share_of_largest_margin is None
    biased = AuditedInstance(few, type(network)(network.W, network.b, network.v, torch.tensor(1e-3)))
    assert training_regime(biased).share_of_largest_margin is None
