"""Reproduction of the tables and the figure of the paper.

The baselines of the paper are exported as estimators. They are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hikernel.experiments.greedy import GreedyClassifier, GreedyRegressor
    from hikernel.experiments.l2 import L2Classifier, L2Regressor
    from hikernel.experiments.lasso_alpha import LassoAlphaRegressor
    from hikernel.experiments.mkl import MKLRegressor

__all__ = [
    "GreedyClassifier",
    "GreedyRegressor",
    "L2Classifier",
    "L2Regressor",
    "LassoAlphaRegressor",
    "MKLRegressor",
]

_HOMES = {
    "GreedyClassifier": "greedy",
    "GreedyRegressor": "greedy",
    "L2Classifier": "l2",
    "L2Regressor": "l2",
    "LassoAlphaRegressor": "lasso_alpha",
    "MKLRegressor": "mkl",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
