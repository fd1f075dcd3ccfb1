"""How far a network provably does not break."""

from brittle.certificates.base import Bounds, Certificate, Contradiction
from brittle.certificates.dual import Dual
from brittle.certificates.exact import Exact
from brittle.certificates.lipschitz import Lipschitz
from brittle.certificates.relaxation import Relaxation

__all__ = ["Bounds", "Certificate", "Contradiction", "Dual", "Exact", "Lipschitz", "Relaxation"]
