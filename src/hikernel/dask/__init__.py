"""Estimators that fit where the partitions of a Dask collection lie.

They need ``pip install hikernel[dask]``. Nothing else in the package imports Dask.
"""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "hikernel.dask needs dask and distributed, which are not installed; install them by "
        "pip install 'hikernel[dask]'."
    ) from error

from hikernel.dask.dask_estimators import (
    DaskHKLClassifier,
    DaskHKLClassifierCV,
    DaskHKLRegressor,
    DaskHKLRegressorCV,
)

__all__ = [
    "DaskHKLClassifier",
    "DaskHKLClassifierCV",
    "DaskHKLRegressor",
    "DaskHKLRegressorCV",
]
