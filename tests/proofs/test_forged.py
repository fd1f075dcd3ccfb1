"""Genuine proofs are accepted; forged ones are refused in one line, in bounded time and memory."""

import io
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmarks.forged import BREAKS, HELPS, accepted, broken, genuine, lie, run
from proofcheck.__main__ import main
from proofcheck.balls import Refused
from proofcheck.network import Intervals, Network
from proofcheck.proof import DEEPEST, NEVER, SPLIT, Proof, digest, read_data, read_network

HUGE = 2**33


@pytest.fixture(scope="module")
def claims(tmp_path_factory):
    return genuine(tmp_path_factory.mktemp("genuine"), seed=3, examples=2)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "proof.npz"


def refused(outcome):
    passed, output = outcome
    return not passed and output.count("\n") == 1 and "Traceback" not in output


def test_genuine_claims_are_accepted(claims, path):
    assert len(claims) == 6
    for claim in claims:
        passed, output = accepted(claim.arrays, claim, path)
        assert passed
        assert f"no flip within {float(claim.arrays['radii'][0])!r}" in output


def test_a_radius_that_is_raised_by_a_billionth_above_a_flip_is_refused(claims, path):
    for claim in claims:
        arrays = {**claim.arrays, "radii": np.array([claim.upper * (1 + 1e-9)])}
        passed, output = accepted(arrays, claim, path)
        assert not passed
        assert "NOT PROVED" in output


@pytest.mark.parametrize("help_", HELPS, ids=lambda each: each.__name__)
def test_no_change_of_the_file_makes_a_lie_pass(claims, path, help_):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        claim = claims[seed % len(claims)]
        arrays = {name: values.copy() for name, values in claim.arrays.items()}
        arrays["radii"] = np.array([claim.upper * (1 + 1e-9)])
        help_(arrays, rng)
        assert refused(accepted(arrays, claim, path))


@pytest.mark.parametrize("break_", BREAKS, ids=lambda each: each.__name__)
def test_a_true_claim_without_its_proof_is_refused(claims, path, break_):
    for seed in range(4):
        claim = claims[seed % len(claims)]
        arrays = {name: values.copy() for name, values in claim.arrays.items()}
        break_(arrays, np.random.default_rng(seed))
        assert refused(accepted(arrays, claim, path))


def test_forgeries_at_random(claims, path):
    rng = np.random.default_rng(0)
    for turn in range(60):
        claim = claims[rng.integers(len(claims))]
        _, arrays = (broken if turn % 5 == 0 else lie)(claim, rng)
        assert refused(accepted(arrays, claim, path))


def test_every_branch_is_needed(claims, path):
    """Each line taken out of a program with a split leaves something open, or a line too many."""
    claim = next(claim for claim in claims if (claim.arrays["program"][:, 0] == 2).any())
    splits = np.flatnonzero(claim.arrays["program"][:, 0] == 2)
    program = claim.arrays["program"]
    for split in splits:
        arrays = {**claim.arrays, "program": np.delete(program, split, axis=0)}
        arrays["starts"] = np.where(arrays["starts"] > split, arrays["starts"] - 1, arrays["starts"])
        assert refused(accepted(arrays, claim, path))


def test_another_network_and_swapped_examples_are_refused(claims, path, tmp_path):
    claim = claims[0]
    accepted(claim.arrays, claim, path)
    network = dict(np.load(claim.network))
    network["weight.0"][0, 0] = np.nextafter(network["weight.0"][0, 0], 9)
    np.savez(tmp_path / "network.npz", **network)
    assert refused(run(path, tmp_path / "network.npz", claim.data))
    data = dict(np.load(claim.data))
    np.savez(tmp_path / "data.npz", X=data["X"][::-1], y=data["y"][::-1])
    assert refused(run(path, claim.network, tmp_path / "data.npz"))
    np.savez(tmp_path / "data.npz", X=data["X"], y=-data["y"])
    assert refused(run(path, claim.network, tmp_path / "data.npz"))


@pytest.mark.parametrize("kept", [0, 1, 100, 1000, -1, -30])
def test_truncated_files_are_refused(claims, path, kept):
    claim = claims[0]
    accepted(claim.arrays, claim, path)
    path.write_bytes(path.read_bytes()[:kept])
    assert refused(run(path, claim.network, claim.data))


def test_numbers_in_another_order_or_type_are_the_same_numbers(claims, path):
    claim = claims[0]
    arrays = {name: np.asfortranarray(values) for name, values in claim.arrays.items()}
    arrays["radii"] = arrays["radii"].astype(">f8")
    arrays["rows"] = arrays["rows"].astype(np.uint8)
    assert accepted(arrays, claim, path)[0]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("kinds", np.zeros((0, 12), dtype=np.int8)),
        ("kinds", np.zeros((3, 5), dtype=np.int8)),
        ("mu", np.zeros((2, 2))),
        ("program", np.zeros((4, 3), dtype=np.int64)),
        ("starts", np.zeros(9, dtype=np.int64)),
        ("rows", np.array([-1])),
        ("rows", np.array([99])),
        ("rows", np.array([0.0])),
        ("radii", np.array([1 + 2j])),
        ("lam", np.array([{}])),
        ("box", np.zeros(3)),
        ("network", np.zeros(32, dtype=np.uint8)),
        ("radii", np.array(3.0)),
    ],
)
def test_arrays_of_the_wrong_shape_or_type_are_refused(claims, path, name, values):
    claim = claims[0]
    assert refused(accepted({**claim.arrays, name: values}, claim, path))


def test_a_file_that_unpacks_to_more_than_the_limit_is_not_unpacked(claims, path):
    claim = claims[0]
    accepted({name: values for name, values in claim.arrays.items() if name != "tau"}, claim, path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tau.npy", _header((HUGE // 8,)))
        archive.getinfo("tau.npy").file_size = HUGE  # what the directory says
    assert refused(run(path, claim.network, claim.data))


def test_a_header_that_declares_more_than_there_is_is_refused(claims, path):
    claim = claims[0]
    accepted({name: values for name, values in claim.arrays.items() if name != "radii"}, claim, path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("radii.npy", _header((2**50,)))
    assert refused(run(path, claim.network, claim.data))


def test_a_program_that_never_ends_is_cut(claims, path):
    claim = claims[0]
    splits = np.array([[2, 0]] * 5000)
    starts = np.append(claim.arrays["starts"][:-1], len(splits))
    assert refused(accepted({**claim.arrays, "program": splits, "starts": starts}, claim, path))


def _header(shape):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return stream.getvalue()


def written(folder, W, b, v, c, x, radius, program):
    """A proof about one example of the label 1, with no step in it."""
    network, data = [np.array(W), np.array(b), np.array([v]), np.array([c])], [np.array([x]), np.ones(1)]
    np.savez(folder / "network.npz", W=W, b=b, v=v, c=c)
    np.savez(folder / "data.npz", X=data[0], y=data[1])
    hashes = {name: np.frombuffer(digest(part), np.uint8) for name, part in (("network", network), ("data", data))}
    claim = {"rows": np.zeros(1, dtype=int), "radii": np.array([radius]), "starts": np.array([0, len(program)])}
    nothing = {"kinds": np.zeros((0, len(b)), dtype=np.int8), "mu": np.zeros(0)}
    np.savez(folder / "proof.npz", program=np.array(program), **hashes, **claim, **nothing)
    return [str(folder / "proof.npz"), "--network", str(folder / "network.npz"), "--data", str(folder / "data.npz")]


def test_a_proof_of_nothing_is_refused(claims, path):
    """Whoever looks at the exit code alone would take it for proved."""
    rows = np.zeros(0, dtype=np.int64)
    nothing = {"rows": rows, "radii": np.zeros(0), "starts": np.zeros(1, dtype=np.int64)}
    for claim in claims[:2]:
        examples = [each[:0] for each in read_data(claim.data, read_network(claim.network))]
        of_none = np.frombuffer(digest(examples), dtype=np.uint8)
        outcome = accepted({**claim.arrays, **nothing, "data": of_none}, claim, path)
        assert refused(outcome)
        assert "it claims nothing" in outcome[1]


def test_a_split_of_a_neuron_whose_input_overflows_closes_nothing(tmp_path, capsys):
    """f = φ(x_2) - ½ flips at a distance of ½; the other neuron's input is 1e400, whose interval is NaN as a float."""
    claim = [[1e200, 0.0], [0.0, 1.0]], [0.0, 0.0], [0.0, 1.0], -0.5, [1e200, 1.0], 100.0
    assert main(written(tmp_path, *claim, program=[[SPLIT, 0]])) == 1
    assert "NOT PROVED" in capsys.readouterr().out


def test_without_denormals_nothing_is_proved(tmp_path, capsys):
    truth = [[1.0]], [0.0], [1.0], 1.0, [0.0], 1.0
    proof = written(tmp_path, *truth, program=[[NEVER, 0]])
    assert main(proof) == 0
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush denormals")
    try:
        assert main(proof) == 2
    finally:
        torch.set_flush_denormal(False)
    assert "flushed to 0" in capsys.readouterr().err


def test_a_file_with_two_networks_is_refused(tmp_path, capsys):
    proof = written(tmp_path, [[1.0]], [0.0], [1.0], 1.0, [0.0], 1.0, program=[[NEVER, 0]])
    with np.load(tmp_path / "network.npz") as file:
        both = {**file, "weight.0": np.eye(1), "bias.0": np.zeros(1)}
    np.savez(tmp_path / "network.npz", **both)
    assert main(proof) == 2
    assert "one network" in capsys.readouterr().err


def followed(lines, known, depth=0, never=True):
    """The intervals that are left wherever a program says NEVER."""
    seen = []
    margin = SimpleNamespace(never=lambda left: seen.append((left.low.tolist(), left.high.tolist())) or never)
    nothing = Network([np.eye(1)] * 2, [np.zeros(1)] * 2)
    proof = Proof(nothing, np.zeros((1, 1)), np.ones(1), {"kinds": np.zeros((0, 1))}, np.inf)
    proof._run(margin, iter(lines), known, depth)
    return seen


def test_a_split_leaves_the_part_above_0_and_then_the_part_below():
    known = Intervals(np.array([-3.0, -5.0]), np.array([4.0, np.inf]))
    first = followed([[SPLIT, 0], [NEVER, 0], [NEVER, 0]], known)
    assert first == [([0.0, -5.0], [4.0, np.inf]), ([-3.0, -5.0], [0.0, np.inf])]
    second = followed([[SPLIT, 1], [NEVER, 0], [NEVER, 0]], known)
    assert second == [([-3.0, 0.0], [4.0, np.inf]), ([-3.0, -5.0], [4.0, 0.0])]


@pytest.mark.parametrize("line", [[SPLIT, 2], [SPLIT, -1], [NEVER + 1, 0], [-1, 0]])
def test_a_line_that_is_none_and_a_program_that_ends_early_leave_a_branch_open(line):
    known = Intervals(np.full(2, -1.0), np.full(2, 1.0))
    for program in ([line], [[SPLIT, 0], line], [[SPLIT, 0], [NEVER, 0]], []):
        with pytest.raises(Refused, match="left open"):
            followed(program, known)
    with pytest.raises(Refused, match="left open"):
        followed([[NEVER, 0]], known, never=False)


def test_a_program_may_split_so_often_on_one_way_and_no_more():
    known = Intervals(np.full(1, -1.0), np.full(1, 1.0))
    assert len(followed([[NEVER, 0]], known, depth=DEEPEST)) == 1
    with pytest.raises(Refused, match="too long"):
        followed([[NEVER, 0]], known, depth=DEEPEST + 1)
    with pytest.raises(Refused, match="too long"):
        followed([[SPLIT, 0], [NEVER, 0], [NEVER, 0]], known, depth=DEEPEST)


@pytest.mark.parametrize("bias", [-0.5, 0.5])
def test_a_split_of_a_neuron_with_one_sign_closes_only_the_empty_part(tmp_path, capsys, bias):
    """f = φ(x) - ½ flips at a distance of ½; the other neuron's input is the bias."""
    claim = [[0.0], [1.0]], [bias, 0.0], [0.0, 1.0], -0.5, [1.0], 100.0
    assert main(written(tmp_path, *claim, program=[[SPLIT, 0]])) == 1
    assert "NOT PROVED" in capsys.readouterr().out


def saved(path, **arrays):
    np.savez(path, **{name.replace("_", "."): np.array(values, dtype=float) for name, values in arrays.items()})
    return path


UNFIT = {
    "one layer": {"weight_0": [[1, 2]], "bias_0": [0]},
    "a bias too many": {"weight_0": [[1, 2]], "bias_0": [0, 0], "weight_1": [[1]], "bias_1": [0]},
    "a column too many": {"weight_0": [[1, 2]], "bias_0": [0], "weight_1": [[1, 1]], "bias_1": [0]},
    "a bias of rows": {"weight_0": [[1, 2]], "bias_0": [[0]], "weight_1": [[1]], "bias_1": [0]},
    "no inputs": {"weight_0": [[], []], "bias_0": [0, 0], "weight_1": [[1, 1]], "bias_1": [0]},
    "no neurons": {"weight_0": np.zeros((0, 2)), "bias_0": [], "weight_1": [[]], "bias_1": [0]},
}


@pytest.mark.parametrize("arrays", UNFIT.values(), ids=UNFIT)
def test_layers_that_do_not_fit_together_are_refused(tmp_path, arrays):
    with pytest.raises(Refused, match="fit together"):
        read_network(saved(tmp_path / "network.npz", **arrays))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["W", "b", "v", "c"])
def test_a_network_with_one_number_that_is_none_is_refused(tmp_path, name, bad):
    arrays = {"W": np.eye(2), "b": np.zeros(2), "v": np.ones(2), "c": np.zeros(1)}
    assert len(read_network(saved(tmp_path / "network.npz", **arrays)).weights) == 2
    arrays[name].flat[-1] = bad
    with pytest.raises(Refused, match="NaN or infinity"):
        read_network(saved(tmp_path / "network.npz", **arrays))


def test_labels_are_signs_of_one_logit_or_numbers_of_classes(tmp_path):
    hidden, X = {"weight_0": np.eye(2), "bias_0": np.zeros(2)}, np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    for outputs, good, wrong in (1, [-1, 1, -1], (0, 2, -2, 0.5, np.nan)), (3, [0, 1, 2], (-1, 3, 0.5, np.nan)):
        last = {"weight_1": np.ones((outputs, 2)), "bias_1": np.zeros(outputs)}
        network = read_network(saved(tmp_path / "network.npz", **hidden, **last))
        read, labels = read_data(saved(tmp_path / "data.npz", X=X, y=good), network)
        assert read.tolist() == X.tolist()
        assert labels.tolist() == good
        for label in wrong:
            with pytest.raises(Refused, match="a label"):
                read_data(saved(tmp_path / "data.npz", X=X, y=[*good[:-1], label]), network)
        for unfit in {"X": X[:2], "y": good}, {"X": X[:, :1], "y": good}, {"X": X, "y": np.array(good)[:, None]}:
            with pytest.raises(Refused, match="do not fit the network"):
                read_data(saved(tmp_path / "data.npz", **unfit), network)
