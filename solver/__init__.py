"""wolfstream's numerics: arrays in, arrays out.

Where each algorithm and equation stands (P1: Ouyang and Gray 2010, "Fast Stochastic
Frank-Wolfe Algorithms for Nonlinear SVMs"; P2: Frandi et al. 2012, "Training Support Vector
Machines Using Frank-Wolfe Optimization Methods"; P3: Lee and Wright 2009, "Decomposition and
Stochastic Subgradient Algorithms for Support Vector Machines"; P4: Frandi et al. 2015, "A
PARTAN-Accelerated Frank-Wolfe Algorithm for Large-Scale SVM Classification"; P5: Lee and Wright
2012, "ASSET"):

    P1 eq. 2.4, 2.5      the best vertex of a simplex          simplex.best_vertex
    P1 section 3.1, aD   L2-SVM on the simplex                 duals.classification_dual
    P1 eq. 3.7           the matrix A, one row of it           hessian.hessian_row;
                                                               whole sets: frank_wolfe.vertex_row
    P1 eq. 3.8           gradient of a new sample              hessian.decision_value, online.walk
    P1 eq. 3.9           step length toward                    simplex.toward_length
    P1 eq. 3.10          q updated, not recomputed             simplex.toward_length;
                                                               afresh: hessian.refresh
    P1 Algorithm 1       SFW                                   online.walk
    P1 Algorithm 2       TOWARD                                simplex.toward, sweep.toward
    P1 Algorithm 3       DECIDESTEP, which makes MSFW          simplex.away_is_steeper
    P1 Algorithm 4       AWAY                                  simplex.away, sweep.away
    P1 Lemma 4.1         duality gap: over the set             view.view_of;
                         over all samples                      batch.solve
    P1 section 3.2       b = y'alpha                           view.view_of
    P2                   FW on a training set                  frank_wolfe.advance
    P2                   MFW: away steps                       frank_wolfe.take_step
    P2                   minimal enclosing ball                duals.ball_dual
    P2                   start from 20 random samples          batch.initial_ball
    P2                   one-versus-one, samples shared        working_set.WorkingSet;
                                                               kernel_rows.KernelRows
    P2                   kernel width from mean distance       bandwidth.gamma_from_rows
    P2, P4 eq. 10        best of a random sample of vertices   sampled.SampledSearch
    P3 eq. 2             semiparametric regression             semiparametric.solve_semiparametric
    P3 eq. 3             its dual                              semiparametric_dual.variables
    P3 eq. 4             subproblem of a working set           subproblem.Subproblem
    P3 eq. 5, 14         the Lagrangian's gradient             primal_dual.violations
    P3 eq. 6             working set selection                 decomposition.choose
    P3 eq. 7, 8          PDSG: primal and dual steps           pdsg.pdsg
    P3 eq. 9, 10         the gradient updated                  primal_dual.add_kernel_part
    P3 eq. 15            KKT conditions                        semiparametric_dual.dual_violations
    P3 Algorithm 1       decomposition                         primal_dual.solve,
                                                               decomposition.working_sets
    P3 [KS05]            MPD: method of multipliers            mpd.mpd
    P3 conclusion        average of parallel learners          merge.merge
    P4 Algorithm 1       FW, exact line search                 frank_wolfe.advance
    P4 eq. 3, 9          stop on the duality gap               batch.solve
    P4 section 2.2       SWAP: the pairwise step               simplex.swap, sweep.swap;
                         against FW's, the larger gain         frank_wolfe.take_step
    P4 eq. 5, 6          the dual, its best vertex             duals.Dual, simplex.best_vertex
    P4 Algorithm 2       PARTAN                                partan.partan
    P4 eq. 7, 11, 12     its toward step: length, objective    simplex.toward_length
    P4 eq. 8             its extrapolation                     partan.partan
    P4 eq. 13, 14, 15    its second length, W, objective       partan.partan
    P4 section 4.2       sampling repeated before stopping     sampled.SampledSearch
    P5 eq. 4, 5          V, a row for each sample              features.transform
    P5 eq. 6, 7          Nystrom features                      nystrom.nystrom_map,
                                                               nystrom.nystrom_features
    P5 eq. 8             random Fourier features               fourier.fourier_map,
                                                               fourier.fourier_features
    P5 section 2.4       prediction without samples            asset_view.predict,
                                                               features.expansion
    P5 Algorithm 1       ASSET, ASSET*                         asset.Asset, subgradient.walk
    P5 section 3         feasible sets, D_G, steps             subgradient.StepRule

Regression on the simplex, which the papers leave out: duals.regression_dual.

How they stand on each other (each imports only from those before it):
compiled; rows; sparse_product, slots; kernels; simplex; hessian; sweep, removal,
problem_arrays; online; multiclass, store; view, answers; working_set.
duals, partan; frank_wolfe; kernel_rows; batch, sampled; solve_dual; one_versus_one.
compiled, rows, slots, kernels; fourier, nystrom; features, machines; subgradient;
asset_steps, asset_view, first_samples; asset; merge. rows, first_samples; bandwidth.
rows; basis. kernel_rows, semiparametric_dual, subproblem; mpd, pdsg; primal_dual; decomposition;
semiparametric.
All of these; estimator_base; one_versus_one_classifier, batch_estimator, asset_estimator,
feature_transformers; sfw_classifier, frank_wolfe_classifier, frank_wolfe_regressor, enclosing_ball,
asset_classifier, asset_regressor, semiparametric_regressor.

Rows come dense or sparse (`rows.Matrix`): rows, slots, sparse_product, kernels, fourier
and features know the difference, and everything else hands them on.

The estimators for scikit-learn are importable from here.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solver.asset_classifier import AssetClassifier
    from solver.asset_regressor import AssetRegressor
    from solver.enclosing_ball import EnclosingBall
    from solver.feature_transformers import FourierFeatures, NystromFeatures
    from solver.frank_wolfe_classifier import FrankWolfeClassifier
    from solver.frank_wolfe_regressor import FrankWolfeRegressor
    from solver.semiparametric_regressor import SemiparametricSVR
    from solver.sfw_classifier import SFWClassifier

__all__ = [
    "AssetClassifier",
    "AssetRegressor",
    "EnclosingBall",
    "FourierFeatures",
    "FrankWolfeClassifier",
    "FrankWolfeRegressor",
    "NystromFeatures",
    "SFWClassifier",
    "SemiparametricSVR",
]

_MODULES = {
    "AssetClassifier": "asset_classifier",
    "AssetRegressor": "asset_regressor",
    "EnclosingBall": "enclosing_ball",
    "FourierFeatures": "feature_transformers",
    "FrankWolfeClassifier": "frank_wolfe_classifier",
    "FrankWolfeRegressor": "frank_wolfe_regressor",
    "NystromFeatures": "feature_transformers",
    "SFWClassifier": "sfw_classifier",
    "SemiparametricSVR": "semiparametric_regressor",
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
