"""`brittle theorems` and `brittle check`: what they print, write and return."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from brittle.cli import main
from brittle.data import Subspace, save_data
from brittle.networks import Kaiming, load_network, save_network
from brittle.theorems import THEOREMS, find

FEW = ("melamed2023/R3.1", "melamed2023/R3.1-printed", "melamed2023/B.1")


@pytest.fixture
def few(monkeypatch):
    """`check all` on three theorems."""
    monkeypatch.setattr("brittle.cli.checking.THEOREMS", {identity: THEOREMS[identity] for identity in FEW})


@pytest.fixture
def files(tmp_path, rng):
    data = Subspace(dim=300, codimension=250).sample(4, rng)
    save_data(data, tmp_path / "data.npz")
    save_network(Kaiming().draw(300, 6, rng), tmp_path / "net.npz")
    return tmp_path


def printed_json(capsys) -> dict:
    return json.loads(capsys.readouterr().out)


def test_theorems_lists_every_id(capsys):
    assert main(["theorems", "--json", "-"]) == 0
    rows = printed_json(capsys)["theorems"]
    assert [row["id"] for row in rows] == list(THEOREMS)
    assert all(row["claim"] and row["applies_to"] and row["paper"] for row in rows)


def test_theorems_of_one_paper(capsys):
    assert main(["theorems", "--paper", "wang2022"]) == 0
    out = capsys.readouterr().out
    assert "wang2022/B.5" in out
    assert "melamed2023" not in out
    assert main(["theorems", "--paper", "wang"]) == 2
    assert "wang2022" in capsys.readouterr().err


def test_a_confirmed_theorem_exits_with_zero(capsys):
    assert main(["check", "melamed2023/B.1", "--json", "-"]) == 0
    content = printed_json(capsys)
    assert content["verdict"] == "confirmed"
    assert {"hypotheses", "bound", "measured", "advice", "id"} <= set(content)
    assert set(content["hypotheses"][0]) >= {"name", "value", "threshold", "slack"}


def test_a_violated_theorem_exits_with_one(capsys):
    assert main(["check", "melamed2023/R3.1-printed"]) == 1
    assert "as printed it is false" in " ".join(capsys.readouterr().out.split())


def test_the_same_seed_gives_the_same_numbers(capsys):
    seen = []
    for seed in ("3", "3", "4"):
        main(["check", "melamed2023/C.1", "--seed", seed, "--json", "-"])
        seen.append(printed_json(capsys)["measured"])
    assert seen[0] == seen[1] != seen[2]


def test_trials_are_reported_with_their_interval(capsys):
    assert main(["check", "melamed2023/B.1", "--trials", "1000", "--json", "-"]) == 0
    trials = printed_json(capsys)["trials"]
    low, high = trials["confidence_interval"]
    assert low <= trials["failure_rate"] <= high
    assert trials["trials"] == 1000
    assert trials["failure_rate"] <= trials["promised_failure_rate"]


def test_your_own_files(files, capsys):
    own = ["--net", str(files / "net.npz"), "--data", str(files / "data.npz")]
    assert main(["check", "melamed2023/4.1", *own, "--json", "-"]) == 0
    assert printed_json(capsys)["verdict"] == "confirmed"
    assert main(["check", "melamed2023/5.1", *own, "--json", "-"]) == 0
    content = printed_json(capsys)
    assert content["verdict"] == "hypotheses_fail"
    assert "codimension beside 32(m-1)ln(m²d)" in content["advice"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["melamed2023/51"], "did you mean melamed2023/5.1"),
        (["melamed2023/4.1", "--net", "net.npz"], "--data"),
        (["melamed2023/4.1", "--data", "absent.npz"], "absent.npz"),
        (["melamed2023/4.1", "--data", "x.npz", "--trials", "5"], "--trials"),
        (["melamed2023/4.1", "--set", "colour=3"], "codimension"),
        (["melamed2023/4.1", "--set", "dim"], "NAME=VALUE"),
        (["melamed2023/4.1", "--set", "dim=1.5"], "whole number"),
        (["melamed2023/4.1", "--set", "dim=many"], "whole number"),
        (["melamed2023/5.1", "--solve-for", "colour"], "codimension, width"),
        (["all", "--trials", "3"], "check all"),
        (["all", "--sweep", "dim=3"], "check all"),
        (["melamed2023/4.1", "--sweep", "colour=3"], "no field 'colour'; it has dim, codimension"),
        (["melamed2023/4.1", "--sweep", "dim=100,many"], "--sweep dim=many: a whole number is needed"),
        (["melamed2023/4.1", "--sweep", "dim=100,"], "--sweep dim=: a whole number is needed"),
        (["melamed2023/4.1", "--sweep", "dim"], "NAME=VALUE"),
        (["melamed2023/4.1", "--sweep", "dim=9", "--sweep", "dim=8"], "given twice"),
        (["melamed2023/R3.1", "--sweep", "dims=9,8"], "a list already"),
        (["melamed2023/4.1", "--sweep", "dim=9", "--trials", "5"], "--sweep"),
        (["melamed2023/4.1", "--csv", "a.csv"], "--sweep"),
        (["melamed2023/4.1", "--sweep", "codimension=9000"], "no combination has an instance: codimension is 9000"),
        (["vardi2022/2.1", "--set", "logistic=perhaps"], "true or false"),
        (["melamed2023/A.2", "--fact", "steps=1"], "give --net"),
        (["melamed2023/A.2", "--data", "x.npz", "--start", "y.npz"], "--start is given without --net"),
        (["melamed2023/A.2", "--data", "x.npz", "--fact", "steps=few"], "--fact steps=few: a number is needed"),
        (["no_such_module:Theorem"], "the theorem no_such_module:Theorem cannot be imported"),
        (["brittle.data:Sphere"], "no dataclass that extends Theorem"),
        (["brittle.theorems:Theorem"], "no dataclass that extends Theorem"),
        (["brittle.theorems.melamed2023.gradient:WithDecay"], "has no id"),
    ],
)
def test_mistakes_end_in_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("net.npz", "x.npz", "y.npz"):
        Path(name).touch()
    assert main(["check", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_solving_for_a_size(capsys):
    arguments = ["--solve-for", "codimension", "--set", "dim=12000", "--set", "width=20", "--json", "-"]
    assert main(["check", "melamed2023/5.1", *arguments]) == 0
    content = printed_json(capsys)
    assert content["least"] == 9354
    assert content["given"] == {"dim": 12000, "width": 20}


def test_settings_change_the_default_instance(capsys):
    assert main(["check", "melamed2023/B.1", "--set", "dim=64", "--set", "deviation=2", "--json", "-"]) == 0
    exact = next(row for row in printed_json(capsys)["bound"] if row["name"].startswith("exact"))
    assert exact["threshold"] == pytest.approx(torch.exp(torch.tensor(-4.0)).item())


def test_all_lists_what_is_known_to_be_wrong_apart_and_forgives_it(few, capsys, tmp_path):
    file = tmp_path / "all.json"
    assert main(["check", "all", "--json", str(file)]) == 0
    content = json.loads(file.read_text())
    assert [result["id"] for result in content["results"]] == list(FEW)
    assert content["counts"]["violated"] == 0
    assert content["counts_as_printed"]["violated"] == 1
    standing, apart = capsys.readouterr().out.split("known to be wrong as printed")
    assert "melamed2023/B.1" in standing
    assert "melamed2023/R3.1-printed" not in standing
    assert "melamed2023/R3.1-printed" in apart


def test_all_fails_on_a_claim_that_should_hold(few, monkeypatch):
    monkeypatch.setattr(type(find("melamed2023/R3.1-printed")), "flaw", "")
    assert main(["check", "all", "--json", "-"]) == 1


def test_the_index_page_is_written_from_the_theorems(few, tmp_path):
    results, page = tmp_path / "all.json", tmp_path / "theorems.md"
    main(["check", "all", "--json", str(results)])
    assert main(["theorems", "--markdown", str(page), "--results", str(results)]) == 0
    text = page.read_text()
    assert all(f"### {identity}\n" in text for identity in THEOREMS)
    assert "| melamed2023/R3.1-printed |" in text
    assert "**violated**" in text
    assert "not run" in text


def test_the_index_page_refuses_other_files(tmp_path, capsys):
    (tmp_path / "other.json").write_text("{}")
    assert main(["theorems", "--markdown", str(tmp_path / "a.md"), "--results", str(tmp_path / "other.json")]) == 2
    assert "check all" in capsys.readouterr().err


def test_beyond_its_hypotheses_a_theorem_is_evaluated_on_request(capsys):
    few = ["check", "vardi2022/C.5", "--set", "dim=2000"]
    assert main(few) == 0
    assert "outside" not in capsys.readouterr().out
    assert main([*few, "--beyond"]) == 0
    assert "outside the theorem" in " ".join(capsys.readouterr().out.split())
    assert main([*few, "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["verdict"] == "hypotheses_fail"
    assert [each["name"] for each in content["beyond"]] == ["d - mp"]


def test_data_alone_are_compared_with_what_is_supposed_of_them(files, capsys):
    data = ["--data", str(files / "data.npz"), "--json", "-"]
    assert main(["check", "melamed2023/4.1", *data]) == 0
    content = printed_json(capsys)
    assert content["verdict"] == "inconclusive"
    assert len(content["hypotheses"]) == 3
    assert content["hypotheses"][0]["name"] == "codimension"
    assert content["advice"] == "3 hypotheses on the data hold; all else needs a network: give one"
    assert "two-layer ReLU network" in content["unmeasurable"]
    assert content["probability"] is None


def test_data_that_a_theorem_excludes_need_no_network(files, capsys):
    assert main(["check", "vardi2022/4.1", "--data", str(files / "data.npz"), "--json", "-"]) == 0
    content = printed_json(capsys)
    assert content["verdict"] == "hypotheses_fail"
    assert "relative deviation of ‖x‖ from √d" in content["advice"]
    assert "no network changes that" in content["advice"]


def test_a_theorem_about_data_alone_is_decided_without_a_network(files, capsys):
    assert main(["check", "melamed2023/R3.1-printed", "--data", str(files / "data.npz"), "--json", "-"]) == 1
    assert printed_json(capsys)["verdict"] == "violated"


def test_a_lemma_on_data_is_confirmed_without_a_network(rng, tmp_path, capsys):
    save_data(find("vardi2022/C.9").default(rng).data, tmp_path / "data.npz")
    assert main(["check", "vardi2022/C.9", "--data", str(tmp_path / "data.npz"), "--json", "-"]) == 0
    assert printed_json(capsys)["verdict"] == "confirmed"


def test_a_theorem_that_begins_with_the_network_says_so(files, capsys):
    assert main(["check", "vardi2022/2.1", "--data", str(files / "data.npz"), "--json", "-"]) == 0
    content = printed_json(capsys)
    assert content["hypotheses"] == []
    assert "give one" in content["advice"]


def test_a_sweep_is_a_table_and_files(tmp_path, capsys):
    places = {name: tmp_path / f"sweep.{name}" for name in ("csv", "latex", "json")}
    options = [text for name, place in places.items() for text in (f"--{name}", str(place))]
    sizes = ["--sweep", "dim=60,90", "--sweep", "codimension=30,70"]
    assert main(["check", "melamed2023/4.1", *sizes, *options]) == 0
    shown = capsys.readouterr()
    assert "impossible" in shown.out
    assert all(f"wrote {place}" in shown.err for place in places.values())
    cases = json.loads(places["json"].read_text())["cases"]
    assert [case["values"] for case in cases] == [
        {"dim": dim, "codimension": codimension} for dim in (60, 90) for codimension in (30, 70)
    ]
    assert [case["verdict"] is None for case in cases] == [False, True, False, False]
    rows = list(csv.DictReader(places["csv"].read_text().splitlines()))
    compared = sum(len(case["verdict"]["hypotheses"] + case["verdict"]["bound"]) for case in cases if case["verdict"])
    assert len(rows) == compared + 1
    first = cases[0]["verdict"]["hypotheses"][0]
    assert (rows[0]["name"], float(rows[0]["slack"])) == (first["name"], first["slack"])
    assert places["latex"].read_text().startswith("\\begin{tabular}{rrllrlr}")


def test_a_violation_anywhere_in_a_sweep_ends_with_one(capsys):
    assert main(["check", "melamed2023/R3.1-printed", "--sweep", "dim=10,100"]) == 1


def trained(files, decay):
    """By the command line alone: the first layer, from N(0, 1/d), with the sum of logistic losses."""
    start = ["--init", "kaiming", "--width", "12"]
    loss = ["--loss", "logistic", "--reduction", "sum", "--layers", "first"]
    steps = ["--regime", "descent", "--rate", "0.05", "--until", "steps=40", "--decay", str(decay)]
    out = files / f"trained{decay}.npz"
    assert main(["train", "--data", str(files / "data.npz"), *start, *loss, *steps, "--out", str(out)]) == 0
    return ["--net", str(out), "--data", str(files / "data.npz")]


def test_facts_of_the_training_are_told(files, capsys):
    told = ["--fact", "rate=0.05", "--fact", "steps=40", "--fact", f"beta={300**-0.5}", "--json", "-"]
    own = trained(files, 1)
    capsys.readouterr()
    assert main(["check", "melamed2023/6.2", *own, *told, "--fact", "decay=1"]) == 0
    assert printed_json(capsys)["verdict"] == "confirmed"
    assert main(["check", "melamed2023/6.2", *own, *told, "--fact", "decay=2"]) == 1
    assert "times their start" in printed_json(capsys)["advice"]
    assert main(["check", "melamed2023/6.2", *own, *told]) == 0
    seen = capsys.readouterr()
    assert "facts that were not told: decay" in seen.err
    assert json.loads(seen.out)["verdict"] == "hypotheses_fail"


def test_the_start_may_lie_in_a_file_of_its_own(files, capsys):
    own = trained(files, 0)
    told = ["--fact", "rate=0.05", "--fact", "steps=40", "--fact", "decay=0"]
    network = load_network(own[1])
    save_network(network.start, files / "start.npz")
    save_network(replace(network, start=None), files / "end.npz")
    check = ["check", "melamed2023/A.2", "--net", str(files / "end.npz"), *own[2:], *told]
    capsys.readouterr()
    assert main([*check, "--json", "-"]) == 0
    assert "starts that are known" in printed_json(capsys)["advice"]
    assert main([*check, "--start", str(files / "start.npz"), "--json", "-"]) == 0
    assert printed_json(capsys)["verdict"] == "confirmed"
    assert main([*check, "--start", str(files / "net.npz")]) == 2
    assert "net.npz has 6 neurons" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("identity", "fact", "message"),
    [
        ("melamed2023/A.2", "colour=1", "there is no fact 'colour'; this theorem asks for beta, rate, decay, steps"),
        ("melamed2023/A.2", "steps=1.5", "the fact steps is 1.5; it must be a whole number"),
        ("vardi2022/C.5", "steps=1", "vardi2022/C.5 asks for no facts"),
    ],
)
def test_facts_that_nobody_asks_for_are_refused(identity, fact, message, files, capsys):
    own = ["--net", str(files / "net.npz"), "--data", str(files / "data.npz")]
    assert main(["check", identity, *own, "--fact", fact]) == 2
    assert message in capsys.readouterr().err
