"""The reduced problem: the convex problem restricted to the nodes of a hull J.

``problem`` holds the data of a hull that grows and shrinks. ``variational`` maps eta to zeta and
bounds the dual norm. ``forms`` solves for beta given zeta (``kernel_form`` from Gram matrices,
``outputs`` for several outputs). ``newton`` minimises over eta. ``working_set`` warm-starts it from
the solution of a neighbouring problem. ``loss_solve`` replaces a general loss by a sequence of
quadratic models: ``descent`` for smooth losses, ``interior`` for losses with kinks. ``solution``
holds the result and its status.
"""

from hikernel.reduced.newton import solve_reduced
from hikernel.reduced.problem import ReducedProblem
from hikernel.reduced.solution import ReducedSolution, Status, WarmStart
from hikernel.reduced.variational import DualNormBound, HullMap

__all__ = [
    "DualNormBound",
    "HullMap",
    "ReducedProblem",
    "ReducedSolution",
    "Status",
    "WarmStart",
    "solve_reduced",
]
