"""The tour runs from its first cell to its last."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

TOUR = Path(__file__).parent.parent / "docs" / "tour.ipynb"


def test_the_tour_runs():
    notebook = nbformat.read(TOUR, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    printed = "".join(
        output.get("text", "") + output.get("data", {}).get("text/html", "")
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )
    assert "hypotheses_fail" in printed
    assert "examples flips at distance" in printed
    assert "<caption>KKTPoint</caption>" in printed
