"""How far a network provably does not break."""

from brittle.certificates.base import Certificate, LowerBound, RadiusBounds
from brittle.certificates.dual import Dual
from brittle.certificates.exact import Exact
from brittle.certificates.example import Contradiction, Example, RadiusInterval
from brittle.certificates.lipschitz import Lipschitz
from brittle.certificates.relaxation import LinearRelaxation
from brittle.common.parts import by_name

PARTS = by_name((Lipschitz, LinearRelaxation, Dual, Exact))

__all__ = [
    "PARTS",
    "Certificate",
    "Contradiction",
    "Dual",
    "Exact",
    "Example",
    "LinearRelaxation",
    "Lipschitz",
    "LowerBound",
    "RadiusBounds",
    "RadiusInterval",
]
