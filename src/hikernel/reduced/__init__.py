"""The reduced problem: the convex problem on a hull J small enough to write down.

``variational`` maps eta to zeta and bounds the dual norm, ``forms`` solves for beta given zeta (and
``outputs`` for several outputs), ``newton`` minimises over eta, ``working_set`` starts from a
neighbour, ``problem`` keeps the moments of a growing hull, ``loss_problem`` makes any loss a
sequence of quadratic models (``descent`` for smooth losses, ``interior`` for losses with kinks),
``result`` says how it went.
"""

from hikernel.reduced.general import LossProblem
from hikernel.reduced.newton import solve_reduced
from hikernel.reduced.problem import ReducedProblem, SquaredProblem
from hikernel.reduced.result import ReducedSolution, Status, WarmStart
from hikernel.reduced.variational import DualNormBound, HullMap

__all__ = [
    "DualNormBound",
    "HullMap",
    "LossProblem",
    "ReducedProblem",
    "ReducedSolution",
    "SquaredProblem",
    "Status",
    "WarmStart",
    "solve_reduced",
]
