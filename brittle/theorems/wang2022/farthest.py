"""The largest change of the gradient between x and x + δ that ascent finds, over the W of the ball and over δ."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from brittle.networks import TwoLayer
from brittle.theorems.wang2022.ball import Ball

ROUNDS = 4
BEYOND = 1e-6  # how far beyond its kinks a neuron is put, beside the ball's radius


def largest_change(ball: Ball, row: int, size: float, rays: Sequence[Tensor] = ()) -> tuple[TwoLayer, Tensor]:
    """A network of the ball and a δ, ‖δ‖ ≤ size, with a large ‖∇f(x) - ∇f(x+δ)‖; `rays` are further δ to begin with."""
    start, x = replace(ball.start, start=None), ball.instance.data.X[row]
    g = gradient(start, x)
    best, most = (start, size * g / g.norm()), -1.0
    for ray in (g, -g, *rays):
        network, delta = start, size * ray / ray.norm().clamp(min=1e-300)
        for _ in range(ROUNDS):
            change = gradient(network, x) - gradient(network, x + delta)
            if (length := float(change.norm())) > most:
                best, most = (network, delta), length
            network = switched(ball, row, delta, change / max(length, 1e-300))
    return replace(best[0], start=start), best[1]


def gradient(network: TwoLayer, x: Tensor) -> Tensor:
    """∇f(x), (columns,)."""
    return network.logit_gradients(x[None], torch.ones(1, dtype=network.dtype))[0]


def switched(ball: Ball, row: int, delta: Tensor, r: Tensor) -> TwoLayer:
    """Every neuron is on at x and off at x + δ, or the other way round, as adds along r, if it can; a neuron that would
    take away by switching does not switch, if it can help it."""
    start, x, V = replace(ball.start, start=None), ball.instance.data.X[row], ball.reach * (1 - 1e-9)
    pair = torch.stack([x, x + delta])
    inputs, along = start.W @ pair.T, start.v * (start.W @ r)
    wanted = BEYOND * V * torch.where(along > 0, 1.0, -1.0)[:, None] * torch.tensor([1.0, -1.0], dtype=x.dtype)
    missing = torch.where(inputs.sign() == wanted.sign(), torch.zeros_like(inputs), wanted - inputs)
    moves = missing @ torch.linalg.solve(pair @ pair.T, pair)
    sides = (inputs + missing).sign() == wanted.sign()
    able = sides.all(1) & (moves.norm(dim=1) <= V) & (missing != 0).any(1)
    wrong = ~able & (inputs.sign().prod(1) < 0) & (inputs.sign() != wanted.sign()).all(1)
    nearer = inputs.abs().argmin(1)
    step = -inputs[torch.arange(len(inputs)), nearer] / pair.square().sum(1)[nearer] * (1 + BEYOND)
    calmed = wrong & (step.abs() * pair.norm(dim=1)[nearer] <= V)
    return replace(start, W=start.W + able[:, None] * moves + (calmed * step)[:, None] * pair[nearer])
