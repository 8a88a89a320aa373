"""Fit models to training rows: one lambda, the regularisation path, cross-validation, refits.

``training`` solves for one lambda and ``lambda_path`` for a decreasing sequence. ``folds`` scores
the lambdas by cross-validation, ``scores`` has the rules that pick one, and ``trial`` asks whether
a richer graph is worth another one. ``refit`` estimates the selected terms again, using ``ridge``,
and ``record`` keeps what pictures and pages need to know of a fit.
"""

from hikernel.selection.folds import Fold, check_folds, cross_validate
from hikernel.selection.lambda_path import (
    LambdaPath,
    PathEnd,
    PathPoint,
    compute_path,
    constant_model,
    lambda_grid,
    without_proof,
)
from hikernel.selection.record import FitRecord, SimplerModels, score_simpler_models
from hikernel.selection.refit import (
    REFITS,
    Fitted,
    comparable_refits,
    refit,
    refit_is_possible,
    too_many_kernel_rows,
)
from hikernel.selection.scores import Choice, CrossValidation, relative_gain
from hikernel.selection.training import TermModel, TrainingProblem
from hikernel.selection.trial import trial_gain

__all__ = [
    "REFITS",
    "Choice",
    "CrossValidation",
    "FitRecord",
    "Fitted",
    "Fold",
    "LambdaPath",
    "PathEnd",
    "PathPoint",
    "SimplerModels",
    "TermModel",
    "TrainingProblem",
    "check_folds",
    "comparable_refits",
    "compute_path",
    "constant_model",
    "cross_validate",
    "lambda_grid",
    "refit",
    "refit_is_possible",
    "relative_gain",
    "score_simpler_models",
    "too_many_kernel_rows",
    "trial_gain",
    "without_proof",
]
