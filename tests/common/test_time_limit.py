"""Loops that look at a limit end there, and keep what they have found."""

from dataclasses import dataclass, field

import pytest
import torch

import brittle as bt
from brittle.attacks import MinimumNorm
from brittle.certificates import Dual, Exact
from brittle.common.time_limit import (
    TimeLimit,
    TimeLimitReached,
    check_time,
    limit_time,
    limit_time_to_share,
    time_is_up,
)
from brittle.networks import TorchLinearInit


@dataclass
class Clock:
    """Goes on by a second whenever it is looked at, if it `ticks`."""

    now: float = 0.0
    ticks: bool = False
    looks: int = field(default=0, init=False)

    def __call__(self) -> float:
        self.looks += 1
        self.now += self.ticks
        return self.now


def after(computing: float, wall: float, *clocks: Clock) -> TimeLimit:
    return TimeLimit.after(computing, wall, (clocks[0], clocks[1]))


def test_either_clock_ends_it():
    computing, wall = Clock(100.0), Clock(7.0)
    limit = after(10.0, 20.0, computing, wall)
    assert not limit.passed
    computing.now = 110.0
    assert limit.passed
    computing.now, wall.now = 100.0, 27.0
    assert limit.passed


def test_a_share_of_the_time_that_is_left():
    computing, wall = Clock(), Clock()
    limit = after(10.0, 20.0, computing, wall)
    computing.now = 4.0
    half = limit.share(0.5)
    assert (half.computing, half.wall) == (7.0, 10.0)


def test_a_limit_around_another_counts_too():
    computing, wall = Clock(), Clock()
    with limit_time(after(5.0, 50.0, computing, wall)):
        with limit_time(after(10.0, 10.0, computing, wall)):
            computing.now = 6.0
            assert time_is_up()
            with limit_time(None):
                check_time()
            with pytest.raises(TimeLimitReached):
                check_time()
        computing.now = 2.0
        with limit_time_to_share(0.5):
            computing.now = 3.0
            assert not time_is_up()
            computing.now = 3.6
            assert time_is_up()
    check_time()


def test_without_a_limit_time_is_never_up():
    with limit_time_to_share(0.0):
        assert not time_is_up()


def deep(seed: int = 0, count: int = 6):
    rng = torch.Generator().manual_seed(seed)
    network = TorchLinearInit().draw_deep(5, (8, 8), rng).to(torch.float64)
    X = torch.randn(count, 5, generator=rng).double()
    y = network.logits(X).sign()
    return network, bt.data.Data(X, y)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_an_attack_keeps_the_flips_that_it_has_found(share):
    """A clock that ticks with every look: after so many looks the search ends, and its flips are measured ones."""
    network, data = deep()
    clock = Clock(ticks=True)
    with limit_time(after(1e9, torch.inf, clock, Clock())):
        whole = MinimumNorm().run(network, data)
    with limit_time(after(share * clock.looks, torch.inf, Clock(ticks=True), Clock())):
        cut = MinimumNorm().run(network, data)
    assert (cut.norms[cut.success] >= whole.norms[cut.success] * (1 - 1e-9)).all()
    flipped = network.margins(data.X + cut.perturbations, data.y) < 0
    assert cut.success.tolist() == flipped.tolist()
    assert bool(cut.success.any()) == (share > 0)


def test_certificates_keep_the_examples_that_were_finished():
    network, data = deep()
    whole = Dual().bound(network, data)
    clock = Clock(ticks=True)
    with limit_time(after(1e9, torch.inf, clock, Clock())):
        Dual().bound(network, data)
    with limit_time(after(0.6 * clock.looks, torch.inf, Clock(ticks=True), Clock())):
        cut = Dual().bound(network, data, attack=MinimumNorm(starts=1, descents=0, rounds=0))
    assert 0 < len(cut.lower) < len(whole.lower)
    assert len(cut.status) == len(cut.flips) == len(cut.seconds) == len(cut.lower)
    assert (cut.lower <= whole.upper[: len(cut.lower)] * (1 + 1e-9)).all()
    with limit_time(after(0.0, torch.inf, Clock(), Clock())), pytest.raises(TimeLimitReached):
        Dual().bound(network, data)


def test_a_tree_that_is_cut_short_proves_what_it_has_proved():
    rng = torch.Generator().manual_seed(5)
    network = TorchLinearInit().draw_deep(6, (24, 24), rng).to(torch.float64)
    X = 3 * torch.randn(1, 6, generator=rng).double()
    data = bt.data.Data(X, network.logits(X).sign())
    clock, exact, attack = Clock(ticks=True), Exact(nodes=60), MinimumNorm(starts=1, descents=0, rounds=0)
    with limit_time(after(1e9, torch.inf, clock, Clock())):
        whole = exact.bound(network, data, attack=attack)
    found = []
    for share in (0.5, 0.65, 0.8):
        with limit_time(after(share * clock.looks, torch.inf, Clock(ticks=True), Clock())):
            found.append(exact.bound(network, data, attack=attack))
    nodes = [int(each.nodes) for each in found]
    assert 0 < nodes[0] < nodes[1] < nodes[2] < int(whole.nodes)
    lower = [float(each.lower) for each in (*found, whole)]
    assert 0 < lower[0] < lower[1] < lower[2] <= lower[3]
