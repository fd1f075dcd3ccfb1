"""The doors that people come through with what they have: their classifiers, data, labels and mistakes."""

import json
import logging
import subprocess
import sys
import warnings

import numpy as np
import pandas
import pytest
import torch
from PIL import Image
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, SubsetRandomSampler, TensorDataset

import brittle as bt
from brittle import InputError
from brittle.cli import main
from brittle.data import Data, File, as_data, load_data, save_data

FLOWERS, KINDS = load_iris(return_X_y=True)
WORDS = np.array(["setosa", "versicolor", "virginica"])[KINDS]
TWO = KINDS > 0  # versicolor against virginica


@pytest.fixture(autouse=True)
def seed():
    """Modules draw their weights from the global generator."""
    torch.manual_seed(0)


def complaint(work) -> str:
    with pytest.raises(InputError) as caught:
        work()
    return str(caught.value)


# scikit-learn


def perceptron(*hidden: int, **options) -> MLPClassifier:
    """A few steps of L-BFGS, and no word that they are few."""
    return MLPClassifier(hidden, solver="lbfgs", max_iter=200, tol=1e-2, random_state=0, **options)


PIPELINES = {
    "perceptron": lambda: perceptron(8),
    "deep perceptron": lambda: perceptron(6, 5),
    "no hidden layer": lambda: perceptron(),
    "linear perceptron": lambda: perceptron(4, activation="identity"),
    "logistic regression": lambda: LogisticRegression(max_iter=1000),
    "standardised": lambda: make_pipeline(StandardScaler(), perceptron(8)),
    "without mean": lambda: make_pipeline(StandardScaler(with_mean=False), perceptron(8)),
    "without scale": lambda: make_pipeline(StandardScaler(with_std=False), perceptron(8)),
    "range": lambda: make_pipeline(MinMaxScaler((-1, 3)), perceptron(8)),
    "largest": lambda: make_pipeline(MaxAbsScaler(), perceptron(8)),
    "quartiles": lambda: make_pipeline(RobustScaler(), perceptron(8)),
    "components": lambda: make_pipeline(StandardScaler(), PCA(2), perceptron(8)),
    "whitened": lambda: make_pipeline(PCA(3, whiten=True), perceptron(8)),
    "filled": lambda: make_pipeline(SimpleImputer(), FunctionTransformer(), perceptron(8)),
    "columns": lambda: make_pipeline(
        ColumnTransformer([("scaled", StandardScaler(), [2, 0]), ("out", "drop", [1])], remainder="passthrough"),
        perceptron(8),
    ),
    "columns, nested and weighed": lambda: make_pipeline(
        ColumnTransformer(
            [
                ("two", make_pipeline(StandardScaler(), PCA(2)), slice(0, 3)),
                ("one", MinMaxScaler(), [False] * 3 + [True]),
            ],
            transformer_weights={"one": 3.0},
        ),
        perceptron(8),
    ),
    "selected and nested": lambda: make_pipeline(SelectKBest(k=3), make_pipeline("passthrough", LogisticRegression())),
}


@pytest.mark.parametrize("rows", [TWO, KINDS >= 0], ids=["two classes", "three classes"])
@pytest.mark.parametrize("name", PIPELINES)
def test_a_classifier_of_sklearn_is_the_network_that_gives_its_probabilities(name, rows):
    X, y = FLOWERS[rows], WORDS[rows]
    model = PIPELINES[name]().fit(X, y)
    logits = bt.networks.as_network(model).logits(torch.from_numpy(X))
    two = logits.ndim == 1
    shares = torch.stack([-logits, logits], 1).sigmoid() if two else logits.softmax(1)
    assert np.allclose(shares, model.predict_proba(X), atol=1e-9)
    assert two == (len(set(y)) == 2)


def test_columns_of_a_table_are_found_by_their_names():
    table = pandas.DataFrame(FLOWERS, columns=list("abcd"))
    columns = ColumnTransformer([("scaled", StandardScaler(), ["d", "a"])], remainder=MinMaxScaler())
    model = make_pipeline(columns, perceptron(8)).fit(table, WORDS)
    logits = bt.networks.as_network(model).logits(torch.from_numpy(FLOWERS))
    assert np.allclose(logits.softmax(1), model.predict_proba(table), atol=1e-9)


def test_sizes_are_in_the_units_of_the_raw_features():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(FLOWERS[TWO], WORDS[TWO])
    data = (FLOWERS[TWO][:5], WORDS[TWO][:5])
    w = model[-1].coef_[0] / model[0].scale_  # the distance to a plane, by hand
    distances = np.abs(model.decision_function(data[0])) / np.linalg.norm(w)
    assert np.allclose(bt.attacks.MinimumNorm().run(model, data).norms, distances)
    assert np.allclose(bt.certificates.Exact().bound(model, data).lower, distances)


def test_an_audit_takes_a_classifier_with_its_own_labels():
    model = make_pipeline(StandardScaler(), perceptron(5)).fit(FLOWERS[TWO], WORDS[TWO])
    found = bt.audit(model, FLOWERS[TWO][:2], WORDS[TWO][:2], budget=300, remedies="none")  # one class of two
    assert found.network["inputs"] == 4
    perturbed = FLOWERS[TWO][:2][found.vulnerability.examples] + found.vulnerability.perturbations.numpy()
    assert set(model.predict(perturbed)) == {"virginica"}


@pytest.mark.parametrize("labels", [np.array([3, 8, 11]), np.array([-1, 0, 1]), np.array(["c", "b", "a"])])
def test_labels_are_what_the_classifier_was_trained_on(labels):
    model = LogisticRegression(max_iter=1000).fit(FLOWERS, labels[KINDS])
    result = bt.attacks.MinimumNorm().run(model, (FLOWERS[:3], labels[KINDS[:3]]))
    assert (result.norms > 0).all()  # all are right before they are attacked
    given = Data(FLOWERS[:3], labels[KINDS[:3]].astype(str))
    again = bt.attacks.MinimumNorm().run(
        LogisticRegression(max_iter=1000).fit(FLOWERS, labels[KINDS].astype(str)), given
    )
    assert (again.norms > 0).all()
    assert "y holds 'd', and the classifier was trained on" in complaint(
        lambda: bt.attacks.MinimumNorm().run(model, (FLOWERS[:3], ["d", "d", "d"]))
    )


def test_what_is_best_in_a_search_is_taken():
    search = GridSearchCV(LogisticRegression(max_iter=1000), {"C": [0.1, 1]}, cv=2).fit(FLOWERS, KINDS)
    logits = bt.networks.as_network(search).logits(torch.from_numpy(FLOWERS))
    assert (logits.argmax(1).numpy() == search.predict(FLOWERS)).all()


def test_classifiers_without_probabilities_keep_their_decisions():
    model = RidgeClassifier().fit(FLOWERS, KINDS)
    assert (bt.networks.as_network(model).predict(torch.from_numpy(FLOWERS)).numpy() == model.predict(FLOWERS)).all()


REFUSED = {
    "activation='tanh'; 'relu' is needed": lambda: perceptron(3, activation="tanh"),
    "a DecisionTreeClassifier is no ReLU network": DecisionTreeClassifier,
    "the step PolynomialFeatures of the pipeline is not read": lambda: make_pipeline(
        PolynomialFeatures(), LogisticRegression(max_iter=9000)
    ),
    "a function of its own, which need not be affine": lambda: make_pipeline(
        FunctionTransformer(np.abs), perceptron(3)
    ),
    "fill NaN, which is not affine": lambda: make_pipeline(SimpleImputer(missing_values=0), perceptron(3)),
    "clips, which is not affine": lambda: make_pipeline(MinMaxScaler(clip=True), perceptron(3)),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_no_relu_network_is_refused_in_one_line(words):
    model = REFUSED[words]().fit(FLOWERS, KINDS)
    assert words in complaint(lambda: bt.audit(model, FLOWERS, KINDS))


def test_what_is_not_fitted_or_decides_nothing_is_refused():
    assert "must be fitted" in complaint(lambda: bt.audit(MLPClassifier(), FLOWERS, KINDS))
    assert "is no ReLU network" in complaint(lambda: bt.networks.as_network(LinearRegression().fit(FLOWERS, KINDS)))
    several = perceptron(3).fit(FLOWERS, np.stack([KINDS > 0, KINDS > 1], 1))
    assert "several labels at once" in complaint(lambda: bt.networks.as_network(several))
    assert "int is no network" in complaint(lambda: bt.networks.as_network(3))


# Data in Python

ROWS = torch.arange(12.0).reshape(6, 2)
CALLED = ["no", "yes", "no", "yes", "yes", "no"]
FORMS = {
    "tensors": (ROWS, torch.tensor([-1, 1, -1, 1, 1, -1])),
    "arrays": (ROWS.numpy(), np.array([-1.0, 1, -1, 1, 1, -1])),
    "lists": (ROWS.tolist(), [-1, 1, -1, 1, 1, -1]),
    "halves": (ROWS.half().numpy(), np.array([-1, 1, -1, 1, 1, -1], dtype=np.int8)),
    "lists of tensors": (list(ROWS), list(torch.tensor([-1, 1, -1, 1, 1, -1]))),
    "one column of labels": (ROWS, torch.tensor([[-1], [1], [-1], [1], [1], [-1]])),
    "tables": (pandas.DataFrame(ROWS.numpy()), pandas.Series([-1, 1, -1, 1, 1, -1])),
    "texts": (ROWS, CALLED),
    "categories": (ROWS, pandas.Series(CALLED, dtype="category")),
    "parameters": (nn.Parameter(ROWS), torch.tensor([-1, 1, -1, 1, 1, -1])),
}


@pytest.mark.parametrize("form", FORMS)
def test_data_are_the_same_in_every_form(form):
    data = Data(*FORMS[form])
    assert torch.equal(data.X, ROWS.double())
    assert data.y.tolist() == [-1, 1, -1, 1, 1, -1]
    assert data.truth.names == (("no", "yes") if form in ("texts", "categories") else None)


class Pairs(Dataset):
    def __init__(self, labels):
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, place):
        return ROWS[place].numpy(), self.labels[place]


class Stream(IterableDataset):
    def __iter__(self):
        return iter(zip(ROWS, [0, 1, 0, 1, 1, 0], strict=True))


PLAIN = TensorDataset(ROWS, torch.tensor([0, 1, 0, 1, 1, 0]))
SOURCES = {
    "data set": PLAIN,
    "own data set": Pairs([0, 1, 0, 1, 1, 0]),
    "stream": Stream(),
    "loader": DataLoader(PLAIN, batch_size=4),
    "shuffled loader": DataLoader(PLAIN, batch_size=4, shuffle=True, drop_last=True),
    "loader of a stream": DataLoader(Stream(), batch_size=4),
    "pair": (ROWS.numpy(), [0, 1, 0, 1, 1, 0]),
}


@pytest.mark.parametrize("source", SOURCES)
def test_data_sets_and_loaders_of_torch_are_read_whole_and_in_order(source):
    data = as_data(SOURCES[source])
    assert torch.equal(data.X, ROWS.double())
    assert data.y.tolist() == [0, 1, 0, 1, 1, 0]


def test_a_loader_of_a_part_gives_that_part():
    assert as_data(Subset(PLAIN, [1, 3])).y.tolist() == [1, 1]
    sampled = DataLoader(PLAIN, batch_size=2, sampler=SubsetRandomSampler([1, 3, 4]))
    assert as_data(sampled).y.tolist() == [1, 1, 1]
    assert as_data(Pairs(CALLED)).truth.names == ("no", "yes")


def test_an_audit_takes_a_loader_of_pictures_for_a_module_that_takes_pictures(rng):
    pictures = torch.rand(6, 1, 4, 4, generator=rng)
    module = nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(18, 2))
    labels = module(pictures).argmax(1)
    loader = DataLoader(TensorDataset(pictures, labels), batch_size=4)
    found = bt.audit(module, loader, budget=300, examples=3, remedies="none")
    assert found.network["inputs"] == 16
    assert found.vulnerability.free.norms.isfinite().all()


def test_pictures_keep_their_shape(tmp_path):
    data = Data(np.zeros((3, 2, 4, 5)), [0, 1, 2], np.zeros((1, 2, 4, 5)), [1])
    assert (data.columns, data.shape, data.truth.image) == (40, (2, 4, 5), (2, 4, 5))
    assert Data(np.zeros((2, 4, 5)), [0, 1]).shape == (1, 4, 5)  # grey ones have one channel
    assert Data(np.zeros((2, 4)), [0, 1]).shape == (4,)
    save_data(data, tmp_path / "data.npz")
    assert load_data(tmp_path / "data.npz").shape == (2, 4, 5)
    flat = nn.Sequential(nn.Linear(40, 3), nn.ReLU(), nn.Linear(3, 3))  # takes the same pictures as rows
    assert bt.attacks.MinimumNorm().run(flat, data).norms.shape == (3,)


BAD = {
    "y is missing": (ROWS, None),
    "X has shape (12,)": (ROWS.reshape(-1), [0] * 12),
    "X has columns that hold no numbers: name": (pandas.DataFrame({"a": [1.0], "name": ["x"]}), [0]),
    "whose parts differ in shape": ([[1.0, 2.0], [3.0]], [0, 1]),
    "X holds something that is no number, such as {}": ([[1.0, {}]], [0]),
    "y has shape (6, 2); one label per example is needed": (ROWS, np.ones((6, 2))),
    "y has 2 labels for 6 examples": (ROWS, [0, 1]),
    "X holds NaN or infinity in 1 of 2 rows": (pandas.DataFrame({"a": [1.0, None]}), [0, 1]),
    "the columns are a, b": (pandas.DataFrame({"a": [1.0], "b": [0]}), "label"),
    "X has no columns with names": (ROWS, "label"),
    "labels of its own": (PLAIN, [0, 1, 0, 1, 1, 0]),
    "must give pairs (example, label)": (Pairs([0, None, 1]), None),
    "a text of 300 characters": (ROWS, ["a" * 300, "b", "b", "b", "b", "b"]),
}


@pytest.mark.parametrize("words", BAD)
def test_bad_data_are_refused_in_one_line(words):
    assert words in complaint(lambda: as_data(*BAD[words]))


def test_a_table_is_divided_at_its_label_column():
    table = pandas.DataFrame({"a": [1.0, 2, 3], "kind": ["x", "y", "x"], "b": [4, 5, 6]})
    data = as_data(table, "kind")
    assert data.X.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert (data.y.tolist(), data.truth.names) == ([-1, 1, -1], ("x", "y"))


def test_an_endless_loader_is_stopped(monkeypatch):
    class Endless(IterableDataset):
        def __iter__(self):
            while True:
                yield torch.zeros(1000), 0

    monkeypatch.setattr("brittle.data.collected.LARGEST_SAMPLE_BYTES", 10**7)
    assert "give a subset" in complaint(lambda: as_data(Endless()))


# Labels


def test_labels_0_and_1_with_one_logit_are_those_of_bce_with_logits(caplog):
    module = nn.Linear(2, 1)
    module.load_state_dict({"weight": torch.tensor([[1.0, 0.0]]), "bias": torch.tensor([-5.0])})  # -5, -3, ...
    y = torch.tensor([0, 0, 0, 1, 1, 0])  # the last one is a mistake
    with caplog.at_level(logging.WARNING, "brittle"):
        found = bt.attacks.MinimumNorm().run(module, (ROWS, y))
    (said,) = caplog.messages
    assert said.startswith("the labels 0 and 1 are read as -1 and +1")
    assert found.norms.tolist() == pytest.approx([5, 3, 1, 1, 3, 0], rel=1e-6)
    loss = nn.functional.binary_cross_entropy_with_logits(module(ROWS)[:, 0], y.float(), reduction="none")
    assert torch.equal(found.norms > 0, loss < np.log(2))


def test_labels_of_two_signs_fit_a_network_with_two_logits():
    module = nn.Linear(2, 2)
    y = torch.tensor([0, 1, 0, 1, 1, 0])
    found, signs = (bt.attacks.MinimumNorm().run(module, (ROWS, each)) for each in (y, 2 * y - 1))
    assert torch.equal(found.norms, signs.norms)


def test_three_classes_do_not_fit_one_logit():
    assert "needs the labels -1 and 1" in complaint(
        lambda: bt.attacks.MinimumNorm().run(nn.Linear(2, 1), (ROWS, [0, 1, 2, 0, 1, 2]))
    )


# Files


def test_texts_as_labels_come_back_from_a_file(tmp_path):
    words = ["b", "c", "a", "a", "b", "c"]
    np.savez(tmp_path / "own.npz", X=ROWS.numpy(), y=np.array(words))
    data = load_data(tmp_path / "own.npz")
    assert (data.truth.names, data.y.tolist()) == (("a", "b", "c"), [1, 2, 0, 0, 1, 2])
    save_data(data, tmp_path / "data.npz")
    again = load_data(tmp_path / "data.npz")
    assert (again.truth.names, again.y.tolist()) == (data.truth.names, data.y.tolist())
    chosen = File(tmp_path / "data.npz", classes=("c", "b")).load()
    assert (chosen.truth.names, chosen.y.tolist()) == (("c", "b"), [1, -1, 1, -1])


def test_a_parquet_table_is_read_as_its_frame(tmp_path):
    table = pandas.DataFrame({"kind": ["x", "y", "x"], "a": [1.0, 2, 3], "b": [4, 5, 6]})
    table.to_parquet(tmp_path / "data.parquet", row_group_size=2)
    data, frame = File(tmp_path / "data.parquet", label="kind").load(), as_data(table, "kind")
    assert torch.equal(data.X, frame.X)
    assert (data.y.tolist(), data.truth.names) == (frame.y.tolist(), frame.truth.names)
    assert "column 'kind' has type" in complaint(lambda: load_data(tmp_path / "data.parquet"))
    assert "the columns are kind, a, b" in complaint(File(tmp_path / "data.parquet", label="c").load)


def test_a_bad_parquet_table_is_refused_in_one_line(tmp_path, monkeypatch):
    path = tmp_path / "data.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    assert "is not a complete .parquet table" in complaint(lambda: load_data(path))
    pandas.DataFrame({"a": [1.0, None], "y": [0, 1]}).to_parquet(path)
    assert "a column has 1 gaps" in complaint(lambda: load_data(path))
    pandas.DataFrame({f"a{place}": np.zeros(10_000) for place in range(20)}).to_parquet(path)  # 1.6 MB from 20 kB
    with monkeypatch.context() as limits:
        limits.setattr("brittle.common.limits.ALWAYS_ALLOWED", 2**20)
        assert "would unpack to too much" in complaint(lambda: load_data(path))
    one = pandas.Categorical.from_codes(np.zeros(100_000, dtype=np.int8), ["x" * 100_000])  # 10 GB of one text
    pandas.DataFrame({"a": np.zeros(100_000), "y": one}).to_parquet(path)
    assert "a label is a text of 100000 characters" in complaint(lambda: load_data(path))


@pytest.fixture
def folder(tmp_path):
    """Two grey pictures of a cat and one of a dog, and one of a dog held out."""
    for name, value in (("train/cat/1", 0), ("train/cat/2", 51), ("train/dog/1", 102), ("test/dog/1", 255)):
        path = tmp_path / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((3, 4), value, dtype=np.uint8)).save(path)
    return tmp_path


def test_a_folder_of_pictures_has_a_class_for_every_folder_in_it(folder):
    data = load_data(folder)
    assert (data.truth.names, data.truth.image, data.shape) == (("cat", "dog"), (3, 4), (1, 3, 4))
    assert data.y.tolist() == [-1, -1, 1]
    assert torch.allclose(data.X[:, 0], torch.tensor([0, 0.2, 0.4], dtype=torch.float64))
    assert (data.y_test.tolist(), data.X_test.tolist()) == ([1], [[1.0] * 12])
    assert load_data(folder / "train").X.shape == (3, 12)


def test_colours_come_before_rows_and_columns(folder):
    red = np.zeros((3, 4, 3), dtype=np.uint8)
    red[..., 0] = 255
    Image.fromarray(red).save(folder / "train/dog/2.png")
    data = load_data(folder)
    assert data.shape == (3, 3, 4)
    assert data.X[3].tolist() == [1.0] * 12 + [0.0] * 24
    assert data.X[1].tolist() == [0.2] * 36  # grey ones have three equal colours


def test_a_palette_with_holes_is_a_picture_like_others(folder):
    palette = Image.fromarray(np.full((3, 4), 7, dtype=np.uint8)).convert("P")
    palette.save(folder / "train/cat/3.png", transparency=b"\x00" * 8)
    assert load_data(folder).shape == (3, 3, 4)


def test_bad_folders_are_refused_in_one_line(folder):
    assert "has no pictures" in complaint(lambda: load_data(folder / "train/cat"))
    Image.fromarray(np.zeros((5, 4), dtype=np.uint8)).save(folder / "train/cat/3.png")
    assert "all of one size are needed" in complaint(lambda: load_data(folder))
    (folder / "train/cat/3.png").write_bytes(b"no picture")
    assert complaint(lambda: load_data(folder)).endswith("3.png: is no picture that can be read")
    noise = np.random.default_rng(0).integers(0, 255, (3, 4), dtype=np.uint8)
    Image.fromarray(noise).save(folder / "train/cat/3.png")
    (folder / "train/cat/3.png").write_bytes((folder / "train/cat/3.png").read_bytes()[:50])
    assert "3.png: is a damaged picture" in complaint(lambda: load_data(folder))
    (folder / "train/cat/3.png").unlink()
    (folder / "test/cow").mkdir()
    assert "there is no class of that name to train on" in complaint(lambda: load_data(folder))


# The audit in Python


def test_one_remedy_is_a_word_and_not_its_letters():
    with pytest.raises(InputError, match=r"remedy is 'weight'; it must be one of .*, or none"):
        bt.audit(nn.Linear(2, 1), ROWS, [0, 1, 0, 1, 1, 0], remedies="weight")
    found = bt.audit(nn.Linear(2, 1), ROWS, [0, 1, 0, 1, 1, 0], remedies="none", examples=1)
    assert found.remedies == ()


@pytest.fixture(scope="module")
def found():
    """An audit of a linear classifier of texts."""
    X, y = FLOWERS[TWO], WORDS[TWO]
    return bt.audit(LogisticRegression().fit(X, y), X, y, budget=300, examples=8, remedies="none")


def test_an_audit_writes_its_own_page(found, tmp_path):
    found.report(tmp_path / "audit.html")
    assert found.verdict.split(":")[0] in (tmp_path / "audit.html").read_text()
    assert "the page is HTML" in complaint(lambda: found.report(tmp_path / "audit.pdf"))
    assert not {"model", "data"} & set(found.to_json())


def test_an_audit_is_a_frame_with_a_row_for_every_example(found):
    frame = found.to_frame()
    assert frame["example"].tolist() == found.vulnerability.examples.tolist()
    assert set(frame["label"]) == {"versicolor", "virginica"}
    reached = frame.iloc[found.vulnerability.free.rows.tolist()]
    assert reached["free"].tolist() == found.vulnerability.free.norms.tolist()
    proved = frame.dropna()
    assert len(proved) > 0
    assert (proved["lower"] <= proved["free"] * (1 + 1e-9)).all()


def test_results_are_frames_and_tables_for_latex(found):
    bounds = bt.certificates.Lipschitz().bound(nn.Linear(2, 1), (ROWS, [0, 1, 0, 1, 1, 0]))
    assert bounds.to_frame()["lower"].tolist() == bounds.lower.tolist()
    assert bounds.to_frame()["status"].tolist() == [str(each) for each in bounds.status]
    summary = bt.data.summary(Data(ROWS, [0, 1, 0, 1, 1, 0]))
    assert summary.to_frame().loc[0, "examples"] == 6
    assert "mean norm & " in summary.to_latex()
    assert found.to_latex().splitlines()[2:5:2] == [
        r"radius & median & examples \\",
        rf"anywhere & {found.vulnerability.free.median:.6g} & {len(found.vulnerability.free.rows)} \\",
    ]


def test_the_room_of_reports_offers_what_it_writes():
    assert {"write_audit_page", "write_audit_pictures", "draw_sandwich"} <= set(bt.report.__all__)


# The command line

ANSWERED = {  # before PyTorch is loaded
    "certify --help": "Usage",
    "train --help": "Options of --regime",
    "audit --help": "--judge",
    "check --help": "--sweep",
    "reproduce --help": "--preset",
    "certify --bogus": "No such option: --bogus",
    "certify gone.npz --data gone.npz": "gone.npz: no such file",
    "attack empty.npz --data gone.csv": "gone.csv: no such file",
    "attack empty.txt --data empty.npz": "networks live in .npz, .pt, .safetensors, .onnx, .pt2 files",
    "attack empty.npz --data empty.txt": "folders of pictures are read",
    "attack empty.npz --data empty.npz --attack pgd --budget -1": "budget is -1.0; it must be a positive",
    "attack empty.npz --data empty.npz --attack pgd --starts 3": "--starts does not belong to the attack pgd",
    "attack empty.npz --data empty.npz --subspace up": "--subspace is 'up'; it must be on, off or free",
    "audit empty.npz --data empty.npz --report a.pdf": "--report is a.pdf; it must end in .html",
    "audit empty.npz --data empty.npz --judge fair": "--judge is 'fair'; it must be certified or attacked",
    "audit empty.npz --data empty.npz --remedy prayer": "--remedy is 'prayer'; it must be one of",
    "audit empty.npz": "--data is missing",
    "audit empty.npz --data empty.npz --budget -1": "--budget is -1.0; it must be a positive finite number",
    "harden empty.npz --data empty.npz --out a.h5": "it must end in .npz or .pt or .safetensors or .onnx or .pt2",
    "train --setting sphere": "the setting sphere needs --dim",
    "train --setting line7 --regime descend": "--regime is 'descend'; it must be one of flow",
    "train --setting line7 --loss hinge": "--loss is 'hinge'; it must be one of",
    "reproduce all --preset slow": "--preset is 'slow'; it must be smoke, quick or full",
    "check vardi2022/4.1 --net empty.npz": "--net is given without --data",
    "data show gone.npz": "gone.npz: no such file",
}
ASK = """
import contextlib, io, json, sys
from brittle.cli import main
said = {}
for command in json.load(sys.stdin):
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        code = main(command.split())
    said[command] = code, told.getvalue(), "torch" in sys.modules
json.dump(said, sys.stdout)
"""


def test_mistakes_and_help_are_answered_without_pytorch(tmp_path):
    for name in ("empty.npz", "empty.txt"):
        (tmp_path / name).touch()
    asked = json.dumps([*ANSWERED, "data show empty.npz"])
    ask = [sys.executable, "-c", ASK]
    answer = subprocess.run(ask, input=asked, capture_output=True, text=True, cwd=tmp_path, check=True)
    *rest, last = (said := json.loads(answer.stdout)).items()
    assert {each: words for each, (_, words, _) in rest if ANSWERED[each] not in " ".join(words.split())} == {}
    assert {each for each, (code, _, _) in rest if code != (0 if each.endswith("--help") else 2)} == set()
    assert {each for each, (_, _, loaded) in rest if loaded} == set()
    assert last[1][2], "a file that is opened needs it: this test would see it"
    assert all(words.count("\n") == 1 for each, (_, words, _) in said.items() if not each.endswith("--help"))


def written(path, data: Data) -> str:
    save_data(data, path)
    return str(path)


def test_labels_0_and_1_are_said_on_the_command_line(tmp_path, capsys):
    network = bt.networks.as_network(nn.Linear(2, 1))
    bt.networks.save_network(network, tmp_path / "net.npz")
    path = written(tmp_path / "data.npz", Data(ROWS, [0, 1, 0, 1, 1, 0]))
    assert main(["attack", str(tmp_path / "net.npz"), "--data", path, "--json", "-"]) == 0
    seen = capsys.readouterr()
    assert json.loads(seen.out)["examples"] == 6
    assert seen.err.startswith("the labels 0 and 1 are read as -1 and +1")


def test_the_data_say_the_shape_of_a_module(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made = "nn.Sequential(nn.Conv2d(1, 1, 2), nn.ReLU(), nn.Flatten(), nn.Linear(9, 2))"
    (tmp_path / "own_module.py").write_text(f"from torch import nn\n\n\ndef Net():\n    return {made}\n")
    module = nn.Sequential(nn.Conv2d(1, 1, 2), nn.ReLU(), nn.Flatten(), nn.Linear(9, 2))
    torch.save(module.state_dict(), "net.pt")
    pictures = torch.rand(3, 1, 4, 4)
    written("data.npz", Data(pictures, module(pictures).argmax(1)))
    assert main(["attack", "net.pt", "--data", "data.npz", "--architecture", "own_module:Net", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["dim"] == 16
    assert main(["attack", "net.pt", "--data", "data.npz"]) == 2
    assert capsys.readouterr().err != ""


def test_a_network_that_cannot_be_certified_is_refused_before_the_work(tmp_path, capsys):
    smooth = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    with warnings.catch_warnings(action="ignore"):
        torch.jit.trace(smooth, torch.randn(2, 2)).save(str(tmp_path / "net.pt"))
    path = written(tmp_path / "data.npz", Data(ROWS, [-1, 1, -1, 1, 1, -1]))
    assert main(["audit", str(tmp_path / "net.pt"), "--data", path, "--fail-below", "1", "--budget", "9999"]) == 2
    assert "cannot be certified here; use --judge attacked" in capsys.readouterr().err


def test_errors_name_the_way_out(tmp_path, capsys):
    torch.save(nn.Sequential(nn.BatchNorm1d(2), nn.LayerNorm(2), nn.LSTM(2, 2)).state_dict(), tmp_path / "net.pt")
    path = written(tmp_path / "data.npz", Data(ROWS, [-1, 1, -1, 1, 1, -1]))
    assert main(["attack", str(tmp_path / "net.pt"), "--data", path]) == 2
    assert "--architecture MODULE:CLASS" in capsys.readouterr().err


# labels and examples in other clothes


def test_rows_with_a_single_one_are_class_numbers():
    hot = np.eye(3)[KINDS]
    for y in (hot, torch.from_numpy(hot), hot.astype(bool), hot.astype(int).tolist()):
        assert (as_data(FLOWERS, y).y.numpy() == KINDS).all()
    assert "y has shape (150, 3); one label per example is needed" in complaint(lambda: as_data(FLOWERS, hot / 2))
    assert "y has shape (150, 3)" in complaint(lambda: as_data(FLOWERS, np.ones((150, 3))))


class Named(Dataset):
    """Every example is a dictionary, or has something behind its label."""

    def __init__(self, *keys: str) -> None:
        self.keys = keys

    def __len__(self) -> int:
        return len(FLOWERS)

    def __getitem__(self, place: int):
        parts = (torch.from_numpy(FLOWERS[place]), int(KINDS[place]), place)
        return dict(zip(self.keys, parts, strict=True)) if self.keys else parts


@pytest.mark.parametrize("keys", [(), ("image", "label", "id"), ("x", "target", "place")])
@pytest.mark.parametrize("loaded", [False, True])
def test_data_sets_may_name_their_parts_or_give_more(keys, loaded):
    given = DataLoader(Named(*keys), batch_size=7) if loaded else Named(*keys)
    data = as_data(given)
    assert (data.X.numpy() == FLOWERS).all()
    assert (data.y.numpy() == KINDS).all()


@pytest.mark.parametrize("loaded", [False, True])
def test_a_dictionary_that_leaves_open_what_is_what_is_refused(loaded):
    given = Named("left", "right", "id")
    words = complaint(lambda: as_data(DataLoader(given) if loaded else given))
    assert "an example is a dictionary of left, right, id; one of x, image" in words


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_a_table_may_be_divided_by_any_mark(mark, suffix, tmp_path):
    lines = [["a", '"b, c"', "kind"], ["1.5", "2", "x"], ["3", "4", "y"]]
    path = tmp_path / f"table{suffix}"
    path.write_text("\n".join(mark.join(cells) for cells in lines) + "\n")
    data = load_data(path)
    assert data.X.tolist() == [[1.5, 2], [3, 4]]
    assert data.truth.features == ("a", "b, c")
    path.write_text(f"1,5{mark}2{mark}0\n")
    if mark != ",":  # a comma inside a number is never guessed at
        assert "column 0 holds '1,5'" in complaint(lambda: File(path, header=False).load())


def test_labels_that_the_network_has_no_class_for_are_named():
    module = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    words = complaint(lambda: bt.attacks.MinimumNorm().run(module, (FLOWERS, KINDS + 1)))
    assert "needs class numbers from 0 to 2; here they are 1 to 3: subtract 1" in words
    words = complaint(lambda: bt.attacks.MinimumNorm().run(module, (FLOWERS, KINDS + 5)))
    assert words.endswith("here they are 5 to 7")
