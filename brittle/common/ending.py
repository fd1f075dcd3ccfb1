"""How a computation ended: one vocabulary for training, certificates and the KKT solver."""

import enum


class Status(enum.StrEnum):
    """A word, as tables and JSON show it, with one line of `advice` on what to do about it.

    It is a string as well: `training.status == "reached"`. Training ends as REACHED, BUDGET, STALLED, DIVERGED or
    INTERRUPTED; a certificate of one example as ERROR, EXACT, CAPPED or OPEN; the KKT solver as SOLVED or INACCURATE;
    the search for the largest margin as REACHED, BUDGET or ROUNDING.

    Examples:
        >>> from brittle.training import Status
        >>> Status.STALLED.value
        'stalled'
        >>> Status.STALLED.advice
        'no step lowers the loss any more: ask for an earlier stop, or go on with gradient flow'
    """

    advice: str

    def __new__(cls, word: str, advice: str) -> "Status":
        """A string that carries its advice."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.advice = advice
        return member

    REACHED = "reached", "the goal is reached"
    BUDGET = "budget", "steps or seconds ran out before the goal: allow more, or go on from the checkpoint"
    STALLED = "stalled", "no step lowers the loss any more: ask for an earlier stop, or go on with gradient flow"
    DIVERGED = "diverged", "the loss left the floating-point numbers: take a smaller rate"
    INTERRUPTED = "interrupted", "ended by the user between two steps: resume from the checkpoint"

    ERROR = "error", "the example is misclassified as it is: its radius is 0"
    EXACT = "exact", "lower and upper bound agree up to the method's gap"
    CAPPED = "capped", "no flip lies below the cap: raise the cap to learn more"
    OPEN = "open", "the radius lies between the bounds: the exact certificate or more time brings them together"

    SOLVED = "solved", "a KKT point to rounding error"
    INACCURATE = (
        "inaccurate",
        "near a KKT point only: read the residual before relying on it; examples that nearly coincide "
        "are the usual cause, so merge them or start from another network",
    )

    ROUNDING = "rounding", "rounding errors hide the rest: ask for less, or centre and scale the examples to size 1"
