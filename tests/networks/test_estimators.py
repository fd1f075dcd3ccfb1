"""Classifiers of scikit-learn are the networks that decide as they do, or are refused."""

import numpy as np
import pytest
import torch
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, RidgeClassifierCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from brittle.common.errors import InputError
from brittle.networks import as_network

X = np.random.default_rng(0).normal(size=(200, 4))
TWO, THREE = (X[:, 0] > 0.1).astype(int), np.digitize(X[:, 1], [-0.5, 0.5])
SEVERAL = np.stack([X[:, 0] > 0, X[:, 1] > 0], 1).astype(int)


class Otherwise(LogisticRegression):
    """Inherits the coefficients and decides the other way round."""

    def predict(self, X):
        return 1 - super().predict(X)


class Squares(VarianceThreshold):
    """Says which features it keeps, and gives their squares."""

    def transform(self, X):
        return super().transform(X) ** 2


@pytest.mark.parametrize("labels", [TWO, THREE, np.array(["no", "yes"])[TWO]], ids=["two", "three", "words"])
@pytest.mark.parametrize("kind", [RidgeClassifier, RidgeClassifierCV, Perceptron])
def test_linear_classifiers_decide_as_they_are(kind, labels):
    pipeline = make_pipeline(StandardScaler(), SelectKBest(k=3), kind()).fit(X, labels)
    fresh = np.random.default_rng(1).normal(size=(300, 4))
    logits = as_network(pipeline).logits(torch.from_numpy(fresh))
    places = (logits > 0).long() if logits.ndim == 1 else logits.argmax(1)
    assert np.array_equal(pipeline.classes_[places.numpy()], pipeline.predict(fresh))


@pytest.mark.parametrize(
    "classifier", [RidgeClassifier(), MLPClassifier((3,), max_iter=3, tol=1e9, n_iter_no_change=1)]
)
def test_several_labels_at_once_are_refused(classifier):
    with pytest.raises(InputError, match="several labels at once"):
        as_network(classifier.fit(X, SEVERAL))


def test_a_class_that_decides_otherwise_is_refused():
    with pytest.raises(InputError, match="the Otherwise decides otherwise"):
        as_network(Otherwise().fit(X, TWO))


def test_a_selection_that_does_more_is_refused():
    with pytest.raises(InputError, match="step Squares of the pipeline is not read"):
        as_network(make_pipeline(Squares(), LogisticRegression()).fit(X, TWO))
