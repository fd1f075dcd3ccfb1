"""What happens to one generated model: read, refused, a black box, or a violation."""

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.differential.compare import NoOutput, Reference, comparable, disagreement
from benchmarks.differential.tally import ReadingTally, shortened
from brittle.common.errors import InputError
from brittle.networks import Adapter, Network, Recognition

Read = Callable[[], tuple[Network, Recognition | None]]


@contextmanager
def quiet(name: str) -> Iterator[None]:
    """Without the notes of a logger, whose level is then what it was."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def outcome(
    case: str,
    read: Read,
    reference: Reference,
    kinds: Iterable[str],
    rng: np.random.Generator,
    *,
    path: str = "",
    transparent: bool = True,
) -> ReadingTally:
    """The tally of one model.

    Args:
        case: The name under which the model can be generated again.
        read: Brittle's reading of it.
        reference: What the model computes.
        kinds: The operations in it.
        rng: Draws the inputs.
        path: The file that holds it, whose name is left out of reasons.
        transparent: Whether a black box computes something of its own that is worth a comparison.

    Returns:
        The tally.
    """
    tally = ReadingTally()
    with warnings.catch_warnings(), quiet("brittle"):
        warnings.simplefilter("ignore")
        try:
            _judge(tally, case, read, reference, kinds, rng, path, transparent)
        except NoOutput as reason:
            tally.skipped[shortened(str(reason), path)] += 1
        except Exception as error:  # any other than a refusal is what is looked for
            line = (str(error).splitlines() or [""])[0][:200]
            tally.violations.append(f"{case}: {type(error).__name__}: {line}")
    return tally


def _judge(
    tally: ReadingTally,
    case: str,
    read: Read,
    reference: Reference,
    kinds: Iterable[str],
    rng: np.random.Generator,
    path: str,
    transparent: bool,
) -> None:
    try:
        network, recognition = read()
    except InputError as error:
        text = str(error)
        if text.strip() and "\n" not in text:
            tally.refused[shortened(text, path)] += 1
        else:
            tally.violations.append(f"{case}: refused in no line or several: {text!r}")
        return
    black = isinstance(network, Adapter)
    found = None
    if comparable(network) and (transparent or not black):
        halved = recognition is not None and any(part.startswith("1/2 is taken from") for part in recognition.parts)
        found = disagreement(network, reference, rng, taken=0.5 if halved else 0.0)
    if found is not None:
        tally.violations.append(f"{case}: {'a black box' if black else type(network).__name__}: {found}")
    elif black:
        tally.black_boxes[shortened(recognition.reason if recognition else "", path)] += 1
    else:
        tally.compared += 1
        tally.kinds.update(set(kinds))
