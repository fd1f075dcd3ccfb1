"""Embedded Runge-Kutta pairs, as data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tableau:
    """Stages a, weights b of the step and e = b - b̂ of its error; the last stage of `e` is the next step's first."""

    order: int
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    e: tuple[float, ...]


HEUN = Tableau(
    order=2,
    a=((1.0,),),
    b=(1 / 2, 1 / 2),
    e=(-1 / 2, 1 / 2, 0.0),
)

BOGACKI_SHAMPINE = Tableau(
    order=3,
    a=((1 / 2,), (0.0, 3 / 4)),
    b=(2 / 9, 1 / 3, 4 / 9),
    e=(2 / 9 - 7 / 24, 1 / 3 - 1 / 4, 4 / 9 - 1 / 3, -1 / 8),
)

DORMAND_PRINCE = Tableau(
    order=5,
    a=(
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    ),
    b=(35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    e=(71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),
)

PAIRS = {"heun": HEUN, "bogacki-shampine": BOGACKI_SHAMPINE, "dormand-prince": DORMAND_PRINCE}
