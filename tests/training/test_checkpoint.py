"""Interrupted runs go on to the network that they would have become, bit for bit."""

import os
import signal

import numpy as np
import pytest
import torch

from brittle.common.errors import InputError
from brittle.data import Sphere
from brittle.networks import TorchLinearInit
from brittle.training import Exponential, Flow, GradientDescent, LogLoss, Steps, run
from tests.cases import REGIMES


def setup(seed=0):
    rng = torch.Generator().manual_seed(seed)
    data = Sphere(8).sample(10, rng)
    return TorchLinearInit().draw(8, 12, rng), data, rng


@pytest.mark.parametrize("regime", [regime for _, regime in REGIMES], ids=[name for name, _ in REGIMES])
@pytest.mark.parametrize("interrupted_at", [1, 4])
def test_a_resumed_run_ends_in_the_same_network(tmp_path, monkeypatch, regime, interrupted_at):
    whole = regime.train(*setup())
    place = tmp_path / "run.npz"

    def interrupt(progress):
        if f"step {interrupted_at}" in progress.note:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(run, "SECONDS_BETWEEN_REPORTS", -1.0)
    first = regime.train(*setup(), watch=interrupt, checkpoint=place)
    assert first.status == "interrupted"
    assert first.steps == interrupted_at
    second = regime.train(*setup(), checkpoint=place, resume=True)
    assert second.status == whole.status
    for name in ("W", "b", "v", "c"):
        assert torch.equal(getattr(second.network, name), getattr(whole.network, name))
    assert second.path == whole.path
    assert second.gradient_evaluations == whole.gradient_evaluations
    assert second.log_loss == whole.log_loss


def test_a_budget_leaves_a_checkpoint_from_which_a_larger_one_goes_on(tmp_path):
    place = tmp_path / "run.npz"
    short = Flow(until=(LogLoss(-1), Steps(5))).train(*setup(), checkpoint=place)
    assert short.status == "budget"
    longer = Flow(until=LogLoss(-1)).train(*setup(), checkpoint=place, resume=True)
    whole = Flow(until=LogLoss(-1)).train(*setup())
    assert torch.equal(longer.network.W, whole.network.W)


def test_too_long_a_step_keeps_the_last_good_state(tmp_path):
    place = tmp_path / "run.npz"
    result = GradientDescent(until=Steps(9), rate=1e9, loss=Exponential()).train(*setup(), checkpoint=place)
    assert result.status == "diverged"
    with np.load(place, allow_pickle=False) as arrays:
        assert np.isfinite(arrays["theta"]).all()


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    place = tmp_path / "run.npz"
    Flow(until=(LogLoss(-20), Steps(5))).train(*setup(), checkpoint=place)
    with pytest.raises(InputError, match="belongs to other data"):
        Flow(until=LogLoss(-20)).train(*setup(seed=1), checkpoint=place, resume=True)
    with pytest.raises(InputError, match="belongs to other data"):
        Flow(until=LogLoss(-20), tolerance=1e-2).train(*setup(), checkpoint=place, resume=True)
    np.savez(place, theta=np.zeros(3))
    with pytest.raises(InputError, match="is not a checkpoint"):
        Flow().train(*setup(), checkpoint=place, resume=True)
    place.write_bytes(b"PK nonsense")
    with pytest.raises(InputError, match="not a complete"):
        Flow().train(*setup(), checkpoint=place, resume=True)
    with pytest.raises(InputError, match="no such file"):
        Flow().train(*setup(), checkpoint=tmp_path / "absent.npz", resume=True)
    with pytest.raises(InputError, match="resume needs the path"):
        Flow().train(*setup(), resume=True)
    with pytest.raises(InputError, match="does not exist"):
        Flow().train(*setup(), checkpoint=tmp_path / "absent" / "run.npz")
