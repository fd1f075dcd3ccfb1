"""The truth set: built the same from its seeds, kept, refused where it was changed, and a fair judge."""

import json
import math
from dataclasses import replace

import pytest
import torch

from brittle import InputError
from brittle.attacks import MinimumNorm
from brittle.certificates import Dual
from brittle.cli import main
from brittle.data import Data
from brittle.networks import TwoLayer, load_network
from brittle.truth import (
    RECIPES,
    TruthProblem,
    attack_scores,
    bound_scores,
    check_proofs,
    chosen,
    load_problem,
    make_problem,
    measure_attack,
    measure_certificate,
    query,
    read_stated_bounds,
    save_problem,
    write_queries,
)
from brittle.truth.problems import digest, load_known_digests, on_grid
from brittle.truth.scored import MeasuredMethod


def line(radii=(1.0, 2.0)):
    """N(x) = φ(x) - φ(-x): the radius of x is |x|."""
    network = TwoLayer(
        torch.tensor([[1.0], [-1.0]]).double(), torch.zeros(2).double(), torch.tensor([1.0, -1.0]).double()
    )
    x = torch.tensor(radii).double()
    data = Data(x[:, None], torch.ones(len(radii)).double())
    name = digest(network, data)
    return TruthProblem("line", "by hand", network, data, x, x, 1e-6, 0, name, False, 0.0, proved=0 * x)


@pytest.fixture(scope="module")
def small():
    (recipe,) = chosen(["random-5x20"])
    return make_problem(replace(recipe, examples=6))


def test_every_recipe_has_a_digest_and_the_set_is_large():
    assert load_known_digests().keys() == {recipe.name for recipe in RECIPES}
    assert sum(recipe.examples for recipe in RECIPES) >= 500


@pytest.mark.parametrize("name", ["random-5x20", "sphere-kkt-1000", "deep-6"])
def test_seeds_give_the_known_instances(name):
    """On this processor, at least: weights are rounded to 12 bits so that others' last bits do not matter."""
    (recipe,) = chosen([name])
    network, data = recipe.build()
    again, examples = recipe.build()
    assert digest(network, data) == digest(again, examples)
    assert len(data) == recipe.examples
    assert float(network.margins(data.X, data.y).min()) > 0


def test_the_grid_swallows_the_last_bits():
    values = torch.randn(1000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    moved = values * (1 + 1e-13)
    assert torch.equal(on_grid(values, 12), on_grid(moved, 12))
    assert float((on_grid(values, 12) - values).abs().max()) <= 2.0**-13 * 4
    assert not on_grid(torch.zeros(3).double(), 12).any()


def test_radii_are_those_of_brute_force_in_the_plane():
    problem = line()
    found = MinimumNorm().run(problem.network, problem.data)
    torch.testing.assert_close(found.norms, problem.upper, rtol=1e-6, atol=0)


def test_a_problem_is_kept_and_read_again(small, tmp_path):
    save_problem(small, tmp_path)
    again = load_problem(tmp_path, small.name)
    assert torch.equal(again.lower, small.lower)
    assert torch.equal(again.data.X, small.data.X)
    assert {**again.to_json(), "checksum": ""} == small.to_json()
    save_problem(again, tmp_path)
    assert load_problem(tmp_path, small.name).to_json() == again.to_json()


def test_every_radius_is_proved_to_the_gap_and_again_by_the_checker(small, tmp_path):
    save_problem(small, tmp_path)
    problem = load_problem(tmp_path, small.name)
    assert problem.proved_to_gap == len(problem.data)
    assert bool((problem.proved < problem.lower).all())
    assert check_proofs(problem, tmp_path) == (6, 6)
    higher = problem.proved.clone()
    higher[2] *= 1 + 1e-9
    assert check_proofs(replace(problem, proved=higher), tmp_path) == (6, 5)
    assert check_proofs(replace(problem, proved=0 * higher), tmp_path) == (0, 0)


def test_deep_networks_have_a_file_that_the_checker_reads(tmp_path):
    (recipe,) = chosen(["deep-6"])
    problem = make_problem(replace(recipe, examples=2))
    save_problem(problem, tmp_path)
    assert check_proofs(load_problem(tmp_path, recipe.name), tmp_path) == (2, 2)
    (tmp_path / recipe.name / "proof.network.npz").write_bytes(b"no network")
    assert check_proofs(problem, tmp_path) == (2, 0)


def test_what_is_not_proved_to_the_gap_is_counted():
    problem = replace(line((1.0, 2.0, 4.0)), proved=torch.tensor([1 / (1 + 1e-7), 1.9, 0.0], dtype=torch.float64))
    assert problem.proved_to_gap == 1
    assert problem.proved_gaps[1:].tolist() == pytest.approx([2 / 1.9 - 1, math.inf])


def test_a_changed_proof_is_refused(small, tmp_path):
    save_problem(small, tmp_path)
    path = tmp_path / small.name / "proof.npz"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="is not the proof"):
        load_problem(tmp_path, small.name)
    path.unlink()
    with pytest.raises(InputError, match="is not the proof"):
        load_problem(tmp_path, small.name)


def test_changed_files_are_refused(small, tmp_path):
    save_problem(small, tmp_path)
    record = tmp_path / small.name / "problem.json"
    content = json.loads(record.read_text())
    record.write_text(json.dumps({**content, "lower": content["upper"], "upper": content["lower"]}))
    with pytest.raises(InputError, match="in order"):
        load_problem(tmp_path, small.name)
    record.write_text(json.dumps({**content, "proved": [2 * each for each in content["upper"]]}))
    with pytest.raises(InputError, match="none above its upper"):
        load_problem(tmp_path, small.name)
    record.write_text(json.dumps({**content, "digest": "0" * 64}))
    with pytest.raises(InputError, match="not those whose radii"):
        load_problem(tmp_path, small.name)
    record.write_text("[]")
    with pytest.raises(InputError, match="no record"):
        load_problem(tmp_path, small.name)
    with pytest.raises(InputError, match="holds no problem"):
        load_problem(tmp_path, "deep-6")


def test_an_attack_is_scored_by_its_true_excess():
    problem = line((1.0, 2.0, 4.0))
    norms = torch.tensor([1.0, 2.2, math.inf]).double()
    score = attack_scores([MeasuredMethod(problem, norms, 1.0)])[-1]
    assert score.flipped == pytest.approx(2 / 3)
    assert score.mean_excess == pytest.approx(0.05)
    assert score.worst_excess == pytest.approx(0.1)
    assert score.within == pytest.approx(1 / 3)
    assert score.impossible == 0
    shorter = attack_scores([MeasuredMethod(problem, norms * 0.9, 1.0)])[-1]
    assert shorter.impossible == 2


def test_unsound_bounds_are_counted():
    problem = line((1.0, 2.0, 4.0))
    bounds = torch.tensor([0.5, 2.1, math.nan]).double()
    score = bound_scores([MeasuredMethod(problem, bounds, 1.0)])[-1]
    assert (score.given, score.unsound, score.within) == (2, 1, 0.0)
    assert score.worst_share == 0.5


def test_our_own_methods_are_sound_on_it(small):
    attack = attack_scores([measure_attack(MinimumNorm(), small)])[-1]
    bounds = bound_scores([measure_certificate(Dual(), small)])[-1]
    assert attack.flipped == 1
    assert attack.impossible == bounds.unsound == 0
    assert 0 < bounds.worst_share <= bounds.mean_share <= 1


def test_bounds_of_a_file(tmp_path):
    problem = line()
    table = tmp_path / "mine.csv"
    table.write_text("problem,example,lower\nline,1,1.5\n")
    (measured,) = read_stated_bounds(table, [problem])
    assert measured.values.isnan().tolist() == [True, False]
    listed = tmp_path / "mine.json"
    listed.write_text('{"line": [0.5, 1.5]}')
    assert read_stated_bounds(listed, [problem])[0].values.tolist() == [0.5, 1.5]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("problem,example,lower\nother,0,1\n", "'other' is not in the folder"),
        ("problem,example,lower\nline,7,1\n", "examples 0 to 1, not 7"),
        ("problem,example,lower\nline,0,-1\n", "no radius"),
        ("problem,example,lower\nline,0,nan\n", "no radius"),
        ("a,b\n1,2\n", "columns problem, example, lower are needed"),
        ("problem,example,lower\nline,0,9\nline,0,1\n", "line 3: line, example 0 is there twice"),
        ("problem,example,lower\nline,0\n", "line 2: '0' and None must be an example's number and a radius"),
        ("problem,example,lower\nline,zero,1\n", "line 2: 'zero' and '1' must be"),
        ("problem,example,lower\n", "there are no bounds in it"),
        ("", "columns problem, example, lower are needed"),
        ("problem,example,lower\nline,0,\0\n", "mine.csv"),
    ],
)
def test_bad_files_of_bounds_are_one_line(tmp_path, text, words):
    table = tmp_path / "mine.csv"
    table.write_text(text)
    with pytest.raises(InputError, match=words):
        read_stated_bounds(table, [line()])


def test_a_table_of_a_spreadsheet_is_read(tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("problem,example,lower\r\nline,0,.5\r\n", encoding="utf-8-sig")
    assert read_stated_bounds(table, [line()])[0].values[0] == 0.5


def test_queries_ask_for_a_flip_within_the_radius(tmp_path):
    problem = line((1.0, 2.0**-20))
    text = query(problem, 1, 0.5)
    assert "(- 1.0)" in query(replace(problem, data=Data(-problem.data.X, problem.data.y)), 0, 0.5)
    assert "(declare-const X_0 Real)" in text
    assert "(- X_0 0.00000095367431640625)" in text
    assert "(assert (<= Y_0 0))" in text
    assert ") 0.25))" in text
    assert write_queries(problem, tmp_path) == 4
    rows = (tmp_path / "line" / "vnnlib" / "instances.csv").read_text().splitlines()
    assert rows[0] == "../network.onnx,0-unsat.vnnlib,unsat"


def test_the_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["truth", "make", "set", "--only", "random-10x40", "--onnx", "--json", "make_problem.json"]) == 0
    content = json.loads((tmp_path / "make_problem.json").read_text())
    assert content["instances"] == content["proved_to_gap"] == 30
    problem = load_problem(tmp_path / "set", "random-10x40")
    onnx = load_network(tmp_path / "set" / "random-10x40" / "network.onnx")
    torch.testing.assert_close(
        onnx.logits(problem.data.X).double(), problem.network.logits(problem.data.X), rtol=1e-5, atol=1e-5
    )
    assert main(["truth", "list", "set", "--json", "-"]) == 0
    capsys.readouterr()
    assert main(["truth", "check", "set", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["again"] == 30
    assert main(["truth", "score", "set", "--attack", "pgd", "--budget", "1", "--json", "-"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert scores[-1]["problem"] == "all"
    too_large = {"random-10x40": (problem.upper * 1.01).tolist()}
    (tmp_path / "mine.json").write_text(json.dumps(too_large))
    assert main(["truth", "score", "set", "--bounds", "mine.json"]) == 1
    assert "30 bounds lie above a flip" in capsys.readouterr().err
    assert main(["truth", "score", "set"]) == 2
    assert main(["truth", "score", "nowhere", "--method", "dual"]) == 2
    assert main(["truth", "make", "set", "--only", "unknown"]) == 2
