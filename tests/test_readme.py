"""What the README shows is what happens."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_example_prints_what_the_readme_says():
    code, printed = re.search(r"```python\n(.*?)```\n\nprints\n\n```\n(.*?)```", README, re.DOTALL).groups()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code, {})
    words = re.compile(r"[\d.]+(?:e-\d+)?")
    assert words.sub("#", output.getvalue()) == words.sub("#", printed)
    # Rounding differs between machines and steers the adaptive steps, so the numbers agree nearly.
    pairs = zip(words.findall(output.getvalue()), words.findall(printed), strict=True)
    for ours, theirs in pairs:
        assert float(ours) == pytest.approx(float(theirs), rel=0.05, abs=1e-12)


def test_every_linked_page_exists():
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if not link.startswith("http")]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
