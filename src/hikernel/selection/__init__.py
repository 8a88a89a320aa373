"""Fit models to training rows: one lambda, the regularisation path, cross-validation, refits.

``training`` solves for one lambda and ``lambda_path`` for a decreasing sequence. ``folds`` scores
the lambdas by cross-validation. ``refit`` estimates the selected terms again, using ``ridge``.
"""

from hikernel.selection.folds import CrossValidation, Fold, check_folds, cross_validate
from hikernel.selection.lambda_path import (
    LambdaPath,
    PathEnd,
    PathPoint,
    compute_path,
    lambda_grid,
)
from hikernel.selection.refit import (
    REFITS,
    Fitted,
    comparable_refits,
    refit,
    refit_is_possible,
    too_many_kernel_rows,
)
from hikernel.selection.training import TermModel, TrainingProblem

__all__ = [
    "REFITS",
    "CrossValidation",
    "Fitted",
    "Fold",
    "LambdaPath",
    "PathEnd",
    "PathPoint",
    "TermModel",
    "TrainingProblem",
    "check_folds",
    "comparable_refits",
    "compute_path",
    "cross_validate",
    "lambda_grid",
    "refit",
    "refit_is_possible",
    "too_many_kernel_rows",
]
