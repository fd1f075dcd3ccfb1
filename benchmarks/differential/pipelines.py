"""Random classifiers of scikit-learn and pipelines; the references are their `decision_function` and `predict`.

The perceptron has no decision function: its logits are what its own forward pass gives without the last activation.
"""

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn import decomposition, discriminant_analysis, feature_selection, linear_model, preprocessing, svm
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from torch import Tensor

from benchmarks.differential.outcomes import outcome
from benchmarks.differential.tally import ReadingTally, shortened, skipped
from brittle.networks import Network, as_network

Array = NDArray[Any]
Make = Callable[[np.random.Generator, int], Any]


def _one(rng: np.random.Generator, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _perceptron(rng: np.random.Generator, features: int) -> Any:
    sizes = tuple(rng.integers(1, 7, size=int(rng.integers(0, 4))).tolist())
    activation = _one(rng, "relu", "relu", "relu", "identity", "tanh", "logistic")
    return MLPClassifier(
        sizes, activation=activation, max_iter=int(rng.integers(1, 15)), random_state=int(rng.integers(99))
    )


CLASSIFIERS: list[Make] = [
    _perceptron,
    _perceptron,
    _perceptron,
    lambda rng, _: linear_model.LogisticRegression(
        C=_one(rng, 0.1, 1, 100), fit_intercept=_one(rng, True, True, False), max_iter=50
    ),
    lambda rng, _: linear_model.RidgeClassifier(alpha=_one(rng, 0.1, 10), fit_intercept=_one(rng, True, False)),
    lambda rng, _: linear_model.RidgeClassifierCV(alphas=(0.1, 1.0)),
    lambda rng, _: linear_model.SGDClassifier(
        loss=_one(rng, "hinge", "log_loss", "huber"), max_iter=5, tol=None, random_state=0
    ),
    lambda rng, _: linear_model.Perceptron(max_iter=5, tol=None, random_state=0),
    lambda rng, _: svm.LinearSVC(
        C=_one(rng, 0.1, 10), fit_intercept=_one(rng, True, False), max_iter=100, random_state=0
    ),
    lambda rng, _: svm.SVC(
        kernel=_one(rng, "linear", "linear", "rbf"), decision_function_shape=_one(rng, "ovr", "ovo")
    ),
    lambda rng, _: discriminant_analysis.LinearDiscriminantAnalysis(solver=_one(rng, "svd", "lsqr")),
    lambda rng, _: linear_model.LogisticRegressionCV(Cs=2, cv=2, max_iter=20),
]

STEPS: list[Make] = [
    lambda rng, _: preprocessing.StandardScaler(with_mean=_one(rng, True, False), with_std=_one(rng, True, False)),
    lambda rng, _: preprocessing.MinMaxScaler(
        feature_range=_one(rng, (0, 1), (-2, 3)), clip=_one(rng, False, False, False, True)
    ),
    lambda rng, _: preprocessing.RobustScaler(
        with_centering=_one(rng, True, False), with_scaling=_one(rng, True, False)
    ),
    lambda rng, _: preprocessing.MaxAbsScaler(),
    lambda rng, n: decomposition.PCA(int(rng.integers(1, n + 1)), whiten=_one(rng, True, False)),
    lambda rng, n: decomposition.TruncatedSVD(int(rng.integers(1, n)), random_state=0),
    lambda rng, n: decomposition.IncrementalPCA(int(rng.integers(1, n + 1)), whiten=_one(rng, True, False)),
    lambda rng, n: feature_selection.SelectKBest(k=int(rng.integers(1, n + 1))),
    lambda rng, _: feature_selection.VarianceThreshold(),
    lambda rng, n: feature_selection.SelectFromModel(
        linear_model.LogisticRegression(), max_features=n, threshold=-np.inf
    ),
    lambda rng, _: "passthrough",
    lambda rng, _: SimpleImputer(strategy=_one(rng, "mean", "median"), add_indicator=_one(rng, False, False, True)),
    lambda rng, _: preprocessing.FunctionTransformer(_one(rng, None, None, np.abs)),
    lambda rng, _: preprocessing.Normalizer(),
    lambda rng, _: preprocessing.PolynomialFeatures(1),
    lambda rng, n: ColumnTransformer(
        [
            ("a", preprocessing.StandardScaler(), [0]),
            ("b", _one(rng, "drop", "passthrough", preprocessing.MaxAbsScaler()), [n - 1]),
        ],
        remainder=_one(rng, "drop", "passthrough", preprocessing.MinMaxScaler()),
        transformer_weights=_one(rng, None, {"a": 2.5}),
    ),
]


class Decision:
    """A fitted classifier as a reference; rounding errors are changes of the inputs."""

    def __init__(self, classifier: Any, features: int) -> None:
        self.classifier, self.features = classifier, features

    @property
    def eps(self) -> float:
        return float(np.finfo(np.float64).eps)

    def outputs(self, X: Tensor) -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = np.asarray(_logits(self.classifier, X.numpy()), dtype=np.float64)
        return torch.from_numpy(values).reshape(len(X), -1)

    def disturbed(self, X: Tensor, rng: np.random.Generator) -> Tensor:
        return self.outputs(X * torch.from_numpy(1 + 2 * self.eps * (rng.integers(0, 2, size=tuple(X.shape)) * 2 - 1)))

    def hidden(self, X: Tensor) -> Tensor:
        return X[:, :0]


def _logits(classifier: Any, X: Array) -> Any:
    *steps, last = [step for _, step in classifier.steps] if isinstance(classifier, Pipeline) else [classifier]
    if not isinstance(last, MLPClassifier):
        return classifier.decision_function(X)
    bare = copy.copy(last)
    bare.out_activation_ = "identity"
    for step in steps:
        X = X if isinstance(step, str) else step.transform(X)
    return bare._forward_pass_fast(X, check_input=False)


def drawn(case: int) -> tuple[Any, Array, Array, np.random.Generator]:
    """The classifier of a case, not fitted yet, its examples and labels, and the generator of inputs."""
    rng = np.random.default_rng([4, case])
    features, classes = int(rng.integers(2, 7)), int(rng.choice([2, 2, 3, 4]))
    X = rng.normal(size=(40, features)) * rng.choice([1.0, 1.0, 100.0], size=features) + rng.choice(
        [0.0, 5.0], size=features
    )
    if rng.random() < 0.1:
        X[:, 0] = X[0, 0]  # a feature without variance
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, size=40 - classes)])
    y = _one(rng, y, 2 * y - 1, np.array(["d", "a", "c", "b"])[y])
    if rng.random() < 0.08:
        y = rng.integers(0, 2, size=(40, 2))  # several labels at once
        y[0], y[1] = 0, 1
    steps = [_one(rng, *STEPS)(rng, features) for _ in range(int(rng.integers(0, 4)))]
    last = _one(rng, *CLASSIFIERS)(rng, features)
    return (make_pipeline(*steps, last) if steps or rng.random() < 0.2 else last), X, y, rng


def examine(case: int) -> ReadingTally:
    """One classifier."""
    classifier, X, y, rng = drawn(case)
    names = _names(classifier)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            classifier.fit(X, y)
        except Exception as error:
            return skipped(f"no fit: {shortened(str(error).splitlines()[0])}")
    reference = Decision(classifier, X.shape[1])
    tally = outcome(f"pipeline {case}", lambda: (as_network(classifier), None), reference, names, rng)
    if tally.compared:
        _compare_labels(tally, case, classifier, as_network(classifier), X)
    return tally


def _compare_labels(tally: ReadingTally, case: int, classifier: Any, network: Network, X: Array) -> None:
    """The labels of the examples, wherever the margin is more than rounding."""
    rows = torch.from_numpy(X)
    logits = network.logits(rows).reshape(len(X), -1)
    margins = logits.abs() if logits.shape[1] == 1 else logits.topk(2).values.diff()[:, 0:1].abs()
    places = (logits[:, 0] > 0).long() if logits.shape[1] == 1 else logits.argmax(1)
    predicted = np.asarray(classifier.predict(X))
    sure = (margins[:, 0] > 1e3 * network.rounding(rows)).numpy()
    if predicted.ndim > 1 or bool((np.asarray(classifier.classes_)[places.numpy()] != predicted)[sure].any()):
        tally.compared = 0
        tally.violations.append(f"pipeline {case}: other labels than those of predict, of the shape {predicted.shape}")


def _names(classifier: Any) -> list[str]:
    parts = [step for _, step in classifier.steps] if isinstance(classifier, Pipeline) else [classifier]
    return [each if isinstance(each, str) else type(each).__name__ for each in parts]


def described(case: int) -> str:
    """The classifier of a case."""
    classifier, X, y, _ = drawn(case)
    return f"{classifier!r}\n# {X.shape} examples, labels {np.unique(y).tolist()} of the shape {y.shape}"
