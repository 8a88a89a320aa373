"""What a search is given, what it reports at every step, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hikernel.engines.protocol import Engine, FloatArray, Node
from hikernel.graphs import Grid
from hikernel.reduced import HullMap, ReducedProblem, ReducedSolution
from hikernel.reduced.problem import FormName
from hikernel.search.certificate import Certificate, DualPoint, primal_value

__all__ = ["Certify", "SearchProblem", "SearchResult", "SearchStep", "StepCallback"]

Certify = Literal["auto", "exact", "none"]


@dataclass(frozen=True)
class SearchProblem:
    """min over the whole graph of (1/n) sum loss + (lambda/2) Omega^2, squared error.

    Attributes
    ----------
    engine : Engine
        The rows.
    graph : Grid
        The graph.
    y : ndarray of shape (n,)
        The target.
    strength : float
        lambda.
    form : {"auto", "primal", "dual"}
        Form of the reduced problems.
    """

    engine: Engine
    graph: Grid
    y: FloatArray
    strength: float
    form: FormName = "auto"

    def reduced(self, nodes: list[Node]) -> ReducedProblem:
        """Return the reduced problem on a hull."""
        return ReducedProblem(self.engine, self.graph, self.y, nodes, form=self.form)

    def residuals(self, nodes: list[Node], coef: FloatArray) -> FloatArray:
        """Return y - Phi beta - b, with the b that makes the weighted sum zero."""
        raw = self.y - self.engine.apply(nodes, coef)
        return raw - float(self.engine.row_weights @ raw)

    def primal(self, residuals: FloatArray, hull: HullMap, coef_squares: FloatArray) -> float:
        """Return the objective of a model from its residuals and |beta_w|^2."""
        return primal_value(
            residuals,
            np.zeros_like(residuals),
            self.engine.row_weights,
            hull.norm(coef_squares),
            self.strength,
        )

    def dual_point(self, residuals: FloatArray) -> DualPoint:
        """Return the dual point that belongs to the residuals of a model."""
        return DualPoint.from_residuals(self.y, residuals, self.engine.row_weights, self.strength)

    def tail_sums(self, nodes: list[Node], dual: DualPoint) -> FloatArray:
        """Return U(t) of the nodes for a dual point."""
        return self.engine.tail_sums(nodes, dual.alpha, self.graph.tail_scales())


@dataclass(frozen=True)
class SearchStep:
    """One solved hull on the way.

    Attributes
    ----------
    nodes : list of Node
        The hull J.
    frontier : list of Node
        Sources of its complement.
    solution : ReducedSolution
        The solution on J.
    dual : DualPoint
        The dual point of that solution.
    certificate : Certificate
        What is proven at this step; kind "none" while the necessary condition is violated.
    """

    nodes: list[Node]
    frontier: list[Node]
    solution: ReducedSolution
    dual: DualPoint
    certificate: Certificate


StepCallback = Callable[[SearchStep], None]


@dataclass(frozen=True)
class SearchResult:
    """The model a search ends with.

    Attributes
    ----------
    nodes : list of Node
        The selected hull, ancestor-closed: terms without weight are gone.
    problem : ReducedProblem
        The reduced problem on that hull.
    solution : ReducedSolution
        Its solution.
    residuals : ndarray of shape (n,)
        y - f.
    alpha : ndarray of shape (n,)
        Dual variables of the solution, beta_w = zeta_w Phi_w' alpha.
    certificate : Certificate
        What is proven about it.
    history : list of Certificate
        The certificate of every step.
    """

    nodes: list[Node]
    problem: ReducedProblem
    solution: ReducedSolution
    residuals: FloatArray
    alpha: FloatArray
    certificate: Certificate
    history: list[Certificate]
