"""A solved hull measured from the rows, the steps of a search, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hikernel.engines.protocol import FloatArray, Vertex
from hikernel.reduced import ReducedProblem, ReducedSolution, WarmStart
from hikernel.search.certificate import Certificate, DualPoint
from hikernel.search.problem import HullProblem

__all__ = [
    "SearchResult",
    "SearchStep",
    "SolvedHull",
    "StepCallback",
    "solve_hull",
]


@dataclass(frozen=True)
class SolvedHull:
    """A solution with its objective and its dual point.

    Attributes
    ----------
    problem : ReducedProblem
        The reduced problem on the hull J.
    solution : ReducedSolution
        Its solution.
    intercept : ndarray of shape () or (k,)
        b.
    objective : float
        Recomputed from the rows.
    dual : DualPoint
        The dual point that belongs to the model.
    own_squares : ndarray of shape (m,)
        |a_w|^2 on the hull, recomputed from the rows.
    inside : float
        Bound on Omega*^2 over the hull.
    level : float
        The largest Omega*^2 at which the gap meets the tolerance; no less than ``inside``.
    """

    problem: ReducedProblem
    solution: ReducedSolution
    intercept: FloatArray
    objective: float
    dual: DualPoint
    own_squares: FloatArray
    inside: float
    level: float


def solve_hull(
    problem: HullProblem,
    reduced: ReducedProblem,
    *,
    tol: float,
    solve_tol: float,
    warm: WarmStart | None = None,
) -> SolvedHull:
    """Solve a reduced problem and measure the solution from the rows.

    The certificate does not lean on the solver's own numbers: objective, dual point and dual
    norm are computed again here.
    """
    solution = reduced.solve(problem.strength, tol=solve_tol, warm=warm)
    measured = problem.measure(reduced.nodes, solution.coef, solution.residuals)
    dual = measured.dual
    norm = reduced.hull.norm(reduced.node_squares(solution.coef))
    objective = measured.loss + 0.5 * problem.strength * norm**2
    own = reduced.rounded_up_squares(dual.alpha)
    inside = reduced.hull.refine_dual_norm(own, solution.dual_norm.eta).value
    return SolvedHull(
        problem=reduced,
        solution=solution,
        intercept=measured.intercept,
        objective=objective,
        dual=dual,
        own_squares=own,
        inside=inside,
        level=max(dual.dual_norm_for((1.0 - tol) * objective), inside),
    )


@dataclass(frozen=True)
class SearchStep:
    """One solved hull on the way.

    Attributes
    ----------
    nodes : list of nodes
        The hull J.
    frontier : list of nodes
        Sources of its complement.
    solution : ReducedSolution
        The solution on J.
    dual : DualPoint
        The dual point of that solution.
    certificate : Certificate
        What is proven at this step; kind "none" while the necessary condition is violated.
    """

    nodes: list[Vertex]
    frontier: list[Vertex]
    solution: ReducedSolution
    dual: DualPoint
    certificate: Certificate


StepCallback = Callable[[SearchStep], None]


@dataclass(frozen=True)
class SearchResult:
    """The model a search ends with.

    Attributes
    ----------
    nodes : list of nodes
        The selected hull, ancestor-closed: terms without weight are gone.
    problem : ReducedProblem
        The reduced problem on that hull.
    solution : ReducedSolution
        Its solution.
    intercept : ndarray of shape () or (k,)
        b.
    alpha : ndarray of shape (n,) or (n, k)
        Dual variables of the solution, beta_w = zeta_w Phi_w' alpha.
    certificate : Certificate
        What is proven about it.
    history : list of Certificate
        The certificate of every step.
    """

    nodes: list[Vertex]
    problem: ReducedProblem
    solution: ReducedSolution
    intercept: FloatArray
    alpha: FloatArray
    certificate: Certificate
    history: list[Certificate]

    @classmethod
    def of(
        cls, solved: SolvedHull, certificate: Certificate, history: list[Certificate]
    ) -> SearchResult:
        """Return the result that ends with a solved hull."""
        return cls(
            nodes=list(solved.problem.nodes),
            problem=solved.problem,
            solution=solved.solution,
            intercept=solved.intercept,
            alpha=solved.dual.alpha,
            certificate=certificate,
            history=history,
        )
