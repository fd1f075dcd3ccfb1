"""The pictures of docs/gallery.md, made by the blocks above them: python -m tools.gallery [NAME ...]"""

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

from tools.pages import ROOT, Block, Reader, blocks

PAGE = ROOT / "docs" / "gallery.md"
PICTURE = re.compile(r"\]\((pictures/gallery/(\w+)\.png)\)")


def pictures(page: str) -> Iterator[tuple[Block, str]]:
    """Every block of Python with the picture that follows it."""
    lines = page.splitlines()
    for block in blocks(page):
        if block.language == "python":
            following = "\n".join(lines[block.line :])
            found = PICTURE.search(following)
            assert found is not None, f"line {block.line}: no picture follows"
            yield block, found[1]


def main(names: list[str]) -> None:
    """Run the page; write the pictures of these names, or all."""
    import brittle as bt

    reader = Reader()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for block, place in pictures(PAGE.read_text()):
            reader.follow(block)
            if not names or Path(place).stem in names:
                print(f"wrote docs/{place}")
                bt.plot.save(reader.names["figure"], PAGE.parent / place, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1:])
