"""Where data come from."""

from brittle.settings.base import Data, GivenSet, Setting, Truth
from brittle.settings.clusters import Clusters
from brittle.settings.files import File, load_data, save_data
from brittle.settings.orthogonal import AlmostOrthogonal, Orthogonal
from brittle.settings.points import Given, Grid25, Line7
from brittle.settings.sphere import Gaussian, Sphere
from brittle.settings.subspace import Subspace
from brittle.settings.transforms import downsample, explained_variance, principal, two_classes, unit_norm

__all__ = [
    "AlmostOrthogonal",
    "Clusters",
    "Data",
    "File",
    "Gaussian",
    "Given",
    "GivenSet",
    "Grid25",
    "Line7",
    "Orthogonal",
    "Setting",
    "Sphere",
    "Subspace",
    "Truth",
    "downsample",
    "explained_variance",
    "load_data",
    "principal",
    "save_data",
    "two_classes",
    "unit_norm",
]
