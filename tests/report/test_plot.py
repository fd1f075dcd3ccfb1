"""What stands behind the pictures is right; how they look is for people."""

import math

import numpy as np
import pytest
import torch

import brittle as bt
from brittle import InputError
from brittle.report.plot.planes import segments
from brittle.report.plot.rays import envelope

W = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).double()
LINE = bt.networks.TwoLayer(W, torch.zeros(2).double(), torch.tensor([1.0, -1.0]).double())  # N(x) = x_1
TWO = bt.data.Data([[-2.0, 0.0], [1.0, 3.0]], [-1, 1])


@pytest.fixture
def module() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)).double()


def test_the_plane_of_a_line_is_known_by_hand():
    shown = bt.plot.Plane.of(LINE, TWO, grid=11)
    assert torch.allclose(shown.values, shown.x.expand(11, 11))  # the logit is the first coordinate
    assert shown.bounds is not None
    assert shown.universal is not None
    assert shown.bounds.lower.tolist() == pytest.approx([2.0, 1.0], rel=1e-5)  # distances to the axis
    assert np.abs(shown.kinks[:, :, 0]).max() < 1e-12  # both neurons bend on the axis
    assert shown.strengths.tolist() == [1.0, 1.0]
    assert (shown.universal.perturbations[:, 0].sign() == torch.tensor([1.0, -1.0])).all()  # each across the axis
    assert shown.universal.success.all()
    assert min(shown.x[0], shown.y[0]) < -2
    assert max(shown.x[-1], shown.y[-1]) > 3


def test_what_is_not_asked_for_is_not_measured():
    shown = bt.plot.Plane.of(LINE, TWO, balls=False, neurons=False, universal=False, grid=5)
    assert shown.bounds is None
    assert shown.universal is None
    assert len(shown.kinks) == 0


def test_several_classes_are_drawn_by_what_is_predicted(module):
    data = bt.data.Data(torch.eye(2).repeat(2, 1), [0, 1, 2, 0])
    shown = bt.plot.Plane.of(module, data, grid=7)
    place = torch.tensor([[shown.x[2], shown.y[5]]])
    assert shown.values[5, 2] == module(place).argmax()
    assert shown.universal is None
    figure = bt.plot.plane(module, data)
    assert len(figure.axes) == 1


def test_lines_are_cut_at_the_box():
    rng = np.random.default_rng(0)
    W, b = rng.normal(size=(200, 2)), rng.normal(size=200)
    W[0], W[1], W[2] = 0, (0, 1), (1, 0)  # no line, and lines along the axes
    low, high = np.array([-1.0, -0.5]), np.array([0.5, 1.0])
    lines, rows = segments(W, b, low, high)
    ends = lines.reshape(-1, 2)
    assert np.abs((ends * np.repeat(W[rows], 2, 0)).sum(1) + np.repeat(b[rows], 2)).max() < 1e-9
    assert (ends >= low - 1e-9).all()
    assert (ends <= high + 1e-9).all()
    corners = np.array([[x, y] for x in (low[0], high[0]) for y in (low[1], high[1])])
    sides = corners @ W.T + b
    crossed = np.flatnonzero((sides.min(0) < 0) & (sides.max(0) > 0))
    assert rows.tolist() == crossed.tolist()


def test_the_ray_has_every_kink_and_is_linear_between_them(rng):
    network = bt.networks.TorchLinearInit().draw_deep(5, (12, 9), rng)
    data = bt.data.Sphere(5).sample(3, rng)
    direction = torch.randn(5, generator=rng, dtype=torch.float64)
    along = bt.plot.Along.of(network, data, 1, direction=direction, limit=8.0)
    assert along.exact
    fine = torch.linspace(0, 8, 4001, dtype=torch.float64)
    double = network.to(torch.float64)
    margins = double.margins(data.X[1] + fine[:, None] * along.direction, data.y[1].expand(len(fine)))
    drawn = np.interp(fine, along.at, along.margins)
    assert np.abs(drawn - margins.numpy()).max() < 1e-9
    thinned = np.interp(fine, along.at[::2], along.margins[::2])  # without half of the kinks it is another curve
    assert np.abs(thinned - margins.numpy()).max() > 1e-4


def test_the_ray_of_three_classes_bends_where_the_rival_changes(module):
    data = bt.data.Data(torch.eye(2), [0, 1])
    along = bt.plot.Along.of(module, data, 0, direction=[1.0, -2.0], limit=6.0)
    fine = torch.linspace(0, 6, 2001, dtype=torch.float64)
    network = bt.networks.as_network(module)
    margins = network.margins(data.X[0] + fine[:, None] * along.direction, data.y[0].expand(len(fine))).detach()
    assert np.abs(np.interp(fine, along.at, along.margins) - margins.numpy()).max() < 1e-9


def test_the_lower_envelope_is_the_smallest_line():
    value, slope = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([1.0, 0.0, -1.0])
    assert envelope(value, slope, 10.0).tolist() == [0.0, 1.0, 2.0]
    assert envelope(value, slope, 1.5).tolist() == [0.0, 1.0]


def test_the_ray_ends_at_the_flip_and_shades_what_is_proved():
    along = bt.plot.Along.of(LINE, TWO, 0, certificate=bt.certificates.Exact())
    assert along.flip == pytest.approx(2.0)
    assert along.radius == pytest.approx(2.0, rel=1e-5)
    assert along.at[-1] == pytest.approx(3.2)
    away = bt.plot.Along.of(LINE, TWO, 0, direction=[-1.0, 0.0], limit=4.0)
    assert math.isinf(away.flip)


def test_a_network_that_is_no_lines_is_sampled():
    smooth = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    along = bt.plot.Along.of(smooth, TWO, 0, direction=[1.0, 0.0], limit=1.0)
    assert not along.exact
    assert len(along.at) > 100
    assert bt.plot.Plane.of(smooth, TWO, grid=5).bounds is None


def test_the_slice_holds_the_example_its_flip_and_the_way_to_its_rival():
    shown = bt.plot.Slice.of(LINE, TWO, 0, certificate=bt.certificates.Exact())
    assert shown.flip == pytest.approx(2.0, rel=1e-6)
    assert shown.rival == 1
    middle = len(shown.steps) // 2
    assert shown.margins[middle, middle] == pytest.approx(2.0)
    assert shown.across.tolist() == pytest.approx([0.0, 1.0])
    assert torch.allclose(shown.margins[3], 2.0 - shown.steps, atol=1e-6)  # along the flip the margin falls by 1


def test_a_slice_of_one_class_has_no_rival():
    shown = bt.plot.Slice.of(LINE, TWO.take(torch.tensor([1])), 0)
    assert shown.rival == -1
    assert float(shown.along @ shown.across) == pytest.approx(0)


def test_neurons_are_weights_times_outputs_before_and_after(rng):
    data = bt.data.Sphere(6).sample(8, rng)
    start = bt.networks.TorchLinearInit().draw(6, 10, rng)
    trained = bt.training.GradientDescent(until=bt.training.Steps(20)).train(start, data).network
    moved = bt.plot.Movement.of(trained, data)
    assert torch.allclose(moved.before, (start.W * start.v.abs()[:, None]).double() @ moved.axes)
    assert torch.allclose(moved.axes.T @ moved.axes, torch.eye(2).double())
    assert (moved.signs == trained.v.sign()).all()
    assert ((moved.shown > 0) & (moved.shown < 1)).all()
    with pytest.raises(InputError, match="give start"):
        bt.plot.neurons(LINE, TWO)
    with pytest.raises(InputError, match="the same"):
        bt.plot.neurons(trained, data, bt.networks.TorchLinearInit().draw(6, 3, rng))


def test_bad_input_is_one_clear_line(rng):
    wide = bt.data.Sphere(5).sample(4, rng)
    network = bt.networks.TorchLinearInit().draw(5, 4, rng)
    with pytest.raises(InputError, match="5 features; a plane takes 2"):
        bt.plot.plane(network, wide)
    with pytest.raises(InputError, match="5 features; space takes 3"):
        bt.plot.space(network, wide)
    with pytest.raises(InputError, match="example is 9; it must be from 0 to 3"):
        bt.plot.ray(network, wide, 9)
    with pytest.raises(InputError, match="no pictures"):
        bt.plot.flips(wide, bt.attacks.GradientStep().run(network, wide))
    with pytest.raises(InputError, match="networks is empty"):
        bt.plot.planes({}, wide)
    with pytest.raises(InputError, match=r"direction has shape \(2,\); \(5,\) is needed"):
        bt.plot.ray(network, wide, direction=[1.0, 0.0])


def test_the_curve_is_the_share_that_flips():
    data = bt.data.Orthogonal(6).sample(6)
    found = bt.attacks.Universal().run(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
    (line, smallest) = bt.plot.curve({"kkt": found}).axes[0].lines
    sizes, shares = line.get_data()
    assert shares[sizes > found.smallest].min() == 100
    assert shares[sizes < found.lower].max() < 100
    assert smallest.get_xdata()[0] == found.smallest
