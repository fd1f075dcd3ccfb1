"""Simulation in the span: the same theorems, at dimensions of any size."""

import json

import pytest
import torch

from brittle.cli import main
from brittle.common.errors import InputError
from brittle.theorems import CheckOutcome
from brittle.theorems.simulate import Request, simulate, sphere
from brittle.theorems.vardi2022.groups import sphere_at_its_limit


def test_the_sphere_is_filled_to_its_limit(rng):
    data = sphere_at_its_limit(10**6, rng)
    gram = (data.X @ data.X.T).fill_diagonal_(0).abs()
    limit = (10**6 + 1) / (3 * (float(gram.max()) + 1))
    assert 60 < len(data) <= limit
    assert torch.allclose(data.X.norm(dim=1), torch.full((len(data),), 1e3).double())
    assert data.dim == 10**6


def test_the_universal_perturbation_in_a_million_million_dimensions(rng):
    found = simulate("vardi2022/4.1", Request(dim=10**12, examples=6), rng)
    assert found.verdict.verdict is CheckOutcome.CONFIRMED
    assert (found.dim, found.examples, found.columns) == (10**12, 6, 6)


def test_clusters_with_unit_noise(rng):
    found = simulate("frei2023/4.2", Request(dim=2 * 10**6, test=30), rng)
    assert found.verdict.verdict is CheckOutcome.CONFIRMED
    assert (found.clusters, found.noise, found.fresh_examples) == (2, 1.0, 30)


def test_too_small_a_dimension_fails_a_hypothesis(rng):
    found = simulate("frei2023/3.1", Request(dim=10**4, examples=20, test=10), rng)
    assert found.verdict.failed == ["clusters", "examples"]


def test_what_cannot_be_simulated(rng):
    with pytest.raises(InputError, match="cannot be simulated"):
        simulate("vardi2022/2.1", Request(dim=100), rng)
    with pytest.raises(InputError, match="do not meet"):
        simulate("vardi2022/4.1", Request(dim=3), rng)


def test_the_command(capsys):
    assert main(["simulate", "vardi2022/4.1", "--dim", "1000000", "--examples", "8", "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["verdict"] == "confirmed"
    assert (content["dim"], content["examples"], content["columns"]) == (10**6, 8, 8)
    assert {"hypotheses", "bound", "measured", "advice", "seconds"} <= set(content)
    assert main(["simulate", "vardi2022/9.9", "--dim", "100"]) == 2
    assert main(["simulate", "vardi2022/4.1", "--dim", "1"]) == 2


def test_points_of_the_sphere_as_many_as_were_asked_for(rng):
    data = sphere(Request(dim=100, examples=2), rng)
    assert data.y.tolist() == [1.0, -1.0]
    assert data.dim == 100
    with pytest.raises(InputError, match="examples is 1"):
        sphere(Request(dim=100, examples=1), rng)
