"""brittle data: what it writes, prints and refuses."""

import json
import subprocess
import sys

import pytest
import torch

from brittle import InputError
from brittle.cli import main
from brittle.cli.sampling import SETTINGS
from brittle.data import Clusters, Digits, File, Gaussian, Sphere, Subspace, load_data


def run(capsys, *arguments: str) -> dict:
    """The JSON that a command prints."""
    assert main([*arguments, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments: str) -> str:
    """The one line of a command that ends with exit code 2."""
    assert main(list(arguments)) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.count("\n") == 1
    return seen.err


SAMPLES = {
    "sphere": ("--dim 1000000000 --examples 20 --in-span", "radius"),
    "gaussian": ("--dim 30 --variance 2 --examples 20", "noise"),
    "orthogonal": ("--dim 30 --examples 20", "coherence"),
    "almost-orthogonal": ("--dim 30 --coherence 0.5 --examples 20", "coherence"),
    "clusters": (
        "--dim 1000000000 --clusters 3 --noise 0.5 --balance 0.3 --random-means --examples 20 --test 4 --in-span",
        "means cluster cluster_test mean_labels noise coherence",
    ),
    "subspace": ("--dim 30 --codimension 20 --inner gaussian --examples 20", "basis complement codimension"),
    "line7": ("", "basis complement"),
    "grid25": ("", "basis complement offset"),
    "digits": ("--classes 3,8 --examples 100 --test all --downsample 4 --pca 5 --centred", "basis image"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_setting_can_be_sampled_and_written(name, capsys, tmp_path):
    options, truth = SAMPLES[name]
    path = tmp_path / "data.npz"
    printed = run(capsys, "data", "sample", "--setting", name, *options.split(), "--seed", "1", "--out", str(path))
    data = load_data(path)
    assert printed["setting"] == name
    assert printed["examples"] == len(data)
    assert printed["dim"] == data.dim
    for field in truth.split():
        assert getattr(data.truth, field) is not None
        assert field in printed["truth"]
    again = run(capsys, "data", "show", str(path))
    assert {key: again[key] for key in again if key != "file"} == {
        key: printed[key] for key in printed if key not in ("setting", "seed")
    }


def test_the_seed_decides(capsys, tmp_path):
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        run(capsys, "data", "sample", "--setting", "sphere", "--dim", "5", "--examples", "4", "--seed", seed,
            "--out", str(tmp_path / f"{name}.npz"))  # fmt: skip
    a, b, c = (load_data(tmp_path / f"{name}.npz").X for name in "abc")
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_a_table_is_read_with_its_options(capsys, tmp_path):
    table = tmp_path / "trees.csv"
    table.write_text("kind,height\noak,3\nelm,4\nash,5\n")
    printed = run(capsys, "data", "sample", "--setting", "file", "--path", str(table), "--label", "kind",
                  "--classes", "elm,oak")  # fmt: skip
    assert printed["labels"] == {"-1": 1, "1": 1}


BAD = [
    ("", "--setting is missing"),
    ("--dim 3", "--dim needs --setting"),
    ("--setting spher", "--setting is 'spher'; it must be one of sphere, "),
    ("--setting given", "--setting is 'given'"),
    ("--setting sphere --examples 3", "the setting sphere needs --dim"),
    ("--setting sphere --dim 3", "give it the number of examples"),
    ("--setting sphere --dim 3 --examples 2 --noise 1", "--noise does not belong to the setting sphere"),
    ("--setting line7 --dim 3", "--dim does not belong to the setting line7, which takes no options"),
    ("--setting sphere --dim 1000000000 --examples 200", "sample in the span"),
    ("--setting sphere --dim 3 --examples 2 --test some", "--test is 'some'"),
    ("--setting sphere --dim 3 --examples 2 --centred", "--centred goes with --pca"),
    ("--setting sphere --dim 3 --examples 2 --downsample 2", "not pictures"),
    ("--setting digits --classes 3", "--classes is '3'; give two labels"),
    ("--setting digits --classes 3,x", "two different class numbers are needed"),
    ("--setting subspace --dim 9 --codimension 3 --inner cube --examples 2", "--inner is 'cube'"),
    ("--setting file --path absent.npz", "absent.npz: no such file"),
    ("--setting sphere --dim three", "--dim is 'three'; it must be a valid integer"),
]


@pytest.mark.parametrize(("options", "words"), BAD, ids=[words for _, words in BAD])
def test_bad_options_end_in_one_line_and_write_nothing(options, words, capsys, tmp_path):
    out = tmp_path / "data.npz"
    assert words in refused(capsys, "data", "sample", *options.split(), "--out", str(out))
    assert not out.exists()


@pytest.mark.parametrize("out", ["data.csv", "missing/data.npz"])
def test_a_bad_destination_is_noticed(out, capsys, tmp_path):
    options = ["--setting", "line7", "--out", str(tmp_path / out)]
    assert out in refused(capsys, "data", "sample", *options)


def test_a_bad_file_ends_in_one_line(capsys, tmp_path):
    path = tmp_path / "data.npz"
    path.write_bytes(b"nothing of the kind")
    assert f"{path}: is not a complete .npz file" in refused(capsys, "data", "show", str(path))


def test_the_list_says_what_is_where(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("BRITTLE_DATA", str(tmp_path))
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "train-images-idx3-ubyte.gz").write_bytes(b"another file")
    (tmp_path / "fashion-mnist").mkdir()
    printed = run(capsys, "data", "list")
    assert printed["folder"] == str(tmp_path)
    assert {held["name"]: held["state"] for held in printed["sets"]} == {
        "mnist": "another file in its place",
        "fashion-mnist": "absent",
        "cifar10": "absent",
    }
    assert main(["data", "list"]) == 0
    assert "comes with scikit-learn" in capsys.readouterr().out


def test_an_unknown_set_is_not_fetched(capsys):
    assert "'imagenet' is not a data set that can be fetched" in refused(capsys, "data", "fetch", "imagenet")


def test_settings_come_from_their_names():
    chosen = SETTINGS.chosen
    assert chosen("sphere", {"dim": 3}) == Sphere(3)
    assert chosen("clusters", {"dim": 9, "noise": 0.1}) == Clusters(9, noise=0.1)
    assert chosen("subspace", {"dim": 9, "codimension": 4, "inner": "gaussian"}) == Subspace(9, 4, Gaussian(5))
    assert chosen("digits", {"classes": "3,8"}) == Digits((3, 8))
    table = {"path": "a.csv", "label": "2", "classes": "no,yes"}
    assert chosen("file", table) == File("a.csv", 2, None, ("no", "yes"))
    with pytest.raises(InputError, match="needs --dim"):
        chosen("sphere", {})


def test_sampling_loads_nothing_that_it_does_not_need():
    code = "import sys, brittle.cli.data; print(*{'sklearn', 'scipy', 'pooch', 'matplotlib'} & set(sys.modules))"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.split() == []
