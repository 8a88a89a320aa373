"""From columns to models: training problems, models at one alpha, the path over alpha."""

from hikernel.selection.cv import CrossValidation, Fold, check_folds, cross_validate
from hikernel.selection.model import FittedDesign, TermModel
from hikernel.selection.path import Path, alpha_grid, compute_path
from hikernel.selection.refit import (
    REFITS,
    Fitted,
    comparable_refits,
    refit,
    refit_is_possible,
    too_many_kernel_rows,
)
from hikernel.selection.training import SearchSettings, TrainingProblem

__all__ = [
    "REFITS",
    "CrossValidation",
    "Fitted",
    "FittedDesign",
    "Fold",
    "Path",
    "SearchSettings",
    "TermModel",
    "TrainingProblem",
    "alpha_grid",
    "check_folds",
    "comparable_refits",
    "compute_path",
    "cross_validate",
    "refit",
    "refit_is_possible",
    "too_many_kernel_rows",
]
