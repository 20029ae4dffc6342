"""Basis functions: their values, their plain data, and which ones are refused with which words."""

import json
import math

import numpy as np
import pytest

from wolfstream.solver.rows.matrix import sparse_from_csr
from wolfstream.solver.semiparametric.basis import (
    Basis,
    basis_from_data,
    basis_to_data,
    check_independent,
    evaluate,
    training_matrix,
)

X = np.array([[0.0, 5.0], [1.5, 5.25], [3.0, 7.0], [-2.0, 4.0]])
NAMED = [
    (Basis("constant"), lambda _: 1.0),
    (Basis("trend", feature=1), lambda x: x[1]),
    (Basis("sin", 0, period=3.0), lambda x: math.sin(2.0 * math.pi * x[0] / 3.0)),
    (Basis("cos", 1, period=0.7), lambda x: math.cos(2.0 * math.pi * x[1] / 0.7)),
    (
        Basis("sinc", 1, centre=5.0, scale=2.0 * math.pi),
        lambda x: math.sin(u) / u if (u := 2.0 * math.pi * (x[1] - 5.0)) else 1.0,
    ),
]
each_basis = pytest.mark.parametrize("basis", [basis for basis, _ in NAMED])


def csr(X):
    rows = np.nonzero(X)
    ends = np.concatenate([[0], np.cumsum((X != 0.0).sum(axis=1))])
    return sparse_from_csr(X[rows], rows[1], ends, X.shape[1])


@pytest.mark.parametrize(("basis", "by_hand"), NAMED)
def test_a_named_basis_has_the_values_of_its_formula(basis, by_hand):
    np.testing.assert_allclose(evaluate([basis], X)[:, 0], [by_hand(x) for x in X], atol=1e-12)


@each_basis
def test_sparse_rows_have_the_values_of_dense_ones(basis):
    np.testing.assert_array_equal(evaluate([basis], csr(X)), evaluate([basis], X))


def test_sparse_row_zero_in_absent_feature():
    assert evaluate([Basis("trend", 7)], csr(X)).tolist() == [[0.0]] * 4


def test_a_function_takes_dense_rows():
    Psi = evaluate([lambda rows: rows[:, 0] ** 2, Basis("constant")], X)
    np.testing.assert_array_equal(Psi, np.column_stack([X[:, 0] ** 2, np.ones(4)]))


def test_no_basis_is_a_matrix_without_columns():
    assert evaluate([], X).shape == training_matrix([], X).shape == (4, 0)


@each_basis
def test_plain_data_comes_back_as_the_basis(basis):
    data = json.loads(json.dumps(basis_to_data(basis)))
    assert basis_from_data(data) == basis


def test_plain_data_has_the_parameters_of_its_type_only():
    assert basis_to_data(Basis("sin", 2, 6.28)) == {"type": "sin", "feature": 2, "period": 6.28}
    assert basis_to_data(Basis("constant")) == {"type": "constant"}
    assert basis_from_data({"type": "sin"}) == Basis("sin", 0, 2.0 * math.pi)
    assert isinstance(basis_from_data({"type": "sin", "period": 7}).period, float)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "type is 'None'; it must be one of constant, trend, sin, cos, sinc"),
        ({"type": "tan"}, "type is 'tan'"),
        ({"type": ["sin"]}, "type is"),
        ({"type": "trend", "period": 1.0}, "a trend basis has no parameter 'period'; it has: feat"),
        ({"type": "constant", "feature": 0}, "no parameter 'feature'; it has: none"),
        ({"type": "trend", "feature": -1}, "feature is -1; it must be an integer, at least 0"),
        ({"type": "trend", "feature": 1.5}, "feature is 1.5"),
        ({"type": "trend", "feature": True}, "feature is True"),
        ({"type": "sin", "period": 0.0}, "period is 0.0; it must be a finite number above zero"),
        ({"type": "cos", "period": math.inf}, "period is inf"),
        ({"type": "sinc", "scale": -1.0}, "scale is -1.0"),
        ({"type": "sinc", "centre": math.nan}, "centre is nan; it must be a finite number"),
        ({"type": "sinc", "centre": "5"}, "centre is '5'"),
    ],
)
def test_data_that_describe_no_basis_are_refused(data, words):
    with pytest.raises(ValueError, match=words):
        basis_from_data(data)


def half(rows):
    return rows[:2, 0]


def reciprocal(rows):
    with np.errstate(divide="ignore"):
        return 1.0 / rows[:, 0]


@pytest.mark.parametrize(
    ("bases", "words"),
    [
        ([Basis("constant"), reciprocal], r"basis 1 \(reciprocal\) is inf at row 0"),
        ([lambda rows: rows[:, 0] * math.nan], r"basis 0 \(<lambda>\) is nan at row 0"),
        ([half], r"basis 0 \(half\) returned an array of shape \(2,\) for 4 rows"),
        ([Basis("trend", 2)], r"basis 0 \(trend, feature 2\): the rows have 2 features only"),
    ],
)
def test_wrong_values_name_the_basis(bases, words):
    with pytest.raises(ValueError, match=words):
        evaluate(bases, X)


def test_a_function_is_refused_on_sparse_rows():
    with pytest.raises(ValueError, match=r"basis 0 \(half\) is a function and takes dense rows"):
        evaluate([half], csr(X))


def test_a_function_cannot_be_saved():
    with pytest.raises(ValueError, match="only bases given by name can be saved"):
        basis_to_data(half)


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


@pytest.mark.parametrize(
    ("bases", "words"),
    [
        (
            [Basis("trend"), Basis("trend")],
            r"basis 1 \(trend, feature 0\) is a combination of basis 0",
        ),
        (
            [Basis("constant"), Basis("trend", 1), Basis("trend"), lambda x: x[:, 0] - 3.0],
            r"basis 3 \(<lambda>\) is a combination of basis 0 \(constant\), basis 2 \(trend, feat",
        ),
        (
            [Basis("constant"), lambda x: 0.0 * x[:, 0]],
            r"basis 1 \(<lambda>\) is zero at every row",
        ),
        (
            [Basis("constant"), lambda x: np.full(len(x), 1e300)],
            r"basis 1 \(<lambda>\) is a combination of basis 0 \(constant\) at every row",
        ),
    ],
)
def test_dependent_columns_are_refused_with_their_names(bases, words):
    with pytest.raises(ValueError, match=words):
        training_matrix(bases, rows(20))


def test_columns_of_any_size_may_stand_beside_each_other():
    Psi = np.random.default_rng(0).normal(size=(30, 3)) * [1e-200, 1.0, 1e200]
    check_independent([Basis("constant")] * 3, Psi)


def test_small_change_of_offset_independent():
    year = np.arange(2000.0, 2020.0)[:, None]
    assert training_matrix([Basis("constant"), Basis("trend")], year).shape == (20, 2)


def test_there_must_be_more_rows_than_bases():
    bases = [Basis("constant"), Basis("trend"), Basis("trend", 1)]
    assert training_matrix(bases, rows(4)).shape == (4, 3)
    with pytest.raises(ValueError, match=r"3 basis functions need more than 3 rows.*basis 2"):
        training_matrix(bases, rows(3))
