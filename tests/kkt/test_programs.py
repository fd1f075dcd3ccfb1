"""The solver's parts against other solvers: the convex round, pricing, and systems in the shape of an arrow."""

import cvxpy as cp
import pytest
import torch

from brittle.kkt.arrow import Arrow, ArrowBlock, ArrowVector
from brittle.kkt.examples import PatternColumns, find_columns, gather
from brittle.kkt.restricted_master import solve_master
from brittle.kkt.working_set import compute_reduced_costs
from tests.kkt.reference import fitted, gaussian, generator, smallest_norm


def program(seed, examples=9, dim=5, width=20):
    data = gaussian(examples, dim, seed)
    X = torch.cat([data.X, torch.ones(examples, 1, dtype=torch.float64)], 1)
    network = fitted(data, width, seed)
    order = network.v.abs().argsort(descending=True)
    columns = find_columns(network.preactivations(data.X)[:, order], network.v[order].sign(), data.y).distinct()
    return gather(X, data.y), columns


@pytest.mark.parametrize("seed", range(6))
def test_the_dual_interior_point_agrees_with_a_cone_solver(seed):
    examples, columns = program(seed)
    solved = solve_master(examples, columns, 1e-9).iterate
    norm = float(solved.values.lam.sum()) / examples.unit**0.5
    assert norm == pytest.approx(smallest_norm(examples.X, examples.y, columns), rel=1e-6)
    assert float(solved.duals.slack.sum()) == pytest.approx(float(solved.values.lam.sum()), rel=1e-7)


def test_columns_that_classify_nothing_show_as_unbounded_multipliers():
    examples, columns = program(0)
    patterns = columns.patterns.clone()
    patterns[:, 0] = 0
    solved = solve_master(examples, PatternColumns(columns.signs, patterns).distinct(), 1e-6).iterate
    assert float(solved.values.lam[0]) > 1e3 * float(solved.values.lam[1:].median())


@pytest.mark.parametrize("seed", range(3))
def test_pricing_finds_the_shortest_vectors(seed):
    examples, columns = program(seed)
    lam = torch.rand(len(examples.y), generator=generator(seed), dtype=torch.float64)
    lengths = 1 - compute_reduced_costs(examples.K, examples.y, lam, columns, below=1.0, steps=4000)
    rows = examples.X.numpy() / examples.unit**0.5
    for g in range(0, len(columns), 3):
        other = (examples.y != columns.signs[g]).numpy()
        t = cp.Variable(int(other.sum()), nonneg=True)
        vector = (columns.patterns[g] * lam).numpy() @ rows - t @ rows[other]
        shortest = cp.Problem(cp.Minimize(cp.norm(vector)), [t <= lam.numpy()[other]]).solve(solver=cp.CLARABEL)
        assert float(lengths[g]) == pytest.approx(shortest, abs=1e-5)
        assert float(lengths[g]) >= shortest - 1e-6


def test_priced_columns_lower_the_norm():
    examples, columns = program(1, examples=16)
    half = columns.take(torch.arange(len(columns)) % 2 == 0)
    solved = solve_master(examples, half, 1e-8).iterate
    costs = compute_reduced_costs(examples.K, examples.y, solved.values.lam, columns, below=0.0)
    entering = costs < -1e-6
    assert (costs[::2] >= -1e-4).all()
    more = half.joined(columns.take(entering))
    assert len(more) > len(half)
    assert float(solve_master(examples, more, 1e-8).iterate.values.lam.sum()) < float(solved.values.lam.sum())


def test_columns_are_kept_once_and_positive_first():
    signs = torch.tensor([-1.0, 1.0, -1.0, 1.0, 1.0])
    patterns = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    assert PatternColumns(signs, patterns).first().tolist() == [1, 0]


def test_an_arrow_is_the_matrix_that_it_stands_for():
    rng = generator(0)

    def positive(*shape):
        A = torch.randn(*shape, shape[-1], generator=rng, dtype=torch.float64)
        return A @ A.mT + torch.eye(shape[-1], dtype=torch.float64) * 5

    index = torch.tensor([[0, 2], [1, 3]])
    cross = 0.1 * torch.randn(2, 2, 4, generator=rng, dtype=torch.float64)
    arrow = Arrow(positive(4), (ArrowBlock(index, positive(2, 2), cross),))
    H = torch.zeros(8, 8, dtype=torch.float64)
    H[:4, :4] = arrow.head
    for g in range(2):
        part = slice(4 + 2 * g, 6 + 2 * g)
        H[part, part], H[part, :4], H[:4, part] = arrow.blocks[0].own[g], cross[g], cross[g].T
    x = torch.randn(8, generator=rng, dtype=torch.float64)
    torch.testing.assert_close(torch.cat(arrow.apply(ArrowVector(x[:4], x[4:]))), H @ x)
    diagonal, low, high = torch.rand(4, generator=rng).double(), torch.rand(4).double(), torch.rand(4).double()
    for k, i in enumerate(index.flatten().tolist()):
        e = torch.zeros(8, dtype=torch.float64)
        e[i], e[4 + k] = 1, -1
        H += high[k] * torch.outer(e, e)
        H[4 + k, 4 + k] += low[k]
    H[range(4), range(4)] += diagonal
    solved = torch.cat(arrow.factor(diagonal, low, high).solve(ArrowVector(x[:4], x[4:])))
    torch.testing.assert_close(solved, torch.linalg.solve(H, x))
