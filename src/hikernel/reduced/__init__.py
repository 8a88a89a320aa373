"""The reduced problem: the convex problem on a hull J small enough to write down.

``variational`` maps eta to zeta and bounds the dual norm, ``forms`` solves for beta given zeta,
``newton`` minimises over eta, ``problem`` keeps the moments of a growing hull, ``result`` says
how it went.
"""

from hikernel.reduced.newton import solve_reduced
from hikernel.reduced.problem import ReducedProblem
from hikernel.reduced.result import ReducedSolution, Status
from hikernel.reduced.variational import DualNormBound, HullMap

__all__ = [
    "DualNormBound",
    "HullMap",
    "ReducedProblem",
    "ReducedSolution",
    "Status",
    "solve_reduced",
]
