"""From columns to models: training problems, models at one alpha, the path over alpha."""

from hikernel.selection.model import TermModel
from hikernel.selection.path import Path, alpha_grid, compute_path
from hikernel.selection.training import SearchSettings, TrainingProblem

__all__ = [
    "Path",
    "SearchSettings",
    "TermModel",
    "TrainingProblem",
    "alpha_grid",
    "compute_path",
]
