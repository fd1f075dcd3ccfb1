"""Every refusal of a margin's proof, by one array that is wrong alone."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.forged_margins import Genuine, accepted
from brittle.data import save_data
from brittle.kkt.any_width.largest import _feasible
from margincheck.proof import RANGE, read_data, read_proof
from proofcheck.balls import Refused
from proofcheck.proof import digest
from tests.kkt.invented import by_hand


@pytest.fixture
def claim(tmp_path):
    """The proof by hand of γ* = ¼ for e₁ and e₂."""
    proof, data = by_hand()
    X, y = data.X.numpy(), data.y.numpy()
    points = tuple(_feasible(point, proof.lam, y) for point in proof.points)
    save_data(data, tmp_path / "data.npz")
    whole = replace(proof, ceiling=1 + 1e-10, points=points, digest=digest([X, y]))
    return Genuine(whole.arrays(), tmp_path / "data.npz", 0.25)


def put(name, place, value):
    def change(arrays):
        arrays[name] = np.array(arrays[name])
        arrays[name].flat[place] = value

    return change


def recast(name, kind):
    return lambda arrays: arrays.update({name: arrays[name].astype(kind)})


def without_last(*names):
    return lambda arrays: arrays.update({name: arrays[name][:-1] for name in names})


def with_bias(arrays):
    arrays["biases"] = np.zeros_like(arrays["biases"])
    put("b", 0, 0.5)(arrays)


def outer_bias(arrays):
    arrays["c"] = np.ones(1)


def longer(name):
    return lambda arrays: arrays.update({name: np.append(arrays[name], 0.0)})


WRONG = [
    ("signs, sides and places must be integers", recast("leaf_signs", float)),
    ("signs, sides and places must be integers", recast("point_sides", float)),
    ("its arrays do not fit together", without_last("lam")),
    ("its arrays do not fit together", without_last("leaf_signs")),
    ("its arrays do not fit together", without_last("point_sides")),
    ("a number is too large, or none", put("W", 0, np.nan)),
    ("a number is too large, or none", put("W", 0, 2 * RANGE)),
    ("a number is too large, or none", put("ceiling", 0, np.inf)),
    ("λ and the ceiling must be positive", put("lam", 0, -1.0)),
    ("λ and the ceiling must be positive", put("lam", 0, 0.5 / RANGE)),
    ("λ and the ceiling must be positive", put("lam", slice(None), 0.0)),
    ("λ and the ceiling must be positive", put("ceiling", 0, 0.0)),
    ("a side is none", put("point_sides", 0, 0)),
    ("a side is none", put("point_sides", 0, 2)),
    ("a sign is none", put("leaf_signs", 0, 2)),
    ("a sign is none", put("point_signs", 0, -2)),
    ("a leaf has no point", put("leaf_points", 0, 2)),
    ("a leaf has no point", put("leaf_points", 0, -1)),
    ("the network has a bias that takes no part", with_bias),
    ("the network has a bias that takes no part", outer_bias),
    ("y or C is too long", longer("y")),
    ("y or C is too long", longer("C")),
    ("y or C is too short", without_last("y")),
    ("y or C is too short", without_last("C")),
]


def test_the_claim_itself_is_accepted(claim, tmp_path):
    assert accepted(claim.arrays, claim, tmp_path / "proof.npz")[0]


@pytest.mark.parametrize(("message", "change"), WRONG, ids=[f"{row}: {each[0]}" for row, each in enumerate(WRONG)])
def test_one_wrong_array_is_refused_for_its_own_reason(claim, tmp_path, message, change):
    change(claim.arrays)
    passed, output = accepted(claim.arrays, claim, tmp_path / "proof.npz")
    assert not passed
    assert message in output


@pytest.mark.parametrize("wrong", [2 * RANGE, -2 * RANGE, np.inf, np.nan])
def test_examples_with_one_number_out_of_range_are_refused(tmp_path, wrong):
    X, y = np.eye(2), np.array([1.0, -1.0])
    np.savez(tmp_path / "data.npz", X=RANGE * X, y=y)
    assert read_data(tmp_path / "data.npz")[0].max() == RANGE
    X[1, 1] = wrong
    np.savez(tmp_path / "data.npz", X=X, y=y)
    with pytest.raises(Refused, match="too many or too large"):
        read_data(tmp_path / "data.npz")


def test_leaves_take_no_more_time_than_is_given(claim, tmp_path):
    np.savez(tmp_path / "proof.npz", **claim.arrays)
    for seconds in np.inf, 0.0:
        proof = read_proof(tmp_path / "proof.npz", *read_data(claim.data), seconds)
        if seconds:
            proof._check(0)
            continue
        with pytest.raises(Refused, match="too long"):
            proof._check(0)
