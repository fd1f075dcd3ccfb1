"""`brittle theorems` and `brittle check`: what they print, write and return."""

import json

import pytest
import torch

from brittle.cli import main
from brittle.networks import Kaiming, save_network
from brittle.settings import Subspace, save_data
from brittle.theorems import THEOREMS, find

FEW = ("melamed2023/R3.1", "melamed2023/R3.1-printed", "melamed2023/B.1")


@pytest.fixture
def few(monkeypatch):
    """`check all` on three theorems."""
    monkeypatch.setattr("brittle.cli.check.THEOREMS", {identity: THEOREMS[identity] for identity in FEW})


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
    ],
)
def test_mistakes_end_in_one_line(arguments, message, capsys):
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
