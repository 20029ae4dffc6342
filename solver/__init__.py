"""wolfstream's numerics: arrays in, arrays out.

Where each algorithm and equation stands (P1: Ouyang and Gray 2010, "Fast Stochastic
Frank-Wolfe Algorithms for Nonlinear SVMs"; P2: Frandi et al. 2012, "Training Support Vector
Machines Using Frank-Wolfe Optimization Methods"; P4: Frandi et al. 2015, "A PARTAN-Accelerated
Frank-Wolfe Algorithm for Large-Scale SVM Classification"; P5: Lee and Wright 2012, "ASSET"):

    P1 eq. 3.7      the matrix A, one row of it        hessian.hessian_row
    P1 eq. 3.8      gradient of a new sample           online.walk (g_k)
    P1 eq. 3.9      step length toward                 simplex.toward
    P1 eq. 3.10     q updated, not recomputed          simplex.toward; afresh: hessian.refresh
    P1 Algorithm 1  SFW                                online.walk
    P1 Algorithm 2  TOWARD                             simplex.toward
    P1 Algorithm 3  DECIDESTEP, which makes MSFW       online._decide_step
    P1 Algorithm 4  AWAY                               simplex.away
    P1 Lemma 4.1    duality gap, over the set          view.view_of (gap)
    P1 section 3.2  b = y'alpha                        view.view_of (bias)
    P2              one-versus-one, samples shared     working_set.WorkingSet, multiclass,
                                                       one_versus_one.solve_pairs
    P2              kernel width from mean distance    bandwidth.gamma_from_rows
    P4              SWAP's pairwise step               simplex.swap
    P5 eq. 8        random Fourier features            fourier.fourier_map, fourier_features
    P5 Algorithm 1  ASSET                              asset._walk
    P5 Table 1      hinge subgradient, projection      asset._step
    P5 section 2.4  prediction without samples         asset.predict

How they stand on each other (each imports only from those before it):
compiled; rows; sparse_product; kernels; simplex; hessian; online, removal; multiclass, store;
view, answers; working_set.
frank_wolfe, duals; kernel_rows, sampled; batch; one_versus_one.
compiled, rows; fourier; asset. rows; bandwidth.

Rows come dense or sparse (`rows.Matrix`): rows, sparse_product, kernels and fourier know the
difference, and everything else hands them on.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solver.enclosing_ball import EnclosingBall
    from solver.frank_wolfe_classifier import FrankWolfeClassifier
    from solver.frank_wolfe_regressor import FrankWolfeRegressor
    from solver.sfw_classifier import SFWClassifier

__all__ = ["EnclosingBall", "FrankWolfeClassifier", "FrankWolfeRegressor", "SFWClassifier"]

_MODULES = {
    "EnclosingBall": "enclosing_ball",
    "FrankWolfeClassifier": "frank_wolfe_classifier",
    "FrankWolfeRegressor": "frank_wolfe_regressor",
    "SFWClassifier": "sfw_classifier",
}


def __getattr__(name: str) -> Any:
    """The estimators, imported when asked for: the server does without scikit-learn."""
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"solver.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "sklearn":
            raise
        text = f"{name} needs scikit-learn: pip install 'wolfstream[sklearn]'"
        raise ImportError(text) from error
