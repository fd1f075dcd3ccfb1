"""Where the pages' templates come from; every string that they show is escaped."""

import base64
import hashlib
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from brittle.report.numbers import number, share, times

ENVIRONMENT = Environment(
    loader=PackageLoader("brittle.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters |= {"number": number, "share": share, "times": times}


def source(*names: str) -> Markup:
    """Files of the templates' folder as they are, one after the other: a style sheet, or a script."""
    folder = files("brittle.report") / "templates"
    return Markup("\n".join((folder / name).read_text(encoding="utf-8") for name in names))


def digest(text: str) -> str:
    """What a content security policy calls an inline style or script that may be used."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
