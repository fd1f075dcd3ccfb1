"""One table per folder: every exported part has a row here, and every row runs through the folder's shared tests.

A row is (name, part): the name becomes the test's id, the part is a small instance that runs in milliseconds.
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from brittle.attacks import PGD, Foolbox, GradientStep, MinimumNorm, Ray, Universal, sum_signed_gradients
from brittle.certificates import Dual, Exact, LinearRelaxation, Lipschitz
from brittle.data import (
    AlmostOrthogonal,
    Cifar10,
    Clusters,
    Data,
    Digits,
    FashionMnist,
    File,
    Gaussian,
    GivenPoints,
    Grid25,
    Line7,
    Mnist,
    Orthogonal,
    Sphere,
    Subspace,
)
from brittle.experiments import Dask, Local
from brittle.networks import (
    Adapter,
    Convolution,
    Deep,
    Dense,
    Kaiming,
    LazyInit,
    NearestNeighbour,
    Sparse,
    TorchLinearInit,
    as_network,
)
from brittle.training import (
    KKT,
    Accuracy,
    Adversarial,
    Exponential,
    Flow,
    GradientDescent,
    LimitedPGD,
    LipschitzMargin,
    Logistic,
    LogLoss,
    Loss,
    Margin,
    MarginStalls,
    MaximumRadius,
    SgdSchedule,
    Steps,
    Time,
)
from brittle.training import LazyTraining as LazyTraining

INITIALISATIONS = [
    ("pytorch", TorchLinearInit()),
    ("kaiming", Kaiming()),
    ("lazy", LazyInit()),
]

_rng = torch.Generator().manual_seed(0)
_POINTS = torch.randn(6, 4, generator=_rng, dtype=torch.float64)


def _drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=_rng, dtype=torch.float64)


_SMALL = Convolution(_drawn(3, 1, 2, 2), _drawn(3), (1, 2, 2), padding=(1, 1))

MAPS = [
    ("dense", Dense(_drawn(3, 5), _drawn(3))),
    ("convolution", Convolution(_drawn(5, 3, 3, 3), _drawn(5), (3, 6, 5), padding=(1, 1))),
    (
        "convolution with stride, dilation and groups",
        Convolution(_drawn(6, 2, 3, 2), _drawn(6), (4, 7, 6), (2, 3), (1, 0), (1, 2), 2),
    ),
    ("convolution whose stride leaves a margin", Convolution(_drawn(2, 2, 1, 1), _drawn(2), (2, 5, 5), (3, 3))),
    (
        "convolution with a bias for every output",
        Convolution(_drawn(2, 1, 3, 3), _drawn(32), (1, 4, 4), padding=(1, 1)),
    ),
    ("sparse", Sparse.of(np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 3.0, 0.5]]), np.array([1.0, 0.0, 2.0]))),
    ("convolution with much padding", Convolution(_drawn(2, 2, 3, 3), _drawn(2), (2, 6, 6), (2, 2), (4, 4))),
]


class _Branches(nn.Module):
    """Normalised, with a skip connection and a maximum."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv2d(1, 2, 2, padding=1), nn.BatchNorm2d(2), nn.Linear(2, 3)
        for parameter in self.parameters():
            parameter.data = _drawn(*parameter.shape)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.norm(self.conv(X)))[:, :, 1:, 1:] + X
        out: torch.Tensor = self.last(nn.functional.max_pool2d(hidden, 2).flatten(1))
        return out


NETWORKS = [
    ("two layers", TorchLinearInit().draw(4, 7, _rng)),
    ("two layers, one logit, as a deep network", TorchLinearInit().draw_deep(4, [7], _rng)),
    ("three layers", TorchLinearInit(scale=3, first_layer_only=True).draw_deep(4, [7, 6], _rng)),
    ("five layers, three classes", TorchLinearInit().draw_deep(4, [7, 6, 5, 6], _rng, outputs=3)),
    ("convolution, three classes", Deep((_SMALL, Dense(_drawn(3, 27), _drawn(3))))),
    ("pooled, with a skip connection", as_network(_Branches().double(), shape=(1, 2, 2))),
    ("foreign module, one logit", Adapter(TorchLinearInit().draw_deep(4, [7, 6], _rng).module())),
    ("foreign module, three classes", Adapter(TorchLinearInit().draw_deep(4, [7], _rng, outputs=3).module())),
    ("nearest of signed points", NearestNeighbour(_POINTS, torch.tensor([1.0, -1.0, 1.0, 1.0, -1.0, -1.0]).double())),
    ("nearest of three classes", NearestNeighbour(_POINTS, torch.tensor([0, 1, 2, 0, 1, 2]))),
]

SETTINGS = [
    ("sphere", Sphere(dim=50)),
    ("sphere of radius 3", Sphere(dim=50, radius=3.0)),
    ("gaussian", Gaussian(dim=50)),
    ("gaussian of variance 4", Gaussian(dim=50, variance=4.0)),
    ("orthogonal", Orthogonal(dim=50)),
    ("almost orthogonal", AlmostOrthogonal(dim=50, coherence=2.0)),
    ("clusters with orthogonal means", Clusters(dim=50, clusters=4, noise=0.3, balance=0.25)),
    ("clusters with random means", Clusters(dim=50, clusters=3, random_means=True)),
    ("more clusters than dimensions", Clusters(dim=10, clusters=12, random_means=True)),
    ("subspace", Subspace(dim=50, codimension=30)),
    ("subspace with a gaussian", Subspace(dim=50, codimension=30, inner=Gaussian(20))),
    ("subspace with clusters", Subspace(dim=50, codimension=30, inner=Clusters(20, clusters=3))),
    ("subspace with given points", Subspace(dim=5, codimension=3, inner=Line7())),
    ("line7", Line7()),
    ("grid25", Grid25()),
    ("given points", GivenPoints(Data(torch.eye(6), torch.tensor([0, 1, 2, 0, 1, 2])))),
    ("digits", Digits()),
    ("two digits", Digits(classes=(3, 8))),
    ("mnist", Mnist(classes=(0, 1))),
    ("fashion-mnist", FashionMnist(classes=(0, 9))),
    ("cifar10", Cifar10(classes=(3, 5))),
    ("file", File(Path(__file__).parent / "data" / "table.csv")),
]

ATTACKS = [
    ("ray", Ray()),
    ("universal", Universal(direction=sum_signed_gradients)),
    ("gradient step", GradientStep()),
    ("pgd in a ball", PGD(budget=1.0, steps=10)),
    ("smallest ball of pgd", PGD(steps=10, rounds=5)),
    ("minimum norm", MinimumNorm()),
    ("foolbox", Foolbox("DDNAttack", {"steps": 20})),
]

CERTIFICATES = [
    ("spectral lipschitz", Lipschitz("spectral")),
    ("lipschitz of sums", Lipschitz("sum")),
    ("local lipschitz", Lipschitz()),
    ("relaxation", LinearRelaxation()),
    ("relaxation with better slopes", LinearRelaxation(steps=3)),
    ("dual", Dual()),
    ("refined dual", Dual(refined=True)),
    ("exact", Exact()),
]

LOSSES = [
    ("exponential", Exponential()),
    ("exponential, summed", Exponential("sum")),
    ("logistic", Logistic()),
    ("logistic, summed", Logistic("sum")),
]

STOPS = [
    ("log-loss", LogLoss(-1.0)),
    ("loss", Loss(0.4)),
    ("margin", Margin(0.1)),
    ("accuracy", Accuracy(1.0)),
    ("margin stalls", MarginStalls(10.0)),
    ("kkt", KKT(lambda network: 0.0)),
    ("steps", Steps(3)),
    ("time", Time(1e-6)),
]

REGIMES = [
    ("flow", Flow(until=LogLoss(-2.0))),
    ("flow by heun's pair", Flow(until=LogLoss(-2.0), pair="heun", tolerance=1e-2)),
    ("flow in float32", Flow(until=LogLoss(-2.0), precision="float32")),
    ("recipe", SgdSchedule(until=Steps(12), rate=1e-2, every=4)),
    ("recipe with batches", SgdSchedule(until=Steps(12), rate=1e-2, batch=3)),
    ("descent", GradientDescent(until=Steps(12))),
    ("descent with batches", GradientDescent(until=Steps(12), batch=3)),
    ("lazy training", LazyTraining(until=Steps(12), radius=5.0, batch=3)),
    ("lazy training, checked per epoch", LazyTraining(until=Steps(12), radius=5.0, batch=3, check="epoch")),
    ("adversarial training", Adversarial(until=Steps(6), rate=0.1, batch=3, inner_steps=3)),
    ("training for the radius", MaximumRadius(until=Steps(8), batch=3)),
    ("adversarial training within limits", LimitedPGD(until=Steps(8), batch=3, inner_steps=3)),
    ("training for margins of layers of norm 1", LipschitzMargin(until=Steps(8), batch=3)),
    ("TRADES within limits", LimitedPGD(until=Steps(8), batch=3, inner_steps=3, trades=2.0)),
]

ENGINES = [
    ("this process", Local()),
    ("two processes", Local(jobs=2)),
    ("dask", Dask("127.0.0.1:8786")),
]

TABLES = [INITIALISATIONS, MAPS, NETWORKS, SETTINGS, LOSSES, STOPS, REGIMES, ATTACKS, CERTIFICATES, ENGINES]
