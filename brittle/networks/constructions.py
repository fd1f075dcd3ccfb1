"""Networks that the papers write down, each with the radius that can be proved for it.

d stands for the squared norm of the examples (or means), which is what the dimension is to the papers' proofs. So the
formulas hold for examples of any norm, and for data in their span, which have fewer columns than dimensions.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.common.errors import require
from brittle.common.kinds import check_kinds
from brittle.geometry import largest_product
from brittle.networks.two_layer import TwoLayer

RELATIVE = 1e-9
SINGLE = 1e-6  # norms that were equal before they were rounded to float32


@dataclass(frozen=True, eq=False)
class Construction:
    """A network with what its proof says about the examples (or means) it was built from.

    No perturbation shorter than `radius` flips any of them; `promised` is the radius in the paper, where it states one.
    Each of them has a known perturbation that flips it at any norm above `flip` (infinity where none is known).
    `multipliers` (n,) are those of a KKT point.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> built = bt.networks.nearly_orthogonal(data.X, data.y)
        >>> built.network.width, built.radius, built.promised
        (4, 1.0, 0.5)
    """

    network: TwoLayer
    radius: float
    promised: float
    flip: float = math.inf
    multipliers: Tensor | None = None


@check_kinds
def nearly_orthogonal(X: Tensor, y: Tensor, coherence: float | None = None) -> Construction:
    """vardi2022 Theorem 3.1: one neuron per example, v_j = y_j, w_j = 2x_j/(d(1-c)), b_j = -(1+c)/(1-c).

    Where |x_i·x_j| ≤ c d, neuron j is 1 on its own example and at most -1 on every other. A perturbation shorter than
    1/‖w‖ = (1-c)/2·√d leaves the own neuron positive and every other one negative, so that the output keeps the sign
    of y_i. The paper promises half of that.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(16).sample(6)
        >>> built = bt.networks.nearly_orthogonal(data.X, data.y)
        >>> radii = bt.certificates.Dual().bound(built.network, data).lower
        >>> built.promised, bool((radii >= built.promised).all())
        (1.0, True)
    """
    X, y, d = _checked(X, y, "examples")
    measured = largest_product(X) / d
    require(measured < 1 - RELATIVE, "two examples are parallel: the construction needs |x_i·x_j| ≤ c d with c < 1")
    c = measured if coherence is None else coherence
    require(0 <= c < 1, f"coherence is {c!r}; it must be at least 0 and less than 1")
    within = measured <= c + RELATIVE
    require(within, f"max |x_i·x_j| is {measured:.6g} d; the construction needs at most c d with coherence c = {c:.6g}")
    W, b = 2 * X / (d * (1 - c)), torch.full_like(y, -(1 + c) / (1 - c))
    radius = 1 / float(W.norm(dim=1).max())
    return Construction(TwoLayer(W, b, y), radius, promised=radius / 2)


@check_kinds
def clustered(means: Tensor, labels: Tensor, noise: float = 0.0) -> Construction:
    """frei2023 Theorem 4.1: one neuron per cluster, v_j = y^(j), w_j = 4μ^(j)/d, b_j = -2.

    For x = μ^(q) + ξ let |μ^(j)·ξ| ≤ t d for all j, and |μ^(i)·μ^(j)| ≤ p. Neuron q is at least 2-4t and every other
    one at most 4p/d+4t-2. With t = σ ln(d)/√d, which Gaussian noise of deviation σ keeps with probability
    1-2k d^{-ln(d)/2}, the first is ≥ 1 and the others are ≤ -1 where p + t d ≤ d/4. As ‖w_j‖ = 4/√d, a perturbation
    shorter than √d/4 changes none of these signs. The paper promises half of that. (frei2023's Assumption 2.2 implies
    the condition.)

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> means = 3 * torch.eye(9)[:4].double()
        >>> built = bt.networks.clustered(means, torch.tensor([1.0, 1.0, -1.0, -1.0]).double())
        >>> built.network.margins(means, torch.tensor([1.0, 1.0, -1.0, -1.0]).double()).tolist()
        [2.0, 2.0, 2.0, 2.0]
    """
    means, labels, d = _checked(means, labels, "means")
    require(noise >= 0 and math.isfinite(noise), f"noise is {noise!r}; it must be a finite number of at least 0")
    require(noise == 0 or d > 1, f"the means have squared norm {d:.6g}; noise needs more than 1 (the dimension)")
    p = largest_product(means)
    t = noise * math.log(d) / math.sqrt(d) if noise else 0.0
    message = f"max |μ_i·μ_j| + σ√d ln d is {p / d + t:.6g} d; the construction needs at most d/4"
    require(p + t * d <= d / 4 * (1 + RELATIVE), message)
    network = TwoLayer(4 * means / d, torch.full_like(labels, -2.0), labels)
    radius = 1 / float(network.W.norm(dim=1).max())
    return Construction(network, radius, promised=radius / 2)


@check_kinds
def smaller_norm(X: Tensor, y: Tensor) -> Construction:
    """vardi2022 5.1: v_j = y_j, w_j = x_j/d, b_j = 0 on orthogonal examples: smaller weights than `nearly_orthogonal`.

    With a_j = x_j·δ/√d, y_i N(x_i + δ) ≥ 1 - (|a_i| + Σ_{y_j≠y_i} |a_j|)/√d ≥ 1 - ‖δ‖ √((1+n')/d), where n' examples
    have the other label. Equality is attained, so √(d/(1+n')) is the exact distance to the boundary. The paper's
    z = (2/n') Σ_{y_j≠y_i} x_j, of norm 2√(d/n') (2√2 for d = n), takes the output to -y_i: `flip`.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(16).sample(6)
        >>> small, robust = bt.networks.smaller_norm(data.X, data.y), bt.networks.nearly_orthogonal(data.X, data.y)
        >>> bool(small.network.squared_norm < robust.network.squared_norm)
        True
    """
    X, y, d = _checked_orthogonal(X, y)
    others = _others(y)
    radius = math.sqrt(d / (1 + float(others.max())))
    network = TwoLayer(X / d, torch.zeros_like(y), y)
    return Construction(network, radius, radius, flip=2 * math.sqrt(d / float(others.min())))


@check_kinds
def orthogonal_kkt(X: Tensor, y: Tensor) -> Construction:
    """A KKT point of the max-margin problem on balanced orthogonal examples, in closed form: two neurons.

    With ρ = n/d, β = ρ/(2(1+ρ)), α = (1-β)/√d, τ = β/√d: u₊ has the coordinate α along positive and -τ along negative
    examples, and the bias β; u₋ is its mirror image. Then u₊ is 1 on positive and 0 on negative examples, all margins
    are 1, and u₊/‖u₊‖ = λ (Σ₊ x̃_i - σ' Σ₋ x̃_i) with σ' = τ/α on the kinks and λ = α/(√d ‖u₊‖), which is stationarity
    (`multipliers` holds λ). While neuron u₋ is off the output is not negative, and where it is on,
    N(x+δ) ≥ 1 + (u₊-u₋)·δ. As (α+τ)√n = √(n/d) is the norm of u₊-u₋ without bias, the distance to the boundary is
    exactly √(d/n), along -y_i Σ_j y_j x_j for every example.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> built = bt.networks.orthogonal_kkt(data.X, data.y)
        >>> built.network.width, bt.kkt.residual(built.network, data).stationarity < 1e-9
        (2, True)
    """
    X, y, d = _checked_orthogonal(X, y)
    n, positive = len(X), y > 0
    balanced = int(positive.sum()) * 2 == n
    require(balanced, f"{int(positive.sum())} of {n} labels are positive; the closed form needs half of them")
    beta = n / d / (2 * (1 + n / d))
    alpha, tau = (1 - beta) / math.sqrt(d), beta / math.sqrt(d)
    halves = torch.stack([positive, ~positive]).to(X)
    U = (alpha * halves - tau * (1 - halves)) @ X / math.sqrt(d)
    size = math.sqrt(n * alpha / (2 * math.sqrt(d)))  # ‖u₊‖ with its bias, as Σλ = ‖u₊‖ + ‖u₋‖
    v = torch.tensor([1.0, -1.0]).to(X) * math.sqrt(size)
    network = TwoLayer(U / math.sqrt(size), torch.full_like(v, beta / math.sqrt(size)), v)
    radius, multipliers = math.sqrt(d / n), torch.full_like(y, alpha / (math.sqrt(d) * size))
    return Construction(network, radius, radius, radius, multipliers)


@check_kinds
def linear_model(means: Tensor, labels: Tensor) -> Construction:
    """frei2023 4: x ↦ w·x with w = Σ_q y^(q) μ^(q)/d, exactly linear as φ(w·x) - φ(-w·x).

    The distance of each mean from the boundary is y^(q) w·μ^(q)/‖w‖; `flip` is the largest of them.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> means, labels = 2 * torch.eye(4).double(), torch.tensor([1.0, 1.0, -1.0, -1.0]).double()
        >>> built = bt.networks.linear_model(means, labels)
        >>> built.network.width, built.network.margins(means, labels).tolist()
        (2, [1.0, 1.0, 1.0, 1.0])
    """
    means, labels, d = _checked(means, labels, "means")
    w = labels @ means / d
    require(bool(w.any()), "the means cancel: Σ_q y^(q) μ^(q) is 0")
    distances = labels * (means @ w) / w.norm()
    lowest = float(distances.min())
    require(lowest > 0, "the linear model does not separate the means: some y^(q) w·μ^(q) is not positive")
    signs = torch.tensor([1.0, -1.0]).to(means)
    network = TwoLayer(torch.outer(signs, w), torch.zeros_like(signs), signs)
    return Construction(network, lowest, lowest, float(distances.max()))


def _checked(X: Tensor, y: Tensor, name: str, tolerance: float = SINGLE) -> tuple[Tensor, Tensor, float]:
    """The rows, the labels and the (smallest) squared norm, after the checks that every construction needs."""
    fits = X.ndim == 2 and X.numel() > 0 and X.is_floating_point()
    require(fits, f"the {name} have shape {tuple(X.shape)} and type {X.dtype}; floats of shape (n, dim) are needed")
    require(bool(X.isfinite().all()), f"the {name} hold NaN or infinity")
    signs = y.shape == X.shape[:1] and bool((y.abs() == 1).all())
    require(signs, f"the labels must be -1 or 1, one for each of the {len(X)} {name}")
    X, y = X.double(), y.double()
    norms = X.norm(dim=1)
    low, high = float(norms.min()), float(norms.max())
    equal = 0 < high <= low * (1 + tolerance)
    digits = 4 if high > 1.01 * low else 9  # enough to see that they differ
    told = f"the {name} have norms from {low:.{digits}g} to {high:.{digits}g}"
    require(equal, f"{told}; equal positive norms are needed")
    return X, y, low**2


def _checked_orthogonal(X: Tensor, y: Tensor) -> tuple[Tensor, Tensor, float]:
    X, y, d = _checked(X, y, "examples", RELATIVE)
    p = largest_product(X)
    require(p <= RELATIVE * d, f"max |x_i·x_j| is {p:.6g}; orthogonal examples are needed")
    require(float(y.min()) < 0 < float(y.max()), "all labels are equal; both are needed")
    return X, y, d


def _others(y: Tensor) -> Tensor:
    """How many examples have the other label, for every example."""
    positive = y > 0
    return torch.where(positive, (~positive).sum(), positive.sum()).double()
