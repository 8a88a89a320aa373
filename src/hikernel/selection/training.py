"""A training problem: data and graph, made once, solved for any alpha."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from hikernel.bases import Basis
from hikernel.bases.design import Design
from hikernel.engines import Engine
from hikernel.engines.protocol import FloatArray, GridEngine, Vertex
from hikernel.engines.threads import one_blas_thread
from hikernel.graphs import ROOT, Grid, TrainingRows, geometric_weights, take
from hikernel.losses import Loss
from hikernel.reduced import WarmStart
from hikernel.search import (
    Budget,
    HullProblem,
    SearchProblem,
    SearchResult,
    explicit_search,
    lookahead_search,
    paper_search,
)
from hikernel.search.problem import Certify
from hikernel.search.screen import PairScreen
from hikernel.search.state import StepCallback
from hikernel.selection.model import FittedDesign, TermModel
from hikernel.selection.units import target_units

__all__ = ["SearchName", "SearchSettings", "TrainingProblem", "term_variances"]

SearchName = Literal["lookahead", "paper"]

_ONE_THREAD = 200_000
"""Rows times one-variable levels up to which one BLAS thread is as fast as two."""

_IDLE = 1e-26
"""Variance of a term, in units of y, that is nothing but rounding."""


@dataclass(frozen=True)
class SearchSettings:
    """How to search.

    Attributes
    ----------
    search : {"lookahead", "paper"}
        The rule.
    tol : float
        Relative duality gap to reach.
    max_kernels : int
        Largest hull that is solved.
    certify : {"auto", "exact", "statistical", "none"}
        How the tail is bounded.
    time_budget : float or None
        Seconds after which the search ends with what it has.
    seed : int
        Of the draws behind statistical bounds.
    """

    search: SearchName = "lookahead"
    tol: float = 1e-3
    max_kernels: int = 600
    certify: Certify = "auto"
    time_budget: float | None = None
    seed: int = 0


@dataclass(frozen=True)
class TrainingProblem:
    """Fitted features, graph and rows; y with a scale is standardised, which leaves alpha as it is.

    Attributes
    ----------
    design : FittedDesign
        The fitted bases, or the kernels of a graph.
    graph : Grid or SupportsExplore
        A grid, or a graph whose nodes can be scored one and all.
    engine : Engine
        The rows of positive weight.
    y : ndarray of shape (n_used,) or (n_used, k)
        Target: of location zero and scale one where the loss has a scale.
    loss : Loss
        The loss.
    center, scale : float
        y in its own units is center + scale y.
    used : ndarray of bool of shape (n,)
        Rows of positive weight.
    X : ndarray of shape (n_used, p), or TrainingRows
        These rows, as the design takes them.
    bases : tuple of Basis
        The bases before they were fitted; none for other graphs than a grid of bases.
    weight_base : float
        Factor by which the weights of a grid of bases grow from level to level.
    """

    design: FittedDesign
    graph: Any
    engine: Engine
    y: FloatArray
    loss: Loss
    center: float
    scale: float
    used: NDArray[np.bool_]
    X: Any
    bases: tuple[Basis, ...] = ()
    weight_base: float = 1.0

    @classmethod
    def make(
        cls,
        X: FloatArray,
        y: FloatArray,
        weights: FloatArray,
        bases: Sequence[Basis],
        loss: Loss,
        *,
        max_order: int | None,
        weight_base: float,
        root_weight: float,
    ) -> TrainingProblem:
        """Fit the bases and lay out the rows.

        Parameters
        ----------
        X : ndarray of shape (n, p)
            Finite numbers.
        y : ndarray of shape (n,) or (n, k)
            Target.
        weights : ndarray of shape (n,)
            Zero or positive.
        bases : sequence of Basis
            One per column.
        loss : Loss
            The loss; y must be in its domain.
        max_order : int or None
            How many variables may interact.
        weight_base, root_weight : float
            Weights of the graph.
        """
        # Fitting is all short vector products, which threads only slow down.
        with one_blas_thread():
            design = Design.fit(X, bases, weights)
        if max_order is not None and not all(basis.constant_level for basis in design.bases):
            raise ValueError(
                "max_order needs bases with a constant level 0: without one every term contains "
                "every variable. Pass constant_level=True to the basis, or give it by name."
            )
        used = weights > 0
        loss.check_target(y[used])
        center, scale = target_units(y[used], weights[used], loss)
        return cls(
            design=design,
            graph=Grid(geometric_weights(design.max_levels, weight_base), root_weight, max_order),
            engine=design.engine(X[used], weights[used]),
            y=(y[used] - center) / scale,
            loss=loss,
            center=center,
            scale=scale,
            used=used,
            X=X[used],
            bases=tuple(bases),
            weight_base=weight_base,
        )

    @classmethod
    def of_graph(
        cls, source: Any, rows: Any, y: FloatArray, weights: FloatArray, loss: Loss
    ) -> TrainingProblem:
        """Lay out the rows of a graph of kernels.

        Parameters
        ----------
        source : KernelGraph or another of :mod:`hikernel.graphs`
            The graph.
        rows : Any
            The rows as its ``read`` returns them.
        y : ndarray of shape (n,) or (n, k)
            Target.
        weights : ndarray of shape (n,)
            Zero or positive.
        loss : Loss
            The loss; y must be in its domain.
        """
        used = weights > 0
        loss.check_target(y[used])
        center, scale = target_units(y[used], weights[used], loss)
        design = source.fit(rows if np.all(used) else take(rows, np.flatnonzero(used)))
        return cls(
            design=design,
            graph=design.graph,
            engine=design.engine(weights[used]),
            y=(y[used] - center) / scale,
            loss=loss,
            center=center,
            scale=scale,
            used=used,
            X=TrainingRows(np.arange(int(np.sum(used)))),
        )

    def subset(self, rows: NDArray[np.intp]) -> TrainingProblem:
        """Return the problem of some of the rows (positions among those used).

        Bases, graph and units are those of all rows: nothing is fitted again, features are
        copied.
        """
        return replace(
            self,
            design=self.design.subset(rows),
            engine=self.engine.subset(rows),
            y=self.y[rows],
            used=np.ones(len(rows), dtype=bool),
            X=self.X[rows],
        )

    def solve(
        self,
        alpha: float,
        settings: SearchSettings,
        *,
        start: tuple[Sequence[Vertex], WarmStart] | None = None,
        callback: StepCallback | None = None,
    ) -> TermModel:
        """Search for one alpha.

        Parameters
        ----------
        alpha : float
            lambda.
        settings : SearchSettings
            How to search.
        start : tuple of (nodes, WarmStart), optional
            Hull and solution of a neighbouring alpha (look-ahead only).
        callback : callable, optional
            Called with every step of the search.
        """
        with one_blas_thread(self._is_small()):
            if isinstance(self.graph, Grid):
                result = self._search_grid(alpha, settings, start, callback)
            else:
                problem = HullProblem(self.engine, self.graph, self.y, alpha, self.loss)
                result = explicit_search(
                    problem,
                    tol=settings.tol,
                    budget=_budget(settings),
                    callback=callback,
                    start=start,
                )
        return self._model(alpha, result)

    def _search_grid(
        self,
        alpha: float,
        settings: SearchSettings,
        start: tuple[Sequence[Vertex], WarmStart] | None,
        callback: StepCallback | None,
    ) -> SearchResult:
        problem = SearchProblem(
            self._grid_engine,
            self.graph,
            self.y,
            alpha,
            self.loss,
            seed=settings.seed,
            screen=self._screen,
        )
        if settings.search == "paper":
            return paper_search(
                problem,
                tol=settings.tol,
                max_kernels=settings.max_kernels,
                certify=settings.certify,
                callback=callback,
            )
        return lookahead_search(
            problem,
            tol=settings.tol,
            budget=_budget(settings),
            certify=settings.certify,
            callback=callback,
            start=start,
        )

    @property
    def _grid_engine(self) -> GridEngine:
        return cast(GridEngine, self.engine)

    def _is_small(self) -> bool:
        """Whether one BLAS thread is as fast as two."""
        if isinstance(self.graph, Grid):
            return self.engine.n_rows * len(self._grid_engine.level_pairs) <= _ONE_THREAD
        n_vertices = int(min(self.graph.n_vertices, _ONE_THREAD))
        return self.engine.n_rows * n_vertices <= _ONE_THREAD

    def strongest(self, weighted: FloatArray) -> tuple[Vertex, float] | None:
        """Return the node with the largest score over the weight D of its ancestors, and D.

        On a grid of nodes of one variable; None where there is none, or nothing to score.
        """
        graph = self.graph
        if not np.any(weighted):
            return None
        if not isinstance(graph, Grid):
            node = graph.strongest(self.engine, weighted)
        else:
            pairs = self._grid_engine.level_pairs
            if not pairs:
                return None
            squares = self._grid_engine.extension_squares([ROOT], weighted)[0]
            totals = np.array([np.sum(graph.weights(graph.ancestors((pair,)))) for pair in pairs])
            node = (pairs[int(np.argmax(squares / totals**2))],)
        return node, float(np.sum(graph.weights(graph.ancestors(node))))

    def null_prediction(self, smoothing: float) -> FloatArray:
        """Return the best constant prediction, of the shape of y."""
        zero = np.zeros_like(self.y)
        return zero + self.loss.intercept(self.y, zero, self.engine.row_weights, smoothing)

    def prediction(self, model: TermModel) -> FloatArray:
        """Return f of a model on the rows, in the units of the problem."""
        linear = self.engine.apply(model.nodes, model.coef / self.scale)
        return np.asarray(linear + (model.intercept - self.center) / self.scale)

    def mean_loss(self, f: FloatArray) -> float:
        """Return the weighted mean of the loss over the rows."""
        return float(self.engine.row_weights @ self.loss.value(self.y, f))

    @cached_property
    def _screen(self) -> PairScreen:
        """Bounds on pairs, which the lambdas of a path share."""
        return PairScreen(self._grid_engine, self.graph)

    def _model(self, alpha: float, result: SearchResult) -> TermModel:
        """Return a result in the units of y."""
        coef, starts = result.solution.coef, result.problem.starts
        squares = result.problem.node_squares(coef)
        dual_coef = np.zeros((len(self.used), *self.y.shape[1:]))
        unit = self.scale**self.loss.degree
        dual_coef[self.used] = self.scale * result.alpha
        variances = term_variances(self.engine, result.nodes, np.split(coef, starts[1:]))
        total = float(np.sum(variances))
        widths = np.diff(np.append(starts, len(coef)))
        if self.engine.kernel_operator(result.nodes) is not None:
            # A constant kernel has a function by rounding alone (blocks know constant columns).
            idle = variances <= _IDLE * max(1.0, total)
            squares[idle] = variances[idle] = 0.0
            coef = (coef.T * np.repeat(~idle, widths)).T
        return TermModel(
            alpha=alpha,
            nodes=result.nodes,
            widths=widths,
            coef=self.scale * coef,
            intercept=self.center + self.scale * result.intercept,
            dual_coef=dual_coef,
            eta=result.solution.eta,
            zeta=result.solution.zeta,
            norms=self.scale * np.sqrt(squares),
            shares=variances / total if total > 0.0 else variances,
            certificate=result.certificate.scaled(unit),
            history=[certificate.scaled(unit) for certificate in result.history],
            status=result.solution.status,
        )


def _budget(settings: SearchSettings) -> Budget:
    """Return what a search may cost, from now on."""
    seconds = settings.time_budget
    deadline = np.inf if seconds is None else time.monotonic() + seconds
    return Budget(settings.max_kernels, deadline=deadline)


def term_variances(
    engine: Engine, nodes: Sequence[Vertex], blocks: Sequence[FloatArray]
) -> FloatArray:
    """Return the variance of each term over the rows, shape (len(nodes),)."""
    omega = engine.row_weights
    out = []
    with one_blas_thread():
        for node, block in zip(nodes, blocks, strict=True):
            values = engine.apply([node], block)
            out.append(float(np.sum(omega @ (values - omega @ values) ** 2)))
    return np.array(out)
