"""Semiparametric regression in plain numpy straight from P3: problems, the QP, its optimum."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from tests.solver.oracle_sfw import kernel_matrix
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.semiparametric.basis import Basis, training_matrix

# omega(x) = sin(x) + sinc(2 pi (x - 5)), its two parts as the basis.
HAT_BASES = (Basis("sin"), Basis("sinc", centre=5.0, scale=2.0 * np.pi))
HAT_KERNEL = Kernel("rbf", 0.25)


class Instance(NamedTuple):
    """A regression problem and its matrices."""

    X: np.ndarray
    y: np.ndarray
    Psi: np.ndarray
    kernel: Kernel
    C: float
    epsilon: float

    @property
    def gram(self):
        return kernel_matrix(self.kernel, self.X, self.X)

    @property
    def upper(self):
        return self.C / len(self.y)


def mexican_hat(M, seed=0):
    """(M, 1) rows and their noisy values."""
    random = np.random.default_rng(seed)
    x = random.uniform(0.0, 10.0, M)
    u = 2.0 * np.pi * (x - 5.0)
    return x[:, None], np.sin(x) + np.sin(u) / u + random.normal(0.0, 0.2, M)


def hat_instance(M, seed=0, C=1.0):
    X, y = mexican_hat(M, seed)
    return Instance(X, y, training_matrix(HAT_BASES, X), HAT_KERNEL, C, 0.05)


def random_instance(seed, M=12, K=1, kernel=None, C=20.0, epsilon=0.1):
    random = np.random.default_rng(seed)
    X = random.normal(size=(M, 2))
    Psi = random.normal(size=(M, K))
    Psi[:, :1] = 1.0
    y = X[:, 0] + np.sin(3.0 * X[:, 1]) + 0.3 * random.normal(size=M)
    return Instance(X, y, Psi, kernel or Kernel("rbf", 0.7), C, epsilon)


def quadratic_program(instance):
    """Q, p and A of P3 eq. 3, as printed there but for y_i y_j."""
    K, y = instance.gram, instance.y
    Q = np.block([[K, -K], [-K, K]])
    p = np.concatenate([instance.epsilon - y, instance.epsilon + y])
    return Q, p, np.hstack([instance.Psi.T, -instance.Psi.T])


def dual_objective(instance, z):
    Q, p, _ = quadratic_program(instance)
    return 0.5 * z @ Q @ z + p @ z


def primal_objective(instance, theta, beta):
    """P3 eq. 2a, whose minimum is minus that of the dual."""
    h = instance.gram @ theta + instance.Psi @ beta
    loss = np.maximum(np.abs(instance.y - h) - instance.epsilon, 0.0)
    return 0.5 * theta @ instance.gram @ theta + instance.upper * loss.sum()


def split(theta):
    return np.concatenate([np.maximum(theta, 0.0), np.maximum(-theta, 0.0)])


def violation_by_definition(instance, theta, beta):
    """P3 eq. 15 sample by sample; A z as a share of C mean |psi|."""
    Q, p, A = quadratic_program(instance)
    z, gradient = split(theta), Q @ split(theta) + p + A.T @ beta
    wrong = [0.0]
    for z_i, g_i in zip(z, gradient, strict=True):
        if z_i == 0.0:
            wrong.append(-g_i)
        elif z_i == instance.upper:
            wrong.append(g_i)
        else:
            wrong.append(abs(g_i))
    for row, psi in zip(A, instance.Psi.T, strict=True):
        wrong.append(abs(row @ z) / (instance.C * np.abs(psi).mean()))
    return max(wrong)


def optimum(instance):
    """theta and F at the minimum, by sequential quadratic programming; checked by the caller.

    The variables are in units of the box and F in units of |p|, which is what makes it exact.
    """
    Q, p, A = quadratic_program(instance)
    u = instance.upper
    unit = u * np.abs(p).sum()
    found = minimize(
        lambda z: (0.5 * u * u * z @ Q @ z + u * p @ z) / unit,
        np.zeros(len(p)),
        jac=lambda z: (u * u * Q @ z + u * p) / unit,
        bounds=[(0.0, 1.0)] * len(p),
        constraints=[
            {"type": "eq", "fun": lambda z, a=a: a @ z, "jac": lambda _, a=a: a} for a in A
        ],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    z = u * found.x
    M = len(instance.y)
    return z[:M] - z[M:], dual_objective(instance, z)
