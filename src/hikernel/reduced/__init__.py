"""The reduced problem: the convex problem on a hull J small enough to write down.

``problem`` keeps the moments of a growing hull. ``variational`` maps eta to zeta and bounds the
dual norm. ``forms`` solves for beta given zeta (``kernel_form`` from Gram matrices, ``outputs`` for
several outputs), ``newton`` minimises over eta, ``working_set`` starts from a neighbour.
``loss_solve`` makes any loss a sequence of quadratic models, ``descent`` for smooth losses,
``interior`` for losses with kinks. ``solution`` says how it went.
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
