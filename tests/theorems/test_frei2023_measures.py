"""What the statements of frei2023 measure, computed again from the definitions on one set of clusters."""

import math
from dataclasses import replace

import pytest
import torch

from brittle.common.errors import InputError
from brittle.data import Clusters, DataInfo
from brittle.theorems import CheckOutcome, Instance, check_instance
from brittle.theorems.frei2023.assumption import OrdinaryTrainingSet
from brittle.theorems.frei2023.concentration import (
    AcrossClusters,
    LengthOfAnExample,
    NoClusterIsLeftOut,
    WithinACluster,
)
from brittle.theorems.frei2023.groups import ClusterGroups
from brittle.theorems.frei2023.other_clusters import BEFORE, MoreNoise
from brittle.theorems.frei2023.remarks import LinearModelIsFragile
from tests.theorems.clusters import NOISE, known

UNIT = NOISE * math.sqrt(570) * math.log(570)  # σ√d ln d
DATA = known().data


def products() -> tuple[list[float], list[float]]:
    """|<x, x'>| across clusters and |<x, x'> - d| within, of every pair."""
    cluster, gram = DATA.truth.cluster.tolist(), (DATA.X @ DATA.X.T).tolist()
    pairs = [(i, j) for i in range(len(DATA)) for j in range(i)]
    across = [abs(gram[i][j]) for i, j in pairs if cluster[i] != cluster[j]]
    return across, [abs(gram[i][j] - 570) for i, j in pairs if cluster[i] == cluster[j]]


def by_hand() -> list[tuple[object, dict[str, float]]]:
    across, within = products()
    squares = DATA.X.square().sum(1)
    means = DATA.truth.means
    coherence = float((means @ means.T)[0, 1].abs())
    return [
        (
            AcrossClusters(),
            {
                "largest |<x, x'>|": max(coherence + (2 + math.sqrt(2)) * UNIT, *across),
                "largest |<x, x'>| of the data": max(across),
            },
        ),
        (
            WithinACluster(),
            {
                "largest |<x, x'> - d|": max((2 + math.sqrt(2)) * UNIT, *within),
                "largest |<x, x'> - d| of the data": max(within),
            },
        ),
        (
            LengthOfAnExample(),
            {
                "smallest ‖x‖²": min((math.sqrt(570) - UNIT / math.sqrt(570)) ** 2, float(squares.min())),
                "largest ‖x‖²": max(570 + 2 * NOISE**2 * 570 + 2 * UNIT, float(squares.max())),
            },
        ),
    ]


@pytest.mark.parametrize(("theorem", "measured"), by_hand(), ids=["A.5", "A.6", "A.7"])
def test_the_worst_noise_is_that_of_the_lemma(theorem, measured):
    assert theorem.witness(known()).measures == pytest.approx(measured, rel=1e-10)
    assert check_instance(theorem, known()).verdict is CheckOutcome.CONFIRMED


def test_noise_that_is_longer_than_the_lemmas_admit_is_seen_in_the_data():
    """One example is its mean twice: the measures leave the worst case of the lemmas, for what is in the data."""
    X = DATA.X.clone()
    X[0] = 2 * DATA.truth.means[DATA.truth.cluster[0]]
    moved = Instance(replace(DATA, X=X))
    assert WithinACluster().witness(moved).measures["largest |<x, x'> - d|"] > 500
    assert LengthOfAnExample().witness(moved).measures["largest ‖x‖²"] == pytest.approx(4 * 570)
    X[0] *= 0.01
    shrunk = Instance(replace(DATA, X=X))
    assert LengthOfAnExample().witness(shrunk).measures["smallest ‖x‖²"] == pytest.approx(4e-4 * 570)


def test_a_training_set_without_a_cluster_is_a_failure():
    """Of k = 3 and n = ⌈3 ln²d⌉ examples, at the small d where that happens; with the promised rate of A.8."""
    theorem = NoClusterIsLeftOut(dim=4, clusters=3)
    n = math.ceil(3 * math.log(4) ** 2)
    drawn = torch.randint(3, (500, n), generator=torch.Generator().manual_seed(2))
    missing = sum(len(set(row)) < 3 for row in drawn.tolist())
    assert 0 < missing < 500
    counted = theorem.failures(500, torch.Generator().manual_seed(2))
    assert (counted.failures, counted.skipped) == (missing, 0)
    assert counted.promised_failure_rate == pytest.approx(4 ** (1 - math.log(4)))


def test_the_linear_model_is_measured_on_fresh_examples():
    means, signs = DATA.truth.means, DATA.truth.mean_labels
    w = sum(float(y) * mean for y, mean in zip(signs, means, strict=True)) / 570
    outputs = [float(y) * float(w @ x) for x, y in zip(DATA.X_test, DATA.y_test, strict=True)]
    length = math.sqrt(float((w * w).sum()))
    by_hand = {"smallest y w·x": min(outputs), "largest y w·x": max(outputs), "‖w‖": length}
    by_hand["longest step that is needed"] = max(outputs) / length
    assert LinearModelIsFragile().witness(known()).measures == pytest.approx(by_hand, rel=1e-10)


def test_errors_under_more_noise_are_counted_on_fresh_examples():
    """A tenth of the fresh labels are wrong, and so is the network there."""
    y = DATA.y_test.clone()
    y[:20] *= -1
    instance, theorem = Instance(replace(DATA, y_test=y), known().network), MoreNoise()
    network, kind = instance.kkt.network, theorem._kind(instance)
    margins = network.logits(DATA.X_test) * y
    measured = theorem.witness(instance).measures
    assert measured["test error, counted"] == pytest.approx(0.1)
    assert measured["d^(1/8)"] == pytest.approx(570 ** (1 / 8))
    assert measured["share of them"] == pytest.approx(int(kind.sum()) / 200)
    assert measured[BEFORE] == pytest.approx(min(m for m, k in zip(margins.tolist(), kind.tolist(), strict=True) if k))


def test_the_smallest_cluster_and_the_chance_to_leave_one_out_are_counted():
    """Two clusters of 2 and 4 examples: 2 (1/2)^6 beside the smaller count."""
    truth = replace(DATA.truth, cluster=torch.tensor([0, 1, 1, 0, 1, 1]))
    few = Instance(replace(DATA, X=DATA.X[:6], y=DATA.y[:6], truth=truth))
    measures = NoClusterIsLeftOut().witness(few).measures
    assert measures == {"examples of the smallest cluster": 2, "chance by the union bound": 2 / 64}


@pytest.mark.parametrize("missing", ["means", "cluster"])
def test_data_that_do_not_know_their_clusters_are_refused(missing):
    data = replace(DATA, truth=DataInfo(**{"means": DATA.truth.means, "cluster": DATA.truth.cluster, missing: None}))
    with pytest.raises(InputError, match="frei2023 is about clusters"):
        ClusterGroups(data)


@pytest.mark.parametrize(("examples", "drawn"), [(10, True), (11, False), (14, False)])
def test_training_sets_are_drawn_where_their_noise_has_the_dimensions_for_it(monkeypatch, examples, drawn):
    """n noises in the d - k dimensions off the means: of 2 clusters in R^12."""
    data = Clusters(12, 2, 0.1).sample(examples, torch.Generator().manual_seed(0))
    monkeypatch.setattr(OrdinaryTrainingSet, "default", lambda self, rng: Instance(data))
    monkeypatch.setattr(OrdinaryTrainingSet, "supposes", lambda self, instance: True)
    found = OrdinaryTrainingSet().failures(3, torch.Generator().manual_seed(1))
    assert (found is not None) == drawn
