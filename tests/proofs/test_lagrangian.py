"""The Lagrangian of the checker against its definition in fractions, and what it says of flips against flips."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from proofcheck import lagrangian
from proofcheck.balls import Refused, ball
from proofcheck.lagrangian import FREE, LINE, OFF, ON, Margin, Step
from proofcheck.network import Intervals, Network

ZERO = Fraction(0)


def exact(values):
    return [Fraction(float(value)) for value in np.ravel(values)]


def network(rng, shape=(3, 4, 3, 2)):
    pairs = list(pairwise(shape))
    return Network([rng.normal(size=(m, d)) for d, m in pairs], [0.3 * rng.normal(size=m) for _, m in pairs])


def margin_of(net, rng, radius=0.5, box=()):
    x = rng.normal(size=net.weights[0].shape[1])
    c, c0 = net.margins(0.0)[0]
    return Margin(net, x, net.offsets(x), radius, c, c0, np.array(box), {})


def random_step(net, margin, rng, kinds):
    N = net.parts[-1].stop
    alpha, beta, rho, tau = np.abs(rng.normal(size=(4, N)))
    beta = np.where(kinds == LINE, rng.random(N), beta)
    return Step(kinds, alpha, beta, 1 + rng.random(N), rho, tau, rng.normal(size=N), np.zeros(len(margin.x)), 0.7)


def by_definition(net, margin, step, known, delta, h):
    """L at δ and at the outputs h of the FREE neurons, word by word as in the docstring, in fractions."""
    x = [a + b for a, b in zip(exact(margin.x), exact(delta), strict=True)]
    total = sum((d * d for d in exact(delta)), ZERO) / 2
    given, inputs, outputs = iter(exact(h)), x, []
    neuron = 0
    for k, part in enumerate(net.parts):
        outputs = []
        for row, bias in zip(net.weights[k], net.biases[k], strict=True):
            z = sum((w * i for w, i in zip(exact(row), inputs, strict=True)), Fraction(float(bias)))
            alpha, beta, lam, rho, tau, nu = (Fraction(float(each[neuron])) for each in step[1:7])
            low, high = Fraction(float(known.low[neuron])), Fraction(float(known.high[neuron]))
            kind = step.kinds[neuron]
            if kind == FREE:
                out = next(given)
                total += lam * out * (out - z) - alpha * out - beta * (out - z)
                total += rho * out * (z - high) + tau * (z - out) * (z - low)
            else:
                out = z if kind == ON else ZERO
                total += tau * (z - low) * (z - high)
            if kind == LINE:
                weight = Fraction(float(margin.c.mid[neuron - part.start]))
                total += beta * Fraction(step.mu) * weight * z
            total += nu * (z - (high if nu > 0 else low))
            outputs.append(out)
            neuron += 1
        inputs = outputs
    f = sum((w * i for w, i in zip(exact(margin.c.mid), inputs, strict=True)), Fraction(float(margin.c0.mid)))
    return total + Fraction(step.mu) * f


@pytest.mark.parametrize("seed", range(12))
def test_the_quadratic_is_the_lagrangian(seed):
    rng = np.random.default_rng(seed)
    net = network(rng)
    margin = margin_of(net, rng)
    margin = Margin(*(*vars(margin).values(),)[:4], ball(margin.c.mid), ball(margin.c0.mid), np.zeros(0), {})
    N, last = net.parts[-1].stop, net.parts[-1]
    kinds = rng.integers(0, 3, N).astype(np.int8)
    kinds[last] = np.where((margin.c.mid >= 0) & (rng.random(3) < 0.5), LINE, kinds[last])
    known = Intervals(-np.abs(rng.normal(size=N)), np.abs(rng.normal(size=N)))
    s = 0.5 + rng.random(N)  # at λ = τ, ρ = 2λ the products of h and z cancel, and Q is definite
    step = random_step(net, margin, rng, kinds)._replace(lam=s, tau=s, rho=2.01 * s)
    (_, Q, q, constant), A, offsets = margin.dense(step, known)
    delta, h = rng.normal(size=3), rng.normal(size=int((kinds == FREE).sum()))
    v = np.append(delta, h)
    value = constant + ball(v) @ (Q @ v) * 0.5 + ball(v) @ q
    truth = by_definition(net, margin, step, known, delta, h)
    assert abs(Fraction(float(value.mid)) - truth) <= Fraction(float(value.rad))
    assert value.rad < 1e-9
    assert (A @ v + offsets).rad.max() < 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_a_chain_has_the_floor_of_the_dense_form(seed):
    rng = np.random.default_rng(seed)
    net = network(rng)
    margin, N = margin_of(net, rng), net.parts[-1].stop
    kinds, nothing = np.full(N, FREE, dtype=np.int8), np.zeros(N)
    lam = np.concatenate([np.full(4, 0.01), np.full(3, 0.001)])
    step = random_step(net, margin, rng, kinds)._replace(lam=lam, rho=nothing, tau=nothing, nu=nothing)
    known = net.first_intervals(margin.z, margin.radius)
    proof, *quadratic = margin.chain(step, known)
    (other, *dense), _, _ = margin.dense(step, known)
    assert proof.floor(*quadratic)[0] == pytest.approx(other.floor(*dense)[0], rel=1e-9)


def test_walls_push_the_floor_up_only_inside_the_box():
    rng = np.random.default_rng(0)
    net = network(rng, (2, 3, 1))
    x = np.array([0.9, -0.9])
    c, c0 = net.margins(1.0)[0]
    margin = Margin(net, x, net.offsets(x), 1.0, c, c0, np.array([-1.0, 1.0]), {})
    N, nothing = 3, np.zeros(3)
    walls = np.array([0.3, -0.2])
    step = Step(np.zeros(N, dtype=np.int8), *[nothing] * 2, np.full(N, 0.01), *[nothing] * 3, walls, 0.0)
    proof, *quadratic = margin.chain(step, net.first_intervals(margin.z, 1.0))
    bare, *plain = margin.chain(step._replace(walls=np.zeros(2)), net.first_intervals(margin.z, 1.0))
    # p·(x+δ) - p₊ + p₋·(-1): at δ = 0 it is .3·(-.1) - .2·.1 = -.05, and -½‖p‖² is what moving gains.
    assert proof.floor(*quadratic)[0] <= bare.floor(*plain)[0] - 0.05 + 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_no_flip_leaves_the_intervals_of_a_step(seed):
    """Flips in the ball, found by trying many points, are where the step says that all of them are."""
    rng = np.random.default_rng(seed)
    net = network(rng, (3, 5, 4, 2))
    margin, N = margin_of(net, rng, radius=1.5), net.parts[-1].stop
    lam = np.concatenate([np.full(5, 0.01), np.full(4, 0.0005)])
    step = random_step(net, margin, rng, np.full(N, FREE, dtype=np.int8))
    step = step._replace(lam=lam, rho=np.zeros(N), tau=np.zeros(N), nu=np.zeros(N), mu=0.05)
    step = step._replace(alpha=0.01 * step.alpha, beta=0.01 * step.beta)
    after = margin.after(step, net.first_intervals(margin.z, 1.5), narrow=True)
    points = rng.normal(size=(20000, 3))
    points *= 1.5 * rng.random((20000, 1)) ** (1 / 3) / np.linalg.norm(points, axis=1, keepdims=True)
    z1 = (margin.x + points) @ net.weights[0].T + net.biases[0]
    z2 = np.maximum(z1, 0) @ net.weights[1].T + net.biases[1]
    flips = np.maximum(z2, 0) @ margin.c.mid + margin.c0.mid < 0
    z = np.hstack([z1, z2])[flips]
    assert after is not None or len(z) == 0
    if after is not None:
        assert (z >= after.low - 1e-12).all()
        assert (z <= after.high + 1e-12).all()
        assert np.isfinite(after.low).all()


def _admissible():
    """A margin whose third layer has weights 1, -1, 1; a step that may be used; what is known: nothing of neuron 5."""
    rng = np.random.default_rng(3)
    net = network(rng)
    margin = margin_of(net, rng)
    margin = Margin(*(*vars(margin).values(),)[:4], ball(np.array([1.0, -1.0, 1.0])), margin.c0, np.zeros(0), {})
    kinds = np.array([FREE, ON, OFF, FREE, LINE, FREE, FREE], dtype=np.int8)
    low, high = np.array([-1.0, 0.0, -1, -1, -1, -np.inf, -1]), np.array([1.0, 1, 0, 1, 1, np.inf, 1])
    ones = np.array([1.0, 1, 1, 1, 1, 0, 1])
    return margin, Step(kinds, ones, ones, ones, ones, ones, ones, np.zeros(3), 0.7), Intervals(low, high)


def _put(values, place, value):
    values = np.array(values, copy=True)
    values[place] = value
    return values


FORGED = [
    *((name, place, -1e-300, "wrong sign") for name in ("alpha", "beta", "rho", "tau") for place in (0, 1)),
    *((name, 0, bad, "no number") for name in ("alpha", "beta", "lam", "rho", "tau", "nu") for bad in (np.nan, np.inf)),
    ("walls", 1, 1e-300, "no number"),  # there is no box
    ("kinds", 0, ON, "nothing proves it"),
    ("kinds", 0, OFF, "nothing proves it"),
    ("kinds", 1, OFF, "nothing proves it"),
    ("kinds", 2, ON, "nothing proves it"),
    ("kinds", 0, -1, "nothing proves it"),
    ("tau", 5, 1e-9, "nothing proves"),
    ("rho", 5, 1e-9, "nothing proves"),
    ("nu", 5, 1e-9, "nothing proves"),
    ("nu", 5, -1e-9, "nothing proves"),
    ("kinds", 0, LINE, "above its neuron"),  # not in the last layer
    ("kinds", 5, LINE, "above its neuron"),  # its weight is negative
    ("kinds", 6, 4, "above its neuron"),
    ("beta", 4, 1 + 1e-15, "above its neuron"),
]


@pytest.mark.parametrize(("name", "place", "value", "words"), FORGED)
def test_a_step_that_may_not_be_used_is_refused(name, place, value, words):
    margin, step, known = _admissible()
    margin.check(step, known)
    with pytest.raises(Refused, match=words):
        margin.check(step._replace(**{name: _put(getattr(step, name), place, value)}), known)


@pytest.mark.parametrize("mu", [-1e-300, np.nan, np.inf])
def test_so_is_one_with_a_wrong_multiplier_of_the_margin(mu):
    margin, step, known = _admissible()
    with pytest.raises(Refused, match="a multiplier"):
        margin.check(step._replace(mu=mu), known)


@pytest.mark.parametrize(("end", "multiplier"), [("low", "tau"), ("low", "nu"), ("high", "tau"), ("high", "nu")])
def test_a_line_needs_the_ends_that_it_uses(end, multiplier):
    """τ of what is not FREE uses both ends, ν the one on its side."""
    margin, step, known = _admissible()
    nothing = np.zeros(7)
    step = step._replace(rho=nothing, tau=nothing, nu=nothing)
    known = known._replace(**{end: _put(getattr(known, end), 4, np.inf if end == "high" else -np.inf)})
    margin.check(step, known)
    used = _put(nothing, 4, -1.0 if (end, multiplier) == ("low", "nu") else 1.0)
    with pytest.raises(Refused, match="an interval"):
        margin.check(step._replace(**{multiplier: used}), known)


@pytest.mark.parametrize("weight", [1e-300, 0.5, 0.0, -1e-300])
def test_a_line_needs_a_weight_that_is_not_negative(weight):
    margin, step, known = _admissible()
    margin = replace(margin, c=ball(np.array([weight, -1.0, 1.0])))
    if weight >= 0:
        margin.check(step, known)
        return
    with pytest.raises(Refused, match="above its neuron"):
        margin.check(step, known)


@pytest.mark.parametrize("place", range(7))
def test_one_empty_interval_leaves_no_flip(place, monkeypatch):
    rng = np.random.default_rng(0)
    net = network(rng)
    margin, nothing = margin_of(net, rng, radius=1.5), np.zeros(7)
    step = random_step(net, margin, rng, np.full(7, FREE, dtype=np.int8))
    step = step._replace(alpha=nothing, beta=nothing, rho=nothing, tau=nothing, nu=nothing, mu=0.0)
    step = step._replace(lam=np.repeat([0.01, 0.001], [4, 3]))
    known, left = net.first_intervals(margin.z, 1.5), Intervals(np.zeros(7), np.zeros(7))
    monkeypatch.setattr(lagrangian, "_shadows", lambda *_: left)
    assert margin.after(step, known, narrow=True) is left
    left.low[place] = 1e-300
    assert margin.after(step, known, narrow=True) is None
