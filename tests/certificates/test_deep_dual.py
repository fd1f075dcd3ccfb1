"""The dual bound of deep networks, against brute force, rational arithmetic, dense algebra and a case by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from brittle.attacks import PGD
from brittle.certificates import Dual
from brittle.certificates.deep_dual.chain import Chain, LagrangianPoint
from brittle.certificates.deep_dual.definite import Curvatures, chain_floor, cholesky_floor, of_network
from brittle.certificates.deep_dual.judge import proven_quotients, proven_radii, proven_values
from brittle.certificates.deep_dual.solver import ascend, first_multipliers, first_order_flips, minimiser
from brittle.certificates.layers import spectral_norm
from brittle.common.errors import InputError
from brittle.data import Data
from brittle.networks import Adapter, Convolution, Deep, Dense
from tests.certificates.reference import brute_force_deep_radius, exact_deep_value

BOX = (-0.6, 0.6)


def drawn(rng, *shape):
    return torch.randn(shape, generator=rng, dtype=torch.float64)


def dense(rng, *widths):
    pairs = list(zip(widths[1:], widths[:-1], strict=True))
    return Deep(tuple(Dense(drawn(rng, *pair) / pair[1] ** 0.5, 0.3 * drawn(rng, pair[0])) for pair in pairs))


def convolutional(rng):
    first = Convolution(drawn(rng, 2, 1, 2, 2), 0.3 * drawn(rng, 2), (1, 2, 4))
    return Deep((first, Dense(drawn(rng, 2, 6), drawn(rng, 2)), Dense(drawn(rng, 3, 2), drawn(rng, 3))))


NETWORKS = [
    pytest.param(lambda rng: dense(rng, 3, 5, 4), id="two layers"),
    pytest.param(lambda rng: dense(rng, 3, 4, 4, 1), id="three layers, a sign network"),
    pytest.param(lambda rng: dense(rng, 2, 3, 3, 3, 3), id="four layers, three classes"),
    pytest.param(lambda rng: dense(rng, 3, 3, 2, 2, 2, 2), id="five layers, two classes"),
    pytest.param(convolutional, id="a convolution"),
]


def labelled(network, X):
    logits = network.logits(X)
    return Data(X, torch.where(logits > 0, 1.0, -1.0).double() if network.classes == 1 else logits.argmax(1))


def bounded(part, network, data, **options):
    """With an attack that costs little: upper bounds are not what is tested."""
    return part.bound(network, data, attack=PGD(budget=1.0, steps=3), **options)


def solved(network, x, y, steps=60, box=None):
    """Margins, multipliers, a point and the proved curvatures of a network at one example."""
    with torch.no_grad():
        chain = Chain.of(network)
        curvatures, margins = of_network(chain), chain.around(x, 1.0, y, box)
        flip, mu = first_order_flips(margins)
        multipliers, point = ascend(margins, first_multipliers(margins, curvatures.values, flip, mu), flip, steps)
        return margins, multipliers, minimiser(margins, multipliers, point, 100, 1e-8), curvatures


@pytest.mark.parametrize("make", NETWORKS)
@pytest.mark.parametrize("part", [Dual(boxed=True), Dual(boxed=True, refined=True)], ids=["plain", "refined"])
def test_no_bound_lies_above_brute_force(part, make, rng):
    """A box that holds everything turns two layers over to the bound for deep networks too."""
    shares = []
    while len(shares) < (2 if part.refined else 4):
        network = make(rng)
        data = labelled(network, drawn(rng, 1, network.dim))
        radius = brute_force_deep_radius(network, data.X[0].numpy(), int(data.y[0]))
        if radius < 50:  # many deep and narrow networks are constant nearly everywhere
            found = bounded(part, network, data, bounds=(-1e4, 1e4), cap=1e3)
            assert found.lower[0] <= radius * (1 + 1e-7)
            shares.append(float(found.lower[0]) / radius)
    assert max(shares) > 0.1


@pytest.mark.parametrize("make", NETWORKS)
def test_with_a_box_only_flips_in_it_count(make, rng):
    for _ in range(4):
        network = make(rng)
        data = labelled(network, 0.4 * drawn(rng, 1, network.dim).clamp(-1, 1))
        radius = brute_force_deep_radius(network, data.X[0].numpy(), int(data.y[0]), BOX)
        found = bounded(Dual(boxed=True), network, data, bounds=BOX, cap=10.0)
        free = bounded(Dual(boxed=True), network, data, bounds=(-1e4, 1e4), cap=10.0)
        assert found.lower[0] <= radius * (1 + 1e-7)
        assert found.lower[0] >= free.lower[0] * (1 - 1e-2)


@pytest.mark.parametrize("side", [1, -1], ids=["low", "high"])
def test_the_box_lengthens_the_radius_by_what_it_cuts_off(side):
    """f = x₁ + ½x₂ + .88 at 0 vanishes next at (-.704, -.352), and in the box |x| ≤ .6 at (-.6, -.56)."""
    one, zero = torch.eye(2).double(), torch.zeros(2).double()
    last = Dense(torch.tensor([[1.0, 0.5]]).double(), torch.tensor([0.88 - 7.5]).double())
    network = Deep((Dense(side * one, zero + 5), Dense(one, zero), last))
    data = Data(torch.zeros(1, 2).double(), torch.ones(1).double())
    free, boxed = (bounded(part, network, data, bounds=BOX, cap=2.0) for part in (Dual(), Dual(boxed=True)))
    assert float(free.lower[0]) == pytest.approx(math.hypot(0.704, 0.352), rel=1e-3)
    assert float(boxed.lower[0]) == pytest.approx(math.hypot(0.6, 0.56), rel=1e-2)
    assert float(boxed.lower[0]) <= math.hypot(0.6, 0.56)


def test_one_neuron_in_every_layer_by_hand():
    """f = φ(φ(x)) - ½ at x = 1 vanishes at ½; λ = 1, μ = ½, β = 1, α = 0 prove that radius, with x̃ = (-½, ½, ½)."""
    one, zero = torch.ones(1, 1).double(), torch.zeros(1).double()
    network = Deep((Dense(one, zero), Dense(one, zero), Dense(one, zero - 0.5)))
    margins, multipliers, _, _ = solved(network, torch.ones(1).double(), torch.tensor(1.0), steps=0)
    unit = 2.0**margins.exponent
    proved = Curvatures((torch.tensor(1.0).double(),) * 2, chain_floor((1.0, 1.0), (1.0, 1.0)))
    multipliers = replace(
        multipliers,
        curvatures=proved.values,
        signs=(torch.zeros(1, 1).double(),) * 2,
        lines=(one / unit, one / unit),
        margin=torch.tensor([0.5 / unit * 0.5 / float(-margins.heights[0] * unit)]).double(),
    )
    point = LagrangianPoint(-0.5 * one / unit, (0.5 * one / unit, 0.5 * one / unit))
    assert unit * float(proven_radii(margins, multipliers, point, proved)) == pytest.approx(0.5, rel=1e-12)
    found = bounded(Dual(), network, Data(one, torch.ones(1).double()))
    assert 0.5 * (1 - 1e-6) <= float(found.lower[0]) <= 0.5


@pytest.mark.parametrize("widths", [(2, 3, 1), (3, 3, 2, 3), (2, 2, 2, 2, 2)])
def test_the_judge_stays_below_the_formula_in_rational_arithmetic(widths, rng):
    network = dense(rng, *widths)
    data = labelled(network, drawn(rng, 1, network.dim))
    margins, multipliers, best, proved = solved(network, data.X[0], data.y[0])
    *weights, _ = (
        (each.matrix.numpy(), b.numpy())
        for each, b in zip(
            (*margins.chain.maps, network.layers[-1]), (*margins.offsets, margins.offsets[0]), strict=True
        )
    )
    other = best.moved(0.01, LagrangianPoint(torch.ones_like(best.delta), tuple(map(torch.ones_like, best.hidden))))
    for r in range(len(margins.rows)):
        value = exact_deep_value(
            [W for W, _ in weights],
            [b for _, b in weights],
            margins.rows[r].numpy(),
            float(margins.heights[r]),
            margins.x.numpy(),
            [lam.expand(len(b)).numpy() for lam, (_, b) in zip(multipliers.curvatures, weights, strict=True)],
            [each[r].numpy() for each in multipliers.signs],
            [each[r].numpy() for each in multipliers.lines],
            float(multipliers.margin[r]),
        )
        near, far = (float(proven_values(margins, multipliers, point, proved)[r]) for point in (best, other))
        assert near <= value
        assert near == pytest.approx(float(value), abs=1e-9 * max(1.0, abs(float(value))))
        assert far < near


def test_the_first_multipliers_are_the_closed_form_and_steps_improve_on_it(rng):
    """λ, β = p(μG + λz)₊ and α = (1 - p)(μG + λ|z|)₊ and a dense H, written out."""
    network = dense(rng, 6, 8, 7, 3)
    data = labelled(network, drawn(rng, 1, 6))
    margins, multipliers, _, curvatures = solved(network, data.X[0], data.y[0], steps=0)
    flip, mu = first_order_flips(margins)
    (W1, W2), (b1, b2) = [each.matrix.numpy() for each in margins.chain.maps], [b.numpy() for b in margins.offsets]
    l1, l2 = (float(lam) for lam in multipliers.curvatures)
    H = np.block(
        [
            [np.eye(6), -l1 * W1.T, np.zeros((6, 7))],
            [-l1 * W1, 2 * l1 * np.eye(8), -l2 * W2.T],
            [np.zeros((7, 6)), -l2 * W2, 2 * l2 * np.eye(7)],
        ]
    )
    proved = proven_values(margins, multipliers, minimiser(margins, multipliers, flip, 200, 1e-9), curvatures)
    for r, c in enumerate(margins.rows.numpy()):
        a1, m = W1 @ margins.x.numpy() + b1, float(mu[r])
        z1 = a1 + W1 @ flip.delta[r].numpy()
        z2 = W2 @ np.maximum(z1, 0) + b2
        G2, G1 = m * c, W2.T @ ((z2 > 0) * m * c)
        beta1, beta2 = (z1 > 0) * np.maximum(G1 + l1 * z1, 0), (z2 > 0) * np.maximum(G2 + l2 * z2, 0)
        alpha1, alpha2 = (z1 <= 0) * np.maximum(G1 - l1 * z1, 0), (z2 <= 0) * np.maximum(G2 - l2 * z2, 0)
        q = np.concatenate([W1.T @ beta1, -alpha1 - beta1 - l1 * a1 + W2.T @ beta2, m * c - alpha2 - beta2 - l2 * b2])
        value = m * float(margins.heights[r]) + beta1 @ a1 + beta2 @ b2 - 0.5 * q @ np.linalg.solve(H, q)
        assert float(proved[r]) == pytest.approx(value, rel=1e-8, abs=1e-10)
    _, better, point, curvatures = solved(network, data.X[0], data.y[0])
    assert (proven_values(margins, better, point, curvatures) >= proved - 1e-6).all()


def test_forged_multipliers_prove_nothing(rng):
    network = dense(rng, 4, 5, 5, 3)
    data = labelled(network, drawn(rng, 1, 4))
    margins, true, point, proved = solved(network, data.X[0], data.y[0])
    assert (proven_radii(margins, true, point, proved) > 0).any()
    lines, signs = list(true.lines), list(true.signs)
    forged = [
        replace(true, lines=(lines[0] - 1e-3 * (lines[0] == 0).double(), lines[1])),
        replace(true, signs=(signs[0], torch.full_like(signs[1], math.nan))),
        replace(true, margin=-true.margin),
        replace(true, margin=true.margin * math.inf),
        replace(true, curvatures=(true.curvatures[0], -true.curvatures[1])),
        replace(true, curvatures=tuple(1.01 * lam for lam in true.curvatures)),  # of which nothing is proved
        replace(true, walls=torch.ones_like(point.delta)),  # there is no box
    ]
    for multipliers in forged:
        assert (proven_radii(margins, multipliers, point, proved) == 0).all()
    assert (proven_radii(margins, true, point, replace(proved, floor=0.0)) == 0).all()
    assert (proven_radii(margins, true, point.moved(math.nan, point), proved) == 0).all()


def smallest(weights, curvatures):
    """The least eigenvalue of the scaled Hessian, which is written out."""
    sizes = [weights[0].shape[1], *map(len, weights)]
    starts = np.cumsum([0, *sizes])
    H = np.diag([1.0] * sizes[0] + [2.0] * sum(sizes[1:]))
    lam = [np.ones(sizes[0]), *(np.broadcast_to(each, len(W)) for each, W in zip(curvatures, weights, strict=True))]
    for k, W in enumerate(weights):
        block = -np.sqrt(lam[k + 1])[:, None] * W / np.sqrt(lam[k])
        H[starts[k + 1] : starts[k + 2], starts[k] : starts[k + 1]] = block
        H[starts[k] : starts[k + 1], starts[k + 1] : starts[k + 2]] = block.T
    return np.linalg.eigvalsh(H)[0]


def test_too_much_curvature_is_refused_and_what_is_proved_is_true(rng):
    for _ in range(10):
        weights = [drawn(rng, *shape).numpy() for shape in ((5, 4), (6, 5), (3, 6))]
        norms = tuple(np.linalg.norm(W, 2) * (1 + 1e-12) for W in weights)
        plain = 1 / np.cumprod(np.square(norms))
        assert 0 < chain_floor(norms, plain) <= smallest(weights, plain)
        assert chain_floor(norms, plain * [1, 1, 2.01]) == 0
        ragged = [lam * np.exp(drawn(rng, len(W)).numpy()) for lam, W in zip(plain, weights, strict=True)]
        for stretch in (0.1, 0.5, 1.0, 2.0, 4.0, 8.0):
            curvatures = [lam * stretch for lam in ragged]
            least = smallest(weights, curvatures)
            if least > 1e-6:
                assert cholesky_floor(weights, curvatures, least * (1 - 1e-6)) > 0
            assert cholesky_floor(weights, curvatures, max(least * (1 + 1e-6), 1e-9)) == 0
    for bad in (math.nan, math.inf, 0.0, -1.0):
        assert chain_floor(norms, (plain[0], bad, plain[2])) == 0
        assert cholesky_floor(weights, [plain[0], np.array(bad), plain[2]], 1e-3) == 0


def test_the_networks_own_curvatures_are_proved(rng):
    for _ in range(5):
        chain = Chain.of(dense(rng, 6, 9, 8, 7, 3))
        curvatures = of_network(chain)
        weights = [each.matrix.numpy() for each in chain.maps]
        assert 0 < curvatures.floor <= smallest(weights, [float(lam) for lam in curvatures.values])
        norms = [np.linalg.norm(W, 2) for W in weights]
        assert all(norm <= ceiling <= norm * (1 + 1e-6) for norm, ceiling in zip(norms, chain.norms, strict=True))


def test_quotients_are_margins_over_products_of_norms(rng):
    network = dense(rng, 4, 6, 5, 3)
    data = labelled(network, drawn(rng, 1, 4))
    margins = Chain.of(network).around(data.X[0], 1.0, data.y[0])
    logits, label = network.logits(data.X)[0], int(data.y[0])
    rivals = [rival for rival in range(3) if rival != label]
    V = network.layers[-1].matrix
    product = math.prod(float(torch.linalg.matrix_norm(layer.matrix, 2)) for layer in network.layers[:-1])
    expected = [float((logits[label] - logits[j]) / (V[label] - V[j]).norm()) / product for j in rivals]
    found = proven_quotients(margins) * 2.0**margins.exponent
    assert found.tolist() == pytest.approx(expected, rel=1e-7)
    assert (found <= torch.tensor(expected) * (1 + 1e-14)).all()


def test_large_and_sparse_matrices_have_true_ceilings(rng):
    conv = Convolution(drawn(rng, 8, 2, 3, 3), drawn(rng, 8), (2, 16, 16), padding=(1, 1)).matrix.numpy() / 8
    wide = drawn(rng, 420, 430).numpy() / 8
    for W in (conv, wide):
        norm = np.linalg.norm(W, 2)
        assert norm <= spectral_norm(W) <= norm * (1 + 1e-5)


def test_a_convolution_is_its_matrix(rng):
    network = convolutional(rng)
    data = labelled(network, drawn(rng, 2, 8))
    same = Deep.dense(network.weights, network.biases)
    lower = [bounded(Dual(), each, data).lower.tolist() for each in (network, same)]
    assert lower[0] == pytest.approx(lower[1], rel=1e-6)


@pytest.mark.parametrize("powers", [(500, -500, 0), (-500, 500, 0), (300, 300, -600), (-498, -498, 0), (498, 498, 0)])
def test_bounds_do_not_depend_on_the_scales_of_layers(powers, rng):
    """By powers of two the network is the same up to a factor of its output, from 1e-150 to 1e150 in one layer."""
    network = dense(rng, 4, 6, 5, 3)
    data = labelled(network, drawn(rng, 3, 4))
    layers, total = [], 0
    for layer, power in zip(network.layers, powers, strict=True):
        total += power
        layers.append(Dense(layer.weight * 2.0**power, layer.bias * 2.0**total))
    plain, far = (bounded(Dual(), each, data, cap=100.0) for each in (network, Deep(tuple(layers))))
    assert plain.lower.min() > 0
    assert far.lower.tolist() == pytest.approx(plain.lower.tolist(), rel=1e-6)


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e150])
def test_neurons_of_far_scales_give_valid_bounds_or_a_reason(scale, rng):
    """Half of a layer's neurons are scaled, and the next layer does not undo it."""
    for _ in range(3):
        network = dense(rng, 3, 4, 3, 2)
        factors = torch.tensor([1.0, scale, 1.0, scale], dtype=torch.float64)
        first = network.layers[0]
        network = Deep((Dense(first.weight * factors[:, None], first.bias * factors), *network.layers[1:]))
        data = labelled(network, drawn(rng, 1, 3))
        found = bounded(Dual(), network, data)
        assert found.reason[0] or found.lower[0] > 0
        if 1e-30 < scale < 1e30:
            radius = brute_force_deep_radius(network, data.X[0].numpy(), int(data.y[0]))
            assert found.lower[0] <= radius * (1 + 1e-6)
        else:
            assert found.lower[0] <= found.upper[0]


def test_a_network_that_never_flips_is_capped():
    one, zero = torch.eye(2).double(), torch.zeros(2).double()
    never = Deep((Dense(one, zero), Dense(one, zero), Dense(torch.ones(1, 2).double(), torch.ones(1).double())))
    dead = Deep(
        (Dense(0 * one, zero), Dense(one, zero + 1), Dense(-torch.ones(1, 2).double(), 3 * torch.ones(1).double()))
    )
    data = Data(torch.ones(1, 2).double(), torch.ones(1).double())
    for network in (never, dead):
        assert bounded(Dual(), network, data, cap=7.0).status == ("capped",)


def test_bad_input_is_named(rng):
    network = dense(rng, 3, 4, 4, 2)
    data = labelled(network, drawn(rng, 1, 3))
    with pytest.raises(InputError, match="boxed is True without a box"):
        bounded(Dual(boxed=True), network, data)
    with pytest.raises(InputError, match="affine layers"):
        bounded(Dual(), Adapter(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh()), (3,)), data)
