"""What remedies share that train a network anew: where it starts, and what it has to reach."""

import torch
from torch import Generator

from brittle.auditing.budget import afford
from brittle.auditing.remedy import Patient
from brittle.networks import Layered, Network, redrawn
from brittle.training import Training

SAME_LOSS = 0.02  # relative, in log-losses: networks are compared at the same loss
EVALUATIONS = 3  # of a gradient in one step of gradient flow


def divided_start(network: Layered, factor: float, rng: Generator) -> Layered:
    """The known initialisation, or a fresh one of the same shape, with its first layer's weights divided."""
    start = (network.start or redrawn(network, rng)).to(torch.float64)
    first, *others = start.layers
    weight, bias = first.parameters
    return start.with_layers([first.with_parameters(weight / factor, bias), *others])


def fitted(patient: Patient, training: Training[Network]) -> Network:
    """What reached the loss of the network that it is compared with."""
    wanted = max(patient.own_log_loss, patient.log_loss)
    short = f"after {training.steps} steps its log-loss is {training.log_loss:.3g}, not yet {wanted:.3g}"
    afford(training.log_loss <= wanted + SAME_LOSS * abs(wanted), f"{short}: give the audit a larger budget")
    return training.network
