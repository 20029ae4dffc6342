"""Sample streams for the tests, and what a test reads from a learner."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from tests.solver.oracle_sfw import hessian
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import n_rows, sparse_from_csr, to_csr
from wolfstream.solver.working_set.gram import Gram
from wolfstream.solver.working_set.hessian import KernelValues

FLOAT64 = np.dtype(np.float64)

KERNELS = {
    "rbf": Kernel("rbf", gamma=0.3),
    "quadratic": Kernel("polynomial", gamma=0.25, degree=2, coef0=1.0),
    "cubic": Kernel("polynomial", gamma=0.2, degree=3, coef0=0.5),
    "linear": Kernel("linear"),
}


def in_order_of_appearance(labels):
    """Class numbers 0, 1, 2, ... in the order in which the labels first occur."""
    number = {}
    return np.array([number.setdefault(label, len(number)) for label in labels], np.int64)


def clusters(seed, n, n_features=4, n_classes=2, noise=0.1, apart=1.5):
    """Overlapping clusters, two to a class; a share `noise` of the labels is drawn anew."""
    random = np.random.default_rng(seed)
    centres = apart * random.standard_normal((n_classes, 2, n_features))
    labels = random.integers(0, n_classes, n)
    X = centres[labels, random.integers(0, 2, n)] + random.standard_normal((n, n_features))
    wrong = random.random(n) < noise
    labels[wrong] = random.integers(0, n_classes, wrong.sum())
    return X, in_order_of_appearance(labels.tolist())


@st.composite
def small_streams(draw, max_classes=3, max_length=40):
    """Rows on a coarse grid, so that equal rows, and equal rows of two classes, are common."""
    n_features = draw(st.integers(1, 3))
    row = st.tuples(*[st.integers(-4, 4)] * n_features)
    samples = draw(
        st.lists(st.tuples(row, st.integers(0, max_classes - 1)), min_size=1, max_size=max_length)
    )
    X = np.array([row for row, _ in samples], np.float64) / 2.0
    return X, in_order_of_appearance([label for _, label in samples])


def blocks(n, length):
    """Slices that cut n samples into calls of the same length, the last one shorter."""
    return [slice(start, min(start + length, n)) for start in range(0, n, length)]


def kernel_values(gram, block, stored=0):
    """Kernel values of a block of samples, and of `stored` ones whose matrix is `gram`."""
    whole = Gram(Kernel("linear"), np.ascontiguousarray(gram))
    return KernelValues(whole.kept, gram.diagonal().astype(np.float64), block, stored)


class Members(NamedTuple):
    """The members of a problem, without the room for more."""

    alpha: np.ndarray
    gradient: np.ndarray
    sign: np.ndarray
    column: np.ndarray
    q: float


def members(problem):
    n = int(problem.size[0])
    fields = [problem.alpha, problem.gradient, problem.sign, problem.column]
    return Members(*[field[:n].copy() for field in fields], q=float(problem.q[0]))


def direct_hessian(learner, problem):
    """A of a problem's members from the stored rows, nothing incremental in it."""
    held = members(problem)
    X = learner.store.rows.exact[held.column]
    of_classes = learner.ridges.class_ridges(learner.n_classes)[learner.store.code[held.column]]
    ridge = of_classes * learner.store.inverse_weight[held.column]
    return hessian(learner.kernel, X, held.sign, 0.5 / ridge)


def started(problem):
    return problem.q[0] != 0.0


def sparse(X, width=None):
    """The same rows, sparse."""
    X = np.asarray(X, np.float64)
    row, column = np.nonzero(X)
    indptr = np.searchsorted(row, np.arange(len(X) + 1))
    return sparse_from_csr(X[row, column], column, indptr, X.shape[1] if width is None else width)


def dense(X):
    """The same rows with all their zeros."""
    data, indices, indptr = to_csr(X)
    return csr_matrix((data, indices, indptr), shape=(n_rows(X), X.width)).toarray()


def thin_clusters(seed, n, n_features=12, n_classes=2, **parameters):
    """Clusters with entries only where they are large: about three quarters zero, some rows all."""
    X, codes = clusters(seed, n, n_features, n_classes, **parameters)
    return np.where(np.abs(X) > 2.0, X, 0.0), codes
