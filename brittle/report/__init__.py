"""What a person looks at."""

from typing import TYPE_CHECKING

from brittle.common.lazy import lazy_names

if TYPE_CHECKING:
    from brittle.report import plot
    from brittle.report.audit_figures import write_audit_pictures
    from brittle.report.audit_page import write_audit_page
    from brittle.report.figures import write_figure
    from brittle.report.origin import Origin
    from brittle.report.sandwich import draw_sandwich
    from brittle.report.sweeps import write_csv, write_latex
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "plot": ("plot",),
            "audit_figures": ("write_audit_pictures",),
            "audit_page": ("write_audit_page",),
            "figures": ("write_figure",),
            "origin": ("Origin",),
            "sandwich": ("draw_sandwich",),
            "sweeps": ("write_csv", "write_latex"),
        },
    )

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
