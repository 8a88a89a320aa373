"""scikit-learn estimators: thin, over the layers below."""

from hikernel.estimators.classifier import HKLClassifier
from hikernel.estimators.path import hkl_path
from hikernel.estimators.regressor import HKLRegressor

__all__ = ["HKLClassifier", "HKLRegressor", "hkl_path"]
