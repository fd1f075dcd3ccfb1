"""The pictures of docs/explorer.md, taken in a headless browser: `python -m tests.explorer.pictures docs/pictures`."""

import re
import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests.explorer.tab import go, photographed, shaped, wait
from tests.processes import Session
from tests.report.browser import Page, chromium, page

DESKTOP, PHONE = (1280, 800), (390, 844)
SCENES = {
    "plane": "explorer.show('plane')",
    "papers": "explorer.show('papers')",
    "walk": "explorer.show('walk')",
}
READY = {
    "plane": "explorer.tabs.plane.found?.radii",
    "papers": "explorer.tabs.papers.root.dataset.runs > 0",
    "walk": "explorer.tabs.walk.root.dataset.updates > 0",
}


def taken(tab: Page, address: str, folder: Path) -> None:
    """Every scene on a desktop and a phone, by day and by night."""
    for size, (width, height) in {"desktop": DESKTOP, "phone": PHONE}.items():
        for scheme in ("light", "dark"):
            shaped(tab, width, height, scheme == "dark")
            go(tab, address)
            for name, script in SCENES.items():
                tab.evaluate(script)
                wait(tab, READY[name], patience=600)
                tab.evaluate("explorer.tabs[explorer.now].redraw(); scrollTo(0, 0)")
                path = folder / f"explorer-{name}-{size}-{scheme}.png"
                photographed(tab, path)
                _shrunk(path)


def _shrunk(path: Path) -> None:
    """A palette is enough, and a third of the bytes; rare colours keep their place in it."""
    with Image.open(path) as picture:
        full = picture.convert("RGB")
    palette = full.quantize(256, Image.Quantize.FASTOCTREE)
    full.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG).save(path, optimize=True)


def main(folder: Path) -> None:
    program = chromium()
    assert program is not None, "Chromium is not installed: `make browser` installs it"
    with Session("-m", "brittle", "explore", "--no-browser") as session:
        assert session.process.stderr is not None
        found = None
        while found is None:
            found = re.search(r"http://127\S+/", session.process.stderr.readline().decode())
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, page(program, Path(profile)) as tab:
            taken(tab, found.group(), folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
