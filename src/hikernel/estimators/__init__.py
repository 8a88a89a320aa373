"""scikit-learn estimators: thin, over the layers below."""

from hikernel.estimators.classifier import HKLClassifier
from hikernel.estimators.cv import HKLClassifierCV, HKLRegressorCV
from hikernel.estimators.path import hkl_path
from hikernel.estimators.regressor import HKLRegressor
from hikernel.estimators.stability import StabilitySelection, stability_selection

__all__ = [
    "HKLClassifier",
    "HKLClassifierCV",
    "HKLRegressor",
    "HKLRegressorCV",
    "StabilitySelection",
    "hkl_path",
    "stability_selection",
]
