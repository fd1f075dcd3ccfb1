"""No lower bound above the radius at any scale of weights and examples: every flip here is checked in fractions."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import torch

from brittle.attacks import Attack, AttackResult, MinimumNorm
from brittle.attacks.base import Attempt
from brittle.certificates import Dual, Exact, LinearRelaxation, Lipschitz, rounding
from brittle.certificates.margins import FLOOR, _floored
from brittle.certificates.rounding import SMALLEST
from brittle.common.errors import InputError
from brittle.data import Data
from brittle.networks import Deep, TwoLayer
from tests.cases import CERTIFICATES
from tests.certificates.rational import exact_margin, flips, is_shorter

PARTS = [pytest.param(part, id=name) for name, part in CERTIFICATES]
BEYOND = 1 + Fraction(1, 2**20)  # just past the nearest flip


@dataclass(frozen=True)
class Case:
    """A network, a rightly classified example, and a flip a little farther away than the nearest one."""

    network: TwoLayer | Deep
    x: tuple[float, ...]
    y: float
    flip: tuple[Fraction | float, ...]


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def two_layer(W, b, v, c=0.0):
    return TwoLayer(tensor(W), tensor(b), tensor(v), tensor(c))


def negative_output_beside_a_huge_one():
    """φ(x₁)·1e300 - φ(-x₁+.3x₂-1)·1e-300: negative beyond the line -x₁+.3x₂ = 1, at 3/√1.09 = 2.87 from (2, 0)."""
    network = two_layer([[1.0, 0.0], [-1.0, 0.3]], [0.0, -1.0], [1e300, -1e-300])
    share = Fraction(3) / (1 + Fraction(0.3) ** 2) * BEYOND
    return Case(network, (2.0, 0.0), 1.0, (-share, Fraction(0.3) * share))


def negative_output_bias_beside_a_huge_output():
    """1e300·φ(x₁) - 1e-300 is negative at x₁ = 0."""
    return Case(two_layer([[1.0, 0.0]], [0.0], [1e300], -1e-300), (2.0, 0.0), 1.0, (-2.0, 0.0))


def biases_that_differ_below_the_weights():
    """φ(2⁶⁰⁰x + 1e-200) - φ(2⁶⁰⁰x + 2e-200) + φ(-x) is -1e-200 at 0, at 5 from -5."""
    network = two_layer([[2.0**600], [2.0**600], [-1.0]], [1e-200, 2e-200, 0.0], [1.0, -1.0, 1.0])
    return Case(network, (-5.0,), 1.0, (5.0,))


def neurons_of_different_scales():
    """2e-200 - φ(1e-200·x₁), and a neuron that is off up to 1e6: negative beyond x₁ = 2, at 1 from (1, 0)."""
    network = two_layer([[1e-200, 0.0], [1.0, 1.0]], [0.0, -1e6], [-1.0, 1e-300], 2e-200)
    return Case(network, (1.0, 0.0), 1.0, (BEYOND, 0.0))


def classes(slope, height, other=-1.0):
    """Class 0 beats class 1 by slope·φ(x) - height; a third class sets the scale of the outputs."""
    return Deep.dense((tensor([[1.0]]), tensor([[slope], [0.0], [other]])), (tensor([0.0]), tensor([0.0, height, 0.0])))


def pair_of_classes_that_hardly_differ():
    """1e-200·φ(x) - 5e-201: negative below x = ½, at ½ from 1."""
    return Case(classes(1e-200, 0.5e-200), (1.0,), 0, (-Fraction(1, 2) * BEYOND,))


def bent_pair_of_classes_that_hardly_differ():
    """1e-200·(φ(x₁) - φ(-x₁)) - 5e-201 beside outputs of 1, in two dimensions: at ½ from (1, 0)."""
    weights = tensor([[1.0, 0.0], [-1.0, 0.0]]), tensor([[1e-200, -1e-200], [0.0, 0.0], [-1.0, -1.0]])
    network = Deep.dense(weights, (tensor([0.0, 0.0]), tensor([0.0, 0.5e-200, 0.0])))
    return Case(network, (1.0, 0.0), 0, (-Fraction(1, 2) * BEYOND, 0.0))


def scaled_inputs(exponent, with_output_bias):
    """φ(x₁ + s/2) - φ(x₂) (- s/4) at (s, 0), s a power of two: a distance in proportion to s.

    Where both are on the margin is x₁ - x₂ + s/2 (- s/4): its zero is at (6 or 5)s/(4√2) along (-1, 1).
    """
    s = 2.0**exponent
    network = two_layer([[1.0, 0.0], [0.0, 1.0]], [s / 2, 0.0], [1.0, -1.0], -s / 4 if with_output_bias else 0.0)
    share = Fraction(5 if with_output_bias else 6, 8) * Fraction(s) * BEYOND
    return Case(network, (s, 0.0), 1.0, (-share, share))


def flat_pair(slope, radius):
    """slope·φ(x) - slope·(1 - radius) at 1: the margin is slope·radius there, up to one rounding of the height."""
    height = slope * (1 - radius)
    return Case(classes(slope, height), (1.0,), 0, ((Fraction(height) / Fraction(slope) - 1) * BEYOND,))


CASES = {
    "a negative output beside a huge one": negative_output_beside_a_huge_one(),
    "a negative output bias beside a huge output": negative_output_bias_beside_a_huge_output(),
    "biases that differ below the weights": biases_that_differ_below_the_weights(),
    "neurons of different scales": neurons_of_different_scales(),
    "a pair of classes that hardly differ": pair_of_classes_that_hardly_differ(),
    "a bent pair of classes that hardly differ": bent_pair_of_classes_that_hardly_differ(),
    **{
        f"inputs at 2^{k}{', output bias' if biased else ''}": scaled_inputs(k, biased)
        for k in (-930, -700, -560, -506, 506, 560, 700, 930)
        for biased in (False, True)
    },
    **{
        f"a pair's slope {slope:g}, radius {radius:g}": flat_pair(slope, radius)
        for slope in (1e-157, 1e-159, 1e-160, 1e-161, 1e-162)
        for radius in (1e-5, 1e-7, 1e-9)
    },
}


def data_of(case):
    label = torch.tensor([case.y]) if isinstance(case.y, int) else tensor([case.y])
    return Data(tensor([case.x]), label)


def bound(part, case, **options):
    return part.bound(case.network, data_of(case), **options)


@dataclass(frozen=True, eq=False)
class Known(Attack[AttackResult]):
    """What the usual attack finds, which is the same for every certificate."""

    perturbations: torch.Tensor

    def propose(self, target):
        return Attempt(self.perturbations, self.perturbations)


@cache
def attack_on(name):
    return Known(MinimumNorm().run(CASES[name].network, data_of(CASES[name])).perturbations)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", CASES)
def test_no_certificate_passes_a_flip_that_is_one_in_rational_arithmetic(part, name):
    case = CASES[name]
    assert exact_margin(case.network, case.x, case.y) > 0
    assert flips(case.network, case.x, case.y, case.flip)
    found = bound(part, case, attack=attack_on(name))
    assert not is_shorter(case.flip, float(found.lower))
    assert found.lower <= found.upper


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_exact_reaches_the_radius_at_any_scale(case):
    """The flip of the case is hardly farther than the radius; where nothing is proved, a reason is given."""
    found = bound(Exact(gap=1e-6), case)
    lower = Fraction(float(found.lower))
    assert found.reason[0] if lower == 0 else is_shorter(case.flip, lower * (1 + Fraction(1, 10**4)))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["W", "b", "v", "c"])
def test_weights_that_are_not_finite_are_refused(part, wrong, name):
    values = {"W": [[1.0, 0.0], [0.0, 1.0]], "b": [0.0, 1.0], "v": [1.0, 1.0], "c": [0.0]}
    flat = tensor(values[name])
    flat.view(-1)[0] = wrong
    parts = {each: flat if each == name else tensor(value) for each, value in values.items()}
    network = TwoLayer(parts["W"], parts["b"], parts["v"], parts["c"][0])
    with pytest.raises(InputError, match=f"{name} of the network holds NaN or infinity"):
        part.bound(network, Data(tensor([[1.0, 2.0]]), tensor([1.0])))


@pytest.mark.parametrize("part", [LinearRelaxation(), Lipschitz("spectral")])
def test_layers_that_are_not_finite_are_refused_by_name(part):
    weights = tensor([[1.0]]), tensor([[1.0]]), tensor([[math.nan]])
    network = Deep.dense(weights, (tensor([0.0]), tensor([0.0]), tensor([0.0])))
    with pytest.raises(InputError, match=r"weights\[2\] of the network holds NaN or infinity"):
        part.bound(network, Data(tensor([[1.0]]), tensor([1.0])))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("exponent", [506, 800, 1000, 1022])
def test_examples_of_any_length_have_a_cap(part, exponent):
    """Σ x² overflows; 100 times the longest example may too. φ(x₁) + φ(x₂) - s/2 flips within s."""
    s = 2.0**exponent
    network = two_layer([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], [1.0, 1.0], -s / 2)
    found = part.bound(network, Data(tensor([[s, 0.0], [s, s]]), tensor([1.0, 1.0])))
    assert math.isfinite(found.cap)
    assert not is_shorter([Fraction(s) / 2 * BEYOND], float(found.lower[0]))
    assert not is_shorter([Fraction(3, 4) * Fraction(s) * BEYOND] * 2, float(found.lower[1]))


@pytest.mark.parametrize("part", PARTS)
def test_a_margin_that_is_not_a_number_is_never_taken_for_a_positive_one(part):
    """1e200·φ(1e200·x) - 1e200·φ(1e200·x - 1e150) overflows to infinity minus infinity."""
    network = two_layer([[1e200], [1e200]], [0.0, -1e150], [1e200, -1e200])
    found = part.bound(network, Data(tensor([[1.0]]), tensor([1.0])))
    assert found.status == ("open",)
    assert found.lower.tolist() == [0.0]
    assert "not finite" in found.reason[0]


def test_a_radius_of_zero_has_a_reason():
    """0.1 + 0.2 - 0.3 is positive in floats, and no proof can tell it from 0."""
    network = two_layer([[0.1, 0.2], [0.3, 0.0]], [0.0, 0.0], [1.0, -1.0])
    found = Dual().bound(network, Data(tensor([[1.0, 1.0], [-1.0, -1.0]]), tensor([1.0, 1.0])))
    assert found.status == ("open", "error")
    assert found.lower.tolist() == [0.0, 0.0]
    assert "rounding" in found.reason[0]
    assert found.reason[1] == ""


@pytest.mark.parametrize("part", PARTS)
def test_a_flip_far_beyond_the_cap_does_not_spoil_the_proof(part):
    """1 - 1e-171·φ(x): the nearest flip is at 1e171, and its square is no float."""
    network = two_layer([[1e-111]], [0.0], [-1e-60], 1.0)
    found = part.bound(network, Data(tensor([[1.0]]), tensor([1.0])), cap=1e3)
    assert found.status == ("capped",)
    assert found.lower.tolist() == [1e3]


def test_a_neuron_that_is_off_costs_nothing_whatever_its_output():
    """.1 - 1e70·φ(1e90·x - 1e91): at 0 the neuron is off, and the slope of 1e160 alone decides."""
    network = two_layer([[1e90]], [-1e91], [-1e70], 0.1)
    found = Lipschitz("spectral").bound(network, Data(tensor([[0.0]]), tensor([1.0])))
    assert found.lower.tolist() == pytest.approx([1e-161], rel=1e-6, abs=0)


def shifts(value, by):
    """value·2^by, from the integers that a float is made of."""
    m, e = math.frexp(value)
    return math.ldexp(m, e + by) if abs(e + by) < 5000 else 0.0 * m


SHIFTS = [-1100], [-1001], [-1000], [3], [1000], [1001], [-1500, 0], [0, 900], [0, -1500], [-1500, -1500]


@pytest.mark.parametrize("by", SHIFTS)
def test_numbers_are_shifted_by_any_power_of_2(by):
    values = np.array([[3.0, -0.75], [1e-300, 5e-324], [-1e-10, 2.0**500]])
    values = values * 2.0**-600 if max(by) > 500 else values
    found = rounding.shift_exponent(values, np.array(by))
    assert found.tolist() == [[shifts(v, e) for v, e in zip(row, by * (2 // len(by)), strict=True)] for row in values]
    assert rounding.shift_exponent(np.array([2.0**600]), -1100).tolist() == [2.0**-500]


def test_exponents_and_sums_by_hand():
    assert rounding.exponents(np.array([1.0, 0.75, -3.0, 4.0, 2.0**-1074, 0.0])).tolist() == [
        1,
        0,
        2,
        3,
        -1073,
        rounding.ABSENT,
    ]
    terms = np.array([[1e308, 3.0, 0.0, 5e-324, 1e308, -5e-324], [1e308, -3.0, 0.0, 5e-324, 1.0, 0.0]])
    sums, by = rounding.add_scaled(terms)
    exact = [Fraction(a) + Fraction(b) for a, b in terms.T]
    exact[4] = Fraction(1e308)  # rounded
    assert [Fraction(m) * Fraction(2) ** int(e) for m, e in zip(sums, by, strict=True)] == exact
    assert (np.abs(sums) <= 2).all()
    for value in (Fraction(10**400), Fraction(-1, 10**400), Fraction(3, 4), Fraction(0)):
        m, e = rounding.split(value)
        assert abs(Fraction(m) * Fraction(2) ** e - value) <= abs(value) / 2**53
        assert value == 0 or 0.5 <= abs(m) <= 2
    assert rounding.row_exponents(np.array([[1.0, -8.0], [0.0, 0.25]])).tolist() == [4, -1]


def test_rows_are_brought_near_one_with_their_biases():
    """The largest of W·2^by and b·2^b_by is between ½ and 1, and a row of zeros stays as it is."""
    W, b = np.array([[3.0, -12.0], [0.5, 0.0], [0.0, 0.0], [0.0, 0.0]]), np.array([1.0, -2.0, 0.0, 6.0])
    rows, heights, unit = rounding.near_one(W, 10, b, 20)
    assert unit.tolist() == [21, 22, 0, 23]
    assert rows.tolist() == (W * 2.0 ** (10 - unit[:, None])).tolist()
    assert heights.tolist() == (b * 2.0 ** (20 - unit)).tolist() == [0.5, -0.5, 0.0, 0.75]
    rows, heights, unit = rounding.near_one(W, np.array([[0, 3], [5, 9], [1, 1], [2, 2]]), b, np.array([0, 0, 0, 1]))
    assert unit.tolist() == [7, 5, 0, 4]
    assert rows.tolist() == [[3 / 128, -0.75], [0.5, 0.0], [0.0, 0.0], [0.0, 0.0]]
    assert heights.tolist() == [1 / 128, -1 / 16, 0.0, 0.75]


def test_small_weights_are_raised_to_a_number_whose_square_is_a_normal_float():
    assert np.finfo(np.float64).tiny <= FLOOR**2
    weights = np.array([1e-200, -1e-200, 0.0, 1.0, -0.5, 2.0**-1001])
    least = np.array([FLOOR, FLOOR, FLOOR, FLOOR, FLOOR, SMALLEST])
    found, lost = _floored(weights, np.sign(weights), least)
    assert found.tolist() == [FLOOR, -FLOOR, 0.0, 1.0, -0.5, 2.0**-1001]
    assert lost.tolist() == [FLOOR, FLOOR, 0.0, 0.0, 0.0, SMALLEST]
