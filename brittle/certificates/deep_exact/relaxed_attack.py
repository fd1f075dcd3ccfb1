"""Relaxed points as attacks: rays through them, and through the flips of the linear pieces that they lie on."""

import numpy as np

from brittle.certificates.deep_exact.ball import Ball
from brittle.certificates.scales import Array

BEYOND = 1 + 1e-9  # a little past the linear piece's boundary


def directions(ball: Ball, rival: int, epsilon: Array, steps: int) -> Array:
    """ε and the next points of Newton's iteration for the margin's shortest zero, (at most steps + 1, p)."""
    found = [epsilon]
    for _ in range(steps):
        value, gradient = _linear_piece(ball, rival, found[-1])
        square = gradient @ gradient
        if not square > 0:
            break
        following = (gradient @ found[-1] - value) / square * BEYOND * gradient
        if not np.linalg.norm(following) <= 1.5 * ball.reach:
            break
        found.append(following)
    return np.stack(found)


def margin_at(ball: Ball, rival: int) -> float:
    """The margin over the rival at the example itself."""
    return _linear_piece(ball, rival, np.zeros(ball.first.shape[1]))[0]


def _linear_piece(ball: Ball, rival: int, epsilon: Array) -> tuple[float, Array]:
    """The margin at ε and its gradient."""
    z = ball.first @ epsilon + ball.a
    signs = [z > 0]
    for W, b in zip(ball.weights[:-1], ball.biases[:-1], strict=True):
        z = W @ np.maximum(z, 0) + b
        signs.append(z > 0)
    row = ball.weights[-1][rival]
    value = float(row @ np.maximum(z, 0) + ball.biases[-1][rival])
    for sign, W in zip(reversed(signs), [*reversed(ball.weights[:-1]), ball.first], strict=True):
        row = (row * sign) @ W
    return value, row
