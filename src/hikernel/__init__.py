"""hikernel: sparse, readable, provably optimal nonlinear models by hierarchical kernel learning."""

from hikernel._version import __version__
from hikernel.estimators import HKLRegressor

__all__ = ["HKLRegressor", "__version__"]
