"""Parts of installed packages: found by name, imported only when asked for, and one line where they are broken."""

import sys

import pytest

from brittle.common import parts
from brittle.common.errors import InputError

MODULES = {
    "good_plugin": "class Part: ...\n",
    "broken_plugin": "raise RuntimeError('no licence\\nin this place')\n",
}
POINTS = """\
[brittle.test]
good = good_plugin:Part
broken = broken_plugin:Part
gone = good_plugin:Gone
absent = no_such_plugin:Part
twice = good_plugin:Part
"""


def install(folder, name, points):
    """What pip leaves of a package that offers entry points."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    install(tmp_path, "strangers", POINTS)
    install(tmp_path, "others", "[brittle.test]\ntwice = good_plugin:Other\n")
    monkeypatch.syspath_prepend(tmp_path)
    parts.find_entry_points.cache_clear()
    yield
    parts.find_entry_points.cache_clear()
    for name in MODULES:
        sys.modules.pop(name, None)


def test_names_are_known_without_importing_anything():
    assert set(parts.find_entry_points("brittle.test")) == {"good", "broken", "gone", "absent", "twice"}
    assert not set(MODULES) & set(sys.modules)
    assert parts.find_entry_points("brittle.no_such_group") == {}


def test_a_part_is_imported_when_it_is_asked_for():
    assert parts.load_entry_point("brittle.test", "good").__name__ == "Part"
    assert "broken_plugin" not in sys.modules


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("broken", "(broken_plugin:Part) is broken: RuntimeError: no licence in this place"),
        ("gone", "AttributeError"),
        ("absent", "No module named 'no_such_plugin'"),
        ("twice", "two plug-ins of brittle.test are called 'twice': good_plugin:Other and good_plugin:Part"),
    ],
)
def test_a_broken_one_is_one_line_that_names_it(name, reason):
    with pytest.raises(InputError) as caught:
        parts.load_entry_point("brittle.test", name)
    assert reason in str(caught.value)
    assert f"{name!r}" in str(caught.value)
    assert "\n" not in str(caught.value)
