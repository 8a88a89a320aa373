"""From a graph on its rows to models: one lambda, the path, folds, refits.

``training`` solves for one lambda, ``lambda_path`` for many, ``folds`` scores them by
cross-validation, ``refit`` estimates again after selection (``ridge``).
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
