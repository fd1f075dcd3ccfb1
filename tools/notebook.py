"""The tour as a page: python -m tools.notebook runs docs/tour.ipynb, keeps what it shows, and writes docs/tour.md.

With --page the notebook is not run; the page is written from what it holds.
"""

import base64
import sys
from typing import Any

from tools.pages import ROOT

NOTEBOOK = ROOT / "docs" / "tour.ipynb"
PAGE = ROOT / "docs" / "tour.md"
PICTURES = "pictures/tour"
OPENING = "<!-- written by python -m tools.notebook from tour.ipynb; do not edit -->\n"
LINK = "\n[The notebook](tour.ipynb) of this page runs anywhere; this is what it shows.\n"


def execute(notebook: Any) -> None:
    """Every cell, as a reader would; what it shows is kept."""
    from nbclient import NotebookClient

    NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    for cell in notebook.cells:
        cell.metadata.clear()  # times of the run, which say nothing


def page(notebook: Any) -> tuple[str, dict[str, bytes]]:
    """The page, and its pictures by their places."""
    parts, pictures = [OPENING], dict[str, bytes]()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source + "\n")
            continue
        parts.append(f"<!-- not run: the notebook is run as a whole -->\n```python\n{cell.source}\n```\n")
        parts += [_shown(output, pictures) for output in cell.outputs]
    parts.insert(2, LINK)
    return "\n".join(parts), pictures


def _shown(output: Any, pictures: dict[str, bytes]) -> str:
    """A picture, a table, or text."""
    data = output.get("data", {})
    if "image/png" in data:
        place = f"{PICTURES}/{len(pictures) + 1}.png"
        pictures[place] = base64.b64decode(data["image/png"])
        return f"![What the lines above draw]({place})\n"
    if "text/html" in data:
        return str(data["text/html"]) + "\n"
    return f"```\n{output.get('text', data.get('text/plain', '')).rstrip()}\n```\n"


def write(notebook: Any) -> None:
    """The page and its pictures."""
    text, pictures = page(notebook)
    PAGE.write_text(text)
    for place, content in pictures.items():
        path = PAGE.parent / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    print(f"wrote {PAGE.relative_to(ROOT)} and {len(pictures)} pictures")


def read() -> Any:
    """The notebook as it is kept."""
    import nbformat

    return nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]


def main(arguments: list[str]) -> None:
    import nbformat

    notebook = read()
    if "--page" not in arguments:
        execute(notebook)
        nbformat.write(notebook, NOTEBOOK)  # type: ignore[no-untyped-call]
    write(notebook)


if __name__ == "__main__":
    main(sys.argv[1:])
