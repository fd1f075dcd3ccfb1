"""The largest margin over all widths: known answers, brute force over patterns, and what is left when time is up."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from brittle.common.errors import InputError
from brittle.common.progress import Progress
from brittle.data import Data
from brittle.kkt import MarginProof, Status, check_margin, gap, largest, solve
from brittle.kkt.any_width.proof import ProofLeaf
from brittle.kkt.restricted_master import solve_master
from brittle.networks import TwoLayer
from tests.kkt.gains import featured, largest_gain
from tests.kkt.reference import closed_form, fitted, gaussian, orthogonal


def smallest_norm(found):
    """P = Σ‖u‖ at margin 1: γ = 1/(2P)."""
    return 0.5 / found.normalised_margin


def proved(data, biases=True, **options):
    """The largest margin, with a proof that is read from its arrays and checked once more."""
    found = largest(data, biases=biases, **options)
    again = check_margin(found.proof, data)
    assert again.accepted, again.reason
    assert again.normalised_margin == found.normalised_margin
    assert again.upper == found.upper
    assert found.normalised_margin <= found.upper
    return found


@pytest.mark.parametrize("seed", range(3))
def test_two_examples_of_opposite_labels(seed):
    X = torch.randn(2, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    found = proved(Data(X, torch.tensor([1.0, -1.0], dtype=torch.float64)))
    rows = np.c_[X.numpy(), np.ones(2)]
    sizes = np.linalg.norm(rows, axis=1)
    cosine = max(0.0, rows[0] @ rows[1] / sizes.prod())
    assert smallest_norm(found) == pytest.approx((1 / sizes).sum() / (1 - cosine**2) ** 0.5, rel=2e-6)
    assert found.proved_gap <= 1e-6


@pytest.mark.parametrize(("dim", "examples"), [(7, 7), (20, 9)])
def test_orthogonal_examples(dim, examples):
    data = orthogonal(dim, examples)
    plus = int((data.y > 0).sum())
    minus = examples - plus
    without = (plus / dim) ** 0.5 + (minus / dim) ** 0.5
    both = dim * (dim + examples)
    with_biases = (plus * (dim + minus) / both) ** 0.5 + (minus * (dim + plus) / both) ** 0.5
    assert smallest_norm(proved(data, biases=False)) == pytest.approx(without, rel=2e-6)
    assert smallest_norm(proved(data)) == pytest.approx(with_biases, rel=2e-6)


def test_exclusive_or_in_the_plane():
    X = torch.tensor([[1.0, 1], [-1, -1], [1, -1], [-1, 1]], dtype=torch.float64)
    found = proved(Data(X, torch.tensor([1.0, 1, -1, -1], dtype=torch.float64)))
    assert smallest_norm(found) == pytest.approx(2 * 2**0.5, rel=2e-6)
    assert found.neurons == 4


@pytest.mark.parametrize(("examples", "dim", "biases"), [(6, 2, True), (9, 3, True), (12, 4, True), (10, 6, False)])
def test_no_pattern_gains_more_than_the_proof_says(examples, dim, biases):
    data = gaussian(examples, dim, examples)
    found = proved(data, biases=biases)
    assert found.status is Status.REACHED
    assert found.proved_gap <= 1e-6
    gain = largest_gain(featured(data, biases), data.y.numpy(), found.proof.lam)
    assert gain**2 <= found.proof.ceiling
    assert gain == pytest.approx(1, rel=2e-6)


def test_no_kkt_point_has_a_larger_margin():
    data = gaussian(12, 5, 0)
    found = proved(data)
    points = [solve(fitted(data, 40, seed), data).normalised_margin for seed in range(2)]
    assert max(points) <= found.upper
    assert min(points) < found.normalised_margin * (1 - 1e-4)


def test_one_class_and_one_example():
    X = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    one = proved(Data(X, torch.ones(1, dtype=torch.float64)), biases=False)
    assert smallest_norm(one) == pytest.approx(1 / 5, rel=2e-6)
    assert one.neurons == 1
    same = proved(Data(torch.eye(3, dtype=torch.float64), -torch.ones(3, dtype=torch.float64)), biases=False)
    assert smallest_norm(same) == pytest.approx(3**0.5, rel=2e-6)


def test_an_example_that_is_there_twice_counts_once():
    data = gaussian(6, 3, 1)
    twice = Data(torch.cat([data.X, data.X[:2]]), torch.cat([data.y, data.y[:2]]))
    assert proved(twice).normalised_margin == pytest.approx(proved(data).normalised_margin, rel=2e-6)


def test_the_unit_of_the_data_does_not_matter():
    data = gaussian(8, 3, 2)
    small, large = (proved(Data(scale * data.X, data.y), biases=False) for scale in (1e-6, 1e6))
    assert small.normalised_margin * 1e6 == pytest.approx(large.normalised_margin / 1e6, rel=4e-6)


@pytest.mark.parametrize(("scale", "shift"), [(0.01, 0.0), (1.0, 100.0)])
def test_examples_far_from_0_or_close_to_it_are_searched_too(scale, shift):
    data = gaussian(10, 3, 3)
    moved = Data(scale * data.X + shift, data.y)
    found = proved(moved, gap=1e-4)
    assert found.status is Status.REACHED
    assert largest_gain(featured(moved, True), moved.y.numpy(), found.proof.lam) ** 2 <= found.proof.ceiling


def test_a_gap_below_rounding_is_not_said_to_need_more_time():
    found = proved(gaussian(6, 3, 0), gap=1e-12)
    assert 1e-12 < found.proved_gap < 1e-6
    assert found.status is Status.ROUNDING


@pytest.mark.parametrize(("scale", "biases"), [(1e160, True), (1e99, False), (1e-120, False)])
def test_examples_that_no_proof_can_be_about_are_refused(scale, biases):
    data = gaussian(6, 3, 0)
    network = TwoLayer(data.X, torch.zeros(6, dtype=torch.float64), data.y)
    with pytest.raises(InputError, match="must lie between 1e-80 and 1e\\+80"):
        largest(Data(scale * data.X, data.y), biases=biases)
    with pytest.raises(InputError, match="must lie between 1e-80 and 1e\\+80"):
        gap(network, Data(scale * data.X, data.y), biases=biases)


def hard():
    """Data whose proof needs many nodes."""
    return gaussian(22, 3, 0)


def test_what_is_left_when_time_is_up_is_proved_and_goes_on(tmp_path):
    data = hard()
    ticks = itertools.count()
    early = proved(data, clock=lambda: float(next(ticks)), seconds=40.0)
    assert early.status is Status.BUDGET
    assert 1e-6 < early.proved_gap < 1
    early.proof.save(tmp_path / "proof.npz")
    proof = MarginProof.load(tmp_path / "proof.npz", data.y.numpy())
    later = proved(data, start=early.network, proof=proof, seconds=600.0)
    assert later.status is Status.REACHED
    assert later.proved_gap <= 1e-6
    again = proved(data, start=later.network, proof=later.proof, gap=1.1e-6)
    assert again.rounds == 0
    assert early.normalised_margin <= later.upper
    assert later.normalised_margin <= early.upper


def test_what_is_proved_is_kept_on_the_way():
    data, kept, ticks = hard(), [], itertools.count()
    found = proved(data, clock=lambda: float(next(ticks)), seconds=400.0, keep=kept.append)
    assert kept
    for early in kept:
        assert check_margin(early.proof, data).accepted
        assert found.normalised_margin >= early.normalised_margin * (1 - 1e-9)
        assert found.upper <= early.upper * (1 + 1e-9)
    assert proved(data, start=kept[0].network, proof=kept[0].proof, seconds=600.0).proved_gap <= 1e-6


def test_a_proof_of_other_data_is_not_gone_on_with():
    found = largest(gaussian(6, 3, 0))
    with pytest.raises(InputError, match="refused for these data"):
        largest(gaussian(6, 3, 1), proof=found.proof)
    with pytest.raises(InputError, match="biases=True, and biases=False"):
        largest(gaussian(6, 3, 0), proof=found.proof, biases=False)


def test_no_program_is_begun_when_time_is_up(monkeypatch):
    """A master may take minutes: the last one's multipliers are what is proved with, and a running one stops."""
    solved, ticks = [], itertools.count()

    def counting(examples, columns, tolerance, **options):
        master = solve_master(examples, columns, tolerance, **options)
        solved.append(master.iterate.gap <= tolerance)
        return master

    monkeypatch.setattr("brittle.kkt.any_width.generation.solve_master", counting)
    found = proved(hard(), clock=lambda: 0.0 if len(solved) < 1 else float(next(ticks)), seconds=3.0)
    assert found.status is Status.BUDGET
    assert solved == [True, False]
    assert found.rounds == 2


def test_memory_is_bounded():
    found = proved(hard(), memory=1.0)
    assert found.status is Status.BUDGET
    assert found.proved_gap < 1


def test_a_search_tells_the_gap_that_is_left():
    told: list[Progress] = []
    ticks = itertools.count()
    largest(hard(), clock=lambda: float(next(ticks)), seconds=60.0, watch=told.append)
    assert any("gap left" in each.note for each in told)
    assert all(0 <= each.done <= 1 for each in told)


def test_a_proof_with_one_leaf_changed_is_refused():
    found = largest(gaussian(12, 4, 12))
    data, leaves = gaussian(12, 4, 12), list(found.proof.leaves)
    place = next(i for i, leaf in enumerate(leaves) if leaf.signs.any())
    signs = leaves[place].signs.copy()
    signs[np.flatnonzero(signs)[0]] *= -1
    leaves[place] = ProofLeaf(leaves[place].point, signs)
    assert not check_margin(replace(found.proof, leaves=tuple(leaves)), data).accepted


def clustered():
    rng = torch.Generator().manual_seed(0)
    place = torch.arange(60) % 4
    X = 4 * torch.eye(4, dtype=torch.float64)[place] + 0.3 * torch.randn(60, 4, generator=rng, dtype=torch.float64)
    return Data(X, 1.0 - 2.0 * (place % 2))


def test_more_examples_than_are_solved_at_once(monkeypatch):
    whole = proved(clustered())
    monkeypatch.setattr("brittle.kkt.any_width.largest.SMALL", 20)
    monkeypatch.setattr("brittle.kkt.any_width.largest.FIRST", 8)
    found = proved(clustered())
    assert found.status is Status.REACHED
    assert found.normalised_margin == pytest.approx(whole.normalised_margin, rel=2e-6)


def test_more_examples_than_can_be_solved_leave_a_gap(monkeypatch):
    """The multipliers of some examples prove something about all; the start is the network that is known."""
    data = gaussian(24, 3, 0)
    monkeypatch.setattr("brittle.kkt.any_width.largest.SMALL", 8)
    monkeypatch.setattr("brittle.kkt.any_width.largest.FIRST", 8)
    monkeypatch.setattr("brittle.kkt.any_width.generation.MOST", 8)
    found = proved(data)
    assert found.status is Status.BUDGET
    assert 1e-6 < found.proved_gap < 1e4


def test_multipliers_of_some_examples_are_enough(monkeypatch):
    network, data = closed_form(12, 6)
    monkeypatch.setattr("brittle.kkt.any_width.gap.MOST", 4)
    found = gap(network, data)
    assert check_margin(found.proof, data).accepted
    assert 0.3 < found.share < 1


@pytest.mark.parametrize("seed", range(3))
def test_a_networks_share_is_below_the_truth(seed):
    data = gaussian(12, 5, seed)
    best, network = largest(data), fitted(data, 40, seed)
    point = solve(network, data)
    for each in (network, point.network, best.network):
        found = gap(each, data)
        assert check_margin(found.proof, data).accepted
        truth = found.normalised_margin / best.normalised_margin
        assert 0 < found.share <= truth * (1 + 2e-6)
        assert found.upper >= best.normalised_margin * (1 - 2e-6)
    assert gap(best.network, data).share > 0.5


def test_a_closed_form_has_all_of_the_largest_margin():
    network, data = closed_form(12, 6)
    found = gap(network, data)
    assert found.share == pytest.approx(1, abs=1e-6)
    assert "at least 99.99 % of the largest margin" in found.sentence


def test_both_labels_on_one_example():
    data = Data(torch.ones(2, 3, dtype=torch.float64), torch.tensor([1.0, -1.0], dtype=torch.float64))
    with pytest.raises(InputError, match="are equal and carry the labels 1 and -1"):
        largest(data)


def test_a_ray_with_both_labels_needs_biases():
    data = Data(torch.tensor([[1.0, 1.0], [2.0, 2.0]]), torch.tensor([1.0, -1.0]))
    with pytest.raises(InputError, match="without biases, where only directions count"):
        largest(data, biases=False)
    with pytest.raises(InputError, match="example 1 is zero"):
        largest(Data(torch.tensor([[1.0], [0.0]]), torch.tensor([1.0, -1.0])), biases=False)
    assert proved(data).proved_gap <= 1e-6


@pytest.mark.parametrize(
    ("options", "line"),
    [({"gap": 0.0}, "gap is 0"), ({"seconds": -1.0}, "seconds is -1"), ({"memory": float("nan")}, "memory is nan")],
)
def test_bad_options_are_refused(options, line):
    with pytest.raises(InputError, match=line):
        largest(gaussian(4, 2, 0), **options)


def test_an_output_bias_and_a_wrong_network_are_refused():
    data = gaussian(6, 3, 0)
    network = fitted(data, 30, 0)
    with pytest.raises(InputError, match="output bias"):
        gap(replace(network, c=torch.tensor(0.5)), data)
    with pytest.raises(InputError, match="misclassifies"):
        largest(data, start=TwoLayer(network.W, network.b, -network.v))


def test_far_too_many_examples_are_refused():
    X = torch.randn(10_001, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with pytest.raises(InputError, match="10001 examples; 10000 are the most"):
        largest(Data(X, X[:, 0].sign()))


def test_too_many_examples_need_a_network_to_begin_with():
    X = torch.randn(2001, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with pytest.raises(InputError, match="2001 examples; above 2000 give a network"):
        largest(Data(X, X[:, 0].sign()))
