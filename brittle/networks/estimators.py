"""scikit-learn's classifiers as networks: ReLU perceptrons and linear classifiers, behind steps that are affine maps.

What goes before the classifier is folded into its first layer, so that distances are in the units of the raw features:
W (A x + c) + b = (W A) x + (W c + b).
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brittle.common.errors import InputError, require
from brittle.networks.adapter import probes
from brittle.networks.deep import Deep, of_layers
from brittle.networks.two_layer import TwoLayer

ROUNDING = 1e-3  # relative: what float32 inside an estimator may change
Map = tuple[NDArray[Any], NDArray[Any]]  # A (outputs, inputs) and c (outputs,) of x ↦ A x + c
READ = "MLPClassifier with relu, linear classifiers, and pipelines of scalers, PCA and feature selection before them"


@runtime_checkable
class Estimator(Protocol):
    """A fitted classifier of scikit-learn, or a pipeline that ends in one."""

    def fit(self, X: Any, y: Any) -> Any: ...

    def predict(self, X: Any) -> Any: ...

    def get_params(self) -> dict[str, Any]: ...


def is_estimator(thing: object) -> bool:
    """Whether this is scikit-learn's; where nobody has imported that, nothing is."""
    base = sys.modules.get("sklearn.base")
    return base is not None and isinstance(thing, base.BaseEstimator)


def of_estimator(estimator: Any) -> TwoLayer | Deep:
    """The same decisions: the sign of one logit for two classes, else the largest of one logit for each."""
    *steps, last = _steps(estimator)
    layers = _layers(last)
    for step in reversed(steps):
        A, c = _affine(step, layers[0][0].shape[1])
        W, b = layers[0]
        fits = W.shape[1] == A.shape[0]
        require(fits, f"the step {_kind(step)} gives {A.shape[0]} features and the next one takes {W.shape[1]}")
        layers[0] = W @ A, W @ c + b
    for W, b in layers:
        finite = bool(np.isfinite(W).all() and np.isfinite(b).all())
        require(finite, f"the weights of the {_kind(last)} hold NaN or infinity, perhaps by a scale near 0")
    network = of_layers([_tensor(W) for W, _ in layers], [_tensor(b) for _, b in layers])
    _check_decisions(estimator, network)
    return network


def _check_decisions(estimator: Any, network: TwoLayer | Deep) -> None:
    """The estimator decides as the network on random inputs; a class that inherits from scikit-learn's may not."""
    X = torch.cat(probes(network.dim))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names of columns, which arrays do not have
        try:
            found = estimator.predict(X.numpy())
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            return  # it takes tables only
    logits = network.logits(X)
    margins = logits[:, None] * torch.tensor([-1.0, 1.0]) if network.classes == 1 else logits
    names = [str(each) for each in _fitted(_steps(estimator)[-1], "classes_").tolist()]
    chosen = [names.index(str(each)) if str(each) in names else -1 for each in np.asarray(found).reshape(-1).tolist()]
    known = len(chosen) == len(X) and min(chosen) >= 0 and len(names) == margins.shape[1]
    behind = margins.max(1).values - margins.gather(1, torch.tensor(chosen)[:, None])[:, 0] if known else margins
    same = known and bool((behind <= ROUNDING * (1 + margins.abs().max(1).values)).all())
    require(same, f"the {_kind(estimator)} decides otherwise than the linear maps and ReLUs that it is made of")


def labels_of(thing: object) -> tuple[Any, ...] | None:
    """What a classifier of scikit-learn calls its classes, in their order; None for any other kind of network."""
    if not is_estimator(thing):
        return None
    return tuple(np.asarray(_fitted(_steps(thing)[-1], "classes_")).tolist())


def _tensor(array: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C"))


def _kind(thing: object) -> str:
    return type(thing).__name__


def _fitted(estimator: object, name: str) -> Any:
    require(hasattr(estimator, name), f"the {_kind(estimator)} has no {name}; it must be fitted, and a classifier")
    return getattr(estimator, name)


def _steps(estimator: Any) -> list[Any]:
    """The steps of a pipeline, of nested ones too; a search stands for what it found to be best."""
    from sklearn.pipeline import Pipeline

    estimator = getattr(estimator, "best_estimator_", estimator)
    if not isinstance(estimator, Pipeline):
        return [estimator]
    return [inner for _, step in estimator.steps for inner in _steps(step)]


def _layers(classifier: Any) -> list[Map]:
    from sklearn.linear_model._base import LinearClassifierMixin
    from sklearn.neural_network import MLPClassifier

    if isinstance(classifier, MLPClassifier):
        return _perceptron(classifier)
    readable = isinstance(classifier, LinearClassifierMixin)
    require(readable, f"a {_kind(classifier)} is no ReLU network; of scikit-learn, {READ} are read")
    W = _fitted(classifier, "coef_")
    W = np.atleast_2d(np.asarray(W.toarray() if hasattr(W, "toarray") else W, dtype=np.float64))
    labels = str(getattr(getattr(classifier, "_label_binarizer", None), "y_type_", ""))  # of a RidgeClassifier
    several = labels.startswith("multilabel")
    require(
        not several, f"this {_kind(classifier)} gives several labels at once; one class for every example is needed"
    )
    count = len(_fitted(classifier, "classes_"))
    fits = len(W) == (1 if count == 2 else count)
    require(fits, f"this {_kind(classifier)} has {len(W)} rows of coefficients for {count} classes")
    return [(W, np.broadcast_to(np.asarray(classifier.intercept_, dtype=np.float64).reshape(-1), W.shape[:1]))]


def _perceptron(classifier: Any) -> list[Map]:
    weights, biases = (_fitted(classifier, name) for name in ("coefs_", "intercepts_"))
    several = classifier.out_activation_ == "logistic" and classifier.n_outputs_ > 1
    require(not several, "this MLPClassifier gives several labels at once; one class for every example is needed")
    layers = [(W.T.astype(np.float64), b.astype(np.float64)) for W, b in zip(weights, biases, strict=True)]
    activation = classifier.activation
    known = activation in ("relu", "identity") or len(layers) == 1
    require(known, f"the MLPClassifier has activation={activation!r}; 'relu' is needed (or 'identity')")
    return layers if activation == "relu" else [_composed(layers)]


def _composed(maps: Iterable[Map]) -> Map:
    (A, c), *rest = maps
    for W, b in rest:
        A, c = W @ A, W @ c + b
    return A, c


def _affine(step: Any, outputs: int) -> Map:
    """A step of a pipeline as a map; `outputs` is what the next one takes."""
    if step is None or step == "passthrough":
        return np.eye(outputs), np.zeros(outputs)
    if _selects(step):
        kept = np.asarray(step.get_support(), dtype=bool)
        return np.eye(len(kept))[kept], np.zeros(int(kept.sum()))
    read = STEPS.get(_kind(step)) if type(step).__module__.startswith("sklearn.") else None
    if read is None:
        raise InputError(
            f"the step {_kind(step)} of the pipeline is not read; {', '.join(STEPS)} are, which are affine"
        )
    return read(step)


def _selects(step: Any) -> bool:
    """Whether it keeps some of the features as they are."""
    from sklearn.feature_selection import SelectorMixin

    return isinstance(step, SelectorMixin) and type(step).transform is SelectorMixin.transform


def _standard(step: Any) -> Map:
    return _scaled(_fitted(step, "n_features_in_"), step.mean_ if step.with_mean else None, step.scale_)


def _robust(step: Any) -> Map:
    centre = step.center_ if step.with_centering else None
    return _scaled(_fitted(step, "n_features_in_"), centre, step.scale_ if step.with_scaling else None)


def _largest(step: Any) -> Map:
    return _scaled(_fitted(step, "n_features_in_"), None, step.scale_)


def _scaled(features: int, centre: Any, scale: Any) -> Map:
    """(x - centre) / scale, either of which may be absent."""
    factors = 1 / (np.ones(features) if scale is None else np.asarray(scale, dtype=np.float64))
    shift = np.zeros(features) if centre is None else np.asarray(centre, dtype=np.float64)
    return np.diag(factors), -factors * shift


def _range(step: Any) -> Map:
    require(not step.clip, "the MinMaxScaler clips, which is not affine; make it with clip=False")
    return np.diag(_fitted(step, "scale_")), np.asarray(step.min_, dtype=np.float64)


def _components(step: Any) -> Map:
    """PCA: (x - mean) Vᵀ, divided by the deviations where it whitens."""
    V = np.asarray(_fitted(step, "components_"), dtype=np.float64)
    if getattr(step, "whiten", False):
        deviations = np.sqrt(step.explained_variance_)
        V = V / np.maximum(deviations, np.finfo(deviations.dtype).eps)[:, None]
    mean = getattr(step, "mean_", None)
    return V, np.zeros(len(V)) if mean is None else -V @ np.asarray(mean, dtype=np.float64)


def _columns(step: Any) -> Map:
    """A ColumnTransformer: every part takes some of the features, and their results stand beside each other."""
    features = _fitted(step, "n_features_in_")
    places: dict[str, Any] = step._transformer_to_input_indices
    parts = []
    for name, inner, _ in _fitted(step, "transformers_"):
        A, c = np.eye(features)[np.asarray(places[name], dtype=int)], np.zeros(len(places[name]))
        if isinstance(inner, str) and inner == "drop":
            continue
        parts.append(_composed([(A, c), *_in_a_row(inner, len(A))]))
        weight = (step.transformer_weights or {}).get(name, 1.0)
        parts[-1] = weight * parts[-1][0], weight * parts[-1][1]
    require(bool(parts), "the ColumnTransformer keeps no feature")
    return np.concatenate([A for A, _ in parts]), np.concatenate([c for _, c in parts])


def _in_a_row(step: Any, inputs: int) -> Iterator[Map]:
    for each in _steps(step):
        A, c = _affine(each, inputs)
        inputs = len(A)
        yield A, c


def _unchanged(step: Any) -> Map:
    require(step.func is None, "the FunctionTransformer has a function of its own, which need not be affine")
    features = _fitted(step, "n_features_in_")
    return np.eye(features), np.zeros(features)


def _imputer(step: Any) -> Map:
    """Where nothing is missing it changes nothing, and examples with gaps are refused."""
    gaps = isinstance(step.missing_values, float) and np.isnan(step.missing_values) and not step.add_indicator
    require(gaps, "the SimpleImputer does more than fill NaN, which is not affine")
    kept = ~np.isnan(np.asarray(_fitted(step, "statistics_"), dtype=np.float64)) | step.keep_empty_features
    return np.eye(len(kept))[kept], np.zeros(int(kept.sum()))


STEPS: dict[str, Callable[[Any], Map]] = {
    "StandardScaler": _standard, "MinMaxScaler": _range, "MaxAbsScaler": _largest, "RobustScaler": _robust,
    "PCA": _components, "IncrementalPCA": _components, "TruncatedSVD": _components,
    "ColumnTransformer": _columns, "SimpleImputer": _imputer, "FunctionTransformer": _unchanged,
}  # fmt: skip
