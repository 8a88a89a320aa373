"""scikit-learn estimators: thin, over the layers below."""

from hikernel.estimators.regressor import HKLRegressor

__all__ = ["HKLRegressor"]
