"""scikit-learn estimators: thin wrappers of the layers below."""

from hikernel.estimators.classifier import HKLClassifier
from hikernel.estimators.cross_validated import HKLClassifierCV, HKLRegressorCV
from hikernel.estimators.path import hkl_path
from hikernel.estimators.regressor import HKLRegressor
from hikernel.estimators.resampling import Bootstrap, bootstrap
from hikernel.estimators.solved_path import Path
from hikernel.estimators.stability import StabilitySelection, stability_selection
from hikernel.estimators.survival import HKLSurvival, HKLSurvivalCV

__all__ = [
    "Bootstrap",
    "HKLClassifier",
    "HKLClassifierCV",
    "HKLRegressor",
    "HKLRegressorCV",
    "HKLSurvival",
    "HKLSurvivalCV",
    "Path",
    "StabilitySelection",
    "bootstrap",
    "hkl_path",
    "stability_selection",
]
