"""scikit-learn estimators: thin wrappers of the layers below."""

from hikernel.estimators.classifier import HKLClassifier
from hikernel.estimators.cross_validated import HKLClassifierCV, HKLRegressorCV
from hikernel.estimators.path import Path, hkl_path
from hikernel.estimators.regressor import HKLRegressor
from hikernel.estimators.stability import StabilitySelection, stability_selection

__all__ = [
    "HKLClassifier",
    "HKLClassifierCV",
    "HKLRegressor",
    "HKLRegressorCV",
    "Path",
    "StabilitySelection",
    "hkl_path",
    "stability_selection",
]
