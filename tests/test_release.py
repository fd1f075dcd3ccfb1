"""What is released: one version everywhere, and a wheel that works where the source is not."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import brittle

ROOT = Path(__file__).parent.parent
PACKAGES = ("brittle", "margincheck", "proofcheck")
KEPT = (*PACKAGES, "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "CHANGELOG.md")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def run(*words: str | Path, **options: object) -> str:
    """What a command prints; a failure shows what it said."""
    seen = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=500, **options)
    assert seen.returncode == 0, seen.stdout + seen.stderr
    return seen.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheel and source, made from a copy: building leaves traces."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in KEPT:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, source)
    return out


def test_the_version_is_written_once_and_carried_by_all(built):
    names = {path.name for path in built.iterdir()}
    version = brittle.__version__
    assert names == {f"brittle-{version}-py3-none-any.whl", f"brittle-{version}.tar.gz"}
    assert "version" in PROJECT["project"]["dynamic"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == version


def test_the_wheel_holds_all_that_is_not_code(built):
    (wheel,) = built.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted <= held
    assert {"margincheck/__main__.py", "proofcheck/__main__.py"} <= held
    assert not [name for name in held if name.startswith(("tests", "benchmarks", "tools", "docs"))]
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        assert {name.split("/", 1)[1] for name in archive.getnames() if "/" in name} >= {"README.md", "LICENSE"}


def test_the_wheel_works_where_the_source_is_not(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    place, elsewhere = tmp_path / "place", tmp_path / "elsewhere"
    elsewhere.mkdir()
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", place, wheel)
    environment = os.environ | {"PYTHONPATH": str(place), "OMP_NUM_THREADS": "1"}

    def installed(*words: str) -> str:
        return run(sys.executable, *words, cwd=elsewhere, env=environment)

    where = installed("-c", "import brittle; print(brittle.__file__)").strip()
    assert Path(where).is_relative_to(place)
    assert installed("-m", "brittle", "--version") == f"brittle {brittle.__version__}\n"
    short = ("--budget", "1", "--examples", "6", "--remedy", "none")
    installed("-m", "brittle", "audit", *short, "--report", "audit.html")
    assert "<html" in (elsewhere / "audit.html").read_text()
    sizes = ("--setting", "orthogonal", "--dim", "4", "--examples", "4")
    installed("-m", "brittle", "data", "sample", *sizes, "--out", "data.npz")
    installed("-m", "brittle", "train", "--data", "data.npz", "--width", "8", "--until", "loss=0.1", "--out", "net.npz")
    files = ("--data", "data.npz")
    installed("-m", "brittle", "certify", "net.npz", *files, "--proof", "proof.npz")
    checked = installed("-m", "proofcheck", "proof.npz", "--network", "net.npz", *files)
    assert checked.count("no flip within") == 4
    installed("-m", "brittle", "kkt", "--largest", *files, "--proof", "margin.npz")
    assert "no network of any width one above" in installed("-m", "margincheck", "margin.npz", *files)
    for checker in ("margincheck", "proofcheck"):
        where = installed("-c", f"import {checker}; print({checker}.__file__)").strip()
        assert Path(where).is_relative_to(place)


def test_what_the_workflows_run_is_there():
    makefile = (ROOT / "Makefile").read_text()
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        workflow = yaml.safe_load(path.read_text())
        steps = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
        for target in re.findall(r"^make (\w+)", "\n".join(steps), re.MULTILINE):
            assert f"\n{target}:" in makefile, f"{path.name}: make {target}"
        for extra in re.findall(r"\.\[([\w,]+)\]", "\n".join(steps)):
            assert set(extra.split(",")) <= set(PROJECT["project"]["optional-dependencies"])


def test_the_oldest_versions_that_are_tested_are_those_that_are_allowed():
    matrix = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]["versions"]["strategy"]["matrix"]
    oldest = matrix["include"][0]
    allowed = " ".join(PROJECT["project"]["dependencies"])
    for name in ("torch", "numpy"):
        version = re.search(rf"{name}==([\d.]+)\.\*", oldest[name])[1]
        assert f"{name}>={version}" in allowed
    assert PROJECT["project"]["requires-python"] == f">={oldest['python']}"


def test_hooks_use_the_tools_of_the_environment():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert {hook["id"] for hook in hooks} >= {"ruff-check", "ruff-format", "deptry", "mypy"}
    assert all(hook["entry"].startswith(".venv/bin/python -m ") for hook in hooks)


def test_everything_that_is_installed_is_pinned():
    pinned = {
        line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    project = PROJECT["project"]
    asked = [*project["dependencies"], *(each for extra in project["optional-dependencies"].values() for each in extra)]
    names = {re.match(r"[\w-]+", each)[0].lower().replace("_", "-") for each in asked}
    assert names <= pinned
