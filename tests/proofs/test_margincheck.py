"""The checker of margins: by hand, against brute force and fractions, and against forgers."""

import zipfile
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from benchmarks.forged_margins import BREAKS, HELPS, Genuine, accepted, below, broken, copied, genuine, lie
from brittle.cli import main
from brittle.data import Orthogonal, save_data
from brittle.kkt import check_margin, gap, largest
from brittle.kkt.any_width.largest import MOST, _feasible
from brittle.networks import orthogonal_kkt
from margincheck.cover import covered
from margincheck.leaf import feasible
from margincheck.proof import read_data
from proofcheck.balls import Refused
from proofcheck.proof import digest
from tests.kkt.gains import featured, largest_gain
from tests.kkt.invented import arbitrary, by_hand
from tests.kkt.reference import gaussian

HUGE = 2**33


@pytest.fixture(scope="module")
def claims(tmp_path_factory):
    return genuine(tmp_path_factory.mktemp("genuine"), seed=3)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "proof.npz"


def written(proof, data, folder):
    """As a file about these data, with multipliers where they must lie."""
    X, y = data.X.numpy(), data.y.numpy()
    points = tuple(_feasible(point, proof.lam, y) for point in proof.points)
    save_data(data, folder / "data.npz")
    whole = replace(proof, points=points, digest=digest([X, y]))
    return Genuine(whole.arrays(), folder / "data.npz", 0.0)


def roomy():
    """The proof by hand, with the room under its ceiling that the checker asks for."""
    proof, data = by_hand()
    return replace(proof, ceiling=1 + 1e-10), data


def refused(outcome):
    passed, output = outcome
    return not passed and output.count("\n") == 1 and "Traceback" not in output


def test_by_hand(tmp_path, path):
    """γ* = ¼ for e₁ and e₂ with opposite labels: a ceiling of 1 is the truth, and nothing below it is accepted."""
    proof, data = roomy()
    passed, output = accepted(written(proof, data, tmp_path).arrays, written(proof, data, tmp_path), path)
    assert passed
    found = [float(word) for word in output.replace(",", "").split() if word.startswith("0.2")]
    assert found == pytest.approx([0.25, 0.25], rel=1e-10)
    assert found[0] <= 0.25 <= found[1]
    for lower in (1 - 1e-9, 1 - 1e-15):
        claim = written(replace(proof, ceiling=lower), data, tmp_path)
        assert refused(accepted(claim.arrays, claim, path))


@pytest.mark.parametrize("seed", range(6))
def test_no_accepted_ceiling_lies_below_the_largest_gain(tmp_path, path, seed):
    proof, data = arbitrary(seed, biases=seed % 2 == 0)
    gain = largest_gain(featured(data, proof.biases), data.y.numpy(), proof.lam)
    claim = written(replace(proof, ceiling=proof.ceiling * (1 + 1e-9)), data, tmp_path)
    assert accepted(claim.arrays, claim, path)[0]
    claim = written(replace(proof, ceiling=gain**2 * (1 - 1e-9)), data, tmp_path)
    assert refused(accepted(claim.arrays, claim, path))


@pytest.mark.parametrize("seed", range(20))
def test_multipliers_are_judged_exactly(seed):
    """The ends that fractions give, with numbers of very different sizes and sums that cancel."""
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(4, 5)) * 2.0 ** rng.integers(-60, 3, (4, 5))
    lam, signs = rng.random(4) + 0.1, rng.integers(-1, 2, 4).astype(np.int8)
    spread = np.abs(C[:, 1:]).sum(1)
    C[:, 0] = np.where(signs == 1, lam + spread, -spread) + rng.choice([0.0, 1e-16, -1e-16, 1e-13], 4)
    for row in range(4):
        values = [
            Fraction(C[row, 0]) + sum(s * Fraction(c) for s, c in zip(pattern, C[row, 1:], strict=True))
            for pattern in product((-1, 1), repeat=4)
        ]
        size = Fraction(lam[row])
        above = min(values) >= (size if signs[row] == 1 else -size) or signs[row] == -1
        under = max(values) <= 0 or signs[row] == 1
        assert feasible(C[[row]], lam[[row]], signs[[row]]) == (above and under)


def test_coverage_is_that_of_all_patterns():
    def holds(leaves):
        try:
            covered(np.array(leaves, dtype=np.int8).reshape(-1, 3), np.inf)
        except Refused:
            return False
        return True

    assert holds([[0, 0, 0]])
    assert holds([[1, 0, 0], [-1, 1, 0], [-1, -1, 0]])
    assert holds([[1, 0, 0], [-1, 0, 1], [-1, 0, -1], [1, 1, 0]])
    assert not holds([])
    assert not holds([[1, 0, 0], [-1, 1, 0]])
    assert not holds([[1, 0, 0], [0, -1, 0]])
    assert not holds([[1, 0, 0], [1, 1, 0]])


@pytest.mark.parametrize("seed", range(30))
def test_random_leaves_are_covered_only_if_they_hold_every_pattern(seed):
    rng = np.random.default_rng(seed)
    leaves = rng.choice([-1, 0, 0, 1], (int(rng.integers(1, 9)), 3)).astype(np.int8)
    every = all(any((leaf * np.array(one) >= 0).all() for leaf in leaves) for one in product((-1, 1), repeat=3))
    try:
        covered(leaves, np.inf)
    except Refused:
        return
    assert every


def test_genuine_proofs_are_accepted_and_say_what_brittle_says(claims, path):
    for claim in claims:
        passed, output = accepted(claim.arrays, claim, path)
        assert passed
        numbers = [float(word.strip(",")) for word in output.split() if word[0].isdigit()]
        assert numbers[0] == pytest.approx(claim.margin, rel=1e-12)
        assert numbers[2] <= 1e-6


def test_what_the_one_shot_certificate_writes_is_accepted(tmp_path, path):
    data = Orthogonal(6).sample(6)
    found = gap(orthogonal_kkt(data.X, data.y).network, data)
    save_data(data, tmp_path / "data.npz")
    passed, output = accepted(found.proof.arrays(), Genuine({}, tmp_path / "data.npz", 0.0), path)
    assert passed
    assert float(output.split(" above ")[1].split(",")[0]) == pytest.approx(found.upper, rel=1e-12)


@pytest.mark.parametrize("help_", HELPS, ids=lambda each: each.__name__)
def test_no_change_of_the_file_makes_a_lie_pass(claims, path, help_):
    for seed in range(6):
        claim = claims[seed % len(claims)]
        arrays = copied(claim.arrays)
        help_(arrays, np.random.default_rng(seed))
        below(arrays, claim.margin, 1e-9)
        assert refused(accepted(arrays, claim, path))


@pytest.mark.parametrize("break_", BREAKS, ids=lambda each: each.__name__)
def test_a_true_claim_without_its_proof_is_refused(claims, path, break_):
    for seed in range(6):
        claim = claims[seed % len(claims)]
        arrays = copied(claim.arrays)
        break_(arrays, np.random.default_rng(seed))
        assert refused(accepted(arrays, claim, path))


def test_forgeries_at_random(claims, path):
    rng = np.random.default_rng(0)
    for turn in range(100):
        claim = claims[rng.integers(len(claims))]
        _, arrays = (broken if turn % 5 == 0 else lie)(claim, rng)
        assert refused(accepted(arrays, claim, path))


def test_every_leaf_is_needed(claims, path):
    claim = claims[0]
    for gone in range(len(claim.arrays["leaf_points"])):
        arrays = {
            name: np.delete(values, gone, axis=0) if name in ("leaf_points", "leaf_signs") else values
            for name, values in claim.arrays.items()
        }
        passed, output = accepted(arrays, claim, path)
        assert not passed
        assert "NOT PROVED" in output


def test_other_data_and_swapped_examples_are_refused(claims, path, tmp_path):
    claim, other = claims[0], tmp_path / "other.npz"
    data = dict(np.load(claim.data))
    moved = data["X"].copy()
    moved[0, 0] = np.nextafter(moved[0, 0], 9)
    same = data["X"], data["y"]
    for X, y in ((moved, same[1]), (same[0][::-1], same[1][::-1]), (same[0], -same[1]), (same[0], 0 * moved)):
        np.savez(other, X=X, y=y)
        assert refused(accepted(claim.arrays, replace(claim, data=other), path))


@pytest.mark.parametrize("bytes_out", [1, 30, 1000, 3000])
def test_truncated_files_are_refused(claims, path, bytes_out):
    assert refused(accepted(claims[0].arrays, claims[0], path, bytes_out))


def test_a_file_that_unpacks_to_more_than_the_limit_is_not_unpacked(claims, path, capsys):
    from margincheck.__main__ import main as margincheck

    accepted(claims[0].arrays, claims[0], path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more.npy", b"little")
        archive.getinfo("more.npy").file_size = HUGE  # what the directory says
    assert margincheck([str(path), "--data", str(claims[0].data)]) == 2
    assert "too many bytes" in capsys.readouterr().err


def test_time_is_bounded(claims, path, capsys):
    from margincheck.__main__ import main as margincheck

    accepted(claims[0].arrays, claims[0], path)
    assert margincheck([str(path), "--data", str(claims[0].data), "--seconds", "0"]) == 1
    assert "too long" in capsys.readouterr().out


def test_a_network_without_a_margin_is_told_apart_from_a_bound_that_fails(tmp_path, path):
    proof, data = roomy()
    silent = replace(proof, network=replace(proof.network, v=-proof.network.v))
    passed, output = accepted(written(silent, data, tmp_path).arrays, written(silent, data, tmp_path), path)
    assert passed
    assert "a margin of 0.0 or more" in output


def test_brittle_itself_refuses_a_proof_about_other_data():
    data = gaussian(5, 3, 0)
    best = largest(data, gap=1e-3)
    assert check_margin(best.proof, data).accepted
    found = check_margin(best.proof, gaussian(5, 3, 1))
    assert not found.accepted
    assert found.reason == "it is about other data"


@pytest.mark.parametrize("suffix", ["npz", "csv"])
def test_the_command_writes_what_the_checker_reads(tmp_path, monkeypatch, capsys, suffix):
    """Data that the checker cannot read are written beside the proof."""
    from margincheck.__main__ import main as margincheck

    monkeypatch.chdir(tmp_path)
    data = gaussian(6, 2, 0)
    if suffix == "npz":
        save_data(data, tmp_path / "data.npz")
    else:
        rows = np.c_[data.X.numpy(), data.y.numpy()]
        np.savetxt("data.csv", rows, delimiter=",", header="a,b,y", comments="", fmt="%.17g")
    assert main(["kkt", "--data", f"data.{suffix}", "--largest", "--gap", "1e-3", "--proof", "proof.npz"]) == 0
    readable = "data.npz" if suffix == "npz" else "proof.data.npz"
    assert (tmp_path / "proof.data.npz").exists() == (suffix == "csv")
    capsys.readouterr()
    assert margincheck(["proof.npz", "--data", readable]) == 0


def test_as_many_examples_as_a_search_takes_are_checked(tmp_path):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(MOST) % 2, 1.0, -1.0)
    np.savez(tmp_path / "data.npz", X=y[:, None] + 0.1 * rng.random((MOST, 1)), y=y)
    assert len(read_data(tmp_path / "data.npz")[0]) == MOST


def test_multipliers_whose_half_is_no_float_are_refused(tmp_path, path):
    proof, data = roomy()
    claim = written(proof, data, tmp_path)
    arrays = {**claim.arrays, "lam": np.full_like(proof.lam, 2.0**-1074)}
    assert refused(accepted(arrays, claim, path))
