"""The cheapest label, beside costs that are summed one by one."""

import numpy as np

from wolfstream.solver.calibration.costs import cheapest


def test_it_has_the_least_expected_cost():
    random = np.random.default_rng(0)
    p = random.dirichlet(np.ones(5), 300)
    cost = random.exponential(10.0, (5, 5))
    codes, expected = cheapest(p, cost)
    for row, code, least in zip(p, codes, expected, strict=True):
        costs = [sum(row[k] * cost[k, j] for k in range(5)) for j in range(5)]
        assert code == np.argmin(costs)
        assert least == costs[code]


def test_without_other_costs_the_likeliest_class_is_cheapest():
    p = np.random.default_rng(1).dirichlet(np.ones(4), 100)
    codes, expected = cheapest(p, 1.0 - np.eye(4))
    np.testing.assert_array_equal(codes, p.argmax(axis=1))
    np.testing.assert_allclose(expected, 1.0 - p.max(axis=1))


def test_of_equal_costs_the_likeliest_class_wins():
    codes, _ = cheapest(np.array([[0.2, 0.5, 0.3]]), np.zeros((3, 3)))
    assert codes.tolist() == [1]


def test_rows_alone_give_the_same_bits():
    random = np.random.default_rng(2)
    p, cost = random.dirichlet(np.ones(7), 64), random.random((7, 7))
    together = cheapest(p, cost)[1]
    alone = [cheapest(row[None], cost)[1][0] for row in p]
    assert together.tolist() == alone
