"""Options that mean the same in several regimes."""

from brittle.common.errors import require_count, require_positive
from brittle.common.parts import option

RATE = option("Step size.", check=require_positive)
BATCH = option("Examples per step; all of them if there are no more.", check=require_count)
LAYERS = option("Those that are trained.")
TRAINED_BIASES = option(
    "Whether biases are trained; by default they are, save those of two layers that are all zero.",
    "--train-biases/--no-train-biases",
)
PRECISION = option("Of the weights.")
BALL = option(
    "C0: no hidden weight is to move farther than C0/√width from its start.", "--ball", check=require_positive
)
