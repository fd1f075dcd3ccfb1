"""Where a network and data meet: what a person hands over, as a network and as data in that network's own terms."""

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from torch import nn

from brittle.common.errors import InputError, require
from brittle.data import Data, DataInfo, as_data
from brittle.data.arrays import Examples, Labels
from brittle.data.collected import split_pairs
from brittle.networks import Network, as_network, recognise
from brittle.networks.estimators import Estimator, labels_of

Model: TypeAlias = Network | nn.Module | Estimator
Holder: TypeAlias = Data | Examples  # whatever `as_data` takes


def subject(model: Model, X: Holder, y: Labels | str | None = None) -> tuple[Network, Data]:
    """The network of a model, made for the shape of these data, and the data with the labels that it takes."""
    known = labels_of(model)
    if known is None:
        data = as_data(X, y)
        network = network_for(model, data)
        return network, data.labelled_for(network.classes)
    network = as_network(model)
    return network, _numbered(known, network, X, y)


def network_for(model: Model, data: Data) -> Network:
    """A module that takes pictures gets the shape of these ones, unless it takes flat rows."""
    refusals = []
    for shape in ((), data.shape, data.truth.image or ()):
        try:
            return recognise(model, shape, data.X)[0]
        except InputError as refusal:
            refusals.append(refusal)
    flat = data.truth.image is None
    raise refusals[0 if flat else 1]


def _numbered(known: tuple[Any, ...], network: Network, X: Holder, y: Labels | str | None) -> Data:
    """Labels as the classifier calls them, by their places in its own list."""
    names = tuple(map(str, known))
    if not isinstance(X, Data):
        X, y = split_pairs(X, y)
        return Data(X, _places(known, network, y), truth=DataInfo(names=names))
    held = {"y": X.y} if X.y_test is None else {"y": X.y, "y_test": X.y_test}
    labels = {name: _places(known, network, _spoken(X, each)) for name, each in held.items()}
    return replace(X, **labels, truth=replace(X.truth, names=names))


def _spoken(data: Data, y: Any) -> list[Any]:
    """The names of the labels, where they have names."""
    names = data.truth.names
    numbers = ((y + 1) / 2 if data.binary else y).long().tolist()
    return y.tolist() if names is None else [names[number] for number in numbers]


def _places(known: tuple[Any, ...], network: Network, y: Any) -> Any:
    places = {label: place for place, label in enumerate(known)}
    given = np.asarray(y).reshape(-1).tolist()
    strange = next((label for label in given if label not in places), None)
    shown = ", ".join(map(str, known[:10]))
    require(strange is None, f"y holds {strange!r}, and the classifier was trained on the classes {shown}")
    numbers = np.array([places[label] for label in given], dtype=np.int64)
    return 2.0 * numbers - 1 if network.classes == 1 else numbers
