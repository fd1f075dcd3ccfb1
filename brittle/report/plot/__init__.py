"""Pictures of networks and of what was found about them; `brittle.plot` is this module.

Every function returns a matplotlib figure that is drawn without global state; `save` writes it as PNG, SVG or PDF.
"""

from brittle.report.plot.movement import Movement, neurons, sandwich
from brittle.report.plot.movement import kkt_path as path
from brittle.report.plot.planes import Plane, plane, planes
from brittle.report.plot.rays import Along, curve, ray
from brittle.report.plot.slices import Slice, flips, slice, space
from brittle.report.style import save

__all__ = [
    "Along",
    "Movement",
    "Plane",
    "Slice",
    "curve",
    "flips",
    "neurons",
    "path",
    "plane",
    "planes",
    "ray",
    "sandwich",
    "save",
    "slice",
    "space",
]
