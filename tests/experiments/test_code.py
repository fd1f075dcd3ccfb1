"""A finished cell is used again as long as no code that it was measured with has changed."""

import shutil
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import pytest

from brittle.experiments import EXPERIMENTS
from brittle.experiments.code import Sources, code_hash, find_imports, used_modules

UNIVERSAL = "brittle.experiments.vardi2022.cells"


@dataclass(frozen=True)
class Edited(Sources):
    """The installed files, one of which has another line."""

    edited: str = ""

    def read(self, module):
        text = super().read(module)
        return f"{text}\nCHANGED = True\n" if module == self.edited and text is not None else text


def after_a_change_of(module):
    sources = Edited("brittle", files("brittle"), module)
    assert sources.read(module) != Sources("brittle", files("brittle")).read(module)
    return code_hash(UNIVERSAL, sources)


USED = ["training.flow", "attacks.universal", "kkt", "networks.two_layer", "geometry", "data", "common.errors"]
UNUSED = ["report.figures", "cli.reproduce", "certificates", "experiments.picture", "experiments.vardi2022.figures"]


@pytest.mark.parametrize("module", [UNIVERSAL, *(f"brittle.{name}" for name in USED)])
def test_a_change_in_a_used_room_makes_cells_stale(module):
    assert after_a_change_of(module) != code_hash(UNIVERSAL)


@pytest.mark.parametrize("module", [f"brittle.{name}" for name in UNUSED])
def test_a_change_elsewhere_leaves_them(module):
    assert after_a_change_of(module) == code_hash(UNIVERSAL)


@pytest.mark.parametrize("figure_id", EXPERIMENTS)
def test_cells_depend_on_code_that_exists_and_not_on_what_is_drawn_or_claimed(figure_id):
    used = used_modules(EXPERIMENTS[figure_id].kind.__module__)
    assert all(find_spec(module) is not None for module in used)
    assert not [module for module in used if module.split(".")[1:2] in (["report"], ["cli"])]
    assert not [module for module in used if module.endswith(("claims", "figures", "picture"))]


def test_another_place_and_other_line_ends_are_the_same_code(tmp_path):
    copy = tmp_path / "elsewhere"
    shutil.copytree(str(files("brittle")), copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path in copy.rglob("*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert code_hash(UNIVERSAL, Sources("brittle", copy)) == code_hash(UNIVERSAL)


def written(folder: Path, **texts):
    """A package with these modules; `__` stands for a dot."""
    for name, text in texts.items():
        path = folder.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Sources("house", folder)


def test_imports_are_followed_as_they_are_written(tmp_path):
    sources = written(
        tmp_path,
        start="from house import room\nimport house.cellar, os\n",
        cellar="def dig():\n    from house.garden.bed import rose\n",
        garden__bed="import house.start  # in a circle\nimport numpy\n",
        garden__tree="",
        typed="",
    )
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "__init__.py").write_text(
        "if typing.TYPE_CHECKING:\n    from house.typed import T\nelse:\n    import house.garden.tree\n"
    )
    (tmp_path / "garden" / "__init__.py").write_text("from house.garden import tree\n")
    (tmp_path / "__init__.py").write_text("import house.garden\n")
    assert find_imports("house.start", sources) == {"house", "house.room", "house.cellar"}
    passed_through = used_modules("house.cellar", sources)
    assert passed_through >= {"house.cellar", "house.garden.bed", "house.start"}
    assert "house.typed" not in passed_through
    assert find_imports("house.room", sources) == {"house.garden.tree"}
    alone = used_modules("house.garden.tree", sources)
    assert alone == {"house.garden.tree"}


def test_whoever_imports_the_whole_house_depends_on_all_of_it(tmp_path):
    used = find_imports("brittle.mine", MineToo("brittle", files("brittle")))
    assert {"brittle", "brittle.training", "brittle.report", "brittle.data"} <= used


class MineToo(Sources):
    """With one module more."""

    def read(self, module):
        return "import brittle as bt\n" if module == "brittle.mine" else super().read(module)
