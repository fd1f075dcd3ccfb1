"""The documentation site: nothing is forgotten, nothing is fetched, and what was made is what would be made."""

import re
from pathlib import Path
from typing import Any

import yaml

import brittle
from brittle.cli import COMMANDS
from tools.gallery import PAGE, pictures
from tools.generated import page as commands_page
from tools.notebook import page as tour_page
from tools.notebook import read
from tools.pages import MADE, ROOT

DOCS = ROOT / "docs"
CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text())


def named(part: Any) -> list[str]:
    """The pages of a part of the navigation."""
    if isinstance(part, str):
        return [part]
    inner = part.values() if isinstance(part, dict) else part
    return [page for each in inner for page in named(each)]


def test_every_page_can_be_found():
    written = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} - {f"{name}.md" for name in MADE}
    assert sorted(named(CONFIG["nav"])) == sorted(written | {f"{name}.md" for name in MADE})


def test_every_room_has_its_reference():
    pages = {path.stem: path.read_text() for path in (DOCS / "api").glob("*.md")}
    assert {*brittle.ROOMS, "testing", "plot", "index"} == set(pages)
    assert all(f"::: brittle.{room}\n" in pages[room] for room in brittle.ROOMS)


def test_nothing_is_fetched_when_it_is_read():
    assert CONFIG["theme"]["font"] is False
    assert not {"extra_css", "extra_javascript"} & set(CONFIG)
    pages = "\n".join(path.read_text() for path in DOCS.rglob("*.md"))
    assert not re.findall(r"!\[[^\]]*\]\(https?:|<(?:img|script|link|iframe)\b[^>]*https?:", pages)


def test_every_picture_of_the_gallery_is_there():
    found = [place for _, place in pictures(PAGE.read_text())]
    assert len(found) == len(set(found)) >= 10
    kept = {str(path.relative_to(DOCS)) for path in (DOCS / "pictures" / "gallery").iterdir()}
    assert kept == set(found)
    assert found[0] in (ROOT / "README.md").read_text()


def test_the_page_of_the_tour_is_what_the_notebook_shows():
    text, shown = tour_page(read())
    assert (DOCS / "tour.md").read_text() == text
    assert len(shown) >= 3
    assert all((DOCS / place).read_bytes() == content for place, content in shown.items())
    assert not re.search(r"/(?:root|home|work|tmp)/", text)


def test_the_page_of_commands_has_every_option():
    text = commands_page()
    assert all(f"## brittle {name}\n" in text for name in COMMANDS)
    assert "`--budget SECONDS`" in text
    assert "### brittle data sample\n" in text


def test_every_linked_file_of_the_pages_is_there():
    """Beside what a strict build sees: files that are no pages."""
    for path in DOCS.rglob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+\.(?:png|ipynb|md))[^)]*\)", path.read_text()):
            assert (path.parent / link).exists() or Path(link).stem in MADE, f"{path.name}: {link}"
