"""How far a network provably does not break."""

from brittle.certificates.base import Bounds, Certificate, LowerBound
from brittle.certificates.dual import Dual
from brittle.certificates.exact import Exact
from brittle.certificates.example import Enclosure, Example
from brittle.certificates.judgement import Contradiction
from brittle.certificates.lipschitz import Lipschitz
from brittle.certificates.relaxation import Relaxation
from brittle.common.parts import by_name

PARTS = by_name((Lipschitz, Relaxation, Dual, Exact))

__all__ = [
    "PARTS",
    "Bounds",
    "Certificate",
    "Contradiction",
    "Dual",
    "Enclosure",
    "Exact",
    "Example",
    "Lipschitz",
    "LowerBound",
    "Relaxation",
]
