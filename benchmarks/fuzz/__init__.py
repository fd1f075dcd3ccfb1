"""No attack may land below a certificate, at any scale: random networks against attacks and exact arithmetic."""

from benchmarks.fuzz.proofs import confirm
from benchmarks.fuzz.run import run, run_deep, run_far

__all__ = ["confirm", "run", "run_deep", "run_far"]
