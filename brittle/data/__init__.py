"""Where data come from."""

from brittle.common.parts import by_name
from brittle.data.base import Data, DataInfo, GivenSet, Setting
from brittle.data.clusters import Clusters
from brittle.data.collected import Summary, as_data, summary
from brittle.data.files import File, load_data, save_data
from brittle.data.images import Cifar10, Digits, FashionMnist, ImageSet, Mnist
from brittle.data.orthogonal import AlmostOrthogonal, Gaussian, Orthogonal, Sphere
from brittle.data.sources import DatasetStatus, data_folder, fetch, holding
from brittle.data.subspace import GivenPoints, Grid25, Line7, Subspace
from brittle.data.transforms import compute_explained_variance, downsample, principal, two_classes, unit_norm

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
        GivenPoints,
    )
)

__all__ = [
    "PARTS",
    "AlmostOrthogonal",
    "Cifar10",
    "Clusters",
    "Data",
    "DataInfo",
    "DatasetStatus",
    "Digits",
    "FashionMnist",
    "File",
    "Gaussian",
    "GivenPoints",
    "GivenSet",
    "Grid25",
    "ImageSet",
    "Line7",
    "Mnist",
    "Orthogonal",
    "Setting",
    "Sphere",
    "Subspace",
    "Summary",
    "as_data",
    "compute_explained_variance",
    "data_folder",
    "downsample",
    "fetch",
    "holding",
    "load_data",
    "principal",
    "save_data",
    "summary",
    "two_classes",
    "unit_norm",
]
