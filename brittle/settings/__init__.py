"""Where data come from."""

from brittle.common.parts import by_name
from brittle.settings.base import Data, GivenSet, Setting, Truth
from brittle.settings.clusters import Clusters
from brittle.settings.collected import as_data
from brittle.settings.files import File, load_data, save_data
from brittle.settings.images import Cifar10, Digits, FashionMnist, ImageSet, Mnist
from brittle.settings.orthogonal import AlmostOrthogonal, Orthogonal
from brittle.settings.points import Given, Grid25, Line7
from brittle.settings.sources import Holding, data_folder, fetch, holding
from brittle.settings.sphere import Gaussian, Sphere
from brittle.settings.subspace import Subspace
from brittle.settings.summary import Summary, summary
from brittle.settings.transforms import downsample, explained_variance, principal, two_classes, unit_norm

PARTS = by_name(
    (
        Sphere,
        Gaussian,
        Orthogonal,
        AlmostOrthogonal,
        Clusters,
        Subspace,
        Line7,
        Grid25,
        Digits,
        Mnist,
        FashionMnist,
        Cifar10,
        File,
        Given,
    )
)

__all__ = [
    "PARTS",
    "AlmostOrthogonal",
    "Cifar10",
    "Clusters",
    "Data",
    "Digits",
    "FashionMnist",
    "File",
    "Gaussian",
    "Given",
    "GivenSet",
    "Grid25",
    "Holding",
    "ImageSet",
    "Line7",
    "Mnist",
    "Orthogonal",
    "Setting",
    "Sphere",
    "Subspace",
    "Summary",
    "Truth",
    "as_data",
    "data_folder",
    "downsample",
    "explained_variance",
    "fetch",
    "holding",
    "load_data",
    "principal",
    "save_data",
    "summary",
    "two_classes",
    "unit_norm",
]
