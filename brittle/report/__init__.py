"""What a person looks at."""

from typing import TYPE_CHECKING

from brittle.common.lazy import lazy_names

if TYPE_CHECKING:
    from brittle.report import plot
    from brittle.report.audit_figures import write_audit_pictures
    from brittle.report.audit_page import write_audit_page
    from brittle.report.figures import write_figure
    from brittle.report.plot.movement import draw_sandwich
    from brittle.report.theorem_index import write_csv, write_latex
    from brittle.report.words import Origin
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "audit_figures": ("write_audit_pictures",),
            "audit_page": ("write_audit_page",),
            "figures": ("write_figure",),
            "plot": ("plot",),
            "plot.movement": ("draw_sandwich",),
            "theorem_index": (
                "write_csv",
                "write_latex",
            ),
            "words": ("Origin",),
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
