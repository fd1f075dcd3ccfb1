"""The page's example prints what the page says."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "networks.md"


def test_the_example_prints_what_the_page_says():
    code, printed = re.search(r"```python\n(.*?)```\n\nprints\n\n```\n(.*?)```", PAGE.read_text(), re.DOTALL).groups()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code, {})
    assert output.getvalue() == printed
