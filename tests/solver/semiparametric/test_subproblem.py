"""What the subproblem solvers are made of, each against the definition in plain numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolfstream.solver.compiled import compiled
from wolfstream.solver.semiparametric import pdsg as by_pairs
from wolfstream.solver.semiparametric import subproblem
from wolfstream.solver.semiparametric.outer_loop import mpd
from wolfstream.solver.semiparametric.pdsg import pdsg
from wolfstream.solver.semiparametric.subproblem import (
    CONVERGED,
    LIMIT,
    MISSING,
    KernelValues,
    Subproblem,
    scratch_for,
    slopes_at,
)

# As machine code; for callers from Python they are Python functions.
augmented, pair_minimum = compiled(by_pairs.augmented), compiled(by_pairs.pair_minimum)
partner, move = compiled(by_pairs.partner), compiled(subproblem.move)
best_theta, steepest = compiled(subproblem.best_theta), compiled(subproblem.steepest)
equality_share, first_largest = map(compiled, (subproblem.equality_share, subproblem.first_largest))

N, K, UPPER = 9, 2, 0.5


def made(seed, epsilon=0.1, rho=0.3):
    """A subproblem at a random point, some theta at zero and at their bounds; its kernel, y."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(N, 2))
    gram = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    theta = UPPER * np.clip(random.normal(size=N), -1.0, 1.0) * (random.random(N) < 0.7)
    Psi, beta, y = random.normal(size=(K, N)), random.normal(size=K), random.normal(size=N)
    rhos = np.array([rho, 2.0 * rho])
    sub = Subproblem(
        theta=theta,
        slopes=slopes_at(theta, epsilon, np.full(N, UPPER)),
        residual=gram @ theta + beta @ Psi - y,
        Psi=Psi,
        curvature=np.diag(gram) + rhos @ (Psi * Psi),
        equality=Psi @ theta,
        largest=N * UPPER * np.abs(Psi).mean(axis=1),
        beta=beta,
        rho=rhos,
        epsilon=epsilon,
        upper=np.full(N, UPPER),
    )
    return sub, gram, y


def at_hand(gram):
    return KernelValues(gram, np.arange(N), np.zeros(N, np.int64), np.zeros(1, np.int64))


def augmented_lagrangian(sub, gram, theta):
    """The augmented Lagrangian at the multipliers lambda = beta - rho A z of `sub`, less y'0.

    theta: one point, or one in each row.
    """
    fixed = sub.beta - sub.rho * sub.equality
    y = gram @ sub.theta + sub.beta @ sub.Psi - sub.residual
    Az = theta @ sub.Psi.T
    F = 0.5 * (theta @ gram * theta).sum(axis=-1) - theta @ y
    F += sub.epsilon * np.abs(theta).sum(axis=-1)
    return F + Az @ fixed + 0.5 * (Az * Az) @ sub.rho


def test_the_residual_is_the_slope_of_the_augmented_lagrangian():
    sub, gram, _ = made(0, epsilon=0.0)
    for i in range(N):
        step = 1e-6 * np.eye(N)[i]
        rise = augmented_lagrangian(sub, gram, sub.theta + step) - augmented_lagrangian(
            sub, gram, sub.theta - step
        )
        assert rise / 2e-6 == pytest.approx(sub.residual[i], abs=1e-8)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.1, 1.0]))
def test_the_steepest_sample_violates_the_conditions_most(seed, epsilon):
    """P3 eq. 15a to 15c, for alpha and alpha* apart."""
    sub, *_ = made(seed, epsilon)
    wrong = np.zeros(N)
    for i, (theta, r) in enumerate(zip(sub.theta, sub.residual, strict=True)):
        for z, g in ((max(theta, 0.0), epsilon + r), (max(-theta, 0.0), epsilon - r)):
            violated = -g if z == 0.0 else (g if z == UPPER else abs(g))
            wrong[i] = max(wrong[i], violated)
    i, violation = steepest(sub, np.empty(N))
    assert violation == pytest.approx(wrong.max(), abs=1e-15)
    assert wrong[i] == pytest.approx(wrong.max(), abs=1e-15)


@given(st.lists(st.floats(-9.0, 9.0), min_size=1, max_size=23))
def test_the_first_of_the_largest(values):
    assert first_largest(np.array(values)) == int(np.argmax(values))


@given(
    st.floats(-1.0, 1.0), st.floats(-3.0, 3.0), st.floats(0.01, 5.0), st.sampled_from([0.0, 0.2])
)
def test_the_best_theta_is_the_lowest_of_a_fine_grid(theta, r, curvature, epsilon):
    def f(t):
        return 0.5 * curvature * (t - theta) ** 2 + r * (t - theta) + epsilon * np.abs(t)

    best = best_theta(theta, r, curvature, epsilon, 1.0)
    assert -1.0 <= best <= 1.0
    assert f(best) <= f(np.linspace(-1.0, 1.0, 2001)).min() + 1e-12


def test_without_curvature_theta_goes_to_a_bound_or_zero():
    assert best_theta(0.2, 0.5, 1e-150, 0.1, 1.0) == -1.0
    assert best_theta(0.2, -0.5, 1e-150, 0.1, 1.0) == 1.0
    assert best_theta(0.2, 0.05, 1e-150, 0.1, 1.0) == 0.0


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.1, 1.0]))
def test_a_pair_moves_to_the_minimum_over_its_box(seed, epsilon):
    """Against coordinate descent with as many sweeps as change anything, which needs no pieces."""
    sub, gram, _ = made(seed, epsilon)
    random = np.random.default_rng(seed)
    i, j = random.choice(N, 2, replace=False)
    shared = gram[i, j] + sub.rho @ (sub.Psi[:, i] * sub.Psi[:, j])
    a, b = pair_minimum(sub, i, j, shared)
    assert max(abs(a), abs(b)) <= UPPER
    theta, r = sub.theta.copy(), sub.residual.copy()
    for _ in range(3000):
        before = theta.copy()
        for s, t in ((i, j), (j, i)):
            new = best_theta(theta[s], r[s], sub.curvature[s], epsilon, UPPER)
            r[s] += (new - theta[s]) * sub.curvature[s]
            r[t] += (new - theta[s]) * shared
            theta[s] = new
        if np.array_equal(theta, before):
            break
    least = augmented_lagrangian(sub, gram, theta)
    moved = sub.theta.copy()
    moved[[i, j]] = a, b
    assert augmented_lagrangian(sub, gram, moved) <= least + 1e-9


def test_twins_move_to_the_minimum_over_their_box():
    """Two equal rows: the pair's Hessian is singular, and few points need the null direction."""
    grid = np.linspace(-UPPER, UPPER, 41)
    for seed in range(1000):
        sub, gram, _ = made(seed)
        for array in (gram, gram.T, sub.Psi.T):
            array[1] = array[0]
        gram[0, 1] = gram[1, 0] = gram[0, 0]
        curvature = np.diag(gram) + sub.rho @ (sub.Psi * sub.Psi)
        sub = sub._replace(curvature=curvature, equality=sub.Psi @ sub.theta)
        moved = sub.theta.copy()
        moved[:2] = pair_minimum(sub, 0, 1, sub.curvature[0])
        trials = np.tile(sub.theta, (len(grid) ** 2, 1))
        trials[:, :2] = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
        least = augmented_lagrangian(sub, gram, trials).min()
        assert augmented_lagrangian(sub, gram, moved) <= least + 1e-9, seed


def steepest_and_partner(sub, gram):
    room = scratch_for(N)
    i, _ = steepest(sub, room.gain)
    wrong = room.gain.copy()
    j = partner(sub, gram[i], i, room)
    best = best_theta(sub.theta[i], sub.residual[i], sub.curvature[i], sub.epsilon, UPPER)
    return i, j, best, wrong, room.gain


@given(st.integers(0, 10**6))
def test_the_partner_gains_most_after_the_first_step(seed):
    """No place of any other sample in its piece, i following while it is free, gains more."""
    # The next seed whose first step moves, and stays within its bound: most do not.
    while True:
        sub, gram, _ = made(seed)
        i, j, best, _, gain = steepest_and_partner(sub, gram)
        if 1e-9 < abs(best - sub.theta[i]) < UPPER:
            break
        seed += 1
    first = sub.theta.copy()
    first[i] = best
    free = best != 0.0 and abs(best) < UPPER
    before = augmented_lagrangian(sub, gram, first)
    for k in set(range(N)) - {i}:
        t = np.linspace(-UPPER, UPPER, 21)
        t = t[sub.theta[k] * t >= 0.0]
        moved = np.tile(first, (len(t), 1))
        moved[:, k] = t
        loss = np.zeros(len(t))
        if free:
            shared = augmented(sub, gram[i, k], i, k)
            moved[:, i] -= shared * (t - first[k]) / sub.curvature[i]
            loss = sub.epsilon * (np.abs(moved[:, i]) - np.sign(best) * moved[:, i])
        gained = before - augmented_lagrangian(sub, gram, moved) + loss
        assert gained.max() <= max(gain[k], 0.0) + 1e-9
        assert gained.max() <= max(gain[j], 0.0) + 1e-9


def test_a_step_from_end_to_end_takes_the_second_steepest_along():
    """All theta at zero and residuals so large that each alone would go to its bound."""
    sub, gram, _ = made(0)
    sub.theta[:] = 0.0
    sub.residual[:] = np.linspace(20.0, -30.0, N)
    sub = sub._replace(slopes=slopes_at(sub.theta, sub.epsilon, sub.upper))
    i, j, best, wrong, _ = steepest_and_partner(sub, gram)
    assert (i, j, best) == (N - 1, N - 2, UPPER)
    assert wrong[j] == sorted(wrong)[-2]


def test_where_no_other_sample_would_move_the_steepest_moves_alone():
    sub, gram, _ = made(0)
    sub.theta[:] = 0.0
    sub.residual[:] = 0.0
    sub.residual[4] = -20.0
    sub = sub._replace(slopes=slopes_at(sub.theta, sub.epsilon, sub.upper))
    i, j, *_ = steepest_and_partner(sub, gram)
    assert i == j == 4
    assert pair_minimum(sub, 4, 4, sub.curvature[4])[0] == UPPER


@given(st.integers(0, 10**6), st.booleans())
def test_a_move_keeps_all_that_hangs_on_theta(seed, single):
    sub, gram, y = made(seed)
    beta, equality = sub.beta.copy(), sub.equality.copy()
    i, j = (3, 3) if single else (3, 6)
    kernel = at_hand(gram)
    kernel.clock[0] = 5
    move(sub, kernel, i, UPPER, j, UPPER if single else -0.1, 0.25)
    np.testing.assert_allclose(sub.equality, sub.Psi @ sub.theta, atol=1e-12)
    expected = beta + sub.rho * (1.25 * sub.equality - equality)
    np.testing.assert_allclose(sub.beta, expected, atol=1e-12)
    residual = gram @ sub.theta + sub.beta @ sub.Psi - y
    np.testing.assert_allclose(sub.residual, residual, atol=1e-12)
    for held, afresh in zip(sub.slopes, slopes_at(sub.theta, 0.1, sub.upper), strict=True):
        np.testing.assert_array_equal(held, afresh)
    assert set(np.flatnonzero(kernel.last_used)) == {i, j}


@pytest.mark.parametrize("solver", [pdsg, mpd])
def test_a_solver_ends_within_its_tolerance(solver):
    for seed in range(20):
        sub, gram, y = made(seed)
        why, steps = solver(sub, at_hand(gram), scratch_for(N), 1e-8, 20_000)
        assert why == CONVERGED
        assert steps > 0
        assert steepest(sub, np.empty(N))[1] <= 1e-8
        assert equality_share(sub) <= 1e-8
        np.testing.assert_allclose(
            sub.residual, gram @ sub.theta + sub.beta @ sub.Psi - y, atol=1e-10
        )


@pytest.mark.parametrize("solver", [pdsg, mpd])
def test_solver_requests_missing_rows_and_continues(solver):
    sub, gram, _ = made(1)
    other, *_ = made(1)
    kernel, room = at_hand(gram.copy()), scratch_for(N)
    kernel.values[:] = np.nan
    kernel.slot_of[:] = -1
    for _ in range(10_000):
        why, _ = solver(sub, kernel, room, 1e-8, 20_000)
        if why != MISSING:
            break
        asked = room.needed[room.needed >= 0]
        assert np.any(kernel.slot_of[asked] < 0)
        kernel.slot_of[asked] = asked
        kernel.values[asked] = gram[asked]
    assert why == CONVERGED
    solver(other, at_hand(gram), scratch_for(N), 1e-8, 20_000)
    np.testing.assert_array_equal(sub.theta, other.theta)


@pytest.mark.parametrize("solver", [pdsg, mpd])
def test_a_solver_stops_at_its_limit(solver):
    sub, gram, _ = made(2)
    assert solver(sub, at_hand(gram), scratch_for(N), 0.0, 3) == (LIMIT, 3)
