"""One direction for all: brute force over c, the papers' own examples, transfer."""

import pytest
import torch

from brittle.attacks import (
    FREE,
    Restriction,
    Universal,
    first_flip,
    sum_off_subspace_weights,
    sum_signed_examples,
    sum_signed_gradients,
    sum_signed_means,
    transfer,
)
from brittle.common.errors import InputError
from brittle.data import Clusters, Data, Orthogonal, Sphere, Subspace
from brittle.kkt import solve
from brittle.networks import Kaiming, TorchLinearInit, TwoLayer, orthogonal_kkt
from brittle.training import Flow, LogLoss

DOUBLE = torch.float64


def labelled(network, count, rng):
    X = torch.randn(count, network.dim, generator=rng, dtype=DOUBLE)
    return Data(X, network.logits(X).sign())


def test_the_smallest_c_is_where_brute_force_finds_it(rng):
    """Among random networks there must be some where an example flips back before the last one has flipped."""
    later = finite = 0
    grid = torch.linspace(0, 40, 8001, dtype=DOUBLE)
    for _ in range(150):
        network = TorchLinearInit().draw(3, 9, rng)
        data = labelled(network, 2, rng)
        z = torch.randn(3, generator=rng, dtype=DOUBLE)
        result = Universal(direction=z, limit=40.0).run(network, data)
        rays = -data.y[:, None] * result.z
        flipped = torch.stack(
            [
                network.margins(x + grid[:, None] * u, y.expand(len(grid))) < 0
                for x, y, u in zip(data.X, data.y, rays, strict=True)
            ]
        ).all(0)
        if flipped.any():
            assert result.smallest == pytest.approx(float(grid[flipped][0]), abs=5.001e-3)
            assert result.success.all()
            assert result.smallest <= result.size <= result.smallest * (1 + 1e-6) + 1e-9
            finite += 1
            later += result.smallest > result.lower * (1 + 1e-9)
        elif result.smallest < torch.inf:
            assert result.success.all()
        share = result.curve(grid[1:400:20] + 1e-7)
        points = [(network.margins(data.X + c * rays, data.y) < 0).double().mean() for c in grid[1:400:20] + 1e-7]
        torch.testing.assert_close(share, torch.stack(points))
    assert finite > 15
    assert later > 0


def test_an_example_that_flips_back_moves_the_common_c():
    """The first flips only between 1 and 2, the second from 3 to 4 and from 1.5 on: all flip together at 1.5."""
    W = torch.tensor([[-1.0, 0.0], [-1.0, 0.0], [0.0, -1.0]], dtype=DOUBLE)
    network = TwoLayer(
        W,
        torch.tensor([0.0, -1.0, 0.0], dtype=DOUBLE),
        torch.tensor([-1.0, 2.0, -1.0], dtype=DOUBLE),
        torch.tensor(0.5),
    )
    X = torch.tensor([[0.0, 5.0], [-0.9, 5.0]], dtype=DOUBLE)
    data = Data(X, torch.ones(2, dtype=DOUBLE))
    margins = network.margins(X, data.y)
    assert margins[0] > 0
    assert margins[1] < 0
    result = Universal(direction=torch.tensor([1.0, 0.0])).run(network, data)
    assert result.considered.tolist() == [True, False]
    assert result.smallest == pytest.approx(0.5)
    assert result.intervals.stop.tolist() == pytest.approx([1.5])
    assert result.curve(torch.tensor([0.4, 0.6, 1.4, 1.6])).tolist() == [0, 1, 1, 0]


def test_unsigned_perturbations_leave_one_class_behind(rng):
    network = TorchLinearInit(biases=False).draw(6, 40, rng)
    data = labelled(network, 30, rng)
    signed = Universal(direction=sum_signed_gradients).run(network, data)
    unsigned = Universal(direction=sum_signed_gradients, signed=False).run(network, data)
    assert signed.rate > 0.9
    assert unsigned.smallest == torch.inf
    far = network.logits(data.X + 1e3 * unsigned.z).sign()
    assert (far == far[0]).all()


def test_the_closed_form_kkt_point_flips_at_the_known_distance(rng):
    data = Orthogonal(dim=30).sample(20, rng)
    point = orthogonal_kkt(data.X, data.y)
    result = Universal(direction=sum_signed_examples, margin_slack=0.1).run(point.network, data)
    assert result.considered.all()
    assert result.success.all()
    assert result.smallest == pytest.approx(point.radius, rel=1e-9)


def test_a_solved_kkt_point_is_flipped_far_below_root_d(rng):
    """vardi2022 at d = n: one direction, all margin examples, c < √d/2."""
    data = Sphere(dim=30).sample(30, rng)
    trained = Flow(until=LogLoss(-3.0)).train(TorchLinearInit().draw(30, 200, rng), data).network
    network = solve(trained, data).network
    result = Universal(direction=sum_signed_examples, margin_slack=0.1).run(network, data)
    assert result.considered.sum() > 20
    assert result.success[result.considered].all()
    assert result.smallest < 0.5 * 30**0.5


def test_clusters_flip_along_their_means(rng):
    data = Clusters(dim=200, clusters=4, noise=0.1).sample(40, rng)
    network = Flow(until=LogLoss(-6.0)).train(TorchLinearInit().draw(200, 50, rng), data).network
    result = Universal(direction=sum_signed_means).run(network, data)
    assert result.success.all()
    assert result.smallest < 200**0.5
    expected = data.truth.mean_labels @ data.truth.means
    torch.testing.assert_close(result.z, expected / expected.norm())


def test_weights_off_the_subspace_flip(rng):
    data = Subspace(dim=60, codimension=50).sample(10, rng)
    network = Kaiming().draw(60, 40, rng)
    data = Data(data.X, network.logits(data.X).sign(), truth=data.truth)
    result = Universal(direction=sum_off_subspace_weights).run(network, data)
    assert result.success.all()
    assert (result.perturbations @ data.truth.basis).abs().max() < 1e-12
    with pytest.raises(InputError, match="known subspace"):
        sum_off_subspace_weights(network, Data(data.X, data.y))


def test_transfer_to_other_networks(rng):
    data = Sphere(dim=40).sample(15, rng)
    networks = [Flow(until=LogLoss(-3.0)).train(TorchLinearInit().draw(40, 60, rng), data).network for _ in range(3)]
    first = Universal().run(networks[0], data)
    results = transfer(first.z, networks, data)
    assert results[0].smallest == pytest.approx(first.smallest)
    assert all(other.curve(torch.tensor([2 * first.smallest])) > 0.5 for other in results[1:])


def test_it_says_when_nothing_can_flip_together(rng):
    network = TorchLinearInit().draw(4, 10, rng)
    data = labelled(network, 20, rng)
    result = Universal(direction=torch.zeros(4)).run(network, data)
    assert result.smallest == torch.inf
    assert result.size == 0
    assert not result.success.any()
    wrong = Data(data.X, -data.y)
    result = Universal(direction=sum_signed_gradients).run(network, wrong)
    assert not result.considered.any()
    assert result.smallest == 0
    assert result.success.all()


def test_wrong_directions_are_named(rng):
    network = TorchLinearInit().draw(4, 10, rng)
    data = labelled(network, 5, rng)
    with pytest.raises(InputError, match=r"direction has shape \(3,\)"):
        Universal(direction=torch.ones(3)).run(network, data)
    with pytest.raises(InputError, match="cluster means"):
        Universal(direction=sum_signed_means).run(network, data)
    several = TorchLinearInit().draw_deep(4, [6], rng, outputs=3)
    with pytest.raises(InputError, match="labels -1 and 1"):
        Universal().run(several, Data(data.X, torch.tensor([0, 1, 2, 0, 1])))


def test_the_margin_set_is_that_of_the_smallest_margins(rng):
    network = TorchLinearInit().draw(10, 30, rng)
    data = labelled(network, 40, rng)
    margins = network.margins(data.X, data.y)
    result = Universal(margin_slack=0.5).run(network, data)
    assert torch.equal(result.considered, margins <= 1.5 * margins.min())
    rays = -data.y[:, None] * result.z
    first = first_flip(network, data.X, data.y, rays)[result.considered]
    assert result.lower == float(first.max())


def test_within_a_subspace(rng):
    network = TorchLinearInit().draw(10, 30, rng)
    data = labelled(network, 10, rng)
    inside = Restriction(torch.eye(10, dtype=DOUBLE)[:, :4])
    result = Universal(direction=sum_signed_gradients, subspace=inside).run(network, data)
    assert (result.perturbations[:, 4:] == 0).all()
    assert Universal().subspace is FREE
