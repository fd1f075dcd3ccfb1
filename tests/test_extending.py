"""The page on parts of one's own, run from top to bottom as a stranger's file would be."""

import importlib
import re
from pathlib import Path

PAGE = (Path(__file__).parent.parent / "docs" / "extending.md").read_text()


def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 6
    file = tmp_path / "strangers_parts.py"
    file.write_text("\n\n".join(blocks))
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("strangers_parts")
    assert module.verdict.verdict.value == "confirmed"
    assert {treatment.name for treatment in module.audit.remedies} == {"wider", "remove-off-subspace"}
    assert len(module.figure.points) == 9
