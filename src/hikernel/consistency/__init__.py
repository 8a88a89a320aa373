"""When the hull can be recovered: the consistency conditions of the paper as numbers.

``population`` computes them from a covariance, ``plugin`` from data, ``fitted`` from a fitted
model. ``dual_norm`` brackets the dual norm behind them, ``graph`` is a small DAG given by its
parents, ``system`` checks the input, ``report`` says what came out. Nothing here fits a model.
"""

from hikernel.consistency.fitted import FittedTerms, diagnose
from hikernel.consistency.graph_part import SupportsWeight
from hikernel.consistency.plugin import estimate_conditions
from hikernel.consistency.population import consistency_conditions
from hikernel.consistency.report import Condition, ConsistencyReport, Verdict

__all__ = [
    "Condition",
    "ConsistencyReport",
    "FittedTerms",
    "SupportsWeight",
    "Verdict",
    "consistency_conditions",
    "diagnose",
    "estimate_conditions",
]
