"""What a person looks at."""

from brittle.report import plot
from brittle.report.audit_figures import write_audit_pictures
from brittle.report.audit_page import write_audit_page
from brittle.report.figures import write_figure
from brittle.report.origin import Origin
from brittle.report.sandwich import draw_sandwich
from brittle.report.sweeps import write_csv, write_latex

__all__ = [
    "Origin",
    "draw_sandwich",
    "plot",
    "write_audit_page",
    "write_audit_pictures",
    "write_csv",
    "write_figure",
    "write_latex",
]
