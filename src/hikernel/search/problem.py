"""What a search is given, and the words and shares that the searches have in common."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from hikernel.engines.protocol import Engine, FloatArray, GridEngine, Node, Vertex
from hikernel.engines.sketch import sketched_bounds
from hikernel.graphs import ROOT, Grid
from hikernel.losses import Loss, SquaredError, balanced
from hikernel.reduced import LossProblem, ReducedProblem, SquaredProblem
from hikernel.reduced.problem import FormName
from hikernel.reduced.variational import SupportsAncestors
from hikernel.search.certificate import DualPoint
from hikernel.search.screen import PairScreen

__all__ = [
    "AUTO_WORK",
    "NOT_BOUNDED",
    "NO_DRAWS",
    "SOLVE_SHARE",
    "Budget",
    "Certify",
    "HullProblem",
    "SearchProblem",
    "SupportsHulls",
    "too_many_kernels",
]

Certify = Literal["auto", "exact", "statistical", "none"]
TailMode = Literal["exact", "statistical", "none"]

AUTO_WORK = 7 * 10**8
"""certify="auto" bounds the tail exactly up to this many pairs of rows times variables (6,500 rows
with 32 variables): some ten seconds a round on two cores."""

AUTO_SKETCH_WORK = 2 * 10**10
"""Above that, certify="auto" bounds it statistically up to this many rows times variables times
draws (600,000 rows with 32 variables)."""

N_DRAWS = 1000
"""Draws behind a statistical bound."""

RISK = 0.05
"""Probability that a statistical bound is too small."""


SOLVE_SHARE = 0.1
"""Share of the tolerance that the reduced solves may use up."""

NOT_BOUNDED = (
    "The kernels outside were not bounded: not asked for, or too many rows to do it unasked; "
    'certify="exact" does it at a cost quadratic in the rows, certify="statistical" linear.'
)

NO_DRAWS = (
    'certify="statistical" draws random signs for feature columns, and Gram matrices have none; '
    'use certify="exact" (or "auto", which then is the same).'
)


def too_many_kernels(limit: int) -> str:
    """Return the reason of a search that has no room left."""
    return f"The search stopped at max_kernels={limit}; raise it or alpha."


@dataclass(frozen=True)
class Budget:
    """What a search may cost.

    Attributes
    ----------
    max_kernels : int
        Largest hull that is solved.
    max_explored : int
        Kernels that may be scored for the proof.
    deadline : float
        ``time.monotonic()`` at which to stop; infinity for never.
    """

    max_kernels: int
    max_explored: int = 10**6
    deadline: float = float("inf")

    def is_spent(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() > self.deadline


@dataclass(frozen=True)
class Measured:
    """A model, measured from the rows.

    Attributes
    ----------
    intercept : ndarray of shape () or (k,)
        The best b.
    loss : float
        The weighted mean of the loss.
    dual : DualPoint
        The dual point that belongs to it.
    """

    intercept: FloatArray
    loss: float
    dual: DualPoint


class SupportsHulls(SupportsAncestors, Protocol):
    """What every search needs to know of a graph."""

    @property
    def n_vertices(self) -> int:
        """Number of vertices, a Python int."""
        ...

    def hull(self, nodes: Iterable[Vertex]) -> set[Vertex]:
        """Return the union of the ancestors of the nodes."""
        ...

    def depth(self, node: Vertex) -> int:
        """Return a number that is larger than that of any other ancestor."""
        ...


@dataclass(frozen=True)
class HullProblem:
    """min over the whole graph of (1/n) sum loss + (lambda/2) Omega^2.

    Attributes
    ----------
    engine : Engine
        The rows.
    graph : SupportsHulls
        The graph.
    y : ndarray of shape (n,) or (n, k)
        The target.
    strength : float
        lambda.
    loss : Loss
        The loss.
    form : {"auto", "primal", "dual"}
        Form of the reduced problems.
    """

    engine: Engine
    graph: SupportsHulls
    y: FloatArray
    strength: float
    loss: Loss = field(default_factory=SquaredError)
    form: FormName = "auto"

    def reduced(self, nodes: list[Vertex]) -> ReducedProblem:
        """Return the reduced problem on a hull."""
        if isinstance(self.loss, SquaredError):
            return SquaredProblem(self.engine, self.graph, self.y, nodes, form=self.form)
        return LossProblem(self.engine, self.graph, self.y, nodes, self.loss, form=self.form)

    def measure(
        self, nodes: list[Vertex], coef: FloatArray, residuals: FloatArray | None = None
    ) -> Measured:
        """Return what a model's coefficients are worth, recomputed from the rows.

        The dual point comes from the gradient at the model, or, where the loss has kinks and no
        gradient, from the residuals that a solver found: whatever they are, balanced and checked
        against the domain of the conjugate they give a valid bound.
        """
        loss, omega = self.loss, self.engine.row_weights
        linear = self.engine.apply(nodes, coef)
        intercept = loss.intercept(self.y, linear, omega, 0.0 if loss.smooth else 1e-12)
        f = linear + intercept
        if loss.smooth or residuals is None:
            residuals = loss.residuals(self.y, f, omega, 0.0 if loss.smooth else 1e-6)
        else:
            residuals = balanced(residuals, omega)
        return Measured(
            intercept=intercept,
            loss=float(omega @ loss.value(self.y, f)),
            dual=DualPoint.of(loss, self.y, residuals, omega, self.strength),
        )


@dataclass(frozen=True)
class SearchProblem(HullProblem):
    """The problem on a grid, whose kernels are never enumerated but summed in closed form.

    Attributes
    ----------
    engine : GridEngine
        The rows.
    graph : Grid
        The grid.
    seed : int
        Of the draws behind statistical bounds.
    screen : PairScreen, optional
        Bounds on pairs that problems with the same rows and graph share.
    """

    engine: GridEngine
    graph: Grid
    seed: int = 0
    screen: PairScreen | None = None

    def tail_sums(self, nodes: list[Node], dual: DualPoint) -> FloatArray:
        """Return U(t) of the nodes for a dual point."""
        return self.engine.tail_sums(
            nodes, dual.alpha, self.graph.tail_scales(), self.graph.max_order
        )

    def total_score(self, dual: DualPoint) -> float:
        """Return the sum over the whole graph of |a_w|^2 / prod_m d_{m,w_m}^2."""
        scales = self.graph.own_scales()
        return float(self.engine.tail_sums([ROOT], dual.alpha, scales, self.graph.max_order)[0])

    def tail_bounds(
        self, nodes: list[Node], dual: DualPoint, risk: float, attempt: int = 0
    ) -> FloatArray:
        """Return bounds on U(t) that hold for all nodes with probability 1 - risk."""
        scales, limit = self.graph.tail_scales(), self.graph.max_order
        seed = self.seed + attempt
        draws = self.engine.tail_draws(nodes, dual.alpha, scales, limit, N_DRAWS, seed)
        diagonal = self.engine.tail_diagonal(nodes, dual.alpha, scales, limit)
        return sketched_bounds(draws, risk, diagonal)

    def tail_mode(self, certify: Certify) -> TailMode:
        """Return how the tail is to be bounded: exactly costs n^2, statistically n.

        From Gram matrices it is bounded exactly or not at all: a solve costs n^2 and more anyway.
        """
        if not self.engine.has_draws:
            if certify == "statistical":
                raise ValueError(NO_DRAWS)
            return "exact" if certify == "auto" else certify
        if certify != "auto":
            return certify
        n, p = self.engine.n_rows, self.graph.n_variables
        if n * (n + 1) // 2 * p <= AUTO_WORK:
            return "exact"
        return "statistical" if n * p * N_DRAWS <= AUTO_SKETCH_WORK else "none"
