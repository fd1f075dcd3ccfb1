"""Which multipliers and slopes at kinks explain the weights of a deep network best?

minimise ‖θ - Σ_p λ_p g_p‖ over λ ≥ 0 and, at the kinks of one layer after the other, 0 ≤ s ≤ λ with s = λ σ'.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.kkt.arrow import Arrow, ArrowBlock, ArrowVector, factor_with_ridge
from brittle.kkt.interior_point import Quadratic, longest_step
from brittle.kkt.layer_gradients import Backward, GradientColumns, LayerGradients, Numbers, Pairs, layer_gradients
from brittle.networks import Layered

MOST_PAIRS = 1500  # constraints that are weighed at once; others join where the misfit asks for them
MOST_KINKS = 1500  # slopes of one layer that are free at once, the nearest to their kinks
JOINING = 300  # constraints that join at a time
ROUNDS = 6  # of joining, and of improving the slopes of every layer
NOISE = 1e-9  # of ‖θ‖²: what a constraint must be worth to join
BOUND = 1e-6  # a variable below this share of the largest multiplier is tried at its bound
POLISHES = 6  # least-squares steps on the variables off their bounds


class LayerResidual(NamedTuple):
    """θ - Σ λ_p g_p by layers, and its norm."""

    numbers: tuple[Numbers, ...]
    norm: float


@dataclass(frozen=True, eq=False)
class MultiplierFit:
    """lam (N,): λ of the constraints `chosen` (N,); slopes[l] (N, width_l); kinks: how many of them were free."""

    lam: Tensor
    chosen: Tensor
    slopes: tuple[Tensor, ...]
    misfit: LayerResidual
    kinks: int


@dataclass(frozen=True, eq=False)
class WeightedGradients:
    """A float64 network on its examples: what a multiplier adds to every layer. `biases`: of the first layer."""

    network: Layered
    X: Tensor
    biases: bool

    @cached_property
    def values(self) -> list[Tensor]:
        """z_l (n, width_l), the logits last."""
        return self.network.values(self.X)

    @cached_property
    def inputs(self) -> list[Tensor]:
        """What enters every layer."""
        return [self.X, *(z.relu() for z in self.values[:-1])]

    @cached_property
    def layers(self) -> list[LayerGradients]:
        return [
            layer_gradients(layer, H, self.biases and place == 0, f"layer {place + 1}")
            for place, (layer, H) in enumerate(zip(self.network.layers, self.inputs, strict=True))
        ]

    @cached_property
    def theta(self) -> tuple[Numbers, ...]:
        """The parameters: biases beyond the first layer are none."""
        parts = [layer.parameters for layer in self.network.layers]
        kept = [float(self.biases and place == 0) for place in range(len(parts))]
        return tuple(Numbers(weight, bias * keep) for (weight, bias), keep in zip(parts, kept, strict=True))

    @cached_property
    def squares(self) -> list[float]:
        """‖θ_l‖²."""
        return [part.square for part in self.theta]

    def gram(self, columns: GradientColumns) -> Tensor:
        parts = zip(self.layers, columns.deltas, strict=True)
        return torch.stack([layer.gram(columns.rows, delta) for layer, delta in parts]).sum(0)

    def inner(self, columns: GradientColumns, numbers: tuple[Numbers, ...]) -> Tensor:
        parts = zip(self.layers, columns.deltas, numbers, strict=True)
        return torch.stack([layer.inner(columns.rows, delta, part) for layer, delta, part in parts]).sum(0)

    def misfit(self, columns: GradientColumns, shares: Tensor) -> LayerResidual:
        """What is left of θ, computed from the weights and not from the Gram matrix."""
        left = []
        for layer, delta, (weight, bias) in zip(self.layers, columns.deltas, self.theta, strict=True):
            taken = layer.combined(columns.rows, delta, shares)
            left.append(Numbers(weight - taken.weight, bias - taken.bias))
        return LayerResidual(tuple(left), sum(part.square for part in left) ** 0.5)

    def near_kinks(self, tolerance: float) -> list[Tensor]:
        """|z| / (‖(w, b)‖ ‖(h, 1)‖) of every hidden neuron (n, width), infinite where the slope is not free."""
        shares = []
        for place, (layer, z, H) in enumerate(zip(self.network.layers[:-1], self.values, self.inputs, strict=False)):
            weight, bias = layer.parameters
            lengths = weight.flatten(1).square().sum(1) + (bias.square() if place == 0 and self.biases else 0.0)
            lengths = lengths.repeat_interleave(z.shape[1] // len(lengths)).sqrt()
            sizes = (H.square().sum(1) + float(place == 0 and self.biases)).sqrt()
            share = z.abs() / (sizes[:, None] * lengths).clamp(min=1e-300)
            shares.append(share.masked_fill((share > tolerance) | (lengths == 0), torch.inf))
        return shares


@dataclass(frozen=True, eq=False)
class MultiplierSearch:
    """The search for the best multipliers of some pairs."""

    weighed: WeightedGradients
    pairs: Pairs
    tolerance: float  # of kinks

    @property
    def backward(self) -> Backward:
        return Backward(self.weighed.network)

    def best(self, q: Tensor) -> MultiplierFit:
        """The constraints of smallest margin first; others join as long as they would explain more."""
        chosen = q.argsort(stable=True)[:MOST_PAIRS].sort().values
        explained = self._of(chosen)
        for _ in range(ROUNDS):
            rest = torch.ones(len(q), dtype=torch.bool)
            rest[chosen] = False
            outside = torch.nonzero(rest)[:, 0]
            if not len(outside):
                break
            pairs = self.pairs.take(outside)
            worth = self.weighed.inner(self.backward.columns(pairs, self._slopes(pairs)), explained.misfit.numbers)
            wanted = worth.argsort(descending=True)[:JOINING]
            wanted = outside[wanted[worth[wanted] > NOISE * sum(self.weighed.squares)]]
            if not len(wanted):
                break
            carrying = explained.chosen[explained.lam > 0]
            chosen = torch.cat([carrying, wanted]).sort().values
            explained = self._of(chosen)
        return explained

    def _slopes(self, pairs: Pairs) -> tuple[Tensor, ...]:
        return tuple((z[pairs.rows] > 0).to(z.dtype) for z in self.weighed.values[:-1])

    def _kinks(self, pairs: Pairs) -> list[Tensor]:
        """(pair, neuron) of the free slopes of every hidden layer, the nearest to their kinks."""
        kinks = []
        for share in self.weighed.near_kinks(self.tolerance):
            near = share[pairs.rows]
            places = torch.nonzero(near.isfinite())
            order = near[places[:, 0], places[:, 1]].argsort(stable=True)[:MOST_KINKS]
            kinks.append(places[order])
        return kinks

    def _of(self, chosen: Tensor) -> MultiplierFit:
        """The best multipliers of these constraints."""
        pairs = self.pairs.take(chosen)
        kinks, slopes = self._kinks(pairs), self._slopes(pairs)
        free = [layer for layer, places in enumerate(kinks) if len(places)]
        count = sum(len(places) for places in kinks)
        best: MultiplierFit | None = None
        for _ in range(ROUNDS if len(free) > 1 else 1):
            before = torch.inf if best is None else best.misfit.norm
            for layer in free or [0]:
                step = LayerStep(self.weighed, self.backward, pairs, slopes, layer, kinks[layer])
                lam, slopes, misfit = step.improved()
                best = MultiplierFit(lam, chosen, slopes, misfit, count)
            assert best is not None
            if best.misfit.norm > 0.99 * before:
                break
        assert best is not None
        return best


class MultiplierStep(NamedTuple):
    """λ, all slopes, and what they leave of θ."""

    lam: Tensor
    slopes: tuple[Tensor, ...]
    misfit: LayerResidual


@dataclass(frozen=True, eq=False)
class LayerStep:
    """λ and the slopes at one layer's `kinks` (K, 2) are free; those of the other layers are held."""

    weighed: WeightedGradients
    backward: Backward
    pairs: Pairs
    slopes: tuple[Tensor, ...]
    layer: int
    kinks: Tensor

    @property
    def which(self) -> Tensor:
        """The constraint of every kink."""
        return self.kinks[:, 0]

    @cached_property
    def closed(self) -> tuple[Tensor, ...]:
        """The slopes with 0 at the kinks."""
        layers = list(self.slopes)
        layers[self.layer] = layers[self.layer].clone()
        layers[self.layer][self.kinks[:, 0], self.kinks[:, 1]] = 0.0
        return tuple(layers)

    @cached_property
    def columns(self) -> GradientColumns:
        """Those of λ, then those of s."""
        base = self.backward.columns(self.pairs, self.closed)
        return base.followed_by(self.backward.through(self.pairs, self.closed, self.layer, self.kinks))

    @cached_property
    def gram(self) -> Tensor:
        return self.weighed.gram(self.columns)

    def improved(self) -> MultiplierStep:
        x = self._polished(self._interior())
        slopes = list(self.closed)
        lam = x.lam[self.which]
        share = torch.where(lam > 0, x.s / lam.clamp(min=1e-300), 0.0)
        slopes[self.layer] = slopes[self.layer].index_put((self.kinks[:, 0], self.kinks[:, 1]), share)
        return MultiplierStep(x.lam, tuple(slopes), self._misfit(x))

    def _misfit(self, x: ArrowVector) -> LayerResidual:
        return self.weighed.misfit(self.columns, torch.cat(x))

    def _interior(self) -> ArrowVector:
        count, square = len(self.pairs.rows), sum(self.weighed.squares)
        head, own, cross = self.gram[:count, :count], self.gram[count:, count:], self.gram[count:, :count]
        blocks = (ArrowBlock(self.which[None], own[None], cross[None]),) if len(self.kinks) else ()
        rhs = self.weighed.inner(self.columns, self.weighed.theta)
        quadratic = Quadratic(Arrow(head, blocks), ArrowVector(rhs[:count], rhs[count:]))
        typical = square / (self.weighed.network.depth * count)
        lam, s, _ = quadratic.minimise(typical, tolerance=1e-13 * square).values
        return ArrowVector(lam, torch.minimum(s, lam[self.which]))

    def _polished(self, x: ArrowVector) -> ArrowVector:
        """Least squares on the variables off their bounds, from the misfit itself: the last digits at a KKT point."""
        best, least = x, self._misfit(x).norm
        small = BOUND * float(x.lam.max())
        lam = torch.where(x.lam > small, x.lam, 0.0)
        off, full = lam == 0, (lam[self.which] - x.s <= small) & (lam[self.which] > 0)
        s = torch.where(full, lam[self.which], torch.where((x.s > small) & ~off[self.which], x.s, 0.0))
        free = s.gt(0) & ~full
        basis = self._basis(~off, free, full)
        factor = factor_with_ridge(basis @ self.gram @ basis.T)
        for _ in range(POLISHES):
            left = self._misfit(ArrowVector(lam, s))
            if left.norm < least:
                best, least = ArrowVector(lam, s), left.norm
            inner = basis @ self.weighed.inner(self.columns, left.numbers)
            step = basis.T @ torch.cholesky_solve(inner[:, None], factor)[:, 0]
            dlam, ds = step[: len(lam)], step[len(lam) :]
            moving = [lam[~off], s[free], (lam[self.which] - s)[free]]
            length = longest_step(moving, [dlam[~off], ds[free], (dlam[self.which] - ds)[free]])
            lam, s = (lam + length * dlam).clamp(min=0), (s + length * ds).clamp(min=0)
            s = torch.where(full, lam[self.which], torch.minimum(s, lam[self.which]))
        return best

    def _basis(self, on: Tensor, free: Tensor, full: Tensor) -> Tensor:
        """Rows are directions: every λ that is on, with the s that equal it; every s that is free."""
        count, size = len(on), len(on) + len(free)
        rows = torch.eye(size, dtype=self.gram.dtype)
        together = torch.nonzero(full)[:, 0]
        rows[self.which[together], count + together] = 1.0
        return rows[torch.cat([on, free])]
