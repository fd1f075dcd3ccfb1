"""The short checks accept what they should and name what they refuse."""

import math
from fractions import Fraction

import numpy
import pytest
import torch

from brittle.common.errors import (
    InputError,
    require,
    require_between,
    require_count,
    require_not_negative,
    require_positive,
    require_value,
)


def test_good_values_pass():
    require(True, "never seen")
    require_count("width", 1)
    require_count("seed", 0, least=0)
    for value in (0.1, 3, Fraction(1, 3), numpy.float32(0.5), numpy.int64(2), torch.tensor(0.5)):
        require_positive("scale", value)
    require_between("share", 1, 0, 1)
    assert require_value(0, "nought is not missing") == 0


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (lambda: require(False, "the message"), "the message"),
        (lambda: require_value(None, "the labels are missing"), "the labels are missing"),
        (lambda: require_count("width", 0), "width is 0; it must be a whole number of at least 1"),
        (lambda: require_count("width", 2.0), "width is 2.0"),
        (lambda: require_count("width", True), "width is True"),
        (lambda: require_count("width", "3"), "width is '3'"),
        (lambda: require_positive("scale", 0), "scale is 0; it must be a positive finite number"),
        (lambda: require_positive("scale", math.inf), "scale is inf"),
        (lambda: require_positive("scale", math.nan), "scale is nan"),
        (lambda: require_positive("scale", "60"), "scale is '60'; it must be a positive finite number"),
        (lambda: require_positive("scale", True), "scale is True"),
        (lambda: require_positive("scale", None), "scale is None"),
        (lambda: require_positive("scale", [1.0]), r"scale is \[1.0\]"),
        (lambda: require_positive("scale", torch.ones(2)), "scale is tensor"),
        (lambda: require_positive("scale", 10**400), "it must be a positive finite number"),
        (lambda: require_not_negative("noise", "0"), "noise is '0'; it must be a finite number of at least 0"),
        (lambda: require_between("share", "1", 0, 1), "share is '1'; it must lie between 0 and 1"),
        (lambda: require_between("share", 1.5, 0, 1), "share is 1.5; it must lie between 0 and 1"),
        (lambda: require_between("share", math.nan, 0, 1), "share is nan"),
    ],
)
def test_bad_values_are_named(check, words):
    with pytest.raises(InputError, match=words):
        check()
    assert issubclass(InputError, ValueError)
