"""The problem on the whole graph, for any lambda, and solutions on hulls evaluated on the rows.

The kernels of a grid are never enumerated. Sums over all of them are known in closed form, and
``PairScreen`` bounds the scores of all products of two levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.machine import require_memory
from hikernel.engines.protocol import Engine, FloatArray, GridEngine, Node, Vertex
from hikernel.engines.sketch import sketched_bounds
from hikernel.graphs import ROOT, Grid, SearchGraph
from hikernel.losses import Loss, SquaredError, balanced
from hikernel.reduced import ReducedProblem, ReducedSolution, WarmStart
from hikernel.reduced.problem import FormName
from hikernel.search.certificate import DualPoint
from hikernel.search.effort import GridEffort

if TYPE_CHECKING:
    from hikernel.search.restricted_tails import RestrictedTails

__all__ = [
    "AUTO_WORK",
    "RISK",
    "Certify",
    "GridObjective",
    "Objective",
    "PairScreen",
    "SolvedHull",
    "TailMode",
]

Certify = Literal["auto", "exact", "statistical", "none"]
TailMode = Literal["exact", "statistical", "none"]

AUTO_WORK = 7 * 10**8
"""certify="auto" bounds the tail exactly up to this many pairs of rows times variables (6,500 rows
with 32 variables): about ten seconds per round on two cores."""

AUTO_SKETCH_WORK = 2 * 10**10
"""Above ``AUTO_WORK``, certify="auto" bounds the tail statistically up to this many rows times
variables times draws (600,000 rows with 32 variables)."""

_LISTED = 2000
"""Largest number of nodes of a grid of which all are scored in a proof."""

N_DRAWS = 1000
"""Number of random draws for a statistical bound."""

RISK = 0.05
"""Largest probability that the statistical bounds of a search are too small."""

_SOLVE_SHARE = 0.1
"""Share of the tolerance that the reduced solves may use up."""

_MOST_SCORES = 10**12
"""Limit on the work of scoring pairs of levels in one round: rows (pairs of rows for Gram matrices)
times pairs of levels times outputs. About ten seconds on two cores. The prefixes with the largest
bounds come first."""

_REFERENCES = 4
"""Number of earlier dual points (alpha0) that ``PairScreen`` keeps."""

_REFRESH = 0.5
"""Share of open prefixes above which all are scored, so that the bounds of all become recent."""


@dataclass(frozen=True)
class SolvedHull:
    """A solution on a hull, with its objective and bounds recomputed from the rows.

    Attributes
    ----------
    problem : ReducedProblem
        The reduced problem on the hull J.
    solution : ReducedSolution
        Its solution.
    intercept : ndarray of shape () or (k,)
        b.
    objective : float
        The objective at the solution, recomputed from the rows.
    dual : DualPoint
        The dual point that belongs to the model.
    own_squares : ndarray of shape (m,)
        |a_w|^2 on the hull, recomputed from the rows and rounded up.
    inside : float
        Bound on Omega*^2 of the dual point, from the nodes of the hull alone.
    threshold : float
        How large Omega*^2 may be over all nodes for the gap to meet the tolerance; at least
        ``inside``, below which no further node can bring it.
    """

    problem: ReducedProblem
    solution: ReducedSolution
    intercept: FloatArray
    objective: float
    dual: DualPoint
    own_squares: FloatArray
    inside: float
    threshold: float


@dataclass(frozen=True)
class Objective:
    """min over the whole graph of (1/n) sum loss + (lambda/2) Omega^2, for any lambda.

    Attributes
    ----------
    engine : Engine
        The rows.
    graph : SearchGraph
        The graph.
    y : ndarray of shape (n,) or (n, k)
        The target.
    loss : Loss
        The loss.
    form : {"auto", "primal", "dual"}
        Form of the reduced problems.
    """

    engine: Engine
    graph: SearchGraph
    y: FloatArray
    loss: Loss = field(default_factory=SquaredError)
    form: FormName = "auto"

    def reduced(self, nodes: Sequence[Vertex]) -> ReducedProblem:
        """Return the reduced problem on a hull."""
        return ReducedProblem(self.engine, self.graph, self.y, nodes, self.loss, form=self.form)

    def tail_mode(self, certify: Certify) -> TailMode:
        """Return how kernels outside a hull are bounded: here exactly, by their own scores."""
        return "exact"

    def null_dual(self, lam: float) -> DualPoint:
        """Return the dual point of the best constant prediction."""
        return self._measure([], np.zeros((0, *self.y.shape[1:])), lam, None)[2]

    def solve(
        self, reduced: ReducedProblem, lam: float, *, tol: float, warm: WarmStart | None = None
    ) -> SolvedHull:
        """Solve a reduced problem, and evaluate the solution on the rows.

        Objective, dual point and dual norm are computed again here, so that the certificate does
        not rely on the numbers of the solver.

        Parameters
        ----------
        reduced : ReducedProblem
            The problem on a hull.
        lam : float
            lambda.
        tol : float
            Relative gap that the search has to reach; the solve may use up a tenth of it.
        warm : WarmStart, optional
            Starting point.
        """
        solution = reduced.solve(lam, tol=_SOLVE_SHARE * tol, warm=warm)
        intercept, loss, dual = self._measure(reduced.nodes, solution.coef, lam, solution.residuals)
        norm = reduced.hull.norm(reduced.node_squares(solution.coef))
        objective = loss + 0.5 * lam * norm**2
        own = reduced.rounded_up_squares(dual.dual_coef)
        inside = reduced.hull.refine_dual_norm(own, solution.dual_norm.eta).value
        return SolvedHull(
            problem=reduced,
            solution=solution,
            intercept=intercept,
            objective=objective,
            dual=dual,
            own_squares=own,
            inside=inside,
            threshold=max(dual.dual_norm_for((1.0 - tol) * objective), inside),
        )

    def prune(self, solved: SolvedHull, *, allowed: float, tol: float) -> SolvedHull:
        """Return the solution on the smallest hull tried whose objective is at most ``allowed``.

        Nodes with small |beta_D(v)|, relative to the largest one, are dropped, and the problem on
        the remaining nodes is solved again. |beta_D(v)| does not increase from a node to its
        children, so the remaining nodes are ancestor-closed. The relative cutoff starts at ``tol``
        and is divided by ten until the objective is at most ``allowed``. If no smaller hull
        qualifies, ``solved`` is returned.
        """
        reduced, solution = solved.problem, solved.solution
        norms = reduced.hull.descendant_norms(reduced.node_squares(solution.coef))
        largest = float(np.max(norms))
        cutoff = tol
        while cutoff > 1e-12:
            # If all coefficients are zero, only the first node is kept, a source of the graph.
            index = np.flatnonzero(norms > cutoff * largest)
            index = index if len(index) else np.zeros(1, dtype=np.intp)
            if len(index) == len(reduced.nodes):
                break
            trial = self.solve(
                reduced.restrict([reduced.nodes[i] for i in index]),
                solved.dual.lam,
                tol=tol,
                warm=WarmStart(solution.eta[index], solution.coef[reduced.blocks.columns(index)]),
            )
            if trial.solution.status.ok and trial.objective <= allowed:
                return trial
            cutoff /= 10.0
        return solved

    def _measure(
        self,
        nodes: Sequence[Vertex],
        coef: FloatArray,
        lam: float,
        residuals: FloatArray | None,
    ) -> tuple[FloatArray, float, DualPoint]:
        """Return the best intercept of a model, its mean loss and its dual point.

        The dual point comes from the gradient of the loss at the model. For a loss with kinks it
        comes from the residuals that a solver found, or, if there are none, from the gradient of
        the smoothed loss. Any residuals give a valid bound once they are balanced: outside its
        domain the conjugate is infinite, and the dual value is then the trivial bound 0.
        """
        loss, omega = self.loss, self.engine.row_weights
        linear = self.engine.apply(nodes, coef)
        intercept = loss.intercept(self.y, linear, omega, 0.0 if loss.smooth else 1e-12)
        f = linear + intercept
        if loss.smooth or residuals is None:
            residuals = loss.residuals(self.y, f, omega, 0.0 if loss.smooth else 1e-6)
        else:
            residuals = balanced(residuals, omega)
        dual = DualPoint.of(loss, self.y, residuals, omega, lam)
        return intercept, float(omega @ loss.value(self.y, f)), dual


@dataclass(frozen=True)
class GridObjective(Objective):
    """The problem on a grid, with sums over all kernels of the grid in closed form."""

    engine: GridEngine
    graph: Grid

    @cached_property
    def screen(self) -> PairScreen:
        """Bounds on pairs of levels, shared by all lambdas of a path."""
        return PairScreen(self.engine, self.graph)

    @cached_property
    def restricted(self) -> RestrictedTails | None:
        """Sums over the terms that may enter; None if all may, and the sums below are these."""
        if self.graph.restriction is None:
            return None
        from hikernel.search.restricted_tails import RestrictedTails

        return RestrictedTails(self)

    def effort(self, mode: TailMode) -> GridEffort:
        """Return what scores and bounds cost on these rows."""
        n_outputs = 1 if self.y.ndim == 1 else self.y.shape[1]
        draws = N_DRAWS if mode == "statistical" else 0
        graph = self.graph
        return GridEffort.of(self.engine, graph.n_variables, n_outputs, graph.max_order, draws)

    def tail_sums(self, nodes: Sequence[Node], dual: DualPoint) -> FloatArray:
        """Return the descendant sums U(t) of the nodes for a dual point, over the whole grid."""
        scales, limit = self.graph.tail_scales(), self.graph.max_order
        return self.engine.tail_sums(nodes, dual.dual_coef, scales, limit)

    def own_sums(self, nodes: Sequence[Node], dual: DualPoint) -> FloatArray:
        """Return the sums of |a_w|^2 / prod_m d_{m,w_m}^2 over all descendants w of the nodes."""
        scales, limit = self.graph.own_scales(), self.graph.max_order
        return self.engine.tail_sums(nodes, dual.dual_coef, scales, limit)

    def total_score(self, dual: DualPoint) -> float:
        """Return the sum over the whole graph of |a_w|^2 / prod_m d_{m,w_m}^2."""
        return float(self.own_sums([ROOT], dual)[0])

    def tail_bounds(
        self, nodes: Sequence[Node], dual: DualPoint, risk: float, seed: int
    ) -> FloatArray:
        """Return bounds on U(t) that hold for all nodes at once with probability 1 - risk."""
        n_numbers = 6 * N_DRAWS * len(nodes)  # the draws, and what is computed from them
        require_memory(n_numbers, f"{N_DRAWS} draws of {len(nodes)} sums", "Limit max_order.")
        scales, limit = self.graph.tail_scales(), self.graph.max_order
        draws = self.engine.tail_draws(nodes, dual.dual_coef, scales, limit, N_DRAWS, seed)
        parts = self.engine.tail_exact_parts(nodes, dual.dual_coef, scales, limit)
        return sketched_bounds(draws, risk, parts)

    @property
    def can_list_all(self) -> bool:
        """Whether the grid is so small that all its nodes are scored, at a cost linear in n."""
        return self.graph.n_vertices <= _LISTED

    def tail_mode(self, certify: Certify) -> TailMode:
        """Return how the tail is bounded; exact bounds cost O(n^2), statistical ones O(n).

        With Gram matrices the tail is bounded exactly or not at all: a solve costs at least n^2
        anyway. So it is with sparse columns, whose exact sums take no pairs of rows.
        """
        if not self.engine.has_draws:
            if certify == "statistical":
                raise ValueError(
                    'certify="statistical" draws random signs for dense columns; sparse columns '
                    'and Gram matrices have none. Their bounds are exact: use certify="exact" (or '
                    '"auto", which then is the same).'
                )
            return "exact" if certify == "auto" else certify
        if certify != "auto":
            return certify
        n, p = self.engine.n_rows, self.graph.n_variables
        if n * (n + 1) // 2 * p <= AUTO_WORK:
            return "exact"
        return "statistical" if n * p * N_DRAWS <= AUTO_SKETCH_WORK else "none"


class PairScreen:
    """Bounds on the scores of all products of two levels, updated from round to round.

    For two levels v, w of different variables, and any dual points alpha and alpha0,

        |a_vw(alpha)| <= |s| |a_vw(alpha0)| + |rows of Phi_v scaled by (alpha - s alpha0) / u|
                                              |rows of Phi_w scaled by u|,      u = sqrt(omega),

    by the Cauchy-Schwarz inequality (Frobenius norms, any number s). One pass over all pairs gives
    the largest |a_vw(alpha0)| / (d_v d_w) over w for every v. From then on, the inequality bounds
    all pairs of v at the cost of one product with v. Before the first pass alpha0 is zero and the
    bound is a product of norms; this is enough to rule out deep levels while lambda is large. With
    several outputs, the norm over the outputs replaces |alpha_i|. alpha changes little from one
    round or lambda to the next, so a pass over all pairs is rarely needed.

    Parameters
    ----------
    engine : GridEngine
        The rows.
    graph : Grid
        The graph, for its weights.
    """

    def __init__(self, engine: GridEngine, graph: Grid) -> None:
        self._engine = engine
        self._prefixes: list[Node] = [(pair,) for pair in engine.level_pairs]
        self._index = {prefix: i for i, prefix in enumerate(self._prefixes)}
        self._weights = np.array([graph.weight(prefix) for prefix in self._prefixes])
        self._roots = np.sqrt(engine.row_weights)
        sizes = np.sqrt(engine.level_squares(self._roots)) / self._weights
        self._largest = float(np.max(sizes, initial=0.0))
        self._references: list[FloatArray] = []
        self._scores = np.zeros(len(self._prefixes))
        self._source = np.full(len(self._prefixes), -1)  # index of the reference; -1: alpha0 = 0

    def open_prefixes(self, dual_coef: FloatArray, threshold: float) -> list[Node]:
        """Return the levels that may be in a pair with |a|^2 / d^2 above the threshold.

        If that is more than half of the levels, all are returned. ``_MOST_SCORES`` limits the
        number; the levels with the largest bounds are then kept.
        """
        bounds = self._bounds(dual_coef)
        chosen: NDArray[np.intp] = np.flatnonzero(bounds**2 > threshold)
        if len(chosen) > _REFRESH * len(bounds):
            chosen = np.arange(len(bounds))
        n_outputs = 1 if dual_coef.ndim == 1 else dual_coef.shape[1]
        most = _MOST_SCORES // max(1, self._engine.score_work * len(bounds) * n_outputs)
        if len(chosen) > most:
            chosen = chosen[np.argsort(-bounds[chosen], kind="stable")[:most]]
        return [self._prefixes[i] for i in chosen]

    def update(self, dual_coef: FloatArray, prefixes: Sequence[Node], largest: FloatArray) -> None:
        """Store the largest |a|^2 / d^2 over the pairs of some levels, for the given alpha."""
        if not prefixes or not np.any(dual_coef):
            return
        index = np.array([self._index[prefix] for prefix in prefixes])
        if len(self._references) == _REFERENCES:
            # The oldest reference is removed; levels that used it fall back to alpha0 = 0.
            del self._references[0]
            self._scores[self._source == 0] = 0.0
            self._source = np.maximum(self._source - 1, -1)
        self._references.append(dual_coef.copy())
        self._scores[index] = np.sqrt(largest)
        self._source[index] = len(self._references) - 1

    def _bounds(self, dual_coef: FloatArray) -> FloatArray:
        out = np.empty(len(self._prefixes))
        for source in np.unique(self._source):
            here = self._source == source
            factor, change = 0.0, dual_coef
            if source >= 0:
                reference = self._references[source]
                factor = float(np.vdot(dual_coef, reference) / np.vdot(reference, reference))
                change = dual_coef - factor * reference
            rows = np.abs(change) if change.ndim == 1 else np.linalg.norm(change, axis=1)
            norms = np.sqrt(self._engine.level_squares(rows / self._roots)) / self._weights
            out[here] = (abs(factor) * self._scores + norms * self._largest)[here]
        return out
