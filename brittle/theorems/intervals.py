"""Confidence in a rate that was counted."""

import scipy


def clopper_pearson(failures: int, trials: int, confidence: float = 0.99) -> tuple[float, float]:
    """The exact interval for a binomial rate."""
    beta, tail = scipy.stats.beta, (1 - confidence) / 2
    low = 0.0 if failures == 0 else float(beta.ppf(tail, failures, trials - failures + 1))
    high = 1.0 if failures == trials else float(beta.ppf(1 - tail, failures + 1, trials - failures))
    return low, high
