"""Data refuse what does not fit together; every setting samples by the same rules."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brittle import InputError
from brittle.data import (
    AlmostOrthogonal,
    Clusters,
    Data,
    DataInfo,
    Digits,
    Gaussian,
    GivenPoints,
    Grid25,
    ImageSet,
    Line7,
    Orthogonal,
    Sphere,
    Subspace,
    summary,
)
from tests.cases import SETTINGS
from tests.data.test_truth import sampled
from tests.data.truths import by_name

LIVE = [row for row in SETTINGS if not isinstance(row[1], ImageSet) or isinstance(row[1], Digits)]
ENDLESS = [row for row in LIVE if not row[1].finite]
X, Y = torch.eye(3), torch.tensor([1.0, -1.0, 1.0])


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("setting", by_name(LIVE))
def test_the_same_seed_gives_the_same_data(setting):
    first, second = sampled(setting, generator(3)), sampled(setting, generator(3))
    assert torch.equal(first.X, second.X)
    assert torch.equal(first.y, second.y)


@pytest.mark.parametrize("setting", by_name(ENDLESS))
def test_another_seed_gives_other_data(setting):
    same = torch.equal(sampled(setting, generator(3)).X, sampled(setting, generator(4)).X)
    assert same == isinstance(setting, Orthogonal)


@given(examples=st.integers(1, 12), test=st.integers(0, 5), in_span=st.booleans(), data=st.data())
def test_every_shape_is_as_asked(examples, test, in_span, data):
    setting = data.draw(st.sampled_from([setting for _, setting in ENDLESS]))
    test = 0 if isinstance(setting, Orthogonal) else test
    drawn = setting.sample(examples, generator(0), test=test, in_span=in_span)
    assert drawn.X.shape == (examples, drawn.columns)
    assert drawn.X.dtype == torch.float64
    assert drawn.y.shape == (examples,)
    assert (drawn.X_test is None) == (test == 0)
    assert test == 0 or drawn.X_test.shape == (test, drawn.columns)
    assert drawn.columns == drawn.dim or in_span
    assert drawn.binary


@given(examples=st.integers(1, 24), test=st.integers(1, 24))
def test_a_given_set_is_divided_without_overlap(examples, test):
    whole = Data(torch.arange(25.0).unsqueeze(1), torch.arange(25))
    if examples + test > 25:
        with pytest.raises(InputError, match=f"has 25 examples; {examples + test} were asked for"):
            GivenPoints(whole).sample(examples, generator(0), test=test)
        return
    data = GivenPoints(whole).sample(examples, generator(0), test=test)
    assert (len(data), len(data.X_test)) == (examples, test)
    assert not set(data.y.tolist()) & set(data.y_test.tolist())
    assert torch.equal(data.X.flatten(), data.y.double())


def test_a_given_set_hands_out_the_rest(rng):
    assert len(Grid25().sample(20, rng, test=None).X_test) == 5
    assert len(Grid25().sample(None, rng, test=5)) == 20
    with pytest.raises(InputError, match="no test set of its own"):
        Grid25().sample(None, rng, test=None)


def test_a_given_set_keeps_its_own_test_set(rng):
    whole = Clusters(6).sample(10, rng, test=8)
    data = GivenPoints(whole).sample(4, rng, test=3)
    assert torch.equal(data.y_test, whole.truth.mean_labels[data.truth.cluster_test])
    assert GivenPoints(whole).sample(4, rng).X_test is None
    with pytest.raises(InputError, match="test is 9; there are only 8"):
        GivenPoints(whole).sample(4, rng, test=9)


BAD_PARAMETERS = [
    (lambda: Sphere(0), "dim is 0"),
    (lambda: Sphere(2.5), "dim is 2.5"),
    (lambda: Sphere(2**53 + 1), "at most 2^53"),
    (lambda: Sphere(3, radius=-1.0), "radius is -1.0"),
    (lambda: Gaussian(3, variance=0.0), "variance is 0.0"),
    (lambda: AlmostOrthogonal(3, coherence=4.0), "coherence is 4.0"),
    (lambda: Clusters(10, clusters=1), "clusters is 1"),
    (lambda: Clusters(3, clusters=4), "at most 3 means are orthogonal"),
    (lambda: Clusters(10, noise=-1.0), "noise is -1.0"),
    (lambda: Clusters(10, noise=float("nan")), "noise is nan"),
    (lambda: Clusters(10, noise=float("inf")), "noise is inf"),
    (lambda: Clusters(10, balance=0.6), "balance is 0.6"),
    (lambda: Clusters(10, cosine=1.0), "cosine is 1.0"),
    (lambda: Clusters(10, cosine=0.1, random_means=True), "cosine is 0.1; the angles of random means are random"),
    (lambda: Subspace(5, 5), "codimension is 5; it must be below the dimension 5"),
    (lambda: Subspace(5, -1), "codimension is -1"),
]


@pytest.mark.parametrize(("make", "words"), BAD_PARAMETERS, ids=[words for _, words in BAD_PARAMETERS])
def test_bad_parameters_are_named(make, words):
    with pytest.raises(InputError) as caught:
        make()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "options", "words"),
    [
        (Sphere(3), {}, "give it the number of examples"),
        (Sphere(3), {"examples": 0}, "examples is 0"),
        (Sphere(3), {"examples": 2, "test": -1}, "test is -1"),
        (Sphere(3), {"examples": 2, "test": None}, "give it the number of examples (test)"),
        (Digits(), {"examples": 2, "in_span": True}, "Digits cannot be sampled in its span"),
        (Orthogonal(3), {"examples": 4}, "at most 3 points"),
        (Orthogonal(3), {"examples": 2, "test": 1}, "no test examples"),
        (AlmostOrthogonal(3), {"examples": 4}, "at most 3 are almost orthogonal"),
        (AlmostOrthogonal(40, coherence=39.0), {"examples": 30}, "30 such vectors do not fit"),
        (
            Subspace(5, 1, inner=Sphere(3)),
            {"examples": 2},
            "inner gives points of R^3",
        ),
        (Sphere(10**9), {"examples": 200}, "in_span=True"),
        (Gaussian(10**9), {"examples": 200}, "in_span=True"),
        (Orthogonal(10**9), {"examples": 200}, "in_span=True"),
        (AlmostOrthogonal(10**9), {"examples": 200}, "in_span=True"),
        (Clusters(10**9), {"examples": 200}, "in_span=True"),
        (Clusters(10**8), {"examples": 200}, "in_span=True"),
        (Clusters(10**9, random_means=True), {"examples": 200}, "in_span=True"),
        (Subspace(10**9, 10**9 - 3), {"examples": 200}, "in_span=True"),
        (Subspace(10**9, 3), {"examples": 200}, "in_span=True"),
        (Sphere(10**9), {"examples": 10**8, "in_span": True}, "GiB of memory; take fewer"),
    ],
)
def test_what_cannot_be_sampled_is_refused(setting, options, words, rng):
    with pytest.raises(InputError) as caught:
        setting.sample(options.pop("examples", None), rng, **options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_random_setting_needs_a_generator():
    for setting, examples in ((Sphere(3), 2), (Line7(), 3), (Subspace(5, 3, inner=Line7()), None)):
        with pytest.raises(InputError, match=r"draws at random: give it a torch\.Generator"):
            setting.sample(examples)
    assert len(Line7().sample()) == 7
    assert len(Orthogonal(5).sample(4)) == 4


def test_fixed_points_are_the_papers():
    line, grid, axes = Line7().sample(), Grid25().sample(), Orthogonal(4).sample(3)
    assert torch.allclose(line.X[:, 0] * 3, torch.arange(-3.0, 4.0).double())
    assert torch.equal(line.X[:, 0], line.X[:, 1])
    assert line.y.tolist() == [-1, 1, -1, 1, -1, 1, -1]
    assert set(map(tuple, grid.X.tolist())) == {(i / 4, j / 4, 0.5) for i in range(5) for j in range(5)}
    assert [int((grid.y == sign).sum()) for sign in (1, -1)] == [13, 12]
    assert all((y > 0) == ((4 * a) % 2 == (4 * b) % 2) for (a, b, _), y in zip(grid.X.tolist(), grid.y, strict=True))
    flat = Grid25(0.0).sample()
    assert torch.equal(flat.X[:, :2], grid.X[:, :2])
    assert not flat.X[:, 2].any()
    assert flat.truth.offset is None
    assert grid.truth.offset.tolist() == [0, 0, 0.5]
    assert axes.X.tolist() == [[2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0]]
    assert axes.y.tolist() == [1, 1, -1]


@pytest.mark.parametrize(("clusters", "balance", "negative"), [(2, 0.5, 1), (10, 0.3, 3), (7, 0.5, 3), (10, 0.01, 1)])
def test_the_balance_of_the_clusters_is_as_asked(clusters, balance, negative, rng):
    labels = Clusters(20, clusters=clusters, balance=balance).sample(5, rng).truth.mean_labels
    assert (labels == -1).sum() == negative


BAD_DATA = [
    ({"X": X[0], "y": Y}, "X has shape (3,)"),
    ({"X": X, "y": Y[:2]}, "y has 2 labels for 3 examples"),
    ({"X": X * torch.nan, "y": Y}, "X holds NaN or infinity in 3 of 3 rows"),
    ({"X": X.to(torch.complex64), "y": Y}, "X has type torch.complex64"),
    ({"X": X, "y": Y, "X_test": X}, "belong together"),
    ({"X": X, "y": Y, "truth": DataInfo(dim=2)}, "dim is 2"),
    ({"X": X, "y": Y, "truth": DataInfo(image=(2, 2))}, "image is (2, 2)"),
    ({"X": X, "y": Y, "truth": DataInfo(means=X[:, :2])}, "means has shape (3, 2)"),
]


@pytest.mark.parametrize(("content", "words"), BAD_DATA, ids=[words for _, words in BAD_DATA])
def test_bad_data_are_named(content, words):
    with pytest.raises(InputError) as caught:
        Data(**content)
    assert words in str(caught.value)


def test_large_numbers_are_not_taken_for_infinite():
    assert len(Data(torch.full((2, 3), 1e308, dtype=torch.float64), torch.ones(2))) == 2


@pytest.mark.parametrize(
    ("y", "y_test", "binary"),
    [
        ([1.0, 1.0], [1.0], True),
        ([1, 1], [1], False),
        ([1, 1], [-1], True),
        ([-1, 1], [1], True),
        ([0, 1], [1], False),
        ([0.0, 1.0], [1.0], False),
    ],
)
def test_signs_and_class_numbers_are_told_apart(y, y_test, binary):
    data = Data(torch.eye(2), torch.tensor(y), torch.eye(2)[:1], torch.tensor(y_test))
    assert data.binary == binary
    assert data.y.dtype == data.y_test.dtype


def test_subsets_take_their_clusters_along(rng):
    data = Clusters(6, clusters=3).sample(9, rng, test=4)
    some = data.take(torch.tensor([4, 0]))
    assert torch.equal(some.truth.cluster, data.truth.cluster[[4, 0]])
    assert torch.equal(some.X_test, data.X_test)
    assert torch.equal(data.take(data.y == 1).y, torch.ones(int((data.y == 1).sum())).double())
    held = data.take_test(torch.tensor([1])).test
    assert torch.equal(held.X, data.X_test[1:2])
    assert torch.equal(held.truth.cluster, data.truth.cluster_test[1:2])


def test_a_summary_counts_and_measures(rng):
    data = replace(Sphere(4).sample(6, rng, test=2), y=torch.tensor([1.0, 1, 1, -1, 1, 1]))
    seen = summary(data).to_json()
    assert seen["labels"] == {"-1": 1, "1": 5}
    assert seen["test_examples"] == 2
    assert seen["smallest_norm"] == pytest.approx(2)
    assert seen["truth"] == {"dim": 4, "radius": 2.0}


@pytest.mark.parametrize("in_span", [True, False])
def test_means_have_the_angles_that_were_asked_for(in_span, rng):
    data = Clusters(30, clusters=4, cosine=0.3).sample(5, rng, in_span=in_span)
    wanted = 30 * (0.3 + 0.7 * torch.eye(4, dtype=torch.float64))
    assert torch.allclose(data.truth.means @ data.truth.means.T, wanted, rtol=1e-12)
    assert data.truth.coherence == pytest.approx(9)
