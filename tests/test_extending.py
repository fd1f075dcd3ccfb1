"""The page on parts of one's own, run from top to bottom as a stranger's file would be."""

import importlib
import json
import re
import tomllib
from pathlib import Path

import pytest

from brittle.cli import main
from brittle.common import parts
from brittle.networks import load_network
from tools.pages import blocks

PAGE = (Path(__file__).parent.parent / "docs" / "extending.md").read_text()


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    code = [block.text for block in blocks(PAGE) if block.language == "python"]
    assert len(code) == 6
    file = tmp_path / "strangers_parts.py"
    file.write_text("\n\n".join(code))
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("strangers_parts")
    capsys.readouterr()
    assert module.verdict.verdict.value == "confirmed"
    assert {treatment.name for treatment in module.audit.remedies} == {"wider", "remove-off-subspace"}
    assert len(module.figure.points) == 9
    on_the_command_line(tmp_path, capsys)


def on_the_command_line(folder, capsys):
    """The same classes as MODULE:CLASS, with their fields as options."""
    data, net, hard = (str(folder / name) for name in ("data.npz", "net.npz", "hard.npz"))

    def run(*arguments: str) -> dict:
        assert main([*arguments, "--json", "-"]) == 0
        return json.loads(capsys.readouterr().out)

    moons = ["--setting", "strangers_parts:Moons", "--noise", "0.05", "--examples", "20"]
    assert run("data", "sample", *moons, "--out", data)["dim"] == 2
    run("train", "--data", data, "--width", "30", "--until", "log_loss=-3", "--out", net)
    mean = ["attack", net, "--data", data, "--attack", "strangers_parts:TowardsTheMean", "--share"]
    near, far = (run(*mean, share)["norms"] for share in ("0.25", "0.5"))
    assert [2 * norm for norm in near] == pytest.approx(far)
    assert run("certify", net, "--data", data, "--method", "strangers_parts:GlobalLipschitz")["smallest_lower"] > 0
    wider = ["harden", net, "--data", data, "--remedy", "strangers_parts:Wider", "--times", "3", "--out", hard]
    assert run(*wider)["name"] == "wider"
    assert load_network(hard).width == 90
    assert main([*mean, "0.5", "--starts", "3"]) == 2
    wrong = "--starts does not belong to the attack strangers_parts:TowardsTheMean, which takes --share"
    assert wrong in capsys.readouterr().err
    assert main(["data", "sample", "--setting", "strangers_parts:Moons", "--noise", "-1", "--examples", "4"]) == 2
    assert "noise is -1.0" in capsys.readouterr().err
    own = run("check", "strangers_parts:MarginOverNorm", "--net", net, "--data", data)
    assert (own["id"], own["verdict"]) == ("mine/1", "confirmed")
    as_plug_ins(folder, capsys, data, net)


def as_plug_ins(folder, capsys, data, net):
    """The same classes by the names of the page's entry points, with one beside them that is broken."""
    offered = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)[1]
    groups = tomllib.loads(offered)["project"]["entry-points"]
    groups["brittle.theorems"]["mine/2"] = "mine:NoSuchTheorem"
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in each.items())
        for group, each in groups.items()
    ]
    info = folder / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(lines).replace("mine:", "strangers_parts:"))
    parts.find_entry_points.cache_clear()
    try:
        assert main(["attack", net, "--data", data, "--attack", "towards-the-mean", "--share", "0.5"]) == 0
        capsys.readouterr()
        assert main(["attack", net, "--data", data, "--attack", "towards"]) == 2
        assert "towards-the-mean" in capsys.readouterr().err
        assert main(["check", "mine/1", "--net", net, "--data", data]) == 0
        assert "confirmed" in capsys.readouterr().out
        assert main(["check", "mine/2"]) == 2
        assert capsys.readouterr().err.startswith("brittle: the plug-in 'mine/2' of brittle.theorems")
        assert main(["theorems", "--paper", "mine", "--json", "-"]) == 0
        listed = capsys.readouterr()
        assert [each["id"] for each in json.loads(listed.out)["theorems"]] == ["mine/1"]
        assert listed.err.count("\n") == 1
    finally:
        parts.find_entry_points.cache_clear()
