"""The consistency conditions of the paper: when the true hull can be recovered.

``population`` computes the conditions from a covariance, ``plugin`` from data, ``fitted`` from a
fitted model. ``dual_norm`` bounds the dual norm from both sides, ``graph_part`` restricts a graph
to some of its nodes, ``system`` checks the input, ``report`` holds the results. Nothing here fits
a model.
"""

from hikernel.consistency.fitted import FittedTerms, diagnose
from hikernel.consistency.plugin import estimate_conditions
from hikernel.consistency.population import consistency_conditions
from hikernel.consistency.report import Condition, ConsistencyReport, Verdict

__all__ = [
    "Condition",
    "ConsistencyReport",
    "FittedTerms",
    "Verdict",
    "consistency_conditions",
    "diagnose",
    "estimate_conditions",
]
